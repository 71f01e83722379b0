// What two modules do not have in common, whatever their instructions are called.
//
// Instructions are paired in four steps, the safe ones first: by fingerprints of all that they depend on (bottom-up);
// from paired users to the operands in the same places, and from paired operands to users (until nothing is added); by
// op and name; by op, shape and attributes in order. Computations are paired by who calls them, then by name. A pair
// that differs in itself (shape, attributes, or operands that are no pair) has changed; what has no partner was removed
// or added. Names and metadata alone are no difference.
#pragma once
#include <string>
#include <vector>

#include "strop/ir/module.h"

namespace strop::tools {

struct ChangedInstruction {
  const Instruction* was;
  const Instruction* is;
  std::vector<std::string> how;  // "operand 1: %b, was %a"
};

struct ComputationDiff {
  const Computation* was = nullptr;  // null: the computation was added
  const Computation* is = nullptr;   // null: it was removed
  std::vector<const Instruction*> removed, added;
  std::vector<const Instruction*> removed_after;  // each one's place among those of `is`; null: at the start
  std::vector<ChangedInstruction> changed;
  int64_t same = 0;
  bool equal() const { return was && is && removed.empty() && added.empty() && changed.empty(); }
};

struct ModuleDiff {
  std::vector<ComputationDiff> computations;  // entry first
  std::vector<std::string> header;            // "num_partitions: 2, was 1"
  bool equal() const;
};

ModuleDiff DiffModules(const Module& was, const Module& is);

// For people: hunks with `context` unchanged lines around what differs. Empty if nothing does.
std::string DiffText(const ModuleDiff& diff, int64_t context);
// "1 instruction removed, 2 changed in 1 computation".
std::string DiffSummary(const ModuleDiff& diff);
std::string DiffJson(const ModuleDiff& diff);

}  // namespace strop::tools
