// A random module from a seed: typed, legal (VerifyModule accepts it), the same on every machine.
#pragma once
#include <memory>

#include "strop/ir/module.h"

namespace strop::fuzz {

std::unique_ptr<Module> GenerateModule(uint64_t seed);

}  // namespace strop::fuzz
