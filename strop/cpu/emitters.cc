#include "strop/cpu/emitters.h"

namespace strop::cpu {

Result<std::unique_ptr<Emitters::Loan>> Emitters::Borrow(int optimization_level) {
  std::unique_ptr<ObjectEmitter> emitter;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    std::vector<std::unique_ptr<ObjectEmitter>>& idle = idle_[optimization_level];
    if (!idle.empty()) {
      emitter = std::move(idle.back());
      idle.pop_back();
    }
  }
  if (!emitter) {
    STROP_ASSIGN(emitter, ObjectEmitter::Create(isa_, optimization_level));
  }
  return std::make_unique<Loan>(*this, optimization_level, std::move(emitter));
}

void Emitters::Return(int level, std::unique_ptr<ObjectEmitter> emitter) {
  if (!emitter) return;
  std::lock_guard<std::mutex> lock(mutex_);
  idle_[level].push_back(std::move(emitter));
}

}  // namespace strop::cpu
