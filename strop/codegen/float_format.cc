// Small float formats in integer arithmetic on the bits of an f32, so that any vector width and any format of
// FloatFormat works, with hardware conversion for f16 where there is one.
//
// Encoding a magnitude a, format with e exponent bits, m mantissa bits, bias B:
//   normal     add half a unit of the last kept place (ties to even), shift right by 23-m, subtract (127-B) << m
//   subnormal  a + 2^(24-B-m) as floats: the sum's low bits are a in units of the format's smallest subnormal, rounded
// Decoding: shift the code's exponent and mantissa into place, multiply by 2^(127-B); both exact, subnormals included.
#include <llvm/IR/IntrinsicInst.h>

#include <cmath>

#include "strop/codegen/element.h"

namespace strop {

using V = llvm::Value*;

namespace {

uint64_t FloatBits(double value) { return EncodeFloat(ElementType::F32, value); }

// The code of +infinity, or of what overflow gives; and the largest finite code. Signs excluded.
struct Limits {
  uint64_t largest, overflow, nan;
  bool nan_keeps_sign;
};
Limits LimitsOf(ElementType type) {
  const FloatFormat& f = FormatOf(type);
  const double inf = HUGE_VAL;
  const uint64_t magnitude = (uint64_t{1} << (f.bits - 1)) - 1;
  Limits l;
  l.overflow = EncodeFloat(type, inf);
  l.nan = EncodeFloat(type, std::nan(""));
  l.nan_keeps_sign = f.has_negative_zero && f.has_nan;
  if (f.has_infinity)
    l.largest = l.overflow - 1;
  else if (f.has_nan && f.has_negative_zero)
    l.largest = magnitude - 1;
  else
    l.largest = magnitude;
  return l;
}

V EncodeE8M0(VectorBuilder& b, V value) {
  V bits = b.AsInt(value);
  V exponent = b.LShr(bits, 23), mantissa = b.And(bits, b.I(0x7fffff, bits));  // the sign lands in bit 8 of exponent
  V subnormal = b.IEq(exponent, b.Zero(bits));
  V one = b.I(1, bits);
  // Half way between two powers of two goes to the even code.
  V half = b.I(0x400000, bits), odd = b.And(exponent, one);
  V up_normal = b.ICmp(llvm::CmpInst::ICMP_UGT, b.Add(mantissa, odd), half);
  V up_subnormal = b.ICmp(llvm::CmpInst::ICMP_UGT, mantissa, b.I(0x600000, bits));
  V up = b.Select(subnormal, up_subnormal, up_normal);
  V code = b.Add(exponent, b.ZExtOrTrunc(up, 32));
  code = b.Select(b.ICmp(llvm::CmpInst::ICMP_UGT, bits, b.I(0x7f7fffff, bits)), b.I(0xff, bits), code);
  return b.Select(b.FEq(value, b.Zero(value)), b.Zero(bits), code);
}

}  // namespace

V ElementBuilder::RoundToOdd(V value) {
  VectorBuilder& b = b_;
  V f = b.ToF32(value);
  V back = b.ToF64(f);
  V bits = b.AsInt(f);
  V one = b.I(1, bits);
  V above = b.FGt(b.FAbs(back), b.FAbs(value));
  V truncated = b.Select(above, b.Sub(bits, one), bits);
  V exact = b.ir().CreateFCmpUEQ(back, value);  // NaN included
  return b.AsFloat(b.Select(exact, bits, b.Or(truncated, one)));
}

namespace {
// Of what was converted from halves, or a constant that one holds: the half; else null.
V HalfOf(VectorBuilder& b, V value) {
  llvm::Type* const type = VectorBuilder::Like(b.ir().getHalfTy(), value);
  if (auto* extended = llvm::dyn_cast<llvm::FPExtInst>(value); extended && extended->getSrcTy() == type)
    return extended->getOperand(0);
  auto* constant = llvm::dyn_cast<llvm::Constant>(value);
  if (constant && constant->getType()->isVectorTy()) constant = constant->getSplatValue();
  auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant);
  if (!number) return nullptr;
  llvm::APFloat half = number->getValueAPF();
  bool loses = false;
  half.convert(llvm::APFloat::IEEEhalf(), llvm::APFloat::rmNearestTiesToEven, &loses);
  return loses || half.isNaN() ? nullptr : llvm::ConstantFP::get(type, half);
}

// A sum, difference, product or quotient of halves, which are to be rounded to one, by the processor's own
// instruction for halves; null if it is none. Rounded to f32 first the result is the same: that has 24 bits, and
// 2 * 11 + 2 are enough (Figueroa, When is double rounding innocuous?, 1995).
V HalfArithmetic(VectorBuilder& b, V value) {
  auto* op = llvm::dyn_cast<llvm::BinaryOperator>(value);
  if (!b.target().half_math || !op) return nullptr;
  using enum llvm::Instruction::BinaryOps;
  const auto code = op->getOpcode();
  if (code != FAdd && code != FSub && code != FMul && code != FDiv) return nullptr;
  V x = HalfOf(b, op->getOperand(0)), y = HalfOf(b, op->getOperand(1));
  return x && y ? b.ir().CreateBinOp(code, x, y) : nullptr;
}
}  // namespace

