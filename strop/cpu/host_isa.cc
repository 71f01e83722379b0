#include "strop/cpu/host_isa.h"

#include <llvm/ADT/StringMap.h>
#include <llvm/TargetParser/Host.h>

#include <algorithm>
#include <vector>

#include "strop/codegen/vector_builder.h"

namespace strop::cpu {
namespace {

HostIsa Detect() {
  HostIsa isa;
  isa.triple = "x86_64-unknown-linux-gnu";
  isa.cpu = llvm::sys::getHostCPUName().str();
  std::vector<std::string> features;
  const llvm::StringMap<bool> host = llvm::sys::getHostCPUFeatures();
  for (const auto& feature : host) features.push_back((feature.getValue() ? "+" : "-") + feature.getKey().str());
  std::sort(features.begin(), features.end());  // the map's order is a hash order
  for (const std::string& f : features) isa.features += (isa.features.empty() ? "" : ",") + f;
  const auto has = [&](const char* name) { return host.lookup(name); };
  isa.avx2 = has("avx2");
  isa.avx512 = has("avx512f") && has("avx512bw") && has("avx512vl") && has("avx512dq");
  isa.fma = has("fma");
  isa.f16c = has("f16c");
  isa.avx512_bf16 = has("avx512bf16");
  isa.avx512_vnni = has("avx512vnni");
  isa.amx_int8 = has("amx-int8");
  isa.amx_bf16 = has("amx-bf16");
  isa.vector_bytes = isa.avx512 ? 64 : has("avx") ? 32 : 16;
  isa.key = isa.cpu + ";" + isa.features;
  isa.summary = "x86-64 " + isa.cpu;
  for (const char* name :
       {"avx2", "fma", "f16c", "avx512f", "avx512bf16", "avx512vnni", "avx512fp16", "amx-bf16", "amx-int8"})
    if (has(name)) isa.summary += std::string(" ") + name;
  return isa;
}

}  // namespace

const HostIsa& HostIsa::Get() {
  static const HostIsa isa = Detect();
  return isa;
}

VectorTarget HostIsa::vector_target() const {
  return VectorTarget{
      .vector_bytes = vector_bytes, .masked_memory = avx512, .half_convert = f16c, .fma = fma, .scale = avx512};
}

}  // namespace strop::cpu
