// How far results move when every rounding falls out a little differently.
//
// A backend rounds otherwise than the evaluator: another order of sums, a wider intermediate, another polynomial. What
// that does to the results depends on the program. So the evaluator runs the program again with noise of a few units in
// the last place behind every op that rounds (and before those that add many numbers up); where results move, a
// difference between backend and evaluator says nothing, and where they do not, it does.
#pragma once
#include "strop/ir/module.h"

namespace strop::fuzz {

// Does the op's result depend on how a backend rounds?
bool Rounds(const Instruction& instruction);
// Whether anything in the module does.
bool AnyRounds(const Module& module);
// A copy of the module with noise of up to `ulps` units in the last place.
std::unique_ptr<Module> WithNoise(const Module& module, double ulps, uint64_t seed);

}  // namespace strop::fuzz
