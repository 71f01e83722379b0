#define STROP_ISA baseline
#define STROP_VECTOR_BYTES 16
#define STROP_MR 4
#define STROP_NRV 2
#include "strop/cpu/kernels/gemm_micro.inc"

#if defined(__linux__) && defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace strop::cpu {
namespace {

// Has the processor squares of bf16 and of bytes, and does the system let us use them? It has to be asked: their state
// makes every thread's larger. It refuses where a signal's stack would be too small for it.
[[maybe_unused]] bool MayMultiplySquares() {
#if defined(__linux__) && defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kTiles = 1u << 24, kBf16 = 1u << 22, kInt8 = 1u << 25, kAll = kTiles | kBf16 | kInt8;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (d & kAll) != kAll) return false;
  constexpr long kAskForState = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA
  return syscall(SYS_arch_prctl, kAskForState, kTileData) == 0;
#else
  return false;
#endif
}

}  // namespace

const GemmIsa& GemmBaseline() {
  static const GemmIsa kIsa = baseline::Make("baseline");
  return kIsa;
}

int GemmIsas(const GemmIsa* (&isas)[kMostGemmIsas]) {
  int n = 0;
  isas[n++] = &GemmBaseline();
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  if (avx2) isas[n++] = &GemmAvx2();
  if (avx512) isas[n++] = &GemmAvx512();
  const bool vnni = avx512 && __builtin_cpu_supports("avx512vnni");
  if (vnni) isas[n++] = &GemmAvx512Vnni();
  const bool bf16 = vnni && __builtin_cpu_supports("avx512bf16");
  if (bf16) isas[n++] = &GemmAvx512Bf16();
  static const bool squares = bf16 && MayMultiplySquares();
  if (squares) isas[n++] = &GemmAvx512Amx();
#endif
  return n;
}

const GemmIsa& BestGemmIsa() {
  static const GemmIsa& kBest = []() -> const GemmIsa& {
    const GemmIsa* isas[kMostGemmIsas];
    const int n = GemmIsas(isas);
    return *isas[n - 1];
  }();
  return kBest;
}

const GemmIsa& BestGemmIsaOfVectors() {
  static const GemmIsa kVectors = [] {
    GemmIsa isa = BestGemmIsa();
    isa.thirds = {};
    return isa;
  }();
  return kVectors;
}

}  // namespace strop::cpu
