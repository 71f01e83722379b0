// Accuracy of the math functions, in units of the last place, against libm's long double (64 bits of mantissa): random
// arguments over the whole range and dense around the places where formulas change. The bounds are what a user may rely
// on.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <random>
#include <string_view>

#include "strop/codegen/loop_scopes.h"
#include "strop/codegen/math/math.h"
#include "strop/cpu/isa.h"
#include "strop/cpu/jit.h"
#include "strop/cpu/load/code.h"
#include "strop/runtime/executable.h"

namespace strop::cpu {
namespace {

using llvm::Value;
using Long = long double;
using EmitFn = Value* (*)(VectorBuilder&, Value*, Value*);

// void kernel(args = {x, y, out}, begin, end, scratch): out[begin..end) = f(x, y), the count a multiple of the lanes.
std::shared_ptr<const LoadedCode> CompileFunction(EmitFn emit, bool wide, int lanes, bool short_chains) {
  llvm::LLVMContext context;
  llvm::Module module("math", context);
  auto emitter = *ObjectEmitter::Create(Isa::OfHost(), 2);
  emitter->Prepare(module);
  VectorBuilder b(module, Isa::OfHost().vector_target());
  b.ShortenChains(short_chains);
  LoopScopes scopes(b);
  auto* type = llvm::FunctionType::get(b.ir().getVoidTy(), {b.Ptr(), b.Int(64), b.Int(64), b.Ptr()}, false);
  auto* f = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, "f", module);
  f->addFnAttr("prefer-vector-width", "512");
  f->addFnAttr("min-legal-vector-width", "512");
  b.ir().SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
  Value* p[3];
  for (unsigned k = 0; k < 3; ++k)
    p[k] = b.ir().CreateLoad(b.Ptr(), b.ir().CreateConstGEP1_64(b.Ptr(), f->getArg(0), k));
  llvm::Type* element = wide ? b.F64() : b.F32();
  llvm::Type* vector = VectorBuilder::WithLanes(element, lanes);
  scopes.Loop("loop", f->getArg(1), f->getArg(2), lanes, [&](Value* i) {
    const llvm::Align align(4);
    Value* x = b.ir().CreateAlignedLoad(vector, b.ir().CreateGEP(element, p[0], i), align);
    Value* y = b.ir().CreateAlignedLoad(vector, b.ir().CreateGEP(element, p[1], i), align);
    b.ir().CreateAlignedStore(emit(b, x, y), b.ir().CreateGEP(element, p[2], i), align);
  });
  b.ir().CreateRetVoid();
  Result<std::string> object = emitter->Emit(module, {});
  if (!object.ok()) {
    ADD_FAILURE() << object.status().ToString();
    return nullptr;
  }
  const std::string_view objects[] = {*object};
  auto code = LoadedCode::Load(objects);
  if (!code.ok()) {
    ADD_FAILURE() << code.status().ToString();
    return nullptr;
  }
  return *code;
}

template <class T>
double UlpError(T got, Long want) {
  const T rounded = static_cast<T>(want);
  if (std::isnan(want)) return std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(rounded) || std::isinf(got)) {
    if (got == rounded) return 0;
    // One of them rounds over the edge.
    const T largest = std::numeric_limits<T>::max();
    return std::fabs(got) == largest || std::fabs(rounded) == largest ? 1 : INFINITY;
  }
  if (want == 0) return got == 0 ? (std::signbit(got) == std::signbit(want) ? 0 : 1000) : INFINITY;
  int exponent;
  std::frexp(want, &exponent);
  const int unit = std::max(exponent, std::numeric_limits<T>::min_exponent) - std::numeric_limits<T>::digits;
  return static_cast<double>(std::fabs(static_cast<Long>(got) - want) / std::ldexp(Long{1}, unit));
}

template <class T>
std::vector<T> Arguments(std::mt19937_64& random, double low, double high, size_t n) {
  using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;
  std::vector<T> x;
  const T special[] = {0,
                       T(-0.0),
                       1,
                       -1,
                       T(INFINITY),
                       T(-INFINITY),
                       T(NAN),
                       std::numeric_limits<T>::denorm_min(),
                       -std::numeric_limits<T>::denorm_min(),
                       std::numeric_limits<T>::min(),
                       std::numeric_limits<T>::max(),
                       std::numeric_limits<T>::lowest(),
                       T(0.5),
                       T(-0.5),
                       2,
                       -2,
                       3,
                       -3,
                       T(0.70710678),
                       T(1e-8),
                       T(1e-20)};
  for (T v : special) x.push_back(v);
  while (x.size() < n) {
    const double u = static_cast<double>(random() >> 11) * 0x1p-53;
    switch (random() % 4) {
      case 0: x.push_back(std::bit_cast<T>(static_cast<Bits>(random()))); break;  // any bits
      case 1: x.push_back(static_cast<T>(u * 2 - 1)); break;
      case 2: x.push_back(static_cast<T>(std::exp((u - 0.5) * 20) * (random() % 2 ? 1 : -1))); break;
      default: x.push_back(static_cast<T>(low + u * (high - low)));
    }
  }
  return x;
}

