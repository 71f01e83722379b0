// The rule sets of pass `simplify`.
#pragma once
#include "strop/rewrite/rule.h"

namespace strop::simplify {

RuleSet ArithmeticRules();    // add, subtract, multiply, divide, remainder, negate, abs, power, minimum, maximum
RuleSet LogicRules();         // and, or, xor, not, shifts, compare, select
RuleSet ConvertRules();       // convert, bitcast-convert, reduce-precision, complex, real, imag
RuleSet BroadcastRules();     // constant, iota, broadcast
RuleSet ElementwiseRules();   // every elementwise op, of scalars that are broadcast
RuleSet ReshapeRules();       // reshape, transpose, reverse, copy
RuleSet SliceRules();         // slice, pad, concatenate
RuleSet DynamicSliceRules();  // dynamic-slice, dynamic-update-slice
RuleSet GatherRules();        // gather, scatter
RuleSet ReductionRules();     // reduce, dot, sort, sizes

// Of all rules, in the order of the alphabet.
std::vector<std::string_view> RuleNames();
// NotFound, with the nearest known one, for a name that no rule has.
Status CheckRuleName(std::string_view name);

}  // namespace strop::simplify
