// The instruction set of this machine, as LLVM names it, and what follows from it for code generation and caching.
#pragma once
#include <string>

namespace strop {
struct VectorTarget;
}

namespace strop::cpu {

struct HostIsa {
  std::string triple, cpu, features;  // for LLVM's target machine
  int vector_bytes = 16;              // 64 with AVX-512 (also where LLVM's tuning would prefer 256 bits), 32 with AVX
  bool avx2 = false, avx512 = false, fma = false, f16c = false;
  bool avx512_bf16 = false, avx512_vnni = false, amx_int8 = false, amx_bf16 = false;
  std::string key;      // equal keys: object code may be exchanged
  std::string summary;  // "x86-64 avx512f avx512_bf16 ..." for people

  static const HostIsa& Get();  // detected once
  VectorTarget vector_target() const;
};

}  // namespace strop::cpu
