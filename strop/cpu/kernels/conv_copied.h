// Convolutions whose input is copied first, by tasks of their own, in the order that another convolution reads well.
#pragma once
#include <algorithm>
#include <memory>
#include <string_view>

#include "strop/base/strings.h"
#include "strop/cpu/kernels/conv.h"
#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {

class CopiedConv : public Conv {
 public:
  // The product's own tasks pack the kernel, and do not look at the copy yet.
  void Prepare(const ConvCall& call, int64_t begin, int64_t end) const final {
    for (; begin < std::min(end, copy_tasks_); ++begin)
      if (call.round == 0) Copy(call, begin);
    if (begin < end) product_->Prepare(Inner(call), begin - copy_tasks_, end - copy_tasks_);
  }
  void Run(const ConvCall& call, int64_t begin, int64_t end, void* scratch) const final {
    product_->Run(Inner(call), begin, end, scratch);
  }

 protected:
  // `product` reads a copy of so many floats, which lies at the beginning of call.shared.
  CopiedConv(std::string_view copy, int64_t tasks, int64_t elements, std::shared_ptr<const Conv> product)
      : product_(std::move(product)), copy_tasks_(tasks) {
    copy_bytes_ = RoundUp(elements * static_cast<int64_t>(sizeof(float)) + kCarverSlack, 64);
    num_tasks_ = product_->num_tasks();
    scratch_bytes_ = product_->scratch_bytes();
    rounds_ = product_->rounds();
    prepare_tasks_ = copy_tasks_ + product_->prepare_tasks();
    shared_bytes_ = copy_bytes_ + product_->shared_bytes();
    tiles_ = StrCat(copy, ", ", product_->tiles());
  }
  virtual void Copy(const ConvCall& call, int64_t task) const = 0;

 private:
  ConvCall Inner(const ConvCall& call) const {
    return {call.shared, call.kernel, call.output, call.round, static_cast<uint8_t*>(call.shared) + copy_bytes_};
  }

  std::shared_ptr<const Conv> product_;
  int64_t copy_tasks_ = 0, copy_bytes_ = 0;
};

}  // namespace strop::cpu
