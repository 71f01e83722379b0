#include "strop/codegen/scalar_emitter.h"

#include <cmath>

#include "strop/codegen/complex_arithmetic.h"
#include "strop/codegen/math/math.h"

namespace strop {

using V = llvm::Value*;
using Pred = llvm::CmpInst::Predicate;

static_assert(ScalarBuilder<ScalarEmitter>);

Val ScalarEmitter::Emit(const ScalarOp& op, std::span<const Val> operands) {
  unrounded_ = op.unrounded;
  const Val result = op.by_inverse ? DivideByInverse(operands[0], operands[1]) : EmitScalar(*this, op, operands);
  unrounded_ = false;
  return result;
}

bool ScalarEmitter::Rounds(ElementType type) const {
  return IsFloat(type) && Bits(type) < 32 && (type != ElementType::BF16 || !unrounded_);
}

Val ScalarEmitter::Rounded(V v, ElementType type) {
  if (Rounds(type)) v = e_.RoundToFormat(type, v);
  return Real(v, type);
}

// Of an operation of the processor, or of formulas made of them, on numbers of the type: a NaN is one of these or the
// processor's own.
Val ScalarEmitter::RoundedSum(V v, ElementType type) {
  if (Rounds(type)) v = e_.RoundToFormat(type, v, /*made_of_it=*/true);
  return Real(v, type);
}

// What these two formats hold whenever they hold the operand.
Val ScalarEmitter::Exact(V v, ElementType type) {
  return type == ElementType::BF16 || type == ElementType::F16 ? Real(v, type) : Rounded(v, type);
}

Val ScalarEmitter::Add(const Val& x, const Val& y) {
  if (x.im) return Val{b_.FAdd(x.re, y.re), b_.FAdd(x.im, y.im), x.type};
  if (IsFloat(x.type)) return RoundedSum(b_.FAdd(x.re, y.re), x.type);
  return Real(IsPred(x.type) ? b_.Or(x.re, y.re) : b_.Add(x.re, y.re), x.type);
}

Val ScalarEmitter::Sub(const Val& x, const Val& y) {
  if (x.im) return Val{b_.FSub(x.re, y.re), b_.FSub(x.im, y.im), x.type};
  if (IsFloat(x.type)) return RoundedSum(b_.FSub(x.re, y.re), x.type);
  return Real(IsPred(x.type) ? b_.Xor(x.re, y.re) : b_.Sub(x.re, y.re), x.type);
}

Val ScalarEmitter::Mul(const Val& x, const Val& y) {
  if (x.im) return ComplexArithmetic(*this).Mul(x, y);
  if (IsFloat(x.type)) return RoundedSum(b_.FMul(x.re, y.re), x.type);
  return Real(IsPred(x.type) ? b_.And(x.re, y.re) : b_.Mul(x.re, y.re), x.type);
}

// Vectors have no integer division, but the quotient of two integers of at most 32 (16) bits is the truncated quotient
// of the same doubles (floats): the distance of a/b to the next integer, at least 1/b, is more than the rounding error.
// A constant divisor is a multiplication and shifts, which LLVM knows.
V ScalarEmitter::IntegerDivide(V x, V y, bool is_signed) {
  IrBuilder& ir = b_.ir();
  b_.Match(x, y);
  const int bits = VectorBuilder::ScalarBits(x);
  if (VectorBuilder::Lanes(x) == 1 || bits > 32 || llvm::isa<llvm::Constant>(y))
    return is_signed ? ir.CreateSDiv(x, y) : ir.CreateUDiv(x, y);
  llvm::Type* real = VectorBuilder::Like(bits <= 16 ? b_.F32() : b_.F64(), x);
  V a = is_signed ? ir.CreateSIToFP(x, real) : ir.CreateUIToFP(x, real);
  V d = is_signed ? ir.CreateSIToFP(y, real) : ir.CreateUIToFP(y, real);
  V q = ir.CreateFDiv(a, d);
  return is_signed ? ir.CreateFPToSI(q, x->getType()) : ir.CreateFPToUI(q, x->getType());
}

// x / y by the reciprocal of y: within 1.5 units of the last place of f32. What bf16 rounds this to is the quotient's
// own rounding: that of two numbers of 8 bits is at least 2^-17 away from where two of them meet. Very large and very
// small divisors are scaled, for their reciprocals are subnormal or infinite.
Val ScalarEmitter::DivideByInverse(const Val& x, const Val& y) {
  const auto [known, is_new] = inverses_.try_emplace(y.re);
  if (is_new) {
    const IrBuilder::InsertPointGuard here(b_.ir());
    if (auto* made = llvm::dyn_cast<llvm::Instruction>(y.re))  // outside of the loop that x comes from
      if (const auto behind = made->getInsertionPointAfterDef()) b_.ir().SetInsertPoint(*behind);
    constexpr double kFar = 0x1p120, kScale = 0x1p30;
    V magnitude = b_.FAbs(y.re);
    V small = b_.Select(b_.FLt(magnitude, b_.F(1 / kFar, y.re)), b_.F(kScale, y.re), b_.F(1, y.re));
    V scale = b_.Select(b_.FGt(magnitude, b_.F(kFar, y.re)), b_.F(1 / kScale, y.re), small);
    known->second = {scale, b_.FDiv(b_.F(1, y.re), b_.FMul(y.re, scale))};
  }
  return RoundedSum(b_.FMul(b_.FMul(x.re, known->second.first), known->second.second), x.type);
}

Val ScalarEmitter::Div(const Val& x, const Val& y) {
  if (x.im) return ComplexArithmetic(*this).Div(x, y);
  if (IsFloat(x.type)) return RoundedSum(b_.FDiv(x.re, y.re), x.type);
  if (IsPred(x.type)) return Real(b_.Or(x.re, b_.Not(y.re)), x.type);
  // x / 0 is all ones; the smallest integer / -1 is itself.
  const bool is_signed = IsSigned(x.type);
  V a = x.re, d = y.re;
  b_.Match(a, d);
  V zero = b_.IEq(d, b_.Zero(d));
  if (!is_signed) {
    V q = IntegerDivide(a, b_.Select(zero, b_.I(1, d), d), false);
    return Real(b_.Select(zero, b_.I(-1, q), q), x.type);
  }
  V minus_one = b_.IEq(d, b_.I(-1, d));
  V q = IntegerDivide(a, b_.Select(b_.Or(zero, minus_one), b_.I(1, d), d), true);
  q = b_.Select(minus_one, b_.Sub(b_.Zero(a), a), q);
  return Real(b_.Select(zero, b_.I(-1, q), q), x.type);
}

Val ScalarEmitter::Rem(const Val& x, const Val& y) {
  if (IsFloat(x.type)) return Rounded(EmitFmod(b_, x.re, y.re), x.type);
  if (IsPred(x.type)) return Real(b_.And(x.re, b_.Not(y.re)), x.type);
  // x % 0 is x; anything % -1 is 0.
  V a = x.re, d = y.re;
  b_.Match(a, d);
  V zero = b_.IEq(d, b_.Zero(d));
  V minus_one = IsSigned(x.type) ? b_.IEq(d, b_.I(-1, d)) : nullptr;
  V unsafe = minus_one ? b_.Or(zero, minus_one) : zero;
  V safe = b_.Select(unsafe, b_.I(1, d), d);
  V rest;
  if (VectorBuilder::Lanes(a) == 1) {
    rest = IsSigned(x.type) ? b_.ir().CreateSRem(a, safe) : b_.ir().CreateURem(a, safe);
  } else {
    rest = b_.Sub(a, b_.Mul(IntegerDivide(a, safe, IsSigned(x.type)), safe));
  }
  if (minus_one) rest = b_.Select(minus_one, b_.Zero(a), rest);
  return Real(b_.Select(zero, a, rest), x.type);
}

Val ScalarEmitter::MulHi(const Val& x, const Val& y) {
  const int bits = Bits(x.type);
  const auto wide = [&](V v) { return IsSigned(x.type) ? b_.SExtOrTrunc(v, 2 * bits) : b_.ZExtOrTrunc(v, 2 * bits); };
  return Real(b_.ZExtOrTrunc(b_.LShr(b_.Mul(wide(x.re), wide(y.re)), bits), bits), x.type);
}

// IEEE 754's minimum and maximum: NaN if either is, -0 below +0. Comparing both ways gives two choices, which differ in
// their bits only where the operands are zeros of unlike sign, or one is NaN. Bitwise or makes -0 of the first and
// keeps NaN one, whatever the other; a maximum has the sign only if both have it. There is no mask, nor a wait for one.
V ScalarEmitter::FloatExtreme(V x, V y, bool min) {
  b_.Match(x, y);
  if (llvm::isa<llvm::Constant>(x)) std::swap(x, y);
  V chosen = b_.Select(min ? b_.FLt(y, x) : b_.FGt(y, x), y, x);  // x if unordered
  const auto* c = llvm::dyn_cast<llvm::Constant>(y);
  const auto* known =
      llvm::dyn_cast_or_null<llvm::ConstantFP>(c && c->getType()->isVectorTy() ? c->getSplatValue() : c);
  if (known && !known->isNaN() && !known->isZero()) return chosen;
  // max(-0, +0) is +0, and NaN is chosen.
  if (known && known->isZero() && !known->isNegative() && !min) return b_.Select(b_.ir().CreateFCmpUGT(x, y), x, y);
  V one = b_.AsInt(chosen), other = b_.AsInt(b_.Select(min ? b_.FLt(x, y) : b_.FGt(x, y), x, y));
  if (min) return b_.AsFloat(b_.Or(one, other));
  V magnitude = b_.I(static_cast<int64_t>(~(uint64_t{1} << (VectorBuilder::ScalarBits(x) - 1))), one);
  return b_.AsFloat(b_.Majority(one, other, magnitude));
}

Val ScalarEmitter::Min(const Val& x, const Val& y) {
  if (x.im) return ComplexArithmetic(*this).Extreme(x, y, true);
  if (IsFloat(x.type)) return Real(FloatExtreme(x.re, y.re, true), x.type);
  if (IsPred(x.type)) return Real(b_.And(x.re, y.re), x.type);
  return Real(b_.Binary(IsSigned(x.type) ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, x.re, y.re), x.type);
}

Val ScalarEmitter::Max(const Val& x, const Val& y) {
  if (x.im) return ComplexArithmetic(*this).Extreme(x, y, false);
  if (IsFloat(x.type)) return Real(FloatExtreme(x.re, y.re, false), x.type);
  if (IsPred(x.type)) return Real(b_.Or(x.re, y.re), x.type);
  return Real(b_.Binary(IsSigned(x.type) ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, x.re, y.re), x.type);
}

Val ScalarEmitter::And(const Val& x, const Val& y) { return Real(b_.And(x.re, y.re), x.type); }
Val ScalarEmitter::Or(const Val& x, const Val& y) { return Real(b_.Or(x.re, y.re), x.type); }
Val ScalarEmitter::Xor(const Val& x, const Val& y) { return Real(b_.Xor(x.re, y.re), x.type); }
Val ScalarEmitter::Not(const Val& x) { return Real(b_.Not(x.re), x.type); }

Val ScalarEmitter::ShiftLeft(const Val& x, const Val& y) {
  V a = x.re, by = y.re;
  b_.Match(a, by);
  V bits = b_.I(Bits(x.type), a);
  V inside = Bits(x.type) == 1 ? b_.IEq(by, b_.Zero(by)) : b_.ULt(by, bits);
  V safe = b_.Select(inside, by, b_.Zero(by));
  return Real(b_.Select(inside, b_.Shl(a, safe), b_.Zero(a)), x.type);
}

Val ScalarEmitter::ShiftRight(const Val& x, const Val& y, bool arithmetic) {
  V a = x.re, by = y.re;
  b_.Match(a, by);
  V inside = Bits(x.type) == 1 ? b_.IEq(by, b_.Zero(by)) : b_.ULt(by, b_.I(Bits(x.type), a));
  V safe = b_.Select(inside, by, b_.Zero(by));
  if (!arithmetic) return Real(b_.Select(inside, b_.ir().CreateLShr(a, safe), b_.Zero(a)), x.type);
  V sign = b_.AShr(a, Bits(x.type) - 1);
  return Real(b_.Select(inside, b_.ir().CreateAShr(a, safe), sign), x.type);
}

Val ScalarEmitter::Neg(const Val& x) {
  if (x.im) return Val{b_.FNeg(x.re), b_.FNeg(x.im), x.type};
  if (IsFloat(x.type))
    return x.type == ElementType::F64 || x.type == ElementType::F32 ? Real(b_.FNeg(x.re), x.type)
                                                                    : Exact(b_.FNeg(x.re), x.type);
  return Real(b_.Sub(b_.Zero(x.re), x.re), x.type);
}

Val ScalarEmitter::Abs(const Val& x) {
  if (x.im) return ComplexArithmetic(*this).Abs(x);
  if (IsFloat(x.type)) return Real(b_.FAbs(x.re), x.type);
  if (!IsSigned(x.type)) return x;
  V negative = b_.SLt(x.re, b_.Zero(x.re));
  return Real(b_.Select(negative, b_.Sub(b_.Zero(x.re), x.re), x.re), x.type);
}

Val ScalarEmitter::Sign(const Val& x) {
  if (x.im) return ComplexArithmetic(*this).Sign(x);
  if (IsFloat(x.type)) {
    V zero_or_nan = b_.ir().CreateFCmpUEQ(x.re, b_.Zero(x.re));
    return Real(b_.Select(zero_or_nan, x.re, b_.CopySign(b_.F(1, x.re), x.re)), x.type);
  }
  V positive = b_.ir().CreateICmpNE(x.re, b_.Zero(x.re));
  V one = b_.Select(positive, b_.I(1, x.re), b_.Zero(x.re));
  return Real(IsSigned(x.type) ? b_.Or(b_.AShr(x.re, Bits(x.type) - 1), one) : one, x.type);
}

Val ScalarEmitter::Floor(const Val& x) { return Exact(b_.Floor(x.re), x.type); }
Val ScalarEmitter::Ceil(const Val& x) { return Exact(b_.Ceil(x.re), x.type); }
Val ScalarEmitter::RoundEven(const Val& x) { return Exact(b_.RoundEven(x.re), x.type); }
Val ScalarEmitter::RoundAway(const Val& x) { return Exact(b_.Unary(llvm::Intrinsic::round, x.re), x.type); }

Val ScalarEmitter::PopulationCount(const Val& x) { return Real(b_.Unary(llvm::Intrinsic::ctpop, x.re), x.type); }
Val ScalarEmitter::LeadingZeros(const Val& x) {
  return Real(b_.ir().CreateIntrinsic(llvm::Intrinsic::ctlz, {x.re->getType()}, {x.re, b_.False()}), x.type);
}

Val ScalarEmitter::IsFinite(const Val& x) {
  const auto finite = [&](V v) { return b_.FLt(b_.FAbs(v), b_.F(HUGE_VAL, v)); };
  V v = finite(x.re);
  return Real(x.im ? b_.And(v, finite(x.im)) : v, ElementType::Pred);
}

Val ScalarEmitter::Real(const Val& x) { return Real(x.re, IsComplex(x.type) ? ComplexPart(x.type) : x.type); }
Val ScalarEmitter::Imag(const Val& x) {
  if (x.im) return Real(x.im, ComplexPart(x.type));
  return Rounded(b_.Zero(x.re), x.type);  // f8e8m0fnu has no zero
}
Val ScalarEmitter::Complex(const Val& re, const Val& im) {
  V r = re.re, i = im.re;
  b_.Match(r, i);
  return Val{r, i, ComplexOf(re.type)};
}

Val ScalarEmitter::Select(const Val& condition, const Val& x, const Val& y) { return e_.Select(condition.re, x, y); }

// Signed integers in the order that IEEE's totalOrder puts the floats in: -NaN < -inf < ... < -0 < +0 < ... < NaN.
V ScalarEmitter::TotalOrderKey(V x) {
  V bits = b_.AsInt(x);
  V negative = b_.AShr(bits, VectorBuilder::ScalarBits(x) - 1);
  return b_.Xor(bits, b_.LShr(negative, 1));
}

V ScalarEmitter::FloatCompare(CompareDirection direction, V x, V y) {
  b_.Match(x, y);
  switch (direction) {
    case CompareDirection::Eq: return b_.ir().CreateFCmpOEQ(x, y);
    case CompareDirection::Ne: return b_.ir().CreateFCmpUNE(x, y);
    case CompareDirection::Ge: return b_.ir().CreateFCmpOGE(x, y);
    case CompareDirection::Gt: return b_.ir().CreateFCmpOGT(x, y);
    case CompareDirection::Le: return b_.ir().CreateFCmpOLE(x, y);
    case CompareDirection::Lt: break;
  }
  return b_.ir().CreateFCmpOLT(x, y);
}

Val ScalarEmitter::Compare(CompareDirection direction, CompareOrder order, const Val& x, const Val& y) {
  const auto result = [&](V v) { return Real(v, ElementType::Pred); };
  const auto integer = [&](V a, V c, bool is_signed) {
    switch (direction) {
      case CompareDirection::Eq: return b_.ICmp(Pred::ICMP_EQ, a, c);
      case CompareDirection::Ne: return b_.ICmp(Pred::ICMP_NE, a, c);
      case CompareDirection::Ge: return b_.ICmp(is_signed ? Pred::ICMP_SGE : Pred::ICMP_UGE, a, c);
      case CompareDirection::Gt: return b_.ICmp(is_signed ? Pred::ICMP_SGT : Pred::ICMP_UGT, a, c);
      case CompareDirection::Le: return b_.ICmp(is_signed ? Pred::ICMP_SLE : Pred::ICMP_ULE, a, c);
      case CompareDirection::Lt: break;
    }
    return b_.ICmp(is_signed ? Pred::ICMP_SLT : Pred::ICMP_ULT, a, c);
  };
  if (IsFloat(x.type)) {
    if (order == CompareOrder::TotalOrder) return result(integer(TotalOrderKey(x.re), TotalOrderKey(y.re), true));
    return result(FloatCompare(direction, x.re, y.re));
  }
  if (!x.im) return result(integer(x.re, y.re, IsSigned(x.type)));
  if (direction == CompareDirection::Eq)
    return result(b_.And(FloatCompare(direction, x.re, y.re), FloatCompare(direction, x.im, y.im)));
  if (direction == CompareDirection::Ne)
    return result(b_.Or(FloatCompare(direction, x.re, y.re), FloatCompare(direction, x.im, y.im)));
  // Lexicographic: for minimum and maximum of complex numbers.
  return result(b_.Or(FloatCompare(direction == CompareDirection::Ge   ? CompareDirection::Gt
                                   : direction == CompareDirection::Le ? CompareDirection::Lt
                                                                       : direction,
                                   x.re, y.re),
                      b_.And(FloatCompare(CompareDirection::Eq, x.re, y.re), FloatCompare(direction, x.im, y.im))));
}

// Rounds the mantissa (ties to even) in the integer image, then gives infinity and signed zero to exponents out of
// range.
Val ScalarEmitter::ReducePrecision(const Val& x, const ReducePrecisionAttrs& attrs) {
  const bool wide = VectorBuilder::ScalarBits(x.re) == 64;
  const int mantissa_bits = wide ? 52 : 23, exponent_bits = wide ? 11 : 8;
  const int64_t bias = (int64_t{1} << (exponent_bits - 1)) - 1;
  V bits = b_.AsInt(x.re);
  const int drop = mantissa_bits - static_cast<int>(attrs.mantissa_bits);
  if (drop > 0) {
    V odd = b_.And(b_.LShr(bits, drop), b_.I(1, bits));
    V bump = b_.Add(odd, b_.I((int64_t{1} << (drop - 1)) - 1, bits));
    bits = b_.And(b_.Add(bits, bump), b_.I(-(int64_t{1} << drop), bits));
    // A subnormal of a narrower type is normal here, and has fewer digits than that: multiples of what is kept of them.
    const FloatFormat& format = FormatOf(x.type);
    if (format.exponent_bits < exponent_bits && attrs.mantissa_bits < format.mantissa_bits) {
      V magic = b_.F(std::ldexp(1.5, mantissa_bits + 1 - format.bias - static_cast<int>(attrs.mantissa_bits)), x.re);
      V rounded = b_.CopySign(b_.FSub(b_.FAdd(x.re, magic), magic), x.re);
      V subnormal = b_.FLt(b_.FAbs(x.re), b_.F(std::ldexp(1.0, 1 - format.bias), x.re));
      bits = b_.Select(subnormal, b_.AsInt(rounded), bits);
    }
  }
  if (attrs.exponent_bits < FormatOf(x.type).exponent_bits) {  // a wider range than the type has changes nothing
    const int64_t reduced_bias = (int64_t{1} << (attrs.exponent_bits - 1)) - 1;
    const int64_t infinity = ((int64_t{1} << exponent_bits) - 1) << mantissa_bits;
    V sign = b_.And(bits, b_.I(INT64_C(1) << (wide ? 63 : 31), bits));
    V exponent = b_.And(bits, b_.I(infinity, bits));
    V over = b_.ICmp(Pred::ICMP_UGT, exponent, b_.I((bias + reduced_bias) << mantissa_bits, bits));
    V under = b_.ICmp(Pred::ICMP_ULE, exponent, b_.I((bias - reduced_bias) << mantissa_bits, bits));
    bits = b_.Select(over, b_.Or(sign, b_.I(infinity, bits)), bits);
    bits = b_.Select(under, sign, bits);
  }
  // Without a bit of mantissa there is no NaN: infinity, as XLA has it.
  V nan = attrs.mantissa_bits > 0 ? x.re : b_.F(INFINITY, x.re);
  return Rounded(b_.Select(b_.IsNan(x.re), nan, b_.AsFloat(bits)), x.type);
}

Val ScalarEmitter::Pow(const Val& x, const Val& y) {
  if (x.im) return ComplexArithmetic(*this).Pow(x, y);
  if (IsFloat(x.type)) return Rounded(EmitPow(b_, x.re, y.re), x.type);
  // Integers: by squaring. A negative exponent gives 1, -1 or (for other bases) 0.
  const int bits = Bits(x.type);
  V base = x.re, exponent = y.re;
  b_.Match(base, exponent);
  V result = b_.I(1, base);
  V square = base, rest = exponent;
  for (int i = 0; i < bits; ++i) {
    V odd = b_.ir().CreateTrunc(rest, VectorBuilder::Like(b_.Int(1), rest));
    if (bits == 1) odd = rest;
    result = b_.Select(odd, b_.Mul(result, square), result);
    if (i + 1 < bits) {
      square = b_.Mul(square, square);
      rest = b_.LShr(rest, 1);
    }
  }
  if (!IsSigned(x.type)) return Real(result, x.type);
  V negative = b_.SLt(exponent, b_.Zero(exponent));
  V odd = b_.ir().CreateICmpNE(b_.And(exponent, b_.I(1, exponent)), b_.Zero(exponent));
  V inverse =
      b_.Select(b_.IEq(base, b_.I(1, base)), b_.I(1, base),
                b_.Select(b_.IEq(base, b_.I(-1, base)), b_.Select(odd, b_.I(-1, base), b_.I(1, base)), b_.Zero(base)));
  return Real(b_.Select(negative, inverse, result), x.type);
}

Val ScalarEmitter::Atan2(const Val& y, const Val& x) {
  if (x.im) return ComplexArithmetic(*this).Atan2(y, x);
  return Rounded(EmitAtan2(b_, y.re, x.re), x.type);
}

Val ScalarEmitter::Math(MathFunction f, const Val& x) {
  if (x.im) return ComplexArithmetic(*this).Math(f, x);
  return RoundedSum(Bits(x.type) < 32 || unrounded_ ? EmitMathForNarrow(b_, f, x.re) : EmitMath(b_, f, x.re), x.type);
}

}  // namespace strop
