// What a kernel over rows needs twice, once to reduce the row and once behind, and is costly to compute, or takes many
// instructions (scores that are scaled, biased and masked): it is kept for the length of the row in memory of the
// thread's own.
//
//   softmax: %e = exponential(%x - max); %s = reduce(%e, add); ROOT divide(%e, broadcast(%s))
//   the loop that adds up the row keeps each %e, the loop that divides reads it again
#pragma once
#include <vector>

#include "strop/codegen/loop_space.h"

namespace strop {

struct KeptRow {
  const Instruction* value = nullptr;
  const Instruction* reduce = nullptr;  // the first reduction that computes it
  int64_t offset = 0;                   // in the thread's memory
};

// Values whose every use is at the same element of the row. `bytes`: what they take.
std::vector<KeptRow> ChooseKeptRows(const KernelBody& body, const LoopSpace& space, int64_t* bytes);

}  // namespace strop
