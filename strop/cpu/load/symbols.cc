#include "strop/cpu/load/symbols.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "strop/runtime/cancelled_scope.h"
#include "strop/runtime/executable.h"

#if defined(__x86_64__)
// Of the compiler's own library: what LLVM calls for f16 where the machine has no instruction.
extern "C" {
_Float16 __truncdfhf2(double);
_Float16 __truncsfhf2(float);
float __extendhfsf2(_Float16);
}
#endif

namespace strop::cpu {
namespace {

struct Symbol {
  std::string_view name;
  void* address;
};

template <class R, class... A>
void* Address(R (*function)(A...)) {
  return reinterpret_cast<void*>(function);
}

#define LIBM1(name) \
  {#name, Address<double, double>(name)}, { #name "f", Address<float, float>(name##f) }
#define LIBM2(name) \
  {#name, Address<double, double, double>(name)}, { #name "f", Address<float, float, float>(name##f) }
#define LIBM3(name) \
  {#name, Address<double, double, double, double>(name)}, { #name "f", Address<float, float, float, float>(name##f) }

// libm's reduction of huge angles loses digits of doubles that lie next to a multiple of pi/2 (glibc 2.36: 8 ULP for
// the cosine of 5.319372648326541e255, 14 for the tangent); that of long double has them.
constexpr double kHuge = 1 << 20;
double Sin(double x) { return std::fabs(x) > kHuge ? static_cast<double>(sinl(x)) : sin(x); }
double Cos(double x) { return std::fabs(x) > kHuge ? static_cast<double>(cosl(x)) : cos(x); }
double Tan(double x) { return std::fabs(x) > kHuge ? static_cast<double>(tanl(x)) : tan(x); }
void SinCos(double x, double* sine, double* cosine) {
  *sine = Sin(x);
  *cosine = Cos(x);
}

// A kernel of the library, all of it on this thread: what a region calls.
void CallFromRegion(const RegionContext* context, int64_t call, void* const* args) {
  const KernelStep& kernel = context->calls[call];
  TaskCall round{args, 0, context->shared};
  if (kernel.kept_bytes > 0) {
    round.kept = context->kept + kernel.kept_at;
    char& is_there = context->kept[kernel.kept_at - KernelStep::kKeptHead];
    if (is_there == 0) kernel.library->Keep(round);
    is_there = 1;
  }
  for (; round.round < kernel.rounds; ++round.round) {
    if (kernel.prepare_tasks > 0) kernel.library->Prepare(round, 0, kernel.prepare_tasks);
    kernel.library->Run(round, 0, kernel.num_tasks, context->scratch);
  }
}

// The first groups are also what LLVM itself falls back on where the machine has no instruction (floor without SSE4.1).
const Symbol* SymbolTable(size_t* size) {
  static const Symbol kSymbols[] = {
      LIBM1(acos),
      LIBM1(acosh),
      LIBM1(asin),
      LIBM1(asinh),
      LIBM1(atan),
      LIBM1(atanh),
      LIBM1(cbrt),
      LIBM1(ceil),
      {"cos", Address<double, double>(Cos)},
      {"cosf", Address<float, float>(cosf)},
      LIBM1(cosh),
      LIBM1(erf),
      LIBM1(exp),
      LIBM1(expm1),
      LIBM1(floor),
      LIBM1(lgamma),
      LIBM1(log),
      LIBM1(log1p),
      LIBM1(nearbyint),
      LIBM1(rint),
      LIBM1(round),
      LIBM1(roundeven),
      {"sin", Address<double, double>(Sin)},
      {"sinf", Address<float, float>(sinf)},
      LIBM1(sinh),
      LIBM1(sqrt),
      {"tan", Address<double, double>(Tan)},
      {"tanf", Address<float, float>(tanf)},
      LIBM1(tanh),
      LIBM1(trunc),
      LIBM2(atan2),
      LIBM2(fmod),
      LIBM2(hypot),
      LIBM2(pow),
      LIBM2(remainder),
      LIBM3(fma),
#if defined(__x86_64__)
      {"__truncdfhf2", Address<_Float16, double>(__truncdfhf2)},
      {"__truncsfhf2", Address<_Float16, float>(__truncsfhf2)},
      {"__extendhfsf2", Address<float, _Float16>(__extendhfsf2)},
#endif
      {"sincos", Address<void, double, double*, double*>(SinCos)},  // LLVM joins sin and cos of one value
      {"sincosf", Address<void, float, float*, float*>(sincosf)},
      {"memcpy", Address<void*, void*, const void*, size_t>(memcpy)},
      {"memmove", Address<void*, void*, const void*, size_t>(memmove)},
      {kRegionCallSymbol, Address<void, const RegionContext*, int64_t, void* const*>(CallFromRegion)},
      {kCancelledSymbol, Address<bool>(CancelledScope::Asked)},
      {"memset", Address<void*, void*, int, size_t>(memset)},
  };
  *size = std::size(kSymbols);
  return kSymbols;
}

}  // namespace

void* FindSymbol(std::string_view name) {
  size_t size;
  const Symbol* table = SymbolTable(&size);
  const Symbol* found = std::find_if(table, table + size, [&](const Symbol& s) { return s.name == name; });
  return found == table + size ? nullptr : found->address;
}

}  // namespace strop::cpu
