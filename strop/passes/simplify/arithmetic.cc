// Rules of arithmetic ops. Floats: x + -0 and x - 0 are x, but x + 0 is not (-0 + 0 = 0); x - x and x * 0 are not 0
// (infinity, NaN); a division by a power of two is exactly the product with its inverse.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"
#include "strop/rewrite/match.h"

namespace strop::simplify {
namespace {

using namespace match;

bool IsInt(const Instruction* i) { return IsInteger(Type(i)); }
bool IsIntOrFloat(const Instruction* i) { return IsInt(i) || IsFloat(Type(i)); }
// Is -x a number of the type? Not of f8e8m0fnu, where it is NaN.
bool HasNegatives(const Instruction* i) { return !IsFloat(Type(i)) || FormatOf(Type(i)).has_sign; }
bool NegatesExactly(const Instruction* i) { return IsIntOrFloat(i) && HasNegatives(i); }

Instruction* Like(Builder& b, const Instruction* i, double value) { return b.Splat(Type(i), value, i->shape().dims()); }

// The operand beside one that fits, or null.
template <class Predicate>
Instruction* Other(Instruction* i, Predicate fits) {
  if (fits(i->operand(1))) return i->operand(0);
  return fits(i->operand(0)) ? i->operand(1) : nullptr;
}

Instruction* AddZero(Instruction* i, Builder&) {
  if (IsInt(i)) return Other(i, IsZeroInteger);
  return IsFloat(Type(i)) ? Other(i, IsNegativeZero) : nullptr;
}

// x + -y -> x - y
Instruction* AddNegate(Instruction* i, Builder& b) {
  Instruction *x, *y;
  if (!NegatesExactly(i) || !Match(i, Add(Any(&x), OneUse(Negate(Any(&y)))))) return nullptr;
  return b.Make(Op::Subtract, {x, y});
}

Instruction* SubtractZero(Instruction* i, Builder&) {
  const Instruction* y = i->operand(1);
  return (IsInt(i) ? IsZeroInteger(y) : IsPositiveZero(y)) ? i->operand(0) : nullptr;
}

Instruction* SubtractSelf(Instruction* i, Builder& b) {
  return IsInt(i) && i->operand(0) == i->operand(1) ? Like(b, i, 0) : nullptr;
}

// x - -y -> x + y
Instruction* SubtractNegate(Instruction* i, Builder& b) {
  Instruction *x, *y;
  if (!NegatesExactly(i) || !Match(i, Subtract(Any(&x), OneUse(Negate(Any(&y)))))) return nullptr;
  return b.Make(Op::Add, {x, y});
}

// 0 - x -> -x for integers; for floats 0 - 0 is 0, but -(0) is -0.
Instruction* ZeroMinus(Instruction* i, Builder& b) {
  const bool exact = IsInt(i) ? IsZeroInteger(i->operand(0)) : IsNegativeZero(i->operand(0));
  return exact ? b.Make(Op::Negate, {i->operand(1)}) : nullptr;
}

Instruction* MultiplyOne(Instruction* i, Builder&) {
  if (!IsIntOrFloat(i)) return nullptr;
  return Other(i, [](const Instruction* o) { return IsSplatOf(o, 1); });
}

Instruction* MultiplyZero(Instruction* i, Builder& b) {
  return IsInt(i) && Other(i, IsZeroInteger) ? Like(b, i, 0) : nullptr;
}

// -x * -y -> x * y; of float quotients, too
Instruction* NegatesCancel(Instruction* i, Builder& b) {
  if (!NegatesExactly(i) || (i->op() == Op::Divide && IsInt(i))) return nullptr;
  const Instruction *x = i->operand(0), *y = i->operand(1);
  if (x->op() != Op::Negate || y->op() != Op::Negate) return nullptr;
  return b.Make(i->op(), {x->operand(0), y->operand(0)});
}

Instruction* DivideOne(Instruction* i, Builder&) {
  return IsIntOrFloat(i) && IsSplatOf(i->operand(1), 1) ? i->operand(0) : nullptr;
}

// x / 2^k -> x * 2^-k, where both are normal numbers: then both round the same exact value.
Instruction* DivideByPowerOfTwo(Instruction* i, Builder& b) {
  const Literal* c = Splat(i->operand(1));
  if (!c || !IsFloat(Type(i))) return nullptr;
  int exponent = 0;
  const double value = c->GetDouble(0);
  if (!std::isfinite(value) || std::fabs(std::frexp(value, &exponent)) != 0.5) return nullptr;
  const FloatFormat& format = FormatOf(Type(i));
  const int k = exponent - 1, lowest = 1 - format.bias;
  if (!format.has_sign || k < lowest || -k < lowest) return nullptr;
  return b.Make(Op::Multiply, {i->operand(0), Like(b, i, 1 / value)});
}

// 1 / (1 + e^-x) -> logistic(x), as JAX writes it: rounded once instead of four times, and subnormal where e^-x
// overflows.
Instruction* DivideLogistic(Instruction* i, Builder& b) {
  Instruction *one, *sum;
  if (!IsFloat(Type(i)) || !Match(i, Divide(Any(&one), OneUse(Any(&sum)))) || !IsSplatOf(one, 1)) return nullptr;
  if (sum->op() != Op::Add) return nullptr;
  Instruction* exp = Other(sum, [](const Instruction* o) { return IsSplatOf(o, 1); });
  if (!HasNegatives(i) || !exp || exp->op() != Op::Exp || exp->use_count() != 1 || exp->operand(0)->op() != Op::Negate)
    return nullptr;
  return b.Make(Op::Logistic, {exp->operand(0)->operand(0)}, DefaultAttrs(Op::Logistic));
}

// Unsigned x / 2^k -> x >> k
Instruction* DivideUnsigned(Instruction* i, Builder& b) {
  const int k = PowerOfTwo(i->operand(1));
  if (!IsUnsigned(Type(i)) || k < 0) return nullptr;
  return b.Make(Op::ShiftRightLogical, {i->operand(0), Like(b, i, k)});
}

// Unsigned x % 2^k -> x & (2^k - 1)
Instruction* RemainderUnsigned(Instruction* i, Builder& b) {
  const int k = PowerOfTwo(i->operand(1));
  if (!IsUnsigned(Type(i)) || k < 0) return nullptr;
  Instruction* mask = b.Constant(Literal::ScalarOfInt(Type(i), static_cast<int64_t>((uint64_t{1} << k) - 1)));
  return b.Make(Op::And, {i->operand(0), i->shape().IsScalar() ? mask : b.Broadcast(mask, i->shape().dims(), {})});
}

Instruction* NegateNegate(Instruction* i, Builder&) {
  return HasNegatives(i) && i->operand(0)->op() == Op::Negate ? i->operand(0)->operand(0) : nullptr;
}

// -(x - y) -> y - x for integers; floats differ in the sign of zero.
Instruction* NegateSubtract(Instruction* i, Builder& b) {
  Instruction *x, *y;
  if (!IsInt(i) || !Match(i, Negate(OneUse(Subtract(Any(&x), Any(&y)))))) return nullptr;
  return b.Make(Op::Subtract, {y, x});
}

// ||x|| and |-x|
Instruction* AbsOfAbs(Instruction* i, Builder& b) {
  Instruction* x = i->operand(0);
  if (x->op() == Op::Abs) return x;
  return HasNegatives(x) && x->op() == Op::Negate ? b.Make(Op::Abs, {x->operand(0)}) : nullptr;
}

// x^0 = 1 (for NaN too), x^1 = x; x^2 and x^-1 are rounded once, as x*x and 1/x are.
Instruction* PowerOfSmallInteger(Instruction* i, Builder& b) {
  Instruction* x = i->operand(0);
  if (IsComplex(Type(i))) return nullptr;
  if (IsSplatOf(i->operand(1), 0)) return Like(b, i, 1);
  if (IsSplatOf(i->operand(1), 1)) return x;
  if (IsSplatOf(i->operand(1), 2)) return b.Make(Op::Multiply, {x, x});
  if (IsFloat(Type(i)) && IsSplatOf(i->operand(1), -1)) return b.Make(Op::Divide, {Like(b, i, 1), x});
  return nullptr;
}

Instruction* OfItself(Instruction* i, Builder&) { return i->operand(0) == i->operand(1) ? i->operand(0) : nullptr; }

// The constant that `i` is a splat of, negated; integers wrap.
Instruction* NegatedConstant(Builder& b, const Instruction* i) {
  const Literal& c = *Splat(i);
  Instruction* minus = b.Constant(
      IsInteger(c.type()) ? Literal::ScalarOfInt(c.type(), static_cast<int64_t>(-static_cast<uint64_t>(c.GetInt(0))))
                          : Literal::ScalarOf(c.type(), -c.GetDouble(0)));
  return i->shape().IsScalar() ? minus : b.Broadcast(minus, i->shape().dims(), {});
}

// x + y - y, x + y - x, x - (x - y), for integers
Instruction* SubtractWhatWasAdded(Instruction* i, Builder&) {
  if (!IsInt(i)) return nullptr;
  Instruction *x = i->operand(0), *y = i->operand(1);
  if (x->op() == Op::Add && x->operand(1) == y) return x->operand(0);
  if (x->op() == Op::Add && x->operand(0) == y) return x->operand(1);
  return y->op() == Op::Subtract && y->operand(0) == x ? y->operand(1) : nullptr;
}

// x - y + y for integers
Instruction* AddWhatWasSubtracted(Instruction* i, Builder&) {
  if (!IsInt(i)) return nullptr;
  for (int64_t k = 0; k < 2; ++k) {
    Instruction *difference = i->operand(k), *y = i->operand(1 - k);
    if (difference->op() == Op::Subtract && difference->operand(1) == y) return difference->operand(0);
  }
  return nullptr;
}

// x - c -> x + -c for integers, so that constants meet in sums.
Instruction* SubtractConstant(Instruction* i, Builder& b) {
  if (!IsInt(i) || !Splat(i->operand(1)) || Splat(i->operand(0))) return nullptr;
  return b.Make(Op::Add, {i->operand(0), NegatedConstant(b, i->operand(1))});
}

bool IsConstant(const Instruction* i) { return Splat(i) || (i->IsConstant() && i->literal().has_values()); }

// (x + c) + d -> x + (c + d): integers wrap, so that it is exact; so for multiply, and, or, xor, minimum and maximum.
Instruction* ConstantsMeet(Instruction* i, Builder& b) {
  const bool order = i->op() == Op::Minimum || i->op() == Op::Maximum;
  if (!(order ? IsIntOrFloat(i) : IsInt(i) || (IsPred(Type(i)) && i->op() != Op::Multiply && i->op() != Op::Add)))
    return nullptr;
  for (int64_t k = 0; k < 2; ++k) {
    Instruction *d = i->operand(k), *inner = i->operand(1 - k);
    if (!IsConstant(d) || inner->op() != i->op() || inner->use_count() != 1) continue;
    for (int64_t n = 0; n < 2; ++n)
      if (IsConstant(inner->operand(n)) && !IsConstant(inner->operand(1 - n)))
        return b.Make(i->op(), {inner->operand(1 - n), b.Make(i->op(), {inner->operand(n), d})});
  }
  return nullptr;
}

// x * -1 -> -x
Instruction* MultiplyMinusOne(Instruction* i, Builder& b) {
  if (!(IsInt(i) ? IsSigned(Type(i)) : IsFloat(Type(i)) && FormatOf(Type(i)).has_sign)) return nullptr;
  Instruction* x = Other(i, [](const Instruction* o) { return IsSplatOf(o, -1); });
  return x ? b.Make(Op::Negate, {x}) : nullptr;
}

// -x * c -> x * -c, and -(x * c) -> x * -c: signs never change how a product or a quotient rounds.
Instruction* NegateIntoConstant(Instruction* i, Builder& b) {
  const bool outside = i->op() == Op::Negate;
  Instruction* product = outside ? i->operand(0) : i;
  if (product->op() != Op::Multiply && product->op() != Op::Divide) return nullptr;
  if (outside && product->use_count() != 1) return nullptr;
  if (product->op() == Op::Divide ? !IsFloat(Type(i)) : !IsIntOrFloat(i)) return nullptr;
  if (IsFloat(Type(i)) && !FormatOf(Type(i)).has_sign) return nullptr;
  for (int64_t k = 0; k < 2; ++k) {
    Instruction *c = product->operand(k), *x = product->operand(1 - k);
    if (!Splat(c) || Splat(x)) continue;
    if (!outside) {
      if (x->op() != Op::Negate) continue;
      x = x->operand(0);
    }
    Instruction* minus = NegatedConstant(b, c);
    return b.Make(product->op(), {k == 0 ? minus : x, k == 0 ? x : minus});
  }
  return nullptr;
}

// |x| * |x| -> x * x
Instruction* SquareOfAbs(Instruction* i, Builder& b) {
  Instruction* x = i->operand(0);
  if (x != i->operand(1) || x->op() != Op::Abs || Type(x) != Type(x->operand(0))) return nullptr;
  return b.Make(Op::Multiply, {x->operand(0), x->operand(0)});
}

// |e^x|, |x * x| of floats, |logistic(x)|, of an iota and of what was unsigned: nothing to do.
Instruction* AbsOfPositive(Instruction* i, Builder&) {
  Instruction* x = i->operand(0);
  if (Type(x) != Type(i)) return nullptr;  // of a complex number
  if (IsUnsigned(Type(x))) return x;
  if (x->op() == Op::Convert && Bits(Type(x->operand(0))) < Bits(Type(x)) &&
      (IsUnsigned(Type(x->operand(0))) || IsPred(Type(x->operand(0)))))
    return x;
  if (x->op() == Op::Iota) {
    const int64_t last = x->shape().dim(x->attrs<IotaAttrs>().dimension) - 1;
    return IsFloat(Type(x)) || Bits(Type(x)) == 64 || last < (int64_t{1} << (Bits(Type(x)) - 1)) ? x : nullptr;
  }
  if (!IsFloat(Type(x))) return nullptr;
  const bool square = x->op() == Op::Multiply && x->operand(0) == x->operand(1);
  return square || x->op() == Op::Exp || x->op() == Op::Logistic ? x : nullptr;
}

// floor(floor(x)), sign(sign(x)) and their kind
Instruction* Idempotent(Instruction* i, Builder&) { return i->operand(0)->op() == i->op() ? i->operand(0) : nullptr; }

// max(x, max(x, y)) -> max(x, y); so for minimum, and, or
Instruction* Absorbed(Instruction* i, Builder&) {
  for (int64_t k = 0; k < 2; ++k) {
    Instruction *x = i->operand(k), *inner = i->operand(1 - k);
    if (inner->op() == i->op() && (inner->operand(0) == x || inner->operand(1) == x)) return inner;
  }
  return nullptr;
}

// clamp(l, clamp(l, x, h), h)
Instruction* ClampClamp(Instruction* i, Builder&) {
  Instruction* inner = i->operand(1);
  if (inner->op() != Op::Clamp || inner->operand(0) != i->operand(0) || inner->operand(2) != i->operand(2))
    return nullptr;
  return inner;
}

constexpr Rule kRules[] = {
    {"add-zero", Op::Add, &AddZero},
    {"add-negate", Op::Add, &AddNegate},
    {"add-constants", Op::Add, &ConstantsMeet},
    {"add-subtracted", Op::Add, &AddWhatWasSubtracted},
    {"subtract-zero", Op::Subtract, &SubtractZero},
    {"subtract-self", Op::Subtract, &SubtractSelf},
    {"subtract-negate", Op::Subtract, &SubtractNegate},
    {"zero-minus", Op::Subtract, &ZeroMinus},
    {"multiply-one", Op::Multiply, &MultiplyOne},
    {"multiply-zero", Op::Multiply, &MultiplyZero},
    {"negates-cancel", Op::Multiply, &NegatesCancel},
    {"negates-cancel", Op::Divide, &NegatesCancel},
    {"divide-one", Op::Divide, &DivideOne},
    {"divide-by-power-of-two", Op::Divide, &DivideByPowerOfTwo},
    {"divide-logistic", Op::Divide, &DivideLogistic},
    {"divide-unsigned", Op::Divide, &DivideUnsigned},
    {"remainder-unsigned", Op::Remainder, &RemainderUnsigned},
    {"negate-negate", Op::Negate, &NegateNegate},
    {"negate-subtract", Op::Negate, &NegateSubtract},
    {"abs-abs", Op::Abs, &AbsOfAbs},
    {"power-small-integer", Op::Power, &PowerOfSmallInteger},
    {"maximum-self", Op::Maximum, &OfItself},
    {"minimum-self", Op::Minimum, &OfItself},
    {"subtract-added", Op::Subtract, &SubtractWhatWasAdded},
    {"subtract-constant", Op::Subtract, &SubtractConstant},
    {"multiply-constants", Op::Multiply, &ConstantsMeet},
    {"maximum-constants", Op::Maximum, &ConstantsMeet},
    {"minimum-constants", Op::Minimum, &ConstantsMeet},
    {"and-constants", Op::And, &ConstantsMeet},
    {"or-constants", Op::Or, &ConstantsMeet},
    {"xor-constants", Op::Xor, &ConstantsMeet},
    {"multiply-minus-one", Op::Multiply, &MultiplyMinusOne},
    {"multiply-negate-constant", Op::Multiply, &NegateIntoConstant},
    {"divide-negate-constant", Op::Divide, &NegateIntoConstant},
    {"negate-product", Op::Negate, &NegateIntoConstant},
    {"square-of-abs", Op::Multiply, &SquareOfAbs},
    {"abs-of-positive", Op::Abs, &AbsOfPositive},
    {"floor-floor", Op::Floor, &Idempotent},
    {"ceil-ceil", Op::Ceil, &Idempotent},
    {"round-round", Op::RoundNearestEven, &Idempotent},
    {"round-round", Op::RoundNearestAfz, &Idempotent},
    {"sign-sign", Op::Sign, &Idempotent},
    {"maximum-absorbed", Op::Maximum, &Absorbed},
    {"minimum-absorbed", Op::Minimum, &Absorbed},
    {"and-absorbed", Op::And, &Absorbed},
    {"or-absorbed", Op::Or, &Absorbed},
    {"clamp-clamp", Op::Clamp, &ClampClamp},
};

}  // namespace

RuleSet ArithmeticRules() { return kRules; }

}  // namespace strop::simplify
