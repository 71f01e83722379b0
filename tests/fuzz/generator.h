// A random module from a seed: typed, legal (VerifyModule accepts it), the same on every machine.
#pragma once
#include <memory>

#include "strop/ir/module.h"

namespace strop::fuzz {

// kSmall: without loops of large products, for what runs a module hundreds of times.
enum class Sizes { kAny, kSmall };
std::unique_ptr<Module> GenerateModule(uint64_t seed, Sizes sizes = Sizes::kAny);

}  // namespace strop::fuzz
