// The table of functions. "...OfFloat" have vector code for float only, computed in double, whose 29 extra bits leave
// nothing to prove; for double lanes they are libm's, lane by lane.
#include "strop/codegen/math/math.h"

#include <initializer_list>
#include <string>

#include "strop/codegen/math/deferred.h"

namespace strop {
namespace {

using V = llvm::Value*;

V Libm(VectorBuilder& b, const char* name64, const char* name32, std::initializer_list<V> args) {
  return b.CallPerLane(math::IsDouble(*args.begin()) ? name64 : name32, args);
}

}  // namespace

#define LIBM(name, ...) Libm(b, #name, #name "f", {__VA_ARGS__})

namespace {

V Inline(VectorBuilder& b, MathFunction f, V x) {
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

// By the number of the function.
std::string NameOf(const char* prefix, MathFunction f) { return prefix + std::to_string(static_cast<int>(f)); }

}  // namespace

using Arguments = llvm::ArrayRef<V>;

V EmitMath(VectorBuilder& b, MathFunction f, V x) {
  if (f == MathFunction::kSqrt) return b.Sqrt(x);
  if (b.defers_math() && VectorBuilder::Lanes(x) == 1) return DeferMath(b, f, x);
  return b.OnceIfQuick(NameOf("strop.math", f), {x}, [&](Arguments a) { return Inline(b, f, a[0]); });
}

V EmitMathForNarrow(VectorBuilder& b, MathFunction f, V x) {
  const auto narrow = [&](V (*function)(VectorBuilder&, V)) {
    return b.OnceIfQuick(NameOf("strop.narrow", f), {x}, [&](Arguments a) { return function(b, a[0]); });
  };
  switch (f) {
    case MathFunction::kExp: return narrow(math::ExpForNarrow);
    case MathFunction::kLogistic: return narrow(math::LogisticForNarrow);
    default: return EmitMath(b, f, x);
  }
}

namespace {

// Twice the exponent, if it is known to be n + 1/2, and small; or 0.
int Halves(V exponent) {
  constexpr double kMost = 2.5;
  const auto* constant = llvm::dyn_cast<llvm::Constant>(exponent);
  if (constant && exponent->getType()->isVectorTy()) constant = constant->getSplatValue();
  const auto* number = constant ? llvm::dyn_cast<llvm::ConstantFP>(constant) : nullptr;
  if (!number) return 0;
  const double value = number->getValueAPF().convertToDouble(), twice = 2 * value;
  return std::abs(value) <= kMost && std::floor(twice) == twice && std::floor(value) != value ? static_cast<int>(twice)
                                                                                              : 0;
}

}  // namespace

V EmitPow(VectorBuilder& b, V x, V y) {
  b.Match(x, y);
  if (const int n = b.target().fma ? Halves(y) : 0)
    return b.OnceIfQuick("strop.pow.halves." + std::to_string(n), {x},
                         [&](Arguments a) { return math::PowOfHalves(b, a[0], n); });
  if (math::IsDouble(x) && !b.target().fma) return LIBM(pow, x, y);
  return b.OnceIfQuick("strop.pow", {x, y}, [&](Arguments a) {
    return math::IsDouble(a[0]) ? math::PowOfDouble(b, a[0], a[1]) : math::PowOfFloat(b, a[0], a[1]);
  });
}
V EmitAtan2(VectorBuilder& b, V y, V x) {
  return b.OnceIfQuick("strop.atan2", {y, x}, [&](Arguments a) {
    return math::IsDouble(a[1]) ? math::Atan2OfDouble(b, a[0], a[1]) : math::Atan2OfFloat(b, a[0], a[1]);
  });
}
V EmitFmod(VectorBuilder& b, V x, V y) {
  if (!b.target().fma) return LIBM(fmod, x, y);
  return b.OnceIfQuick("strop.fmod", {x, y}, [&](Arguments a) { return math::Fmod(b, a[0], a[1]); });
}

}  // namespace strop
