// Log lines on stderr, chosen by STROP_LOG (0..3). Nothing is printed at 0; a line is one write, so lines of threads do
// not mix.
//
//   1  what a user should know: instructions that run in the interpreter, limits reached
//   2  what was decided: passes that changed something, kernels compiled, caches hit
//   3  everything: each step of an execution
//
//   STROP_LOG_AT(1, "interpreted: ", name, ", ", why);   // arguments are evaluated only when the level is on
#pragma once
#include <string_view>

#include "strop/base/strings.h"

namespace strop {

// The level in force: the environment's STROP_LOG, read on first use. A malformed value counts as 0 here; reading the
// options reports it.
int LogLevel();
// Writes "strop: <message>\n". Not for errors: those are returned.
void LogLine(std::string_view message);

#define STROP_LOG_AT(level, ...)                                                        \
  do {                                                                                  \
    if (::strop::LogLevel() >= (level)) ::strop::LogLine(::strop::StrCat(__VA_ARGS__)); \
  } while (false)

}  // namespace strop
