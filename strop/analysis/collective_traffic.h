// What a program of many devices sends: each collective, how often it runs, and the bytes that leave one device.
//
// Bytes are those of the usual algorithms on a ring of n devices, for a value of b bytes: all-gather b (n-1)/n of the
// result, reduce-scatter and all-to-all b (n-1)/n of the operand, all-reduce twice that, a permute the operand, as
// large a share as there are devices that send to another one. Loops count as often as they run, where that is known.
#pragma once
#include <cstdint>
#include <vector>

#include "strop/ir/module.h"

namespace strop {

struct CollectiveTraffic {
  const Instruction* at = nullptr;
  int64_t times = 1;
  int64_t group = 1;  // devices that meet
  double bytes = 0;   // that leave a device, each time
  double operand_bytes = 0;
  int64_t hops = 0;  // messages one after the other
};

// In the order of the program, those in loops and branches after what calls them.
std::vector<CollectiveTraffic> CollectivesOf(const Module& module);

}  // namespace strop
