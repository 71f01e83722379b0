// Real functions as straight-line vector code, for float and double lanes of any number.
//
// Accuracy: see README.md here (measured by math_test). Subnormals, NaN, infinities and signed zeros are kept.
#pragma once
#include "strop/codegen/scalar.h"
#include "strop/codegen/vector_builder.h"

namespace strop {

// f(x) of float or double lanes.
llvm::Value* EmitMath(VectorBuilder& b, MathFunction f, llvm::Value* x);
// The same of float lanes for results that are rounded to a type of 16 bits or fewer: 22 bits in the range of f16, and
// 19 in that of bf16.
llvm::Value* EmitMathForNarrow(VectorBuilder& b, MathFunction f, llvm::Value* x);
llvm::Value* EmitPow(VectorBuilder& b, llvm::Value* x, llvm::Value* y);
llvm::Value* EmitAtan2(VectorBuilder& b, llvm::Value* y, llvm::Value* x);
llvm::Value* EmitFmod(VectorBuilder& b, llvm::Value* x, llvm::Value* y);

// ---- by file, for functions that are composed of others
namespace math {

using V = llvm::Value*;

// exp.cc
V Exp(VectorBuilder& b, V x);
struct ScaledExp {
  V value, n;  // e^x = value 2^n, n an integer of the width of the lanes, up to four times the largest exponent
};
ScaledExp ExpInParts(VectorBuilder& b, V x);
V PowerOfTwoOfNormal(VectorBuilder& b, V x, double scale);
V Expm1(VectorBuilder& b, V x);
V Logistic(VectorBuilder& b, V x);
V ExpForNarrow(VectorBuilder& b, V x);
V LogisticForNarrow(VectorBuilder& b, V x);
V Tanh(VectorBuilder& b, V x);
V Sinh(VectorBuilder& b, V x);
V Cosh(VectorBuilder& b, V x);
// log.cc
V Log(VectorBuilder& b, V x);
V Log1p(VectorBuilder& b, V x);
V Asinh(VectorBuilder& b, V x);
V Acosh(VectorBuilder& b, V x);
V Atanh(VectorBuilder& b, V x);
V Cbrt(VectorBuilder& b, V x);
// trig.cc
V Sin(VectorBuilder& b, V x);
V Cos(VectorBuilder& b, V x);
V Tan(VectorBuilder& b, V x);
V AtanOfFloat(VectorBuilder& b, V x);
V Asin(VectorBuilder& b, V x);
V Acos(VectorBuilder& b, V x);
V Atan2OfDouble(VectorBuilder& b, V y, V x);
V Atan2OfFloat(VectorBuilder& b, V y, V x);
// power.cc
V Rsqrt(VectorBuilder& b, V x);
V PowOfFloat(VectorBuilder& b, V x, V y);
V PowOfDouble(VectorBuilder& b, V x, V y);    // needs fma
V PowOfHalves(VectorBuilder& b, V x, int n);  // x^(n/2), n odd; needs fma
V Fmod(VectorBuilder& b, V x, V y);           // needs fma
V Erf(VectorBuilder& b, V x);

inline bool IsDouble(V x) { return VectorBuilder::ScalarBits(x) == 64; }

}  // namespace math
}  // namespace strop
