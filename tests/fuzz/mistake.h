// What a wrong compiler would do: a module in which one instruction does something else. The comparison must see it, or
// the model of conditioning.h explains too much.
#pragma once
#include <memory>
#include <string_view>

#include "strop/ir/module.h"

namespace strop::fuzz {

enum class Mistake : uint8_t {
  kRounding,  // results are off by 64 units in the last place
  kOp,        // a related op: subtract for add, floor for ceil, > for >=
  kOrder,     // elements stand in the wrong places
};
inline constexpr Mistake kMistakes[] = {Mistake::kRounding, Mistake::kOp, Mistake::kOrder};
std::string_view Name(Mistake mistake);

// A copy of the module with one such mistake; null if it has no instruction for it.
std::unique_ptr<Module> WithMistake(const Module& module, Mistake mistake, uint64_t seed);

}  // namespace strop::fuzz
