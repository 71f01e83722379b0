// Subscripts of the elements that a loop body computes, one per lane, kept symbolic as long as possible: an affine
// subscript (base + lane * stride) makes a load contiguous, a uniform one makes it scalar; only what is neither becomes
// a vector of numbers and a gather.
//
// An ArrayIndex is a position in a dense row-major array in *mixed radix*: digits with sizes whose product is the
// number of elements. The sizes need not be the array's dimensions: a loop over a [4,5,6] array that nobody looks into
// is one digit of size 120, and a reshape changes nothing. Refactor() gives the digits for other sizes, by division
// only where boundaries differ.
#pragma once
#include <deque>
#include <optional>
#include <span>
#include <utility>

#include "strop/base/small_vector.h"
#include "strop/codegen/loop_scopes.h"

namespace strop {

struct LaneIndex {
  llvm::Value* base = nullptr;   // i64
  llvm::Value* lanes = nullptr;  // <n x i64>, when not affine (base and stride are meaningless without a pattern)
  llvm::Constant* pattern =
      nullptr;  // <n x i64>, at known distances from each other: base + pattern; lanes is the same
  int64_t stride = 0;
  int64_t multiple = 1;  // base is a multiple of it
  int level = 0;         // of the loop nest: the innermost one that the value depends on (see loop_scopes.h)

  // What is known of the values of all lanes that are on.
  static constexpr int64_t kNoLow = INT64_MIN, kNoHigh = INT64_MAX;
  int64_t low = kNoLow, high = kNoHigh;
  // If digit >= 0: scale * (that digit of the walk over the result / per) + something within [offset_low, offset_high].
  int digit = -1;
  int64_t per = 1, scale = 1, offset_low = 0, offset_high = 0;
  LaneIndex Within(int64_t from, int64_t to) const {  // both included
    LaneIndex out = *this;
    out.low = from;
    out.high = to;
    return out;
  }

  // Lane l stands for this + l, where this is uniform. What is known of it alone does not hold for the others.
  LaneIndex AndNeighbours() const { return LaneIndex{.base = base, .stride = 1, .multiple = multiple, .level = level}; }

  bool uniform() const { return !lanes && stride == 0; }
  bool affine() const { return !lanes; }
  bool operator==(const LaneIndex& o) const { return base == o.base && lanes == o.lanes && stride == o.stride; }
};

struct ArrayIndex {
  SmallVector<LaneIndex, 4> digits;
  Int64Vector sizes;

  bool uniform() const;
  int level() const;
  int64_t num_elements() const;
};

// Arithmetic on subscripts. `lanes` is the number of lanes of those that are not uniform. Code goes to the level that
// its operands allow, and equal operations on equal operands are emitted once.
class IndexBuilder {
 public:
  IndexBuilder(VectorBuilder& b, LoopScopes& scopes, int lanes)
      : b_(b), scopes_(scopes), lanes_(lanes), owner_(scopes.NewOwner()) {}

  int lanes() const { return lanes_; }
  LaneIndex Constant(int64_t value);
  // A loop counter (i64) that is a multiple of `multiple`; lane l stands for counter + l * stride.
  LaneIndex Counter(llvm::Value* counter, int level, int64_t stride, int64_t multiple);
  LaneIndex FromLanes(llvm::Value* values, int level);  // i64, scalar or vector
  // Lane l stands for first + l, where `first` is uniform: its multiple stays known, and with it the rest of divisions.
  LaneIndex Neighbours(const LaneIndex& first, int64_t offset);
  // a + offset, as a pattern where that is known: its base, and what is known of that, stays.
  LaneIndex Shift(const LaneIndex& a, int64_t offset);
  // a + offset; a pattern keeps its base.
  LaneIndex Plus(const LaneIndex& a, int64_t offset);
  // The same as base + lane * stride, if a pattern is that.
  LaneIndex AffineIfEven(const LaneIndex& a);
  // How far the lanes are from the base, if that is known.
  std::optional<Int64Vector> Distances(const LaneIndex& a) const;
  LaneIndex Add(const LaneIndex& a, const LaneIndex& b);
  LaneIndex Mul(const LaneIndex& a, int64_t factor);
  LaneIndex Sub(int64_t from, const LaneIndex& a);  // from - a
  // a / divisor and a % divisor for 0 <= a < bound.
  std::pair<LaneIndex, LaneIndex> DivMod(const LaneIndex& a, int64_t divisor, int64_t bound);
  // The subscripts as a value: i64 if uniform, else a vector.
  llvm::Value* Materialize(const LaneIndex& a);

  // The digits that a sum was made of, if they are known.
  const ArrayIndex* DigitsOf(const LaneIndex& a) const;
  // The same position in as many digits as are known.
  ArrayIndex InKnownDigits(const ArrayIndex& index) const;
  // Sum of digit * (product of the sizes behind it).
  LaneIndex Linear(const ArrayIndex& index);
  // The same position with other sizes (of the same product).
  ArrayIndex Refactor(const ArrayIndex& index, std::span<const int64_t> sizes);

 private:
  using V = llvm::Value*;
  enum class Arith : uint64_t { kAdd = 1, kMul, kUDiv, kExactDiv, kURem, kSpread, kSum };
  LaneIndex Combine(const ArrayIndex& index, size_t first, size_t count);
  LaneIndex AtDistances(llvm::Value* base, int64_t multiple, int level, const Int64Vector& distances);
  // a / divisor and a % divisor where the base is no part of the rest; none if it may be.
  std::optional<std::pair<LaneIndex, LaneIndex>> DivModByLanes(const LaneIndex& a, int64_t divisor);
  std::optional<std::pair<LaneIndex, LaneIndex>> DivModOfProduct(const LaneIndex& a, int64_t divisor);
  LoopScopes::Key SumKey(const LaneIndex& sum) const;
  // From now on the sum is known to be made of these digits, as far as they are sure to lie in their sizes.
  void Note(const LaneIndex& sum, const ArrayIndex& digits);
  V Emit(Arith op, V a, V b, int level);
  V Compute(Arith op, V a, V b);
  VectorBuilder& b_;
  LoopScopes& scopes_;
  int lanes_;
  uint64_t owner_;               // of the keys of sums: the scopes are shared by builders of several numbers of lanes
  std::deque<ArrayIndex> sums_;  // the digits of what Combine made, by the numbers that are noted in the scopes
};

}  // namespace strop
