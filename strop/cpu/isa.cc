#include "strop/cpu/isa.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/X86TargetParser.h>

#include <algorithm>
#include <vector>

#include "strop/base/strings.h"
#include "strop/codegen/vector_builder.h"

namespace strop::cpu {
namespace {

// `features` as LLVM takes them: "+avx2", "-avx512f".
Isa Make(std::string cpu, std::vector<std::string> features) {
  Isa isa;
  isa.triple = "x86_64-unknown-linux-gnu";
  isa.cpu = std::move(cpu);
  std::sort(features.begin(), features.end());  // they come in the order of a hash
  isa.features = Join(features, ",");
  const auto has = [&](std::string_view name) {
    return std::binary_search(features.begin(), features.end(), StrCat("+", name));
  };
  isa.avx512 = has("avx512f") && has("avx512bw") && has("avx512vl") && has("avx512dq");
  isa.vbmi = has("avx512vbmi");
  // Of AMD's, gathers are sequences of the microcode. (Zen 4: 0.41 ns an element of 16 at once, 0.26 one by one.)
  isa.fast_gather = isa.avx512 && !isa.cpu.starts_with("znver");
  // Since Zen 3 eight cores share 32 MB. (Zen 4, two threads: sums of 16 MB take 85 us, 117 if they ask ahead, from
  // whatever distance; 12 MB of rows in another order 180 us, 240 past the caches.)
  isa.fast_last_cache = isa.cpu == "znver3" || isa.cpu == "znver4" || isa.cpu == "znver5";
  isa.fma = has("fma");
  isa.f16c = has("f16c");
  isa.fp16 = isa.avx512 && has("avx512fp16");
  isa.squares = has("amx-bf16");
  isa.vector_bytes = isa.avx512 ? 64 : has("avx") ? 32 : 16;
  isa.key = StrCat(isa.cpu, ";", isa.features);
  isa.summary = "x86-64 " + isa.cpu;
  for (const char* name :
       {"avx2", "fma", "f16c", "avx512f", "avx512bf16", "avx512vnni", "avx512fp16", "amx-bf16", "amx-int8"})
    if (has(name)) StrAppend(isa.summary, " ", name);
  return isa;
}

// Registers and instructions of APX: LLVM uses them wherever it may, and no compiler of ours tells a processor that
// lacks them.
bool IsOfApx(llvm::StringRef feature) {
  constexpr std::string_view kParts[] = {"egpr", "push2pop2", "ppx", "ndd", "ccmp", "nf", "cf", "zu"};
  return std::find(std::begin(kParts), std::end(kParts), std::string_view(feature)) != std::end(kParts);
}

Isa Detect() {
  std::vector<std::string> features;
  for (const auto& feature : llvm::sys::getHostCPUFeatures())
    features.push_back((feature.getValue() ? "+" : "-") + feature.getKey().str());
  return Make(llvm::sys::getHostCPUName().str(), std::move(features));
}

}  // namespace

const Isa& Isa::OfHost() {
  static const Isa isa = Detect();
  return isa;
}

Result<Isa> Isa::Of(std::string_view cpu) {
  llvm::SmallVector<llvm::StringRef> known;
  llvm::X86::fillValidCPUArchList(known, /*Only64Bit=*/true);
  std::vector<std::string_view> names(known.begin(), known.end());
  if (std::find(names.begin(), names.end(), cpu) == names.end()) {
    const std::string_view near = Nearest(cpu, names);
    return NotFound("no x86-64 processor is called \"", cpu, "\"",
                    near.empty() ? "" : StrCat("; did you mean \"", near, "\"?"),
                    "; there are x86-64-v2, x86-64-v3, x86-64-v4 and the names that GCC's and Clang's -march take");
  }
  llvm::SmallVector<llvm::StringRef> on;
  llvm::X86::getFeaturesForCPU(llvm::StringRef(cpu.data(), cpu.size()), on);
  llvm::StringMap<bool> all;  // a processor's list leaves out what others of the list imply
  for (llvm::StringRef feature : on) {
    all[feature] = true;
    llvm::X86::updateImpliedFeatures(feature, /*Enabled=*/true, all);
  }
  std::vector<std::string> features;
  for (const auto& feature : all) features.push_back((IsOfApx(feature.getKey()) ? "-" : "+") + feature.getKey().str());
  return Make(std::string(cpu), std::move(features));
}

VectorTarget Isa::vector_target() const {
  return VectorTarget{.vector_bytes = vector_bytes,
                      .masked_memory = avx512,
                      .shuffled_bits = !avx512 ? 0
                                       : vbmi  ? 8
                                               : 16,
                      .half_convert = f16c,
                      .half_math = fp16,
                      .fma = fma,
                      .scale = avx512,
                      .fast_gather = fast_gather,
                      .fast_last_cache = fast_last_cache,
                      .ternary_logic = avx512,
                      .whole_operands = vector_bytes == 32 && !avx512};
}

std::string_view FeaturesOf(std::string_view key) {
  const size_t at = key.find(';');
  return at == key.npos ? std::string_view() : key.substr(at + 1);
}

}  // namespace strop::cpu
