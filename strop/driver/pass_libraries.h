// Shared objects with passes (passes/library.h), opened for the rest of the process: modules may hold what they made.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "strop/passes/pass.h"

namespace strop {

class PassLibraries {
 public:
  // Adds the file's passes. NotFound: no such file. InvalidArgument: it is no pass library, one of another version, or
  // one of its passes has a name that is taken.
  Status Load(const std::string& path);
  std::span<const PassInfo> passes() const { return passes_; }

 private:
  std::vector<PassInfo> passes_;
};

}  // namespace strop
