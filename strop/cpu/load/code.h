// Machine code in memory, from the objects that LLVM writes (ELF, x86-64, position independent). No LLVM here: a kernel
// is one section of code, its constants, and calls of the few functions of symbols.h, so that placing sections and five
// kinds of relocation are all of the work.
//
// All objects come to lie in one mapping, which is writable while they are linked and then becomes read-only and
// executable. A function outside is further than 32 bits can tell: it is reached through a stub behind the objects. So
// is a function whose code may be replaced: its stub jumps to an address in pages that stay writable.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strop/base/status.h"

namespace strop::cpu {

// Unmapped with the last reference.
class LoadedCode {
 public:
  // InvalidArgument if an object is damaged; Unimplemented names what is in it that kernels do not have, or the
  // function that it calls and nobody knows; ResourceExhausted without memory.
  static Result<std::shared_ptr<const LoadedCode>> Load(std::span<const std::string_view> objects);
  // The same for one object whose functions may be replaced.
  static Result<std::shared_ptr<const LoadedCode>> LoadReplaceable(std::string_view object);
  ~LoadedCode();
  LoadedCode(const LoadedCode&) = delete;
  LoadedCode& operator=(const LoadedCode&) = delete;

  // Address of a function that this object defines; null if it does not.
  void* Find(size_t object, std::string_view name) const;
  int64_t bytes() const { return static_cast<int64_t>(size_); }

  // Whoever calls a function of this replaceable code from now on, by an address of Find(), calls the one of the same
  // name in `code`, which must outlive this. Calls that are under way end as they began. InvalidArgument, and nothing
  // is replaced, if `code` lacks one.
  Status ReplaceBy(const LoadedCode& code) const;

 private:
  friend class Linker;
  struct Function {
    std::string name;
    void* address;
    void** target = nullptr;  // of replaceable code: where `address` jumps to
  };
  LoadedCode() = default;
  uint8_t* base_ = nullptr;
  size_t size_ = 0;
  std::vector<std::vector<Function>> functions_;  // of each object
};

}  // namespace strop::cpu
