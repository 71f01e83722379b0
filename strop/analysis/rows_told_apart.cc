#include "strop/analysis/rows_told_apart.h"

#include <algorithm>
#include <set>
#include <unordered_set>
#include <vector>

namespace strop {
namespace {

// Is a dimension of what moves elements no whole dimension of what it reads, or one that is read backwards?
bool IsCut(const Instruction& i, int64_t d) {
  switch (i.op()) {
    case Op::Concatenate: return i.dimensions()[0] == d;
    case Op::Pad: return i.attrs<PadAttrs>().padding[static_cast<size_t>(d)] != PaddingDim{};
    case Op::Reverse: return std::find(i.dimensions().begin(), i.dimensions().end(), d) != i.dimensions().end();
    default: return i.shape().dim(d) != i.operand(0)->shape().dim(d);  // slices
  }
}

constexpr int64_t kVector =
    16;  // elements of a row at the least, which is cut off only to spare its elements conditions

bool CutsDimensions(Op op) {
  return op == Op::Concatenate || op == Op::Pad || op == Op::Reverse || op == Op::Slice || op == Op::DynamicSlice;
}

// Where the result's dimensions come from; -1: from elsewhere.
Int64Vector SourcesOf(const Instruction& i) {
  Int64Vector from(static_cast<size_t>(i.shape().rank()), -1);
  if (i.op() == Op::Iota) from[static_cast<size_t>(i.attrs<IotaAttrs>().dimension)] = 0;
  if (i.op() == Op::Iota) return from;
  if (i.op() == Op::Transpose) {
    for (size_t d = 0; d < from.size(); ++d) from[d] = i.dimensions()[d];
    return from;
  }
  const Dims& to = i.op() == Op::Broadcast ? i.dimensions() : i.attrs<GatherAttrs>().offset_dims;
  for (size_t k = 0; k < to.size(); ++k) from[static_cast<size_t>(to[k])] = static_cast<int64_t>(k);
  return from;
}

// The elements behind each place at which neighbouring dimensions of the result are read otherwise.
void AddCuts(const Instruction& i, std::set<int64_t>& cuts) {
  const Shape& shape = i.shape();
  const bool cuts_dimensions = CutsDimensions(i.op());
  const Int64Vector from = cuts_dimensions ? Int64Vector() : SourcesOf(i);
  int64_t behind = 1;
  for (int64_t d = shape.rank() - 1; d > 0; --d) {
    behind *= shape.dim(d);
    if (cuts_dimensions) {
      const bool goes_on = i.op() == Op::Slice || i.op() == Op::DynamicSlice || behind < kVector;
      if (IsCut(i, d) || (!goes_on && IsCut(i, d - 1))) cuts.insert(behind);
      continue;
    }
    const int64_t left = from[static_cast<size_t>(d - 1)], right = from[static_cast<size_t>(d)];
    if (left < 0 ? right >= 0 : right != left + 1) cuts.insert(behind);
  }
}

// Is it in memory in any case?
bool IsResult(const Instruction& i) {
  return i.parent()->root() == &i ||
         std::ranges::any_of(i.uses(), [](const Use& use) { return use.user->op() == Op::Tuple; });
}

}  // namespace

Int64Vector RowsToldApart(const Instruction& value) {
  constexpr size_t kMost = 64;  // instructions that are looked at
  std::vector<const Instruction*> found = {&value};
  std::unordered_set<const Instruction*> seen = {&value};
  std::set<int64_t> cuts;
  for (size_t n = 0; n < found.size() && n < kMost; ++n) {
    const Instruction& i = *found[n];
    if (n > 0 && IsResult(i)) continue;
    const bool reads_scalar = i.op() == Op::Broadcast && i.operand(0)->shape().rank() == 0;
    if ((i.op() == Op::Broadcast && !reads_scalar) || i.op() == Op::Gather || i.op() == Op::Iota ||
        i.op() == Op::Transpose || CutsDimensions(i.op()))
      AddCuts(i, cuts);
    if (!IsElementwise(i.op()) && i.op() != Op::Reshape) continue;
    for (const Instruction* operand : i.operands())
      if (operand->shape().IsArray() && operand->shape().num_elements() == value.shape().num_elements() &&
          seen.insert(operand).second)
        found.push_back(operand);
  }
  return Int64Vector(cuts.begin(), cuts.end());
}

}  // namespace strop