struct Row {
  const char* name;
  EmitFn emit;
  Long (*reference)(Long x, Long y);
  double bound32, bound64;  // ulps
  double low, high;         // where it is interesting
};

template <MathFunction F>
Value* Emit(VectorBuilder& b, Value* x, Value*) {
  return EmitMath(b, F, x);
}

// A power whose exponent the compiler sees. (Subnormal results of doubles are rounded twice.)
template <int kTwice>
Value* EmitPowOfHalves(VectorBuilder& b, Value* x, Value*) {
  return EmitPow(b, x, b.F(0.5 * kTwice, x));
}

#define POW_OF_HALVES(NAME, TWICE) \
  {NAME, &EmitPowOfHalves<TWICE>, [](Long x, Long) -> Long { return std::pow(x, 0.5L * TWICE); }, 0.55, 0.75, 0, 3}
#define UNARY(NAME, CALL, B32, B64, LOW, HIGH) \
  {#NAME, &Emit<MathFunction::k##NAME>, [](Long x, Long) -> Long { return CALL; }, B32, B64, LOW, HIGH}
const Row kRows[] = {
    UNARY(Exp, std::exp(x), 1.0, 1.0, -100, 100),
    UNARY(Expm1, std::expm1(x), 1.4, 1.5, -3, 3),
    UNARY(Log, std::log(x), 0.8, 0.85, 0, 3),
    UNARY(Log1p, std::log1p(x), 0.85, 0.85, -1, 2),
    UNARY(Logistic, 1 / (1 + std::exp(-x)), 1.5, 1.3, -100, 100),
    UNARY(Tanh, std::tanh(x), 1.6, 1.6, -10, 10),
    UNARY(Sinh, std::sinh(x), 1.6, 1.6, -90, 90),
    UNARY(Cosh, std::cosh(x), 1.25, 1.3, -90, 90),
    UNARY(Sin, std::sin(x), 0.95, 0.8, -1000, 1000),
    UNARY(Cos, std::cos(x), 0.95, 0.8, -1000, 1000),
    UNARY(Tan, std::tan(x), 0.8, 0.9, -1000, 1000),
    UNARY(Asin, std::asin(x), 1.4, 1.1, -1, 1),
    UNARY(Acos, std::acos(x), 1.4, 1.1, -1, 1),
    UNARY(Atan, std::atan(x), 0.6, 0.6, -3, 3),
    UNARY(Asinh, std::asinh(x), 1.75, 1.75, -3, 3),
    UNARY(Acosh, std::acosh(x), 1.9, 2.0, 1, 3),
    UNARY(Atanh, std::atanh(x), 1.75, 1.75, -1, 1),
    UNARY(Cbrt, std::cbrt(x), 0.6, 0.6, -3, 3),
    UNARY(Erf, std::erf(x), 1.8, 1.2, -5, 5),
    UNARY(Rsqrt, 1 / std::sqrt(x), 0.6, 0.6, 0, 3),
    UNARY(Sqrt, std::sqrt(x), 0.501, 0.501, 0, 3),
    {"Pow", [](VectorBuilder& b, Value* x, Value* y) { return EmitPow(b, x, y); },
     [](Long x, Long y) -> Long { return std::pow(x, y); }, 0.55, 0.6, -3, 3},
    POW_OF_HALVES("PowOfHalf", 1),
    POW_OF_HALVES("PowOfMinusHalf", -1),
    POW_OF_HALVES("PowOfThreeHalves", 3),
    POW_OF_HALVES("PowOfMinusThreeHalves", -3),
    POW_OF_HALVES("PowOfFiveHalves", 5),
    POW_OF_HALVES("PowOfMinusFiveHalves", -5),
    {"Atan2", [](VectorBuilder& b, Value* x, Value* y) { return EmitAtan2(b, x, y); },
     [](Long x, Long y) -> Long { return std::atan2(x, y); }, 0.55, 0.85, -3, 3},
    {"Fmod", [](VectorBuilder& b, Value* x, Value* y) { return EmitFmod(b, x, y); },
     [](Long x, Long y) -> Long { return std::fmod(x, y); }, 0, 0, -300, 300},
};

template <class T>
void CheckRow(const Row& row, double bound, int lanes, bool short_chains = false) {
  constexpr bool kWide = sizeof(T) == 8;
  const auto code = CompileFunction(row.emit, kWide, lanes, short_chains);
  if (!code) return;
  std::mt19937_64 random(7);
  const size_t n = 100000 / static_cast<size_t>(lanes) * static_cast<size_t>(lanes);
  std::vector<T> x = Arguments<T>(random, row.low, row.high, n), y = Arguments<T>(random, row.low, row.high, n), out(n);
  for (size_t i = 0; i < 21 * 21; ++i) y[i] = y[(i / 21) % 21], x[i] = x[i % 21];  // specials against specials
  for (size_t i = n - 4000; i < n; ++i) y[i] = std::round(y[i]);
  void* args[] = {x.data(), y.data(), out.data()};
  reinterpret_cast<KernelFn>(code->Find(0, "f"))(args, 0, static_cast<int64_t>(n), nullptr);
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < n; ++i) {
    const double error = UlpError<T>(out[i], row.reference(x[i], y[i]));
    if (error > worst) worst = error, at = i;
  }
  std::printf("%-9s %s  %8.3f ulp at %.9g, %.9g\n", row.name, kWide ? "f64" : "f32", worst, static_cast<double>(x[at]),
              static_cast<double>(y[at]));
  EXPECT_LE(worst, bound) << row.name << (kWide ? " f64" : " f32") << " at " << x[at] << ", " << y[at] << ": "
                          << out[at] << " against " << static_cast<double>(row.reference(x[at], y[at]));
}

