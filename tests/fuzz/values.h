// Random values: arguments and constants.
#pragma once
#include "strop/ir/module.h"
#include "tests/fuzz/random.h"

namespace strop::fuzz {

// kTame: small numbers. kSpecial: among them zeros of both signs, infinities, NaN, subnormals, ends of the range.
// kExtreme: any bits.
enum class Values : uint8_t { kTame, kSpecial, kExtreme };

Literal RandomLiteral(const Shape& shape, Values values, Random& random);

// Arguments for the entry of a module. What a parameter gets depends on the seed and on its name, not on the other
// parameters, so that it stays when the module is reduced.
// Tame ones if `tame`; else the seed decides.
std::vector<Literal> RandomArguments(const Module& module, uint64_t seed, bool tame = false);

}  // namespace strop::fuzz
