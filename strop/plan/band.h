// Band: kernels over the same rows that run one after the other for a block of rows, then for the next block, so that
// what one hands to the next stays in the cache, has no memory of the plan's, and never goes through all of it.
//
//   %s = f32[24,512,512] dot(%q, %k)                  %o = fusion(%q, %k, %v), kind=kCustom, calls={
//   %p = f32[24,512,512] fusion(%s), calls=softmax      s = dot(q, k), p = fusion(s), o = dot(p, v) }
//   %o = f32[24,512,64]  dot(%p, %v)
//
// Every value of a band is rows x width elements in row-major order, and a block of its rows is made of the same block
// of rows of the band's other values, and of anything from outside. (Tiling several loops over their shared outer
// dimension: what attention kernels do by hand; Dao et al., "FlashAttention", 2022, cut the columns as well.)
//
// Products may also sum along the rows (p^T g, the gradient of v above): each block adds to their results, which nobody
// in the band reads. All rows that one of them sums are blocks of one task, in order.
//
// A band without products is made of loops that read the same arrays, or what others of them compute, which then come
// from memory once: a mean and a variance, an optimizer's new parameters and averages.
#pragma once
#include <functional>
#include <optional>
#include <unordered_map>
#include <vector>

#include "strop/ir/module.h"
#include "strop/plan/target_info.h"

namespace strop {

struct Band {
  int64_t rows = 0;                         // of each value
  int64_t block = 0;                        // rows that are computed at a time; 0: none fits
  int64_t summed = 0;                       // rows that products sum along; 0: none does
  std::vector<const Instruction*> members;  // the kernels, operands first
  // Elements a row of the values of the band, parameters (0) included; less than 0: sums along the rows.
  std::unordered_map<const Instruction*, int64_t> widths;
  bool IsSum(const Instruction* member) const { return widths.at(member) < 0; }
  // What a task computes of a member.
  BandTask TaskOf(const Instruction* member) const {
    if (IsSum(member)) return {.adds_up = true};
    return {.elements = block * widths.at(member)};
  }
  // The member that computes a value: reshapes only pass it on.
  static const Instruction* Source(const Instruction* value);
  // Are there no products among them? Then what they read from outside is read block by block, too.
  bool is_of_loops() const;
  // What they read from outside, each once; reshapes among `widths` are what they reshape.
  std::vector<const Instruction*> Operands() const;
  // The number of the result that a member is, or -1: nobody outside sees it.
  int ResultOf(const Instruction* member) const;
  std::vector<const Instruction*> results;

  // What a fusion is if its computation is a band's.
  static std::optional<Band> Of(const Instruction& fusion);
};

// The rows of a dot's result (batch and free dimensions of the left operand), and those of one product of its batch.
struct DotRows {
  int64_t rows = 0, of_product = 0;
};
DotRows RowsOf(const Instruction& dot);

// The rows that a dot sums along: the dimensions of its left operand are in the order batch, contracting, free, and the
// first two are the rows. 0: they are in another order.
DotRows SummedRowsOf(const Instruction& dot);

// Where the values that nobody outside sees may lie, those that are read at the same time beside each other.
struct BandMemory {
  std::unordered_map<const Instruction*, int64_t> offsets;
  int64_t bytes = 0;
};
BandMemory PlaceValues(const Band& band, const std::function<int64_t(const Instruction&)>& bytes_of);

}  // namespace strop
