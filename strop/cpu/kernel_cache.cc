#include "strop/cpu/kernel_cache.h"

#include <algorithm>

namespace strop::cpu {
namespace {

constexpr int64_t kCacheBytes = int64_t{64} << 20;

}  // namespace

KernelCache::Entry KernelCache::Find(const std::string& key) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (const auto found = kept_.find(key); found != kept_.end()) return found->second.compiled;
  const auto found = replaceable_.find(key);
  return found == replaceable_.end() ? nullptr : found->second.lock();
}

void KernelCache::Keep(const std::string& key, Entry compiled) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (compiled->tiers) {
    if (replaceable_.size() >= look_at_) {
      std::erase_if(replaceable_, [](const auto& entry) { return entry.second.expired(); });
      look_at_ = 2 * replaceable_.size() + 64;
    }
    replaceable_[key] = compiled;
    return;
  }
  replaceable_.erase(key);
  const int64_t bytes = compiled->kept_bytes;
  if (!kept_.try_emplace(key, Kept{std::move(compiled), next_age_}).second) return;
  ++next_age_;
  kept_bytes_ += bytes;
  while (kept_bytes_ > kCacheBytes && kept_.size() > 1) {
    const auto oldest = std::min_element(kept_.begin(), kept_.end(),
                                         [](const auto& a, const auto& b) { return a.second.age < b.second.age; });
    kept_bytes_ -= oldest->second.compiled->kept_bytes;
    kept_.erase(oldest);
  }
}

}  // namespace strop::cpu
