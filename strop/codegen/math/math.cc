// The table of functions: vector code where there is some, libm lane by lane otherwise.
#include "strop/codegen/math/math.h"

#include <initializer_list>

namespace strop {
namespace {

using V = llvm::Value*;

V Libm(VectorBuilder& b, const char* name64, const char* name32, std::initializer_list<V> args) {
  return b.CallPerLane(VectorBuilder::ScalarBits(*args.begin()) == 64 ? name64 : name32, args);
}

}  // namespace

#define LIBM(name, ...) Libm(b, #name, #name "f", {__VA_ARGS__})

V EmitMath(VectorBuilder& b, MathFunction f, V x) {
  switch (f) {
    case MathFunction::kAcos: return LIBM(acos, x);
    case MathFunction::kAcosh: return LIBM(acosh, x);
    case MathFunction::kAsin: return LIBM(asin, x);
    case MathFunction::kAsinh: return LIBM(asinh, x);
    case MathFunction::kAtan: return LIBM(atan, x);
    case MathFunction::kAtanh: return LIBM(atanh, x);
    case MathFunction::kCbrt: return LIBM(cbrt, x);
    case MathFunction::kCos: return EmitCos(b, x);
    case MathFunction::kCosh: return LIBM(cosh, x);
    case MathFunction::kErf: return LIBM(erf, x);
    case MathFunction::kExp: return EmitExp(b, x);
    case MathFunction::kExpm1: return EmitExpm1(b, x);
    case MathFunction::kLog: return EmitLog(b, x);
    case MathFunction::kLog1p: return EmitLog1p(b, x);
    case MathFunction::kLogistic: return b.FDiv(b.F(1, x), b.FAdd(b.F(1, x), EmitExp(b, b.FNeg(x))));
    case MathFunction::kRsqrt: return b.FDiv(b.F(1, x), b.Sqrt(x));
    case MathFunction::kSin: return EmitSin(b, x);
    case MathFunction::kSinh: return LIBM(sinh, x);
    case MathFunction::kSqrt: return b.Sqrt(x);
    case MathFunction::kTan: return LIBM(tan, x);
    case MathFunction::kTanh: return LIBM(tanh, x);
  }
  return x;
}

V EmitPow(VectorBuilder& b, V x, V y) { return LIBM(pow, x, y); }
V EmitAtan2(VectorBuilder& b, V y, V x) { return LIBM(atan2, y, x); }
V EmitFmod(VectorBuilder& b, V x, V y) { return LIBM(fmod, x, y); }
V EmitExp(VectorBuilder& b, V x) { return LIBM(exp, x); }
V EmitExpm1(VectorBuilder& b, V x) { return LIBM(expm1, x); }
V EmitLog(VectorBuilder& b, V x) { return LIBM(log, x); }
V EmitLog1p(VectorBuilder& b, V x) { return LIBM(log1p, x); }
V EmitSin(VectorBuilder& b, V x) { return LIBM(sin, x); }
V EmitCos(VectorBuilder& b, V x) { return LIBM(cos, x); }

}  // namespace strop
