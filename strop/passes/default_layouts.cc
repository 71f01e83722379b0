// Forgets every layout: arguments, results and what is between are row-major.
//
//   f32[2,3]{0,1} parameter(0)     f32[2,3]{1,0} parameter(0)
//
// That is another program to its caller, whose arrays now lie otherwise: what PJRT makes of a program whose caller
// wishes for no layouts. For comparing with such compilers; compiling does not run it. Bitcasts whose sides lie
// differently mean layouts, and computations that hold them are refused.
#include "strop/ir/physical_shape.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

bool IsRowMajor(const Shape& shape) {
  if (shape.IsTuple()) {
    for (const Shape& e : shape.elements())
      if (!IsRowMajor(e)) return false;
    return true;
  }
  return !shape.IsArray() || IsIdentityPermutation(MajorToMinor(shape));
}

struct DefaultLayouts final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    if (HasPhysicalEntry(module)) return false;  // they are in the shapes already
    int64_t forgotten = 0;
    for (const Computation* c : module.computations())
      for (const Instruction* i : c->instructions())
        if (i->op() == Op::Bitcast && !(IsRowMajor(i->shape()) && IsRowMajor(i->operand(0)->shape())))
          return Unimplemented("bitcast %", i->name(), " means layouts, which default-layouts would forget")
              .At(i->Where());
    for (Computation* c : module.computations())
      for (Instruction* i : c->instructions()) {
        forgotten += !IsRowMajor(i->shape());
        i->set_shape(i->shape().WithoutLayout());
      }
    EntryLayout& entry = module.config().entry_layout;
    for (Shape& shape : entry.parameters) {
      forgotten += !IsRowMajor(shape);
      shape = shape.WithoutLayout();
    }
    forgotten += !IsRowMajor(entry.result);
    entry.result = entry.result.WithoutLayout();
    context.Count("default-layouts.forgotten", forgotten);
    return forgotten > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeDefaultLayouts() { return std::make_unique<DefaultLayouts>(); }

}  // namespace strop
