// A routine of LAPACK bound to a call site: what is done for one matrix, and the frame around it that does it for a
// batch.
//
// A batch is cut between matrices, each computed by one thread, so that its bits depend neither on the number of
// threads nor on the matrix's place in the batch. Nothing is handed to the library that has no elements.
#pragma once
#include <cstdlib>
#include <memory>
#include <vector>

#include "strop/runtime/custom_call.h"
#include "strop/runtime/lapack/site.h"

namespace strop::lapack {

// Memory of one thread during a call: its own, or somebody else's.
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(void* lent) : at_(static_cast<char*>(lent)) {}
  bool Allocate(size_t bytes) {
    if (!at_) memory_.reset(static_cast<char*>(std::aligned_alloc(kAlignment, bytes + kAlignment)));
    if (!at_) at_ = memory_.get();
    return at_ != nullptr;
  }
  template <class T>
  T* At(size_t offset) const {
    return reinterpret_cast<T*>(at_ + offset);
  }
  static constexpr size_t kAlignment = 64;

 private:
  struct Free {
    void operator()(char* memory) const { std::free(memory); }
  };
  std::unique_ptr<char, Free> memory_;
  char* at_ = nullptr;
};

class Routine {
 public:
  virtual ~Routine() = default;
  // Reads and checks the call site; sizes workspaces.
  virtual Status Bind(Site& site) = 0;
  // Computes one matrix of the batch. The operands that Carry() names are in their results already.
  virtual void Solve(int64_t matrix, const CustomCallFrame& frame, const Scratch& scratch) const = 0;
  // Computes up to `together_` matrices, where that is more than one. Reads its operands itself.
  virtual void SolveTogether(int64_t, int64_t, const CustomCallFrame&, const Scratch&) const {}
  // Results of matrices without elements, which are zeros but for the operands carried: what else they are.
  virtual void SolveEmpty(const CustomCallFrame&) const {}

 protected:
  friend class Call;
  // Operand `operand` is copied into result `result`, `bytes` a matrix, before Solve works on it in place.
  void Carry(size_t operand, size_t result, int64_t elements, size_t size) {
    carried_.push_back({operand, result, elements * static_cast<int64_t>(size)});
  }
  // Room for `count` elements of T in the scratch memory; its offset.
  template <class T>
  size_t Reserve(int64_t count) {
    const size_t offset = scratch_bytes_;
    const size_t bytes = static_cast<size_t>(std::max<int64_t>(count, 1)) * sizeof(T);
    scratch_bytes_ += (bytes + Scratch::kAlignment - 1) / Scratch::kAlignment * Scratch::kAlignment;
    return offset;
  }
  template <class T>
  static T* At(void* data, int64_t matrix, int64_t elements) {
    return static_cast<T*>(data) + matrix * elements;
  }

  bool empty_ = false;  // no matrix has elements that the library could compute with
  double flops_ = 0;    // about, for one matrix
  int64_t together_ = 1;

 private:
  struct Carried {
    size_t operand, result;
    int64_t bytes;
  };
  std::vector<Carried> carried_;
  size_t scratch_bytes_ = 0;
};

class Call final : public CustomCall {
 public:
  Call(std::unique_ptr<Routine> routine, const CustomCallSite& site, int64_t batch, const Library* library);
  Status Run(const CustomCallFrame& frame) override;
  // Is there something to compute, without a library, for one thread?
  bool IsSingleTask() const;
  size_t scratch_bytes() const { return routine_->scratch_bytes_; }
  // Such a call, with scratch memory for it, 64-byte aligned.
  void RunSingleTask(const CustomCallFrame& frame, void* scratch) const;

 private:
  bool IsWorthThreads() const;
  void RunEmpty(const CustomCallFrame& frame) const;
  void RunMatrices(const CustomCallFrame& frame, int64_t begin, int64_t end, const Scratch& scratch) const;

  const std::unique_ptr<const Routine> routine_;
  const Library* const library_;  // null if nothing of it is called
  const int64_t batch_;
  std::vector<int64_t> result_bytes_;
};

}  // namespace strop::lapack
