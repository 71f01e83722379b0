// The rule sets of pass `simplify`.
#pragma once
#include "strop/rewrite/rule.h"

namespace strop::simplify {

// RuleSet AddRules(), ...: one a file.
#define RULES(name) RuleSet name##Rules();
#include "strop/passes/simplify/sets.def"
#undef RULES

// Of all rules, in the order of the alphabet.
std::vector<std::string_view> RuleNames();
// NotFound, with the nearest known one, for a name that no rule has.
Status CheckRuleName(std::string_view name);

}  // namespace strop::simplify
