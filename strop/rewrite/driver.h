// Applies rules until none fits: a worklist in topological order; what a rewrite makes, and the users of what it
// replaces, are looked at again. Every instruction is looked at a bounded number of times, so that rules which undo
// each other end as well (RewriteReport::converged says so).
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "strop/rewrite/rule.h"

namespace strop {

struct RewriteOptions {
  std::vector<std::string> disabled_rules;
  int64_t rule_limit = -1;  // stop after so many rewrites (bisecting); -1: no limit. Counts down over a whole run.
};

struct RewriteReport {
  std::map<std::string_view, int64_t> fired;  // by rule name
  bool changed = false;
  bool converged = true;
};

// Rules of several sets, by op. Sets are asked in the order given.
class RuleTable {
 public:
  RuleTable(std::initializer_list<RuleSet> sets, const std::vector<std::string>& disabled = {});
  const std::vector<const Rule*>& of(Op op) const { return by_op_[static_cast<size_t>(op)]; }

 private:
  std::vector<std::vector<const Rule*>> by_op_;
};

// Rewrites one computation. `limit` (may be null) is decremented for every rewrite; none happens at 0.
Status RewriteComputation(Computation* computation, const RuleTable& rules, int64_t* limit, RewriteReport& report);

}  // namespace strop
