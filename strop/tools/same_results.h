// Do two modules compute the same? Both are evaluated on the same arguments, and the results compared as far as the
// rounding of their types lets them agree. Of a loop that does not end both states after the same trips are compared.
#pragma once
#include "strop/ir/module.h"

namespace strop::tools {

// What both ask of the world outside is answered by StandIns (stand_ins.h), what they send there is compared too.
// FailedPrecondition names the first element that differs. Arguments: as of `strop run --random-inputs=SEED`. Errors of
// the evaluator are returned as they are, with a note that says which module they come from.
Status CheckSameResults(const Module& before, const Module& after, uint64_t seed);

// The first difference of two results, told as "result 0 at {1,2} is 3, was 2"; empty if there is none.
std::string FirstDifference(const Literal& was, const Literal& is);

}  // namespace strop::tools
