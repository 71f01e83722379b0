// What an instruction costs: arithmetic and memory traffic, from its shapes alone. Used to cut work into tasks, to
// decide where a program runs, and for the cost analysis that frameworks ask for.
#pragma once
#include <cstdint>

#include "strop/ir/module.h"

namespace strop {

// Floating-point (or integer) operations of one execution; a multiply-add counts two. Called computations count as
// often as they run, loops with an unknown trip count once. Transcendentals are counted apart.
int64_t Flops(const Instruction& instruction);
int64_t Transcendentals(const Instruction& instruction);
// Does it stand for a value that lies in memory already, or orders others, and touch nothing itself?
bool OnlyRenames(const Instruction& instruction);
// Bytes of operands read and results written. Slices and updates count what they touch, not the whole operand.
int64_t BytesAccessed(const Instruction& instruction);

struct ModuleCost {
  int64_t flops = 0;
  int64_t transcendentals = 0;
  int64_t bytes_accessed = 0;
};
// Sum over the entry computation and what control flow calls from it.
ModuleCost CostOf(const Module& module);

}  // namespace strop
