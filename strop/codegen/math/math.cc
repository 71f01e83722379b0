// The table of functions. "...OfFloat" have vector code for float only, computed in double, whose 29 extra bits leave
// nothing to prove; for double lanes they are libm's, lane by lane.
#include "strop/codegen/math/math.h"

#include <initializer_list>

#include "strop/codegen/math/deferred.h"

namespace strop {
namespace {

using V = llvm::Value*;

V Libm(VectorBuilder& b, const char* name64, const char* name32, std::initializer_list<V> args) {
  return b.CallPerLane(math::IsDouble(*args.begin()) ? name64 : name32, args);
}

}  // namespace

#define LIBM(name, ...) Libm(b, #name, #name "f", {__VA_ARGS__})

V EmitMath(VectorBuilder& b, MathFunction f, V x) {
  if (b.defers_math() && VectorBuilder::Lanes(x) == 1 && f != MathFunction::kSqrt) return DeferMath(b, f, x);
  switch (f) {
    case MathFunction::kAcos: return math::Acos(b, x);
    case MathFunction::kAcosh: return math::Acosh(b, x);
    case MathFunction::kAsin: return math::Asin(b, x);
    case MathFunction::kAsinh: return math::Asinh(b, x);
    case MathFunction::kAtan: return math::IsDouble(x) ? math::Atan2OfDouble(b, x, b.F(1, x)) : math::AtanOfFloat(b, x);
    case MathFunction::kAtanh: return math::Atanh(b, x);
    case MathFunction::kCbrt: return math::Cbrt(b, x);
    case MathFunction::kCos: return math::Cos(b, x);
    case MathFunction::kCosh: return math::Cosh(b, x);
    case MathFunction::kErf: return math::Erf(b, x);
    case MathFunction::kExp: return math::Exp(b, x);
    case MathFunction::kExpm1: return math::Expm1(b, x);
    case MathFunction::kLog: return math::Log(b, x);
    case MathFunction::kLog1p: return math::Log1p(b, x);
    case MathFunction::kLogistic: return math::Logistic(b, x);
    case MathFunction::kRsqrt: return math::Rsqrt(b, x);
    case MathFunction::kSin: return math::Sin(b, x);
    case MathFunction::kSinh: return math::Sinh(b, x);
    case MathFunction::kSqrt: return b.Sqrt(x);
    case MathFunction::kTan: return math::Tan(b, x);
    case MathFunction::kTanh: return math::Tanh(b, x);
  }
  return x;
}

V EmitMathForNarrow(VectorBuilder& b, MathFunction f, V x) {
  switch (f) {
    case MathFunction::kExp: return math::ExpForNarrow(b, x);
    case MathFunction::kLogistic: return math::LogisticForNarrow(b, x);
    default: return EmitMath(b, f, x);
  }
}

V EmitPow(VectorBuilder& b, V x, V y) { return math::IsDouble(x) ? LIBM(pow, x, y) : math::PowOfFloat(b, x, y); }
V EmitAtan2(VectorBuilder& b, V y, V x) {
  return math::IsDouble(x) ? math::Atan2OfDouble(b, y, x) : math::Atan2OfFloat(b, y, x);
}
V EmitFmod(VectorBuilder& b, V x, V y) { return b.target().fma ? math::Fmod(b, x, y) : LIBM(fmod, x, y); }

}  // namespace strop
