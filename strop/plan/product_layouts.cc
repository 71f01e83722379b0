// Products whose result is only wanted transposed write it so: a kernel less, and the result goes through memory once.
//
//   %d = f32[1,12,128,64] dot(%s, %v), ...              %d = f32[1,12,128,64]{3,1,2,0} dot(%s, %v), ...
//   %t = f32[1,128,12,64] transpose(%d), ...            %t = f32[1,128,12,64] bitcast(%d)
//
// A layout on a dot means what it means in HLO: the order in which its result lies in memory. The bitcast that reads it
// is no work. The target says which dots it computes so; a dot that others read as well stays as it is.
#include "strop/plan/plan.h"
#include "strop/plan/values.h"

namespace strop::plan_internal {
namespace {

Layout LayoutOf(const Dims& major_to_minor) {
  Layout layout;
  for (size_t n = major_to_minor.size(); n-- > 0;) layout.minor_to_major.push_back(major_to_minor[n]);
  return layout;
}

}  // namespace

void WriteProductsTransposed(Computation& computation, const TargetInfo& target) {
  if (!target.writes_in_layout) return;
  std::vector<Instruction*> transposes;
  for (Instruction* i : computation.instructions())
    if (i->op() == Op::Transpose && i->operand(0)->op() == Op::Dot) transposes.push_back(i);
  for (Instruction* t : transposes) {
    Instruction* dot = t->operand(0);
    if (dot->use_count() != 1 || dot->IsRoot() || dot->HasControlEdges() || t->HasControlEdges()) continue;
    const Shape as_it_was = dot->shape();
    Shape shape = as_it_was;
    shape.set_layout(LayoutOf(t->dimensions()));
    dot->set_shape(std::move(shape));
    if (target.writes_in_layout(*dot))
      computation.ReplaceWithNew(t, Op::Bitcast, t->shape().WithoutLayout(), {dot});
    else
      dot->set_shape(as_it_was);
  }
}

}  // namespace strop::plan_internal
