// rng, rng-bit-generator, rng-get-and-update-state.
#include "strop/ir/ops/infer.h"

namespace strop::infer {

Result<Shape> Rng(const Args& args) {
  STROP_ASSIGN(Shape result, args.Declared());
  if (!result.IsArray()) return args.Error("the result must be an array, but is ", result);
  const RngDistribution distribution = args.attrs<RngAttrs>().distribution;
  if (distribution == RngDistribution::Invalid) return args.Error("the distribution is not set");
  if (args.operand_count() != 2)
    return args.Error("needs the two parameters of the distribution, but got ", args.operand_count(), " operands");
  for (int64_t i = 0; i < 2; ++i)
    if (!args.operand(i).IsScalar() || args.operand(i).type() != result.type())
      return args.Violates(1, "parameter ", i, " must be a scalar of the result's type ", Name(result.type()),
                           ", but is ", args.operand(i));
  if (IsComplex(result.type())) return args.Error("complex numbers cannot be drawn, but the result is ", result);
  if (distribution == RngDistribution::Normal && !IsFloat(result.type()))
    return args.Violates(2, "a normal distribution needs a floating-point type, but the result is ", result);
  return result;
}

Result<Shape> RngBitGenerator(const Args& args) {
  STROP_TRY(args.ExpectArray(0));
  STROP_ASSIGN(Shape result, args.Declared());
  const Shape& state = args.operand(0);
  if (state.rank() != 1 || !IsUnsigned(state.type()))
    return args.Error("the state must be a vector of unsigned integers, but is ", state);
  if (result.IsArray()) return result;
  if (!result.IsTuple() || result.tuple_size() != 2 || !result.element(1).IsArray())
    return args.Error("the result must be the new state and an array of bits, but is ", result);
  if (!ShapesAgree(result.element(0), state))
    return args.Violates(1, "the new state must have the shape of the old ", state, ", but is ", result.element(0));
  const ElementType bits = result.element(1).type();
  if (IsComplex(bits)) return args.Error("cannot fill elements of type ", Name(bits));
  // In 64-bit words: ThreeFry has a key and a counter, Philox a key and one or two; XLA takes larger states and leaves
  // the rest.
  if (!state.is_unbounded(0) && state.dim(0) * Bits(state.type()) < 128)
    return args.Violates(2, "the state must hold at least 128 bits, but is ", state);
  return result;
}

Result<Shape> RngGetAndUpdateState(const Args& args) {
  Shape state = Shape::Array(ElementType::U64, {2});
  if (args.declared && !ShapesAgree(*args.declared, state))
    return args.Error("the result must be ", state, ", but is ", *args.declared);
  return state;
}

}  // namespace strop::infer