V ElementBuilder::DecodeFormat(ElementType type, V code) {
  VectorBuilder& b = b_;
  if (type == ElementType::F16 && b.target().half_convert) {
    V half = b.ir().CreateBitCast(code, VectorBuilder::Like(b.ir().getHalfTy(), code));
    return b.ir().CreateFPExt(half, VectorBuilder::Like(b.F32(), code));
  }
  const FloatFormat& f = FormatOf(type);
  V bits = b.ZExtOrTrunc(code, 32);
  if (type == ElementType::BF16) return b.AsFloat(b.Shl(bits, 16));
  if (!f.has_sign) {  // e8m0: 2^(code - 127), of which code 0 is subnormal
    V v = b.Select(b.IEq(bits, b.Zero(bits)), b.I(0x400000, bits), b.Shl(bits, 23));
    return b.AsFloat(b.Select(b.IEq(bits, b.I(0xff, bits)), b.I(0x7fc00000, bits), v));
  }
  const int64_t sign_bit = int64_t{1} << (f.bits - 1);
  V magnitude = b.And(bits, b.I(sign_bit - 1, bits));
  V sign = b.Shl(b.And(bits, b.I(sign_bit, bits)), 32 - f.bits);
  V scaled = b.AsFloat(b.Shl(magnitude, 23 - f.mantissa_bits));
  scaled = b.FMul(scaled, b.F(std::ldexp(1.0, 127 - f.bias), scaled));
  V result = b.AsInt(scaled);
  if (f.has_infinity) {  // infinity and NaN keep their mantissa under the exponent of f32
    V special = b.ICmp(llvm::CmpInst::ICMP_UGE, magnitude, b.I(static_cast<int64_t>(LimitsOf(type).overflow), bits));
    V extended = b.Or(b.Shl(magnitude, 23 - f.mantissa_bits), b.I(0x7f800000, bits));
    result = b.Select(special, extended, result);
  } else if (f.has_nan && f.has_negative_zero) {
    result = b.Select(b.IEq(magnitude, b.I(sign_bit - 1, bits)), b.I(0x7fc00000, bits), result);
  }
  result = b.Or(result, sign);
  if (!f.has_negative_zero)
    result =
        b.Select(b.IEq(b.And(bits, b.I(2 * sign_bit - 1, bits)), b.I(sign_bit, bits)), b.I(0x7fc00000, bits), result);
  return b.AsFloat(result);
}

V ElementBuilder::EncodeFormat(ElementType type, V value) {
  VectorBuilder& b = b_;
  const int bytes_bits = 8 * Bytes(type);
  if (type == ElementType::F16 && b.target().half_convert) {
    V half = HalfArithmetic(b, value);
    if (!half) half = b.ir().CreateFPTrunc(value, VectorBuilder::Like(b.ir().getHalfTy(), value));
    return b.ir().CreateBitCast(half, VectorBuilder::Like(b.Int(16), value));
  }
  if (type == ElementType::F8E8M0FNU) return b.ZExtOrTrunc(EncodeE8M0(b, value), 8);
  const FloatFormat& f = FormatOf(type);
  const Limits limits = LimitsOf(type);
  const int m = f.mantissa_bits, shift = 23 - m;
  V bits = b.AsInt(value);
  V magnitude = b.And(bits, b.I(0x7fffffff, bits));
  V sign = b.LShr(b.And(bits, b.I(int64_t{1} << 31, bits)), 32 - f.bits);
  V last_kept = b.And(b.LShr(magnitude, shift), b.I(1, bits));
  V rounded = b.Add(b.Add(magnitude, b.I((int64_t{1} << (shift - 1)) - 1, bits)), last_kept);
  V code = b.Sub(b.LShr(rounded, shift), b.I(static_cast<int64_t>(127 - f.bias) << m, bits));
  V magic = b.F(std::ldexp(1.0, 24 - f.bias - m), value);
  V units = b.Sub(b.AsInt(b.FAdd(b.AsFloat(magnitude), magic)), b.AsInt(magic));
  V is_subnormal = b.ULt(magnitude, b.I(static_cast<int64_t>(FloatBits(std::ldexp(1.0, 1 - f.bias))), bits));
  code = b.Select(is_subnormal, units, code);
  V over = b.ICmp(llvm::CmpInst::ICMP_UGT, code, b.I(static_cast<int64_t>(limits.largest), bits));
  code = b.Select(over, b.I(static_cast<int64_t>(limits.overflow), bits), code);
  V is_zero = b.IEq(code, b.Zero(code));
  V with_sign = b.Or(code, sign);
  if (!f.has_negative_zero) with_sign = b.Select(is_zero, b.Zero(code), with_sign);
  V nan = b.I(static_cast<int64_t>(limits.nan), bits);
  if (limits.nan_keeps_sign) nan = b.Or(nan, sign);
  if (!f.has_nan) nan = b.I(int64_t{1} << (f.bits - 1), bits);
  V result = b.Select(b.IsNan(value), nan, with_sign);
  return b.ZExtOrTrunc(result, bytes_bits);
}

