// TargetInfo: what the plan must know of a target to decide layout, fusion, schedule and buffers. A backend fills it
// in.
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "strop/base/status.h"
#include "strop/ir/module.h"

namespace strop {

// What a task computes of a kernel that is part of a band.
struct BandTask {
  int64_t elements = 0;  // of its result, in order; 0: not known yet
  bool adds_up = false;  // a product that sums along the band's rows: all of its result, for some of the terms
};

struct TargetInfo {
  std::string name;               // "cpu"
  std::string description;        // "x86-64 avx512f avx512_bf16 ..., 2 threads"
  int64_t buffer_alignment = 64;  // of every value in memory, in bytes
  int64_t l2_bytes = 1 << 20;
  int64_t l3_bytes = 32 << 20;
  int vector_bytes = 16;
  int64_t inline_cost = 1000000;  // a program of less work (flops + bytes) runs on the caller's thread
  // A band (plan/band.h) has so many bytes of values inside, since less stays in the cache by itself, and its products
  // so many rows each, which make a block of them worth its while.
  int64_t least_band_bytes = int64_t{4} << 20;
  int64_t least_band_rows = 8;

  // Are products computed element by element, inside the kernel of what follows them and from operands that are
  // computed there? (Targets with a library keep them apart.)
  bool products_in_kernels = false;
  // Does a scatter compute its updates where they are added, row by row? Else they come from memory.
  bool updates_in_kernels = false;
  // Can the backend compile this instruction as a kernel (alone or as the root of a fusion)? No: it is interpreted.
  std::function<Decision(const Instruction&)> supports;
  // Does the backend compute this dot into the layout that its shape names? Null: into none but row-major.
  std::function<Decision(const Instruction& dot)> writes_in_layout;
  // May this kernel's operands and results lie at addresses that are aligned to their elements only? Null: none may.
  std::function<bool(const Instruction& kernel)> takes_any_address;
  // May this kernel become part of a region: a loop of small steps in one function? Null: there are no regions.
  std::function<Decision(const Instruction& kernel)> joins_region;
  // The same where other threads have tasks of their own, so that its size does not matter.
  std::function<Decision(const Instruction& kernel)> joins_task;
  // May this kernel become part of a band (plan/band.h), in such tasks? Null: there are no bands.
  std::function<Decision(const Instruction& kernel, const BandTask& task)> joins_band;
  // May `producer` be computed inside the kernel of `consumer_root`, at `user` (its user inside that kernel)? Asked
  // after the plan's own rules said yes. Null: the plan's rules alone decide.
  std::function<Decision(const Instruction& producer, const Instruction& user, const Instruction& consumer_root)>
      can_fuse;
};

}  // namespace strop
