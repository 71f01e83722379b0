// Arrays whose size only a run tells, up to a bound: cut, worked on, and brought back to a shape that is known.
#include "tests/fuzz/scope.h"

namespace strop::fuzz {
namespace {

// An s32 between 0 and `bound`, from the values that there are.
Instruction* SizeUpTo(Scope& scope, int64_t bound) {
  Instruction* any = scope.ScalarValue(ElementType::S32);
  return scope.Add(Op::Clamp, {scope.Constant(ElementType::S32, 0), any,
                               scope.Constant(ElementType::S32, static_cast<double>(bound))});
}

}  // namespace

// What is beyond the size is not defined, so that the results are sums over the dimension, or the size itself.
Instruction* MakeBounded(Scope& scope, Op op) {
  Random& random = scope.random();
  Instruction* x = scope.AnyArray();
  const Shape& shape = x->shape();
  if (shape.rank() == 0) return nullptr;
  const int64_t along = random.Below(shape.rank());
  Instruction* size = SizeUpTo(scope, shape.dim(along));
  if (IsComplex(shape.type()) || (IsFloat(shape.type()) && FormatOf(shape.type()).has_zero)) x = Tamed(scope, x);
  Instruction* part = size ? scope.Add(op, {x, size}, DimensionsAttrs{{along}}) : nullptr;
  if (!part) return nullptr;
  for (int64_t n = random.Below(3); n > 0; --n) {
    static constexpr Op kOps[] = {Op::Negate, Op::Abs, Op::Not, Op::Floor, Op::Sign};
    const Op unary = kOps[random.Below(std::size(kOps))];
    const Shape* const shapes[] = {&part->shape()};
    const Result<Shape> result = InferShape(unary, shapes, DefaultAttrs(unary), {}, nullptr);
    if (result.ok() && result->Compatible(part->shape())) part = scope.Add(unary, {part});
  }
  if (random.Chance(30)) return scope.Try(Op::GetDimensionSize, {part}, DimensionsAttrs{{along}});
  DimensionsAttrs over;
  for (int64_t d = 0; d < shape.rank(); ++d)
    if (d == along || random.Chance(40)) over.dimensions.push_back(d);
  Reducer reducer = MakeReducer(scope, {part});
  return scope.Try(Op::Reduce, {part, reducer.init[0]}, over, {reducer.to_apply});
}

}  // namespace strop::fuzz
