// Rule: one named rewrite of one op. "To nothing worse": a rule must not make the program slower or larger, must keep
// every bit of the result (NaN payloads aside), and must not be undone by another rule.
#pragma once
#include <span>
#include <string_view>

#include "strop/ir/builder.h"

namespace strop {

// Returns what `root` is to be replaced by: an existing instruction or one made with `b` (which inserts before `root`
// and carries its metadata along), `root` itself if it was changed in place, or null if the rule does not fit. A
// builder error is the rule's bug.
using Rewrite = Instruction* (*)(Instruction * root, Builder& b);

struct Rule {
  std::string_view name;  // "add-zero": for --disable-rule and the counters
  Op op;                  // of the root
  Rewrite apply;
};

using RuleSet = std::span<const Rule>;

}  // namespace strop
