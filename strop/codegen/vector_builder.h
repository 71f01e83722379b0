// VectorBuilder: LLVM IR for arithmetic on scalars and on vectors of any number of lanes alike. A "lane value" is a
// scalar or a fixed vector; binary operations spread a scalar over the lanes of the other operand, constants take the
// type of a value that they are used with. Everything above (scalar semantics, math functions, loops) goes through it,
// so that none of it names a vector width or an instruction set.
#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>

#include "strop/codegen/llvm_headers.h"

namespace llvm {
class IntrinsicInst;
}

namespace strop {

// What the emitters must know of the machine.
struct VectorTarget {
  int vector_bytes = 16;       // of one register
  bool masked_memory = false;  // masked loads and stores of all element sizes are single instructions
  int shuffled_bits = 0;       // any choice among elements of so many bits or more of two vectors is; 0: of none
  bool half_convert = false;   // f16 <-> f32 are single instructions
  bool half_math = false;      // arithmetic of f16 has instructions of its own
  bool fma = false;
  bool scale = false;        // x 2^n, subnormal and overflowing results too, is as good as one instruction
  bool fast_gather = false;  // lanes anywhere in memory are read sooner by one instruction than one by one
  // The last cache hands over what is read in order as fast as it is wanted, and takes rows that are written in any
  // order: nothing is asked for ahead, and such rows stay in.
  bool fast_last_cache = false;
  bool ternary_logic = false;   // vpternlog: any function of the same bit of three vectors is a single instruction
  bool whole_operands = false;  // arithmetic has whole vectors in memory as operands, but no number for all lanes
};

using IrBuilder = llvm::IRBuilder<>;

class VectorBuilder {
 public:
  using V = llvm::Value*;

  VectorBuilder(llvm::Module& module, const VectorTarget& target);

  IrBuilder& ir() { return ir_; }
  llvm::Module& module() { return module_; }
  llvm::LLVMContext& context() { return module_.getContext(); }
  const VectorTarget& target() const { return target_; }

  // From now on code is to be quick to compile rather than to run: what is long is there once.
  void MakeQuick() { quick_ = true; }
  bool quick() const { return quick_; }
  // Code from now on is waited for (the next trip of a loop needs what this one computes) rather than computed beside
  // other elements: sums take a few operations more if that makes them wait less.
  void ShortenChains(bool shorten) { short_chains_ = shorten; }
  bool short_chains() const { return short_chains_; }
  // Functions of single numbers become calls from now on, which a pass turns into code (math/deferred.h).
  void DeferMath(bool defer) { defers_math_ = defer; }
  bool defers_math() const { return defers_math_; }

  // ---- types and constants
  static int Lanes(const llvm::Type* type);
  static int Lanes(V v) { return Lanes(v->getType()); }
  static llvm::Type* WithLanes(llvm::Type* scalar, int lanes);
  static llvm::Type* Like(llvm::Type* scalar, V v) { return WithLanes(scalar, Lanes(v)); }
  static int ScalarBits(V v) { return static_cast<int>(v->getType()->getScalarSizeInBits()); }
  llvm::Type* F32() { return ir_.getFloatTy(); }
  llvm::Type* F64() { return ir_.getDoubleTy(); }
  llvm::Type* Int(int bits) { return ir_.getIntNTy(bits); }
  llvm::Type* Ptr() { return ir_.getPtrTy(); }
  // The integer type of the width (and lanes) of v.
  llvm::Type* IntLike(V v) { return Like(Int(ScalarBits(v)), v); }
  V I64(int64_t value) { return ir_.getInt64(static_cast<uint64_t>(value)); }
  V I32(int32_t value) { return ir_.getInt32(static_cast<uint32_t>(value)); }
  V True() { return ir_.getTrue(); }
  V False() { return ir_.getFalse(); }
  // A float, or an integer (wrapped to its width), of the type of `like`.
  V F(double value, V like) { return llvm::ConstantFP::get(like->getType(), value); }
  V I(int64_t value, V like) {
    return llvm::ConstantInt::get(like->getType(), static_cast<uint64_t>(value), true, /*ImplicitTrunc=*/true);
  }
  V Bits(uint64_t bits, V like);  // the float of like's type with these bits
  V Zero(V like) { return llvm::Constant::getNullValue(like->getType()); }
  // <0, 1, 2, ...> as `bits`-wide integers; the scalar 0 for one lane.
  V LaneNumbers(int lanes, int bits);

  // ---- lanes
  V Splat(V v, int lanes);  // a scalar to `lanes` lanes; a vector must have them already
  void Match(V& a, V& b);   // the scalar one of two is spread
  V Lane(V v, int lane);    // scalar of one lane
  V Slice(V v, int first, int count);
  // Elements of two vectors, one behind the other, by their numbers.
  V Choose(V first, V second, std::span<const int> numbers);
  // The elements with those numbers of two vectors, one behind the other, where LooksUp(lanes, bits of an element):
  // `numbers` are as many i32, of which the lowest bits count.
  V LookUp(V first, V second, V numbers);
  bool LooksUp(int lanes, int bits) const;
  V Concat(V low, V high);
  // Lane l is lane from[l] of `part`, which may be shorter; where that is negative, it stays that of `into` (null: as
  // yet nothing).
  V TakeLanes(V into, V part, std::span<const int> from);
  V Reverse(V v);
  V Interleave(V even, V odd);      // 2n lanes
  V Zip(V even, V odd, bool high);  // the lower or higher n of them
  V Even(V v);                      // lanes 0, 2, 4, ...
  V Odd(V v);

