// Reducer: makes a module smaller as long as something holds of it.
//
// The edits, from coarse to fine: another root, fewer results, callees in place of calls, an instruction replaced by
// one of its operands, by a new parameter or by a constant, passes that clean up, then smaller dimensions and plainer
// element types all through the text. An edit stays if the module is legal, smaller and still passes the test; when
// none of them does, the module is done.
#pragma once
#include <functional>
#include <memory>

#include "strop/ir/module.h"

namespace strop::tools {

// Does the candidate still show what is looked for? Candidates are legal. An error ends the reduction.
using StillFails = std::function<Result<bool>(const Module& candidate)>;

struct ReduceResult {
  std::unique_ptr<Module> module;
  int64_t checks = 0;     // candidates that were tried
  bool complete = false;  // false: `max_checks` ended it
};
Result<ReduceResult> Reduce(const Module& module, const StillFails& still_fails, int64_t max_checks);

}  // namespace strop::tools
