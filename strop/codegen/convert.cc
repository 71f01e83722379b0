// convert, stochastic-convert and bitcast between registers of any two element types.
//
// Each numeric conversion rounds once. Where the target has fewer bits than f32 and the source more, the way is through
// a double and RoundToOdd, whose f32 rounds on as the double would have. Integers need no double where what f32 does
// not hold exactly is infinite in the target, and those of 32 bits lose what f32 would round (ToTwentyFourBits).
#include <cmath>

#include "strop/codegen/scalar_emitter.h"

namespace strop {

using V = llvm::Value*;

namespace {

constexpr int kMantissaOfF32 = 24;

// Is every integer beyond the mantissa of f32 beyond this format as well?
bool EndsWithinF32(ElementType type) {
  const FloatFormat& format = FormatOf(type);
  return (1 << format.exponent_bits) - 1 - format.bias < kMantissaOfF32;
}

// An integer of 32 bits as one that f32 holds exactly and that rounds to at most 16 bits as it does: where it has more
// than 24, bit 8 says whether any bit below was set.
V ToTwentyFourBits(VectorBuilder& b, V x, bool is_signed) {
  constexpr int64_t kLow = 0xff, kMost = int64_t{1} << kMantissaOfF32;
  V low = b.And(x, b.I(kLow, x));
  V any = b.And(b.Add(low, b.I(kLow, x)), b.I(kLow + 1, x));
  V cut = b.Or(b.And(x, b.I(~kLow, x)), any);
  V small = is_signed ? b.ULt(b.Add(x, b.I(kMost, x)), b.I(2 * kMost, x)) : b.ULt(x, b.I(kMost, x));
  return b.Select(small, x, cut);
}

}  // namespace

Val ScalarEmitter::Convert(const Val& x, ElementType type) {
  IrBuilder& ir = b_.ir();
  if (x.type == type) return x;
  if (IsComplex(type)) {
    const ElementType part = ComplexPart(type);
    Val re = Convert(Real(x), part);
    if (x.im) return Val{re.re, Convert(Imag(x), part).re, type};
    return Val{re.re, b_.Zero(re.re), type};
  }
  if (x.im) return Convert(Real(x), type);  // of a complex number, the real part is converted
  if (IsPred(type)) {
    const bool is_float = x.re->getType()->isFPOrFPVectorTy();
    V zero = b_.Zero(x.re);
    return Real(is_float ? ir.CreateFCmpUNE(x.re, zero) : ir.CreateICmpNE(x.re, zero), type);
  }
  llvm::Type* to = VectorBuilder::Like(e_.RegisterType(type), x.re);
  const bool from_float = IsFloat(x.type);
  if (IsFloat(type)) {
    if (from_float) {
      if (type == ElementType::F64) return Real(b_.ToF64(x.re), type);
      if (type == ElementType::F32) return Real(b_.ToF32(x.re), type);
      return Rounded(x.re, type);
    }
    const auto to_float = [&](V v, llvm::Type* t) {
      return IsSigned(x.type) ? ir.CreateSIToFP(v, t) : ir.CreateUIToFP(v, t);
    };
    if (Bits(type) >= 32) return Real(to_float(x.re, to), type);
    // Small floats: integers of up to 16 bits are exact in f32.
    const int bits = IsPred(x.type) ? 1 : Bits(x.type);
    const bool by_f32 = bits <= 32 || EndsWithinF32(type);
    const bool cut = bits > kMantissaOfF32 && by_f32 && !EndsWithinF32(type);
    V v = cut ? ToTwentyFourBits(b_, x.re, IsSigned(x.type)) : x.re;
    return Rounded(to_float(v, VectorBuilder::Like(by_f32 ? b_.F32() : b_.F64(), x.re)), type);
  }
  if (from_float) {  // towards zero, saturating; NaN gives 0
    const bool is_signed = IsSigned(type);
    if (Bits(type) >= 32) {
      // The highest integer may be no float: what reaches beyond it is replaced. (LLVM's saturating conversions take
      // vectors apart.)
      const bool half = x.re->getType()->getScalarType()->isHalfTy();  // which knows no 2^31
      const V re = half ? ir.CreateFPExt(x.re, VectorBuilder::Like(b_.F32(), x.re)) : x.re;
      const V lowest = b_.F(is_signed ? -std::ldexp(1.0, Bits(type) - 1) : 0.0, re);
      const V beyond = b_.F(std::ldexp(1.0, is_signed ? Bits(type) - 1 : Bits(type)), re);
      V v = b_.Select(b_.FGt(re, lowest), re, lowest);
      v = is_signed ? ir.CreateFPToSI(v, to) : ir.CreateFPToUI(v, to);
      const int64_t highest = is_signed ? INT64_MAX >> (64 - Bits(type)) : -1;
      v = b_.Select(ir.CreateFCmpOGE(re, beyond), b_.I(highest, v), v);
      return Real(is_signed ? b_.Select(b_.IsNan(re), b_.Zero(v), v) : v, type);
    }
    // Narrow targets: clamp while it is a float, then convert to 32 bits, which vectors can.
    const double lowest = is_signed ? -std::ldexp(1.0, Bits(type) - 1) : 0.0;
    const double highest = std::ldexp(1.0, is_signed ? Bits(type) - 1 : Bits(type)) - 1;
    V v = b_.Select(b_.IsNan(x.re), b_.Zero(x.re), x.re);
    v = b_.Select(b_.FLt(v, b_.F(lowest, v)), b_.F(lowest, v), v);
    v = b_.Select(b_.FGt(v, b_.F(highest, v)), b_.F(highest, v), v);
    return Real(b_.ZExtOrTrunc(ir.CreateFPToSI(v, VectorBuilder::Like(b_.Int(32), v)), Bits(type)), type);
  }
  const bool sign_extend = IsSigned(x.type);
  return Real(sign_extend ? b_.SExtOrTrunc(x.re, Bits(type)) : b_.ZExtOrTrunc(x.re, Bits(type)), type);
}

// Rounds |x| up with the probability of its fraction: up if random / 2^bits < fraction.
Val ScalarEmitter::StochasticConvert(const Val& x, const Val& random, ElementType type) {
  if (IsFloat(type)) {
    // Add the random bits below the kept mantissa, then cut.
    const FloatFormat& to = FormatOf(type);
    const int from_mantissa = x.type == ElementType::F64 ? 52 : 23;
    const int drop = from_mantissa - to.mantissa_bits;
    if (drop <= 0) return Convert(x, type);
    V bits = b_.AsInt(x.re);
    V noise = b_.ZExtOrTrunc(random.re, VectorBuilder::ScalarBits(bits));
    noise = b_.And(noise, b_.I((int64_t{1} << drop) - 1, bits));
    V cut = b_.And(b_.Add(bits, noise), b_.I(-(int64_t{1} << drop), bits));
    V kept = b_.Select(IsFinite(x).re, b_.AsFloat(cut), x.re);
    return Convert(Real(kept, x.type), type);
  }
  const int random_bits = Bits(random.type);
  V magnitude = b_.FAbs(x.re);
  V whole = b_.Trunc(magnitude);
  V fraction = b_.FMul(b_.FSub(magnitude, whole), b_.F(std::ldexp(1.0, random_bits), magnitude));
  Val threshold = Convert(Real(fraction, x.type == ElementType::F64 ? x.type : ElementType::F32), random.type);
  V up = b_.ULt(random.re, threshold.re);
  V rounded = b_.FAdd(whole, b_.Select(up, b_.F(1, whole), b_.Zero(whole)));
  V signed_value = b_.CopySign(rounded, x.re);
  signed_value = b_.Select(b_.IsNan(x.re), x.re, signed_value);
  return Convert(Real(signed_value, x.type == ElementType::F64 ? x.type : ElementType::F32), type);
}

Val ScalarEmitter::Bitcast(const Val& x, ElementType type) {
  if (x.type == type) return x;
  // Through the memory form: both are integers or floats of the same width there.
  if (IsComplex(x.type) || IsComplex(type)) return x;  // same parts; other complex casts are not in HLO
  V stored = e_.ToStorage(x.type, x.re);
  stored = b_.ir().CreateBitCast(stored, VectorBuilder::Like(e_.StorageType(type), stored));
  return Real(e_.FromStorage(type, stored), type);
}

}  // namespace strop