  // ---- floating point (exactly as IEEE says; nothing is reassociated or contracted)
  V FAdd(V a, V b) {
    Match(a, b);
    return ir_.CreateFAdd(a, b);
  }
  V FSub(V a, V b) {
    Match(a, b);
    return ir_.CreateFSub(a, b);
  }
  V FMul(V a, V b) {
    Match(a, b);
    return ir_.CreateFMul(a, b);
  }
  V FDiv(V a, V b) {
    Match(a, b);
    return ir_.CreateFDiv(a, b);
  }
  V FNeg(V a) { return ir_.CreateFNeg(a); }
  V FAbs(V a) { return Unary(llvm::Intrinsic::fabs, a); }
  V Sqrt(V a) { return Unary(llvm::Intrinsic::sqrt, a); }
  V Floor(V a) { return Unary(llvm::Intrinsic::floor, a); }
  V Ceil(V a) { return Unary(llvm::Intrinsic::ceil, a); }
  V Trunc(V a) { return Unary(llvm::Intrinsic::trunc, a); }
  V RoundEven(V a) { return Unary(llvm::Intrinsic::roundeven, a); }
  V CopySign(V magnitude, V sign);
  // a * b + c, fused where the machine can; otherwise rounded twice.
  V Fma(V a, V b, V c);
  // a 2^n, n an integer of a's width that may leave the range of exponents by as much again; rounded once. a is not
  // far from 1.
  V Scale(V a, V n);
  // The same, where n are floats that are integers.
  V ScaleByWhole(V a, V n);
  // The nearest integer of as many bits, which must be one of them; ties to even.
  V RoundToInt(V a);
  // Are exponents and mantissas, of subnormal numbers too, single instructions, for as many lanes as `a` has?
  bool HasFloatParts(V a) const;
  // 1 / a to 2^-14 of its value, as processors have it in a table: of floats of 32 bits.
  bool HasNearReciprocal(V a) const { return ScalarBits(a) == 32 && HasFloatParts(a); }
  V NearReciprocal(V a);
  V ExponentOf(V a);  // as a float; minus infinity of zero
  V MantissaOf(V a);  // in [1, 2), with a's sign; of zero and of infinity 1
  // What x86's vfixupimm answers for kinds of `argument`, four bits each, from the lowest on: of quiet and signalling
  // NaN, zero, one, minus and plus infinity, other negative and positive numbers. 0: `result`, 2: the argument, quiet,
  // 3: a NaN, 4 and 5: minus and plus infinity. Where HasFloatParts().
  V FixUp(V result, V argument, uint32_t answers);
  // c[0] + x (c[1] + x (c[2] + ...)) by Horner's rule with fma; where chains are to be short, what is multiplied by the
  // first x is summed by pairs.
  V Polynomial(V x, std::initializer_list<double> coefficients);
  // The same as (c[0] + c[1] x) + x^2 ((c[2] + c[3] x) + ...): one product more, but little over half as long a chain.
  V PolynomialByPairs(V x, llvm::ArrayRef<double> coefficients);
  // The same by pairs of pairs and so on (Estrin's scheme): a chain as long as the logarithm of the degree.
  V PolynomialByHalves(V x, std::initializer_list<double> coefficients);
  V IsNan(V a) { return ir_.CreateFCmpUNO(a, a); }
  V FEq(V a, V b) {
    Match(a, b);
    return ir_.CreateFCmpOEQ(a, b);
  }
  V FLt(V a, V b) {
    Match(a, b);
    return ir_.CreateFCmpOLT(a, b);
  }
  V FLe(V a, V b) {
    Match(a, b);
    return ir_.CreateFCmpOLE(a, b);
  }
  V FGt(V a, V b) {
    Match(a, b);
    return ir_.CreateFCmpOGT(a, b);
  }
  V FGe(V a, V b) {
    Match(a, b);
    return ir_.CreateFCmpOGE(a, b);
  }
  V AsInt(V f) { return ir_.CreateBitCast(f, IntLike(f)); }
  V AsFloat(V i);  // 32 -> float, 64 -> double
  V ToF64(V f) { return ScalarBits(f) == 64 ? f : ir_.CreateFPExt(f, Like(F64(), f)); }
  V ToF32(V f) { return ScalarBits(f) == 32 ? f : ir_.CreateFPTrunc(f, Like(F32(), f)); }

