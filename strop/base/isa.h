// WithVectors(f): runs f() compiled for AVX2 where the processor has it, else for the baseline.
//
// f and everything it calls is compiled twice (the `flatten` attribute inlines the whole call tree), so f should be the
// inner loops of a kernel and call only inline functions. It is copied: what it holds is then known not to change as
// elements are written, which otherwise would keep loops from becoming vectors. The bits are the same:
// -ffp-contract=off keeps a*b+c in two roundings on every instruction set.
#pragma once
#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace strop {

#if defined(__x86_64__)
inline bool HasAvx2() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
  return has;
}
template <class F>
__attribute__((target("avx2,bmi,bmi2"), flatten, noinline)) void RunAvx2(F f) {
  f();
}
template <class F>
__attribute__((flatten, noinline)) void RunBaseline(F f) {
  f();
}
template <class F>
void WithVectors(F&& f) {
  if (HasAvx2())
    RunAvx2(f);
  else
    RunBaseline(f);
}
#else
template <class F>
void WithVectors(F&& f) {
  f();
}
#endif

// Does the last cache hand out lines about as fast as the second one (AMD's Zen 3 and since)? What is asked for ahead
// of time, or kept from it, is lost work there.
inline bool HasFastLastCache() {
#if defined(__x86_64__)
  static const bool has = [] {
    unsigned int eax = 0, ebx = 0, ecx = 0, edx = 0;
    if (!__get_cpuid(0, &eax, &ebx, &ecx, &edx) || ecx != signature_AMD_ecx) return false;
    __get_cpuid(1, &eax, &ebx, &ecx, &edx);
    const unsigned int family = (eax >> 8 & 0xf) + (eax >> 20 & 0xff);
    return family >= 0x19;
  }();
  return has;
#else
  return false;
#endif
}

}  // namespace strop
