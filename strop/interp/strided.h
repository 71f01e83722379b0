// Walking index spaces. All data movement of the interpreter is CopyStrided with suitable offsets and strides; ops that
// compute walk with IndexWalk, which keeps the linear offsets into several arrays in step with the index (no division
// per element).
#pragma once
#include <cstdint>
#include <span>

#include "strop/base/small_vector.h"

namespace strop::interp {

// Row-major strides, in elements.
Int64Vector RowMajorStrides(std::span<const int64_t> dims);
int64_t Product(std::span<const int64_t> dims);  // 1 for rank 0; shapes are validated, so it does not overflow

// Copies an array of `dims` elements of `width` bytes each. Strides are in elements and may be zero or negative; dst
// and src point at the element with index (0, ..., 0).
void CopyStrided(int64_t width, std::span<const int64_t> dims, uint8_t* dst, std::span<const int64_t> dst_strides,
                 const uint8_t* src, std::span<const int64_t> src_strides);
// Fills `count` elements with the one at `value`.
void Fill(int64_t width, uint8_t* dst, const uint8_t* value, int64_t count);

// for (IndexWalk w(dims, {strides_a, strides_b}); !w.done(); w.Next()) use w.index(), w.offset(0), w.offset(1);
class IndexWalk {
 public:
  static constexpr int kMaxArrays = 4;

  explicit IndexWalk(std::span<const int64_t> dims) : IndexWalk(dims, {}) {}
  IndexWalk(std::span<const int64_t> dims, std::initializer_list<std::span<const int64_t>> strides);

  bool done() const { return done_; }
  const Int64Vector& index() const { return index_; }
  int64_t offset(int array) const { return offset_[array]; }
  int64_t count() const { return count_; }  // elements passed so far: the linear index of this one
  void Next();

 private:
  Int64Vector dims_, index_;
  Int64Vector strides_[kMaxArrays];
  int64_t offset_[kMaxArrays] = {};
  int arrays_ = 0;
  int64_t count_ = 0;
  bool done_ = false;
};

}  // namespace strop::interp
