// An instruction set, this machine's or another's, as LLVM names it, and what follows from it for code generation and
// caching.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "strop/base/status.h"

namespace strop {
struct VectorTarget;
}

namespace strop::cpu {

struct Isa {
  std::string triple, cpu, features;  // for LLVM's target machine
  int vector_bytes = 16;              // 64 with AVX-512 (also where LLVM's tuning would prefer 256 bits), 32 with AVX
  bool avx512 = false, vbmi = false, fma = false, f16c = false, fp16 = false;
  bool fast_gather = false, fast_last_cache = false;  // as of VectorTarget
  bool squares = false;                               // AMX: products by squares of 16x16
  std::string key;                                    // equal keys: object code may be exchanged
  std::string summary;                                // "x86-64 avx512f avx512_bf16 ..." for people

  static const Isa& OfHost();  // detected once
  // Of a processor as LLVM and GCC call it: "x86-64-v3", "skylake-avx512", "znver4". NotFound with the nearest name.
  static Result<Isa> Of(std::string_view cpu);
  VectorTarget vector_target() const;
};

// The features of `Isa::key`.
std::string_view FeaturesOf(std::string_view key);

}  // namespace strop::cpu
