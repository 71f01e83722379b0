#include "strop/codegen/rows_at_a_time.h"

#include <algorithm>
#include <map>
#include <set>

namespace strop {
namespace {

constexpr int64_t kMostCode = 400;  // of all rows together
constexpr int64_t kFewestRows = 3;  // that are read for one: of two, the cache is as good

// The last two dimensions of more than one element; -1: there is none.
struct RowAndColumn {
  int64_t row = -1, column = -1;
};
RowAndColumn LastTwo(const Shape& shape) {
  RowAndColumn at;
  for (int64_t d = 0; d < shape.rank(); ++d)
    if (shape.dim(d) != 1) at = {at.column, d};
  return at;
}

// Which rows are read of one input, shifted by the same distance in all other dimensions.
using RowsOfShift = std::map<std::pair<const Instruction*, Int64Vector>, std::set<int64_t>>;

RowsOfShift RowsRead(const KernelBody& body, const LoopSpace& space) {
  RowsOfShift rows;
  for (const Instruction* i : body.Computed()) {
    if (i->op() != Op::Slice || std::ranges::find(body.inputs, i->operand(0)) == body.inputs.end()) continue;
    const RowAndColumn at = LastTwo(i->shape());
    if (at.row < 0 || i->shape().dim(at.row) != space.row_sizes.back() || i->shape().dim(at.column) != space.row_size)
      continue;
    Int64Vector shift;
    int64_t row = 0;
    const SliceDims& slice = i->attrs<SliceAttrs>().slice;
    for (int64_t d = 0; d < i->shape().rank(); ++d) {
      if (d == at.row)
        row = slice[static_cast<size_t>(d)].stride == 1 ? slice[static_cast<size_t>(d)].start : -1;
      else
        shift.push_back(slice[static_cast<size_t>(d)].start);
    }
    if (row >= 0) rows[{i->operand(0), std::move(shift)}].insert(row);
  }
  return rows;
}

}  // namespace

bool SharesIndices(const KernelBody& body, const LoopSpace& space) {
  return std::ranges::any_of(body.Computed(), [&](const Instruction* i) {
    if (i->op() != Op::Gather || i->shape().num_elements() == 0) return false;
    const Dims& windows = i->attrs<GatherAttrs>().offset_dims;
    int64_t d = i->shape().rank() - 1, picked = 1;
    if (space.interleaved > 1)
      return Contains(windows, d) && i->shape().dim(d) > 1 && space.interleaved % i->shape().dim(d) == 0;
    for (; d >= 0 && (i->shape().dim(d) == 1 || !Contains(windows, d)); --d) picked *= i->shape().dim(d);
    return d >= 0 && picked == space.row_size;
  });
}

int64_t RowsAtATime(const KernelBody& body, const LoopSpace& space) {
  if (space.uniform || space.interleaved > 1 || space.step > 1 || space.period > 0 || space.whole_rows ||
      space.row_sizes.empty())
    return 1;
  const RowsOfShift read = RowsRead(body, space);
  const int64_t code = CodeOf(body);
  const bool picks = SharesIndices(body, space);
  for (int64_t together : {4, 2}) {
    if (code * together > kMostCode || space.row_sizes.back() < 2 * together) continue;
    int64_t alone = 0, shared = 0;
    for (const auto& [shift, rows] : read) {
      const auto own = static_cast<int64_t>(rows.size());
      std::set<int64_t> all;
      for (int64_t r : rows)
        for (int64_t k = 0; k < together; ++k) all.insert(r + k);
      alone += own * together;
      shared += own < kFewestRows ? own * together : static_cast<int64_t>(all.size());
    }
    if (picks || (alone > 0 && 3 * shared <= 2 * alone)) return together;  // a third fewer
  }
  return 1;
}

}  // namespace strop
