// Emitters: target machines are not for two threads at once, and take a while to make: they are lent out.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "strop/cpu/isa.h"
#include "strop/cpu/jit.h"

namespace strop::cpu {

class Emitters {
 public:
  explicit Emitters(const Isa& isa) : isa_(isa) {}

  class Loan {
   public:
    Loan(Emitters& lender, int level, std::unique_ptr<ObjectEmitter> emitter)
        : lender_(lender), level_(level), emitter_(std::move(emitter)) {}
    ~Loan() { lender_.Return(level_, std::move(emitter_)); }
    Loan(const Loan&) = delete;
    Loan& operator=(const Loan&) = delete;
    ObjectEmitter& emitter() { return *emitter_; }
    // After a failure inside LLVM: nothing is known of its state.
    void Discard() { emitter_.reset(); }

   private:
    Emitters& lender_;
    int level_;
    std::unique_ptr<ObjectEmitter> emitter_;
  };

  Result<std::unique_ptr<Loan>> Borrow(int optimization_level);
  const Isa& isa() const { return isa_; }

 private:
  void Return(int level, std::unique_ptr<ObjectEmitter> emitter);

  const Isa isa_;
  std::mutex mutex_;
  std::map<int, std::vector<std::unique_ptr<ObjectEmitter>>> idle_;  // by optimization level
};

}  // namespace strop::cpu
