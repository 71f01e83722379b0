// A command of the user's, given to the shell with a file as its last argument; what it prints is not shown.
#pragma once
#include <functional>
#include <string>

#include "strop/base/status.h"

namespace strop::tools {

struct CommandOutcome {
  int status = 0;  // what a shell would say of it: 128 more than the signal that ended it
  bool timed_out = false;
  double seconds = 0;
};

// After `limit_seconds` (0: never), or when stop() says so, the command and what it started are killed; stop() makes it
// an error (Cancelled).
Result<CommandOutcome> RunShellCommand(const std::string& command, const std::string& file, double limit_seconds,
                                       const std::function<bool()>& stop);

}  // namespace strop::tools
