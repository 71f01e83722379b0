// StepMaker: makes the bodies of steps again from what was written down of them (spec_bytes.h).
#pragma once
#include <memory>
#include <string_view>

#include "strop/base/status.h"
#include "strop/runtime/executable.h"

namespace strop {

class StepMaker {
 public:
  virtual ~StepMaker() = default;
  // The body of a kernel, a region or a host step.
  virtual Result<StepBody> Make(std::string_view recipe) const = 0;
  // Keeps the machine code of all these steps alive.
  virtual std::shared_ptr<const void> code() const = 0;
  virtual int64_t code_bytes() const = 0;
};

}  // namespace strop
