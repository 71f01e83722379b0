// KernelCache: the machine code of kernels, for later programs with the same ones.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "strop/cpu/kernel_family.h"
#include "strop/cpu/load/code.h"
#include "strop/runtime/object_code.h"

namespace strop::cpu {

class TieredCode;

struct CompiledKernelCode {
  std::shared_ptr<const LoadedCode> code;  // of the whole group; null: `status` says why
  std::shared_ptr<const ObjectCode> object;
  std::shared_ptr<const TieredCode> tiers;  // not null: `object` as such, better code is to take this one's place
  int64_t code_bytes = 0, kept_bytes = 0;   // this kernel's share: of the code, of both
  std::string function;
  const KernelFamily* family = nullptr;  // null: a region
  EmittedKernel emitted;
  Status status;
};

class KernelCache {
 public:
  using Entry = std::shared_ptr<const CompiledKernelCode>;

  // Null if there is none of this key.
  Entry Find(const std::string& key);
  // Code that is as good as it gets is kept until newer code needs its place; code that is to be replaced, as long as a
  // program uses it.
  void Keep(const std::string& key, Entry compiled);

 private:
  struct Kept {
    Entry compiled;
    int64_t age = 0;
  };
  std::mutex mutex_;
  std::map<std::string, Kept> kept_;
  std::map<std::string, std::weak_ptr<const CompiledKernelCode>> replaceable_;
  size_t look_at_ = 64;  // entries of replaceable_: then those that nobody uses go
  int64_t kept_bytes_ = 0;
  int64_t next_age_ = 0;
};

}  // namespace strop::cpu
