// How much of a program there is: what an optimiser leaves, ours or another's, counted in the same way.
//
//   instructions   those that do work, wherever they stand: in the entry computation, in what control flow runs, in
//                  fusions. Not parameters, constants, tuples and their elements, reshapes and bitcasts (which only
//                  rename), fusions and calls (what is in them counts), copies to the same layout, nor the scalar
//                  functions of reductions, sorts and scatters.
//   distinct       the same with equal values of one computation counted once, as if fusions and calls were inlined:
//                  a fusion that repeats a cheap producer is no more work to look at.
//   kernels        those outside of fusions; a fusion is one, and so is a copy.
//   bytes_touched  what kernels read and write (cost.h); a loop as often as its recorded trip count says, otherwise
//                  once; of a conditional, every branch.
#pragma once
#include <cstdint>
#include <map>
#include <string_view>

#include "strop/ir/module.h"

namespace strop {

struct ModuleStatistics {
  int64_t instructions = 0;
  int64_t distinct = 0;
  int64_t kernels = 0;
  int64_t bytes_touched = 0;
  std::map<std::string_view, int64_t> by_op;  // of `instructions`, by the op's name
};

ModuleStatistics StatisticsOf(const Module& module);

}  // namespace strop