  // ---- integers and booleans
  V Add(V a, V b) {
    Match(a, b);
    return a == b && AreBytes(a) ? TwiceBytes(a) : ir_.CreateAdd(a, b);
  }
  V Sub(V a, V b) {
    Match(a, b);
    return ir_.CreateSub(a, b);
  }
  V Mul(V a, V b) {
    Match(a, b);
    for (auto [x, y] : {std::pair{a, b}, {b, a}}) {
      if (!AreBytes(x)) break;
      if (IsSplatOf(y, 2)) return TwiceBytes(x);
      if (IsSplatOf(y, -2)) return Sub(Zero(x), TwiceBytes(x));
    }
    return ir_.CreateMul(a, b);
  }
  V And(V a, V b) {
    Match(a, b);
    if (IsAllOnes(a)) return b;
    if (IsAllOnes(b)) return a;
    return ir_.CreateAnd(a, b);
  }
  V Or(V a, V b) {
    Match(a, b);
    return ir_.CreateOr(a, b);
  }
  // Each bit as most of the three have it.
  V Majority(V a, V b, V c);
  static bool IsMajority(const llvm::IntrinsicInst& call);  // one instruction that Majority made
  V Xor(V a, V b) {
    Match(a, b);
    return ir_.CreateXor(a, b);
  }
  V Not(V a) { return ir_.CreateNot(a); }
  V Shl(V a, int by) { return Shl(a, I(by, a)); }
  V Shl(V a, V by) { return AreBytes(a) && IsSplatOf(by, 1) ? TwiceBytes(a) : ir_.CreateShl(a, by); }
  V LShr(V a, int by) { return ir_.CreateLShr(a, static_cast<uint64_t>(by)); }
  V AShr(V a, int by) { return ir_.CreateAShr(a, static_cast<uint64_t>(by)); }
  V ICmp(llvm::CmpInst::Predicate p, V a, V b) {
    Match(a, b);
    return ir_.CreateICmp(p, a, b);
  }
  V IEq(V a, V b) { return ICmp(llvm::CmpInst::ICMP_EQ, a, b); }
  V SLt(V a, V b) { return ICmp(llvm::CmpInst::ICMP_SLT, a, b); }
  V ULt(V a, V b) { return ICmp(llvm::CmpInst::ICMP_ULT, a, b); }
  // Integer casts keep the lanes.
  V ZExtOrTrunc(V a, int bits) { return ir_.CreateZExtOrTrunc(a, Like(Int(bits), a)); }
  V SExtOrTrunc(V a, int bits) { return ir_.CreateSExtOrTrunc(a, Like(Int(bits), a)); }
  V Select(V condition, V a, V b);

  V Unary(llvm::Intrinsic::ID id, V a) { return ir_.CreateUnaryIntrinsic(id, a); }
  V Binary(llvm::Intrinsic::ID id, V a, V b) {
    Match(a, b);
    return ir_.CreateBinaryIntrinsic(id, a, b);
  }
  // Calls an external function of scalars (libm), lane by lane.
  V CallPerLane(const char* name, std::initializer_list<V> args);

  // body(x), register by register, by a function of that name which the module has once: for code that is rarely run
  // and would be long in every place and for every lane.
  V CallPerRegister(const char* name, V x, const std::function<V(V)>& body);

  // body(arguments), which has no other operands and treats lane by lane; in quick code by a function of that name, as
  // above.
  using Body = std::function<V(llvm::ArrayRef<V> arguments)>;
  V OnceIfQuick(const std::string& name, std::initializer_list<V> arguments, const Body& body);

  // `usual`, but where `when` holds for a lane, the value of slow() for that lane: a branch that is not taken if no
  // lane needs it.
  V RarePath(V when, V usual, const std::function<V()>& slow);
  // Ends the current block here, and returns the block where the code behind goes on (nothing branches to it yet).
  llvm::BasicBlock* SplitBlock(const char* name);
  // Moves to the start of a block that SplitBlock returned, behind its phis.
  void ContinueAt(llvm::BasicBlock* block);

 private:
  V NegatedConjunction(V condition);
  static bool IsAllOnes(V v) { return llvm::isa<llvm::Constant>(v) && llvm::cast<llvm::Constant>(v)->isAllOnesValue(); }
  static bool AreBytes(V a) { return ScalarBits(a) == 8 && Lanes(a->getType()) % 2 == 0; }
  static bool IsSplatOf(V a, int64_t value);
  // Of vectors of bytes. LLVM 22 selects sums of bytes by themselves, and shifts, for each other without end where the
  // bytes come from a shuffle (codegen/doubled_bytes.hlo): pairs of them are shifted.
  V TwiceBytes(V a);
  V CallPerRegister(const std::string& name, llvm::ArrayRef<V> arguments, const Body& body);
  V ByRegisters(llvm::ArrayRef<V> operands, llvm::function_ref<V(llvm::ArrayRef<V> operands, int width)> emit);
  V Masked(llvm::Intrinsic::ID id, llvm::SmallVector<V, 6> operands, int width);
  llvm::Module& module_;
  VectorTarget target_;
  IrBuilder ir_;
  bool quick_ = false;
  bool short_chains_ = false;
  bool defers_math_ = false;
};

}  // namespace strop
