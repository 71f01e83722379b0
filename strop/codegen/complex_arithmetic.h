// Complex numbers as pairs of floats: arithmetic and functions.
#pragma once
#include "strop/codegen/scalar_emitter.h"

namespace strop {

class ComplexArithmetic {
 public:
  using V = llvm::Value*;
  explicit ComplexArithmetic(ScalarEmitter& s) : s_(s), b_(s.b_) {}

  Val Mul(const Val& x, const Val& y);
  Val Div(const Val& x, const Val& y);
  Val Abs(const Val& x);
  Val Sign(const Val& x);
  Val Extreme(const Val& x, const Val& y, bool min);  // lexicographic; NaN if either has one
  Val Pow(const Val& x, const Val& y);
  Val Atan2(const Val& y, const Val& x);
  Val Math(MathFunction f, const Val& x);
  Val Select(V condition, const Val& x, const Val& y) { return s_.e_.Select(condition, x, y); }

 private:
  Val Make(V re, V im, ElementType type) { return Val{re, im, type}; }
  V F(double c, const Val& like) { return b_.F(c, like.re); }
  Val Real(double c, const Val& like) { return Make(b_.F(c, like.re), b_.Zero(like.re), like.type); }
  Val TimesI(const Val& x) { return Make(b_.FNeg(x.im), x.re, x.type); }
  Val TimesMinusI(const Val& x) { return Make(x.im, b_.FNeg(x.re), x.type); }
  Val Widen(const Val& x);  // to c128
  Val NarrowTo(ElementType type, const Val& x);
  Val LimitOfQuotient(const Val& x, const Val& y, const Val& quotient);
  V Magnitude(V re, V im);
  // Parts beyond 2^end are scaled by 2^-down, those below 2^-end by 2^up.
  struct Range {
    int end, down, up;
  };
  V ScaledMagnitude(V re, V im, const Range& range, llvm::function_ref<V(V larger, V smaller)> root);
  V RootOfSquares(V p, V q);
  V InfiniteIfPart(V re, V im, V magnitude);
  V SumOfProducts(V p, V q, V r, V s);  // p q + r s
  V TimesExp(V v, V a, int more);       // v e^a 2^more
  V TwoSum(V p, V q, V* lost);
  V HalfLog1p(V p, V q, V r, V x, V y);
  Val WideMath(MathFunction f, const Val& x);
  Val Exp(const Val& x);
  Val Expm1(const Val& x);
  Val Log(const Val& x);
  Val Log1p(const Val& x);
  Val Sqrt(const Val& x);
  Val Rsqrt(const Val& x);
  Val Sinh(const Val& x);
  Val Cosh(const Val& x);
  Val Logistic(const Val& x);
  Val Tanh(const Val& x);
  Val Asinh(const Val& x);
  Val Acosh(const Val& x);
  Val Atanh(const Val& x);

  ScalarEmitter& s_;
  VectorBuilder& b_;
};

}  // namespace strop
