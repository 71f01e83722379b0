#include "tests/fuzz/mistake.h"

#include <cmath>

#include "strop/ir/builder.h"
#include "tests/fuzz/random.h"

namespace strop::fuzz {
namespace {

constexpr double kUnits = 64;

// The op that a slip of the pen would give instead, or the op itself. Both take and give the same shapes.
Op Related(Op op) {
  static constexpr std::pair<Op, Op> kPairs[] = {
      {Op::Add, Op::Subtract},
      {Op::Maximum, Op::Minimum},
      {Op::And, Op::Or},
      {Op::Floor, Op::Ceil},
      {Op::Sin, Op::Cos},
      {Op::Exp, Op::Expm1},
      {Op::Log, Op::Log1p},
      {Op::Sqrt, Op::Cbrt},
      {Op::Divide, Op::Remainder},
      {Op::ShiftRightLogical, Op::ShiftRightArithmetic},
      {Op::RoundNearestAfz, Op::RoundNearestEven},
      {Op::Negate, Op::Abs},
  };
  for (const auto& [a, b] : kPairs) {
    if (op == a) return b;
    if (op == b) return a;
  }
  return op;
}

CompareDirection Related(CompareDirection direction) {
  switch (direction) {
    case CompareDirection::Eq: return CompareDirection::Le;
    case CompareDirection::Ne: return CompareDirection::Lt;
    case CompareDirection::Ge: return CompareDirection::Gt;
    case CompareDirection::Gt: return CompareDirection::Ge;
    case CompareDirection::Le: return CompareDirection::Lt;
    default: return CompareDirection::Le;
  }
}

// What stands in the place of `i`, or null: nothing can.
Instruction* Mistaken(Builder& b, Instruction* i, Mistake mistake) {
  const Shape shape = i->shape().WithoutLayout();
  switch (mistake) {
    case Mistake::kRounding: {
      if (!IsFloat(shape.type()) || Bits(shape.type()) < 16) return nullptr;
      const double factor = 1 + std::ldexp(kUnits, -FormatOf(shape.type()).mantissa_bits);
      return b.Make(Op::Multiply, {i, b.Splat(shape.type(), factor, shape.dims())});
    }
    case Mistake::kOp: {
      Attrs attrs = i->any_attrs();
      if (auto* compare = attrs.get_if<CompareAttrs>())
        compare->direction = Related(compare->direction);
      else if (Related(i->op()) == i->op())
        return nullptr;
      else
        attrs = DefaultAttrs(Related(i->op()));
      std::vector<Instruction*> operands;
      for (Instruction* operand : i->operands()) operands.push_back(operand);
      std::vector<const Shape*> shapes;
      for (const Instruction* operand : operands) shapes.push_back(&operand->shape());
      const Result<Shape> result = InferShape(Related(i->op()), shapes, attrs, {}, nullptr);
      if (!result.ok() || !result->Compatible(shape)) return nullptr;
      return b.Make(Related(i->op()), operands, std::move(attrs), {}, nullptr);
    }
    case Mistake::kOrder: {
      if (!Is(i->op(), kDataMovement)) return nullptr;
      for (int64_t d = 0; d < shape.rank(); ++d)
        if (shape.dim(d) > 1) return b.Make(Op::Reverse, {i}, DimensionsAttrs{{d}});
      return nullptr;
    }
  }
  return nullptr;
}

bool IsSource(const Instruction& i) { return i.operand_count() == 0; }

}  // namespace

std::string_view Name(Mistake mistake) {
  switch (mistake) {
    case Mistake::kRounding: return "rounding";
    case Mistake::kOp: return "op";
    case Mistake::kOrder: return "order";
  }
  return "";
}

std::unique_ptr<Module> WithMistake(const Module& module, Mistake mistake, uint64_t seed) {
  std::unique_ptr<Module> copy = module.Clone();
  std::vector<Instruction*> candidates;
  for (Computation* c : copy->PostOrder())
    for (Instruction* i : c->instructions())
      if (i->shape().IsArray() && !IsSource(*i)) candidates.push_back(i);
  Random random(seed);
  random.Shuffle(candidates);
  for (Instruction* i : candidates) {
    const std::vector<Use> uses(i->uses().begin(), i->uses().end());
    Builder b(i->parent());
    b.set_insert_before(i->next());
    Instruction* mistaken = Mistaken(b, i, mistake);
    if (!mistaken) continue;
    for (const Use& use : uses) use.user->SetOperand(use.operand_number, mistaken);
    if (i->IsRoot()) i->parent()->set_root(mistaken);
    return copy;
  }
  return nullptr;
}

}  // namespace strop::fuzz
