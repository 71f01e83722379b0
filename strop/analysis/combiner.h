// What a combiner (the to_apply of a reduction) is, as far as the order of evaluation matters.
#pragma once
#include <vector>

#include "strop/ir/module.h"

namespace strop {

struct LaneCombiner {
  const Computation* computation = nullptr;
  bool reorderable = false;  // lanes may accumulate apart: associative and commutative, or a selection such as argmax
  Op op = Op::kEnd;          // the one binary op that it consists of, or kEnd
};
LaneCombiner RecognizeCombiner(const Computation& computation);

// The binary op of each result, where results are combined each by itself, whatever the others are (several reductions
// that are one); empty: it is not so.
std::vector<Op> OpsOfResults(const Computation& computation);

}  // namespace strop
