// Several processes at once: a grid of replicas x partitions, one thread and one Evaluator each, that meet in
// collectives and exchange data over channels. The oracle for programs that communicate.
//
//   run = {.programs = row by row, .arguments = per program, ...};   STROP_ASSIGN(auto results, RunGrid(options, run));
#pragma once
#include <vector>

#include "strop/interp/interpreter.h"

namespace strop {

struct GridRun {
  int64_t replicas = 1, partitions = 1;
  std::vector<const Computation*> programs;     // replica-major: process r * partitions + p
  std::vector<std::vector<Literal>> arguments;  // per process
  std::vector<const Computation*> infeed;       // each gives one infeed value, in order
};

// One result per process, in the order of `programs`. The first process (in that order) that fails decides the error;
// processes that wait for each other forever are an error too. Checks of all processes are appended to `checks` if
// given.
Result<std::vector<Literal>> RunGrid(const InterpretOptions& options, const GridRun& run,
                                     std::vector<CheckOutcome>* checks = nullptr);

namespace interp {

// The members of the group of process `self` that meet in this collective, in group order (process numbers as above).
Result<std::vector<int64_t>> GroupOf(const Instruction& instruction, int64_t self, int64_t replicas,
                                     int64_t partitions);
// What member number `me` gets from a collective: `operands` holds every member's.
class Evaluator;
Result<Literal> CollectiveResult(Evaluator& evaluator, const Instruction& instruction, size_t me,
                                 const std::vector<std::vector<Literal>>& operands);
// What collective-permute gives: the operands of the process that sends to this one, or zeros if none does (`sent` is
// null).
Result<Literal> PermuteResult(const Instruction& instruction, std::span<const Literal> own,
                              const std::vector<Literal>* sent);

}  // namespace interp

}  // namespace strop
