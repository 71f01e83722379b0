// LoopSpace: how the elements of a kernel's result are walked: as rows of consecutive elements, with vectors along the
// rows.
//
// The dimensions of the result are merged as far as nothing in the kernel tells them apart: an elementwise kernel over
// [8,64,3] is one row of 1536; with a broadcast bias [3] it would be 512 rows of 3, which is less than a vector, so
// that it becomes one row again, walked in periods of 48 (docs/adr/0025).
#pragma once
#include "strop/codegen/kernel_body.h"

namespace strop {

struct LoopSpace {
  Int64Vector row_sizes;  // the digits of a row number
  int64_t rows = 1;
  int64_t row_size = 1;
  bool uniform = false;  // one element at a time; vectors are used inside (a reduction along the operand's rows)
  int lanes = 1;
  // Vectors side by side, each in a register of its own, that a reduction accumulates at a time: sums in a row, or the
  // strips of its columns. (Vectors of several registers would be the same, but take LLVM twice as long.)
  int strips = 1;
  // The last digit of the result, if it is short and something tells it apart (colours, coordinates): it is no digit of
  // the walk; at each point of the walk all its elements are computed and stored interleaved.
  int64_t interleaved = 1;
  // Elements of a row, between which there is padding, that are computed at each point of it and stored interleaved:
  // row_size counts points. `rest`: the elements of a row behind its last point, which are computed one by one.
  int64_t step = 1;
  int64_t rest = 0;
  // Rows end in such a digit, but are walked so many elements at a time, a multiple of the lanes and of the digit, by
  // vectors whose lanes are at known places of it. 0: they are not.
  int64_t period = 0;
  int64_t short_row = 0;    // the size of that digit, where rows are several of it
  bool whole_rows = false;  // something is computed once a row: rows are not cut into pieces
  // Rows are walked from their ends: what they read is reversed, and memory is fetched ahead best where it is read
  // forwards.
  bool backwards = false;
  // So many neighbouring rows are computed at each point of a row, which share what they read (rows_at_a_time.h).
  int64_t together = 1;
  // Several gathers at each point of a row have their indices in common (rows_at_a_time.h).
  bool picks = false;
  // Per digit, the row itself last: where conditions of the kernel change. What lies between is walked by code of its
  // own, in which they are decided. Empty: nowhere.
  std::vector<Int64Vector> splits;
  int width() const { return lanes * strips; }
  int64_t row_elements() const { return row_size * step + rest; }
  int64_t num_elements() const { return rows * row_elements() * interleaved; }
};

// Lanes so that the widest type of the kernel, if it is no exception there, fills a register.
int PreferredLanes(const KernelBody& body, int vector_bytes);
// The dimensions of the roots, merged as far as the kernel treats them alike.
Int64Vector DigitsOf(const KernelBody& body);
// About how many instructions an element is in the code.
int64_t CodeOf(const Instruction& i);
int64_t CodeOf(const KernelBody& body);
template <class Instructions>
int64_t CodeOf(const Instructions& instructions) {
  int64_t code = 0;
  for (const Instruction* i : instructions) code = SaturatingAdd(code, CodeOf(*i));
  return code;
}
// For roots of `num_elements` elements each. `by_period`: walks by periods are known.
LoopSpace ChooseLoopSpace(const KernelBody& body, int vector_bytes, bool by_period);
// A vector at a time where the space has several because each takes long: less code, the same results.
void WalkVectorByVector(const KernelBody& body, int vector_bytes, LoopSpace& space);
// The same elements in rows of the short digit, a masked vector each, instead of in periods. Returns how many of them a
// row is; 0 if it is not so, or something is split or computed once a row.
int64_t WalkShortRows(LoopSpace& space);

// For the window of a dynamic-update-slice, whose update is body.roots[0].
LoopSpace ChooseWindowSpace(const KernelBody& body, const Instruction& update, int vector_bytes);

// How much work a kernel is, by which it is cut into tasks; never by the number of threads.
struct KernelCost {
  int64_t flops = 0;  // transcendentals weighted
  int64_t bytes = 0;  // read and written
};
KernelCost CostOf(const KernelBody& body);

}  // namespace strop
