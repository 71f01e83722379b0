// Reducer: makes a module smaller as long as something holds of it.
//
// First the earliest value that shows it, by halves: with all values of a prefix of the entry as results, what is
// looked for shows in a long enough prefix and in no shorter one, if it sits in one place. Then edits, from coarse to
// fine (reducer_edits.h): fewer results, values that become parameters, operands or constants (delta debugging: all
// places, halves, quarters, ..., single ones), passes that clean up, callees in place of calls, smaller dimensions and
// plainer element types all through the text. An edit stays if the module is legal, smaller and still passes the test;
// when none of them does, the module is done.
#pragma once
#include <functional>
#include <memory>

#include "strop/ir/module.h"

namespace strop::tools {

// Does the candidate still show what is looked for? Candidates are legal. Called from several threads at once, each
// with a slot below ReduceOptions::jobs. An error ends the reduction.
using StillFails = std::function<Result<bool>(const Module& candidate, int slot)>;

struct ReduceOptions {
  int64_t max_checks = 2000;
  int jobs = 1;                // candidates that are tried at once; the result does not depend on it
  std::function<bool()> stop;  // asked between checks; true ends it with what there is. May be empty.
  std::function<void(const Module& smaller, int64_t checks)> progress;  // may be empty
};

struct ReduceResult {
  std::unique_ptr<Module> module;
  int64_t checks = 0;     // candidates that were tried
  bool complete = false;  // false: `max_checks` or `stop` ended it
};
Result<ReduceResult> Reduce(const Module& module, const StillFails& still_fails, const ReduceOptions& options);

}  // namespace strop::tools
