// Which operand memory a kernel may, or must, write its result to.
#include <optional>
#include <unordered_set>

#include "strop/plan/band_maker.h"
#include "strop/plan/fusion_cost.h"
#include "strop/plan/plan.h"
#include "strop/plan/values.h"

namespace strop {
namespace {

const Shape& Leaf(const Shape& shape, int64_t leaf) { return shape.IsTuple() ? shape.element(leaf) : shape; }

bool SameElements(const Shape& a, const Shape& b) {
  return a.IsArray() && b.IsArray() && a.SameDims(b) && Bytes(a.type()) == Bytes(b.type());
}

// Every path from the parameter to the root goes element by element.
bool ReadOnlyAtTheResultIndex(const Instruction& parameter, const Instruction& root) {
  std::unordered_set<const Instruction*> seen;
  std::vector<const Instruction*> stack = {&parameter};
  while (!stack.empty()) {
    const Instruction* at = stack.back();
    stack.pop_back();
    for (const Use& use : at->uses()) {
      if (!IsElementwise(use.user->op()) || !use.user->shape().SameDims(root.shape())) return false;
      if (!at->shape().SameDims(root.shape())) return false;
      if (seen.insert(use.user).second) stack.push_back(use.user);
    }
  }
  return true;
}

// One result a operand of the root; not so where tuples are in tuples.
bool ResultsAreOperands(const Instruction& tuple) {
  for (int64_t k = 0; k < tuple.operand_count(); ++k)
    if (!tuple.operand(k)->shape().IsArray()) return false;
  return true;
}

// A member's result may take the place of what no later member reads, if those before it read no other rows of it than
// their own, and the member itself goes element by element.
InPlace BandReuse(const Instruction& kernel, int64_t operand, int64_t leaf) {
  using namespace plan_internal;
  const std::optional<Band> band = Band::Of(kernel);
  if (!band || !band->is_of_loops()) return InPlace::No;
  const Instruction *parameter = kernel.called(0)->parameter(operand),
                    *result = band->results[static_cast<size_t>(leaf)];
  if (!SameElements(parameter->shape(), result->shape())) return InPlace::No;
  const WidthOf of = [&](const Instruction& i) {
    const Instruction* source = Band::Source(&i);
    return source == parameter     ? result->shape().num_elements() / band->rows
           : source->IsParameter() ? kOutside
                                   : band->widths.at(source);
  };
  bool written = false;
  for (const Instruction* m : band->members) {
    for (int64_t k = 0; k < m->operand_count(); ++k) {
      if (Band::Source(m->operand(k)) != parameter) continue;
      if (written || RowWidth(*m, band->rows, of) == kMixed) return InPlace::No;
      if (m == result && CanReuseOperand(*m, k, 0) != InPlace::Allowed) return InPlace::No;
    }
    written |= m == result;
  }
  return InPlace::Allowed;
}

InPlace FusionReuse(const Instruction& kernel, int64_t operand, int64_t leaf) {
  if (kernel.attrs<FusionAttrs>().kind == FusionKind::Custom) return BandReuse(kernel, operand, leaf);
  const Computation& fused = *kernel.called(0);
  const Instruction* root = fused.root();
  if (root->op() == Op::Tuple) {
    if (!ResultsAreOperands(*root)) return InPlace::No;
    root = root->operand(leaf);
  }
  const Instruction* parameter = fused.parameter(operand);
  if (root->op() == Op::DynamicUpdateSlice || root->op() == Op::Scatter)
    return root->operand(0) == parameter ? InPlace::Required : InPlace::No;
  if (fused.root()->op() == Op::Tuple || !IsElementwise(root->op())) return InPlace::No;
  if (!SameElements(parameter->shape(), root->shape())) return InPlace::No;
  return ReadOnlyAtTheResultIndex(*parameter, *root) ? InPlace::Allowed : InPlace::No;
}

}  // namespace

InPlace CanReuseOperand(const Instruction& kernel, int64_t operand, int64_t leaf) {
  const Shape& result = Leaf(kernel.shape(), leaf);
  const Shape& from = kernel.operand(operand)->shape();
  switch (kernel.op()) {
    case Op::DynamicUpdateSlice: return operand == 0 ? InPlace::Required : InPlace::No;
    case Op::Scatter: {
      const int64_t inputs = (kernel.operand_count() - 1) / 2;
      return operand == leaf && operand < inputs ? InPlace::Required : InPlace::No;
    }
    case Op::Fusion: return FusionReuse(kernel, operand, leaf);
    default:
      if (!IsElementwise(kernel.op()) || !SameElements(from, result)) return InPlace::No;
      return InPlace::Allowed;
  }
}

namespace plan_internal {

void MakeWhatIsWrittenOverApart(Computation& computation) {
  for (Instruction* made : computation.PostOrder()) {
    if (!IsMadeFromNothing(*made) || made->shape().num_elements() == 1) continue;
    const std::vector<Use> uses(made->uses().begin(), made->uses().end());
    for (const Use& use : uses) {
      if (made->use_count() == 1) break;
      bool written_over = false;
      for (int64_t leaf = 0; leaf < use.user->shape().num_leaves(); ++leaf)
        written_over |= CanReuseOperand(*use.user, use.operand_number, leaf) == InPlace::Required;
      if (written_over)
        use.user->SetOperand(use.operand_number,
                             computation.AddClone(*made, made->shape(), made->operands(), nullptr, use.user));
    }
  }
}

bool HandsOnItsOperand(Op op) {
  return op == Op::Reshape || op == Op::Bitcast || op == Op::Copy || op == Op::OptimizationBarrier ||
         op == Op::Domain || op == Op::AddDependency;
}

namespace {

// Does nobody write a result into the memory of `array`, apart from who gets it as a result of the computation?
bool NobodyWritesOver(const Instruction& array) {
  for (const Use& use : array.uses()) {
    const Instruction& user = *use.user;
    if (HandsOnItsOperand(user.op())) {
      if (!NobodyWritesOver(user)) return false;
      continue;
    }
    switch (user.op()) {
      case Op::Tuple:
        if (&user != user.parent()->root()) return false;
        break;
      case Op::While:
      case Op::Conditional:
      case Op::Call:
      case Op::CustomCall: return false;
      default:
        for (int64_t leaf = 0; leaf < user.shape().num_leaves(); ++leaf)
          if (CanReuseOperand(user, use.operand_number, leaf) != InPlace::No) return false;
    }
  }
  return true;
}

}  // namespace

bool IsLeftAlone(const Instruction& array) {
  const Instruction* at = &array;
  while (HandsOnItsOperand(at->op())) at = at->operand(0);
  if (at->op() == Op::Parameter || at->op() == Op::GetTupleElement || !at->shape().IsArray()) return false;
  return NobodyWritesOver(*at);
}

}  // namespace plan_internal
}  // namespace strop
