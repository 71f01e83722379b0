// TieredCode: the code of a group of kernels that was quick to make, until code that is quick to run takes its place.
// Both come from LLVM IR, which fixes every rounding, of the same kernels: the same bits. docs/adr/0026.
//
// The better code is made on one thread of the process, of low priority, in the order in which it was asked for; or by
// whoever needs it (to write the program down), if that is sooner. A group that no program uses any more is left out.
#pragma once
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "strop/base/status.h"
#include "strop/cpu/load/code.h"
#include "strop/runtime/object_code.h"

namespace strop::cpu {

class TieredCode final : public ObjectCode {
 public:
  // `code` is replaceable and was loaded from `object`. `make` is called once at most, on any thread, for a better
  // object with the same functions; `made` is told of it and of its code.
  using Make = std::function<Result<std::string>()>;
  using Made = std::function<void(std::shared_ptr<const std::string>, std::shared_ptr<const LoadedCode>)>;
  TieredCode(std::shared_ptr<const LoadedCode> code, std::shared_ptr<const std::string> object, Make make, Made made);

  const LoadedCode& code() const { return *code_; }
  // Makes the better code, or waits until it is made. If that failed, the object is what it was.
  std::shared_ptr<const std::string> Final() const override;

  // Has it made soon.
  static void Schedule(const std::shared_ptr<const TieredCode>& code);
  // Until everything that was scheduled so far is made or left out. For tests and measurements.
  static void WaitForAll();

 private:
  const std::shared_ptr<const LoadedCode> code_;
  mutable std::mutex mutex_;
  // Guarded by mutex_, which whoever makes the code holds.
  mutable std::shared_ptr<const std::string> object_;
  mutable std::shared_ptr<const LoadedCode> better_;
  mutable Make make_;  // null: called
  mutable Made made_;
};

}  // namespace strop::cpu