V ElementBuilder::RoundToFormat(ElementType type, V value, bool made_of_it) {
  VectorBuilder& b = b_;
  if (type == ElementType::F64) return b.ToF64(value);
  if (type == ElementType::F32) return b.ToF32(value);
  if (VectorBuilder::ScalarBits(value) == 64) value = RoundToOdd(value);
  if (type == ElementType::BF16) {  // stays in f32: the upper half of the bits, rounded
    V bits = b.AsInt(value);
    V odd = b.And(b.LShr(bits, 16), b.I(1, bits));
    V rounded = b.Add(b.Add(bits, b.I(0x7fff, bits)), odd);
    // A NaN stays one without its lower half; where that is empty, nothing is carried into the upper one.
    V kept = made_of_it ? rounded : b.Select(b.IsNan(value), b.Or(bits, b.I(0x400000, bits)), rounded);
    return b.AsFloat(b.And(kept, b.I(static_cast<int64_t>(0xffff0000), bits)));
  }
  return DecodeFormat(type, EncodeFormat(type, value));
}

// Of an f32, or of its bits: that the lower half is seen to be empty, by what made it.
bool ElementBuilder::IsRoundedToBf16(const llvm::Value* value, int depth) {
  constexpr uint64_t kUpper = 0xffff0000;
  if (const auto* constant = llvm::dyn_cast<llvm::Constant>(value)) {
    if (constant->getType()->isVectorTy()) constant = constant->getSplatValue();
    if (const auto* number = llvm::dyn_cast_or_null<llvm::ConstantFP>(constant))
      return (number->getValueAPF().bitcastToAPInt().getZExtValue() & ~kUpper) == 0;
    const auto* bits = llvm::dyn_cast_or_null<llvm::ConstantInt>(constant);
    return bits && (bits->getZExtValue() & ~kUpper) == 0;
  }
  const auto* i = llvm::dyn_cast<llvm::Instruction>(value);
  if (!i || depth == 0) return false;
  const auto holds = [&](const llvm::Value* part) {
    return llvm::isa<llvm::UndefValue>(part) || IsRoundedToBf16(part, depth - 1);
  };
  const auto all = [&] { return llvm::all_of(i->operand_values(), holds); };
  switch (i->getOpcode()) {
    case llvm::Instruction::Shl: return i->getOperand(1) == llvm::ConstantInt::get(i->getType(), 16);
    case llvm::Instruction::And: return llvm::any_of(i->operand_values(), holds);
    case llvm::Instruction::BitCast:
    case llvm::Instruction::FNeg:
    case llvm::Instruction::Or:
    case llvm::Instruction::ShuffleVector:
    case llvm::Instruction::Xor: return all();
    case llvm::Instruction::InsertElement: return holds(i->getOperand(0)) && holds(i->getOperand(1));
    case llvm::Instruction::Select: return holds(i->getOperand(1)) && holds(i->getOperand(2));
    case llvm::Instruction::PHI: return i->getNumOperands() > 1 && all();  // of one, the loop is not closed yet
    case llvm::Instruction::Call: {
      const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(i);
      if (!intrinsic) return false;
      if (intrinsic->getIntrinsicID() == llvm::Intrinsic::fabs) return holds(i->getOperand(0));
      return VectorBuilder::IsMajority(*intrinsic) && llvm::count_if(llvm::drop_end(intrinsic->args()), holds) >= 2;
    }
    default: return false;
  }
}

}  // namespace strop