// Quick code has each function once, which is called register by register.
TEST(Math, QuickCodeHasEachFunctionOnce) {
  for (const bool quick : {false, true}) {
    llvm::LLVMContext context;
    llvm::Module module("m", context);
    VectorBuilder b(module, VectorTarget{.vector_bytes = 32, .fma = true});
    if (quick) b.MakeQuick();
    llvm::Type* type = VectorBuilder::WithLanes(b.F32(), 16);
    auto* f = llvm::Function::Create(llvm::FunctionType::get(type, {type, type}, false),
                                     llvm::GlobalValue::ExternalLinkage, "f", module);
    b.ir().SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
    const auto exp = [&](unsigned k) { return EmitMath(b, MathFunction::kExp, f->getArg(k)); };
    b.ir().CreateRet(b.FAdd(exp(0), exp(1)));
    int bodies = 0, calls = 0;
    for (const llvm::Function& g : module) bodies += !g.isDeclaration();
    for (const llvm::Instruction& i : f->getEntryBlock()) {
      const auto* call = llvm::dyn_cast<llvm::CallInst>(&i);
      calls += call && !call->getCalledFunction()->isIntrinsic();
    }
    EXPECT_EQ(bodies, quick ? 2 : 1);
    EXPECT_EQ(calls, quick ? 4 : 0);
  }
}

TEST(Math, Float) {
  for (const Row& row : kRows) CheckRow<float>(row, row.bound32, 16);
}

// Some have code of their own for one number.
TEST(Math, OneFloat) {
  for (const Row& row : kRows) CheckRow<float>(row, row.bound32, 1);
}

// 19 bits at the ends of the range, where only bf16 is, whose results are rounded to 8.
TEST(Math, ForNarrow) {
  constexpr double kUlps = 24;
  const auto emit = []<MathFunction F>() -> EmitFn {
    return [](VectorBuilder& b, Value* x, Value*) { return EmitMathForNarrow(b, F, x); };
  };
  for (Row row : kRows) {
    if (std::string_view(row.name) == "Exp")
      row.emit = emit.operator()<MathFunction::kExp>();
    else if (std::string_view(row.name) == "Logistic")
      row.emit = emit.operator()<MathFunction::kLogistic>();
    else
      continue;
    CheckRow<float>(row, kUlps, 16);
    CheckRow<float>(row, kUlps, 1);
  }
}

TEST(Math, Double) {
  for (const Row& row : kRows) CheckRow<double>(row, row.bound64, 8);
}

// As loops of small states compute them.
TEST(Math, InShortChains) {
  constexpr double kMore = 0.01;  // by pairs: the arc tangent of doubles 0.606
  for (const Row& row : kRows) {
    CheckRow<float>(row, row.bound32 + kMore, 8, true);
    CheckRow<double>(row, row.bound64 + kMore, 4, true);
  }
}

}  // namespace
}  // namespace strop::cpu
