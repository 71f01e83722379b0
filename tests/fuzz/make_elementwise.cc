// Elementwise ops, by trial: whatever InferShape accepts for the op's arity.
#include "tests/fuzz/scope.h"

namespace strop::fuzz {
namespace {

Attrs RandomAttrs(Random& random, Op op, ElementType type) {
  Attrs attrs = DefaultAttrs(op);
  if (auto* compare = attrs.get_if<CompareAttrs>()) {
    compare->direction = static_cast<CompareDirection>(random.Below(6));
    if (IsFloat(type) && random.Chance(25)) compare->order = CompareOrder::TotalOrder;
  } else if (auto* precision = attrs.get_if<ReducePrecisionAttrs>()) {
    precision->exponent_bits = random.Between(int64_t{1}, int64_t{11});
    precision->mantissa_bits = random.Between(int64_t{0}, int64_t{52});
  }
  return attrs;
}

}  // namespace

Instruction* MakeElementwise(Scope& scope, Op op) {
  const int arity = Info(op).arity;
  Instruction* first = scope.AnyArray();
  // Of complex numbers it is the logarithm of a number near one, by definition: all digits may be lost.
  if (op == Op::Atan2) first = scope.OfKind(ElementKind::Float);
  for (int attempt = 0; attempt < 6; ++attempt) {
    // A subnormal of an f8 that is computed as f32 has other digits to round than in itself.
    if (op == Op::ReducePrecision && Bits(first->shape().type()) < 16) return nullptr;
    std::vector<Instruction*> operands = {first};
    while (static_cast<int>(operands.size()) < arity) operands.push_back(scope.Value(first->shape()));
    // No one computes it; in a branch that is not taken only a compiler refuses it.
    if (op == Op::Remainder && IsComplex(first->shape().type())) return nullptr;
    const Shape declared = first->shape().WithType(scope.AnyType());
    const bool declares = op == Op::Convert;
    if (Instruction* made = scope.Try(op, operands, RandomAttrs(scope.random(), op, first->shape().type()), {},
                                      declares ? &declared : nullptr))
      return made;
    // Not of this type: one of another.
    static constexpr ElementKind kKinds[] = {ElementKind::Float, ElementKind::Signed, ElementKind::Unsigned,
                                             ElementKind::Float, ElementKind::Complex};
    if (op == Op::Atan2) return nullptr;
    first = scope.OfKind(kKinds[scope.random().Below(std::size(kKinds))]);
    if (!first) return nullptr;
  }
  return nullptr;
}

Instruction* MakeSelect(Scope& scope, Op op) {
  Instruction* on_true = scope.AnyArray();
  const bool scalar = scope.random().Chance(20);
  Instruction* pred = scope.Value(ElementType::Pred, scalar ? Int64Vector{} : on_true->shape().dims());
  return scope.Try(op, {pred, on_true, scope.Value(on_true->shape())});
}

Instruction* MakeClamp(Scope& scope, Op op) {
  Instruction* x = scope.AnyArray();
  auto bound = [&] {
    return scope.random().Chance(50) ? scope.ScalarValue(x->shape().type()) : scope.Value(x->shape());
  };
  Instruction* low = bound();
  return scope.Try(op, {low, x, bound()});
}

Instruction* MakeStochasticConvert(Scope& scope, Op op) {
  Instruction* x = scope.OfKind(ElementKind::Float);
  if (!x) return nullptr;
  const ElementType type = x->shape().type();
  for (ElementType bits : {ElementType::U8, ElementType::U16, ElementType::U32, ElementType::U64}) {
    if (Bits(bits) != Bits(type)) continue;
    const Shape declared = x->shape().WithType(scope.AnyType(ElementKind::Signed));
    return scope.Try(op, {x, scope.Value(bits, x->shape().dims())}, NoAttrs{}, {}, &declared);
  }
  return nullptr;
}

Instruction* Tamed(Scope& scope, Instruction* value) {
  const Shape& shape = value->shape();
  const ElementType type = shape.type();
  if (IsComplex(type)) {
    Instruction* real = Tamed(scope, scope.Add(Op::Real, {value}));
    return scope.Add(Op::Complex, {real, Tamed(scope, scope.Add(Op::Imag, {value}))});
  }
  Instruction* half = scope.Constant(type, 0.5);
  if (shape.rank() > 0) half = scope.Add(Op::Broadcast, {half}, DimensionsAttrs{}, &shape);
  Instruction* finite = scope.Add(Op::Select, {scope.Add(Op::IsFinite, {value}), value, half});
  return scope.Add(Op::Clamp, {scope.Constant(type, -1), finite, scope.Constant(type, 1)});
}

}  // namespace strop::fuzz
