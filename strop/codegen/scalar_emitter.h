// ScalarEmitter: the ScalarBuilder that makes LLVM IR, for scalars and vectors alike.
#pragma once
#include <unordered_map>
#include <utility>

#include "strop/codegen/element.h"
#include "strop/codegen/scalar.h"

namespace strop {

class ScalarEmitter {
 public:
  using Value = Val;
  using V = llvm::Value*;
  explicit ScalarEmitter(ElementBuilder& e) : e_(e), b_(e.b()) {}

  Val Emit(const ScalarOp& op, std::span<const Val> operands);

  // ---- arithmetic (scalar_emitter.cc, complex in complex_arithmetic.cc)
  Val Add(const Val& x, const Val& y);
  Val Sub(const Val& x, const Val& y);
  Val Mul(const Val& x, const Val& y);
  Val Div(const Val& x, const Val& y);
  Val Rem(const Val& x, const Val& y);
  Val MulHi(const Val& x, const Val& y);
  Val Min(const Val& x, const Val& y);
  Val Max(const Val& x, const Val& y);
  Val And(const Val& x, const Val& y);
  Val Or(const Val& x, const Val& y);
  Val Xor(const Val& x, const Val& y);
  Val ShiftLeft(const Val& x, const Val& y);
  Val ShiftRight(const Val& x, const Val& y, bool arithmetic);
  Val Pow(const Val& x, const Val& y);
  Val Atan2(const Val& y, const Val& x);
  Val Neg(const Val& x);
  Val Abs(const Val& x);
  Val Not(const Val& x);
  Val Sign(const Val& x);
  Val Floor(const Val& x);
  Val Ceil(const Val& x);
  Val RoundEven(const Val& x);
  Val RoundAway(const Val& x);
  Val PopulationCount(const Val& x);
  Val LeadingZeros(const Val& x);
  Val IsFinite(const Val& x);
  Val Real(const Val& x);
  Val Imag(const Val& x);
  Val Complex(const Val& re, const Val& im);
  Val Math(MathFunction f, const Val& x);
  Val Compare(CompareDirection direction, CompareOrder order, const Val& x, const Val& y);
  Val Select(const Val& condition, const Val& x, const Val& y);
  Val ReducePrecision(const Val& x, const ReducePrecisionAttrs& attrs);
  // ---- conversion (convert.cc)
  Val Convert(const Val& x, ElementType type);
  Val StochasticConvert(const Val& x, const Val& random, ElementType type);
  // The bits of x as another type of the same size.
  Val Bitcast(const Val& x, ElementType type);

 private:
  friend class ComplexArithmetic;
  Val Real(V v, ElementType type) { return Val{v, nullptr, type}; }
  bool Rounds(ElementType type) const;
  // A float result that may have left its format.
  Val Rounded(V v, ElementType type);
  Val RoundedSum(V v, ElementType type);
  Val Exact(V v, ElementType type);
  V FloatExtreme(V x, V y, bool min);
  Val DivideByInverse(const Val& x, const Val& y);
  V IntegerDivide(V x, V y, bool is_signed);
  V FloatCompare(CompareDirection direction, V x, V y);
  V TotalOrderKey(V x);

  ElementBuilder& e_;
  VectorBuilder& b_;
  bool unrounded_ = false;                           // what is being emitted (ScalarOp)
  std::unordered_map<V, std::pair<V, V>> inverses_;  // of divisors: what to multiply by, twice
};

}  // namespace strop
