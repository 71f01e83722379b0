#include "strop/cpu/load/processor.h"

#include "strop/base/strings.h"

namespace strop::cpu {

std::string MissingFeatures(std::string_view features) {
  std::string missing;
#if defined(__x86_64__)
  __builtin_cpu_init();
// GCC takes literals only.
#define FEATURE(llvm, gcc) {llvm, __builtin_cpu_supports(gcc) != 0}
  const struct {
    std::string_view name;
    bool here;
  } kFeatures[] = {
      FEATURE("ssse3", "ssse3"),
      FEATURE("sse4.1", "sse4.1"),
      FEATURE("sse4.2", "sse4.2"),
      FEATURE("sse4a", "sse4a"),
      FEATURE("fma4", "fma4"),
      FEATURE("xop", "xop"),
      FEATURE("tbm", "tbm"),
      FEATURE("adx", "adx"),
      FEATURE("popcnt", "popcnt"),
      FEATURE("avx", "avx"),
      FEATURE("avx2", "avx2"),
      FEATURE("bmi", "bmi"),
      FEATURE("bmi2", "bmi2"),
      FEATURE("fma", "fma"),
      FEATURE("f16c", "f16c"),
      FEATURE("lzcnt", "lzcnt"),
      FEATURE("movbe", "movbe"),
      FEATURE("gfni", "gfni"),
      FEATURE("vaes", "vaes"),
      FEATURE("avx512f", "avx512f"),
      FEATURE("avx512bw", "avx512bw"),
      FEATURE("avx512cd", "avx512cd"),
      FEATURE("avx512dq", "avx512dq"),
      FEATURE("avx512vl", "avx512vl"),
      FEATURE("avx512vbmi", "avx512vbmi"),
      FEATURE("avx512vbmi2", "avx512vbmi2"),
      FEATURE("avx512ifma", "avx512ifma"),
      FEATURE("avx512vnni", "avx512vnni"),
      FEATURE("avx512bitalg", "avx512bitalg"),
      FEATURE("avx512vpopcntdq", "avx512vpopcntdq"),
      FEATURE("avx512bf16", "avx512bf16"),
      FEATURE("avx512fp16", "avx512fp16"),
      FEATURE("avxvnni", "avxvnni"),
  };
#undef FEATURE
  for (std::string_view feature : Split(features, ',')) {
    if (!feature.starts_with('+')) continue;
    for (const auto& known : kFeatures)
      if (known.name == feature.substr(1) && !known.here) StrAppend(missing, missing.empty() ? "" : ", ", known.name);
  }
#endif
  return missing;
}

}  // namespace strop::cpu
