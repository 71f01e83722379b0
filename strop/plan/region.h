// Region: a loop of small steps (with the loops and branches inside it) that becomes one native function.
//
// The steps of a plan are cut to be worth a task each; a loop whose steps are all smaller than one spends its time
// between them. Such a loop is taken out of the plan's programs as a whole: its steps, in the order and with the
// sharing of memory that the plan has decided, become nodes, and what they read and write become buffers. Values that
// live in the region alone, and small ones that it rewrites, need no memory of the plan's: code generation keeps them
// on the stack, where most of them turn into registers.
//
//   program 0: out0 = while %w <- [0+1]  condition 1 body 2        program 0: out0 = region %w <- p0
//   program 1: [0+1] = compare %c <- [64+4] c0               ->    region %w: buffers b0 (out0) b1 b2 (4 B, 1 B: local)
//   program 2: [64+4] = add %i ...; out0 = fusion %f <- out0         while b2 { condition: b2 = compare %c <- b1 c0 ...
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "strop/ir/module.h"

namespace strop {

// Memory that nodes read and write: a group of values that the plan put in one place.
struct RegionBuffer {
  int64_t size = 0;
  int32_t arg = -1;       // of the region's step; -1: nobody outside sees it
  bool loaded = false;    // has a value when the region begins
  bool stored = false;    // a node writes it, and its value is wanted when the region has ended
  bool written = false;   // by a node
  bool same = false;      // the same elements from the region's begin to its end
  bool in_parts = false;  // each task of the region writes a part: it is never copied
  int64_t local = -1;     // large memory of a task's own: where it begins in that
};

enum class RegionNodeKind : uint8_t { kKernel, kCopy, kWhile, kConditional };

struct RegionNode {
  RegionNodeKind kind = RegionNodeKind::kKernel;
  const Instruction* instruction = nullptr;
  // Buffers. Kernel: operands, then results. Copy: from, to. While: the predicate. Conditional: the selector.
  std::vector<int32_t> args;
  std::vector<int> in_place;      // kernel: per result the operand whose buffer it has, or -1
  std::vector<int32_t> programs;  // while: condition, body; conditional: its branches
  bool by_index = false;          // conditional: the selector is an s32, not a pred
  // While: large carries that change places when a trip ends. Of c0, ..., cn, spare each takes the memory of the next,
  // and the spare, which holds nothing between trips, that of c0.
  std::vector<std::vector<int32_t>> rotations;
  // While: integers of `bytes` bytes that are `last` at most, and not below 0, when a trip begins.
  struct Counter {
    int32_t buffer = -1;
    int64_t bytes = 0, last = 0;
  };
  std::vector<Counter> counters;
};

struct Region {
  std::vector<RegionBuffer> buffers;
  std::vector<std::vector<RegionNode>> programs;  // the first is the region
  // More than one: its only node is a loop over parts (analysis/trip_count.h), whose trips are tasks. Each begins with
  // its number, an s32, in this buffer.
  int64_t tasks = 1;
  int32_t number = -1;
  int64_t local_bytes = 0;  // of a task's large memory
  int64_t num_kernels() const;
  std::string ToString() const;
};

}  // namespace strop
