#include "strop/codegen/dim_groups.h"

#include <algorithm>

namespace strop {
namespace {

template <class Joined>
std::vector<DimGroup> GroupDims(std::span<const int64_t> dims, Joined&& joined) {
  std::vector<DimGroup> groups;
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d) {
    if (d == 0 || !joined(d - 1)) groups.push_back(DimGroup{d, d, 1, 1, -1});
    DimGroup& g = groups.back();
    if (g.last > g.first) g.inner *= dims[d];
    g.size *= dims[d];
    g.last = d + 1;
  }
  return groups;
}

// A dimension of size 1 that the operand does not have goes with those before it.
std::vector<DimGroup> BroadcastGroups(const Instruction& i) {
  const Dims& to = i.dimensions();
  const Int64Vector& dims = i.shape().dims();
  std::vector<int64_t> from(dims.size(), -1);
  for (size_t k = 0; k < to.size(); ++k) from[to[k]] = static_cast<int64_t>(k);
  std::vector<bool> joins(dims.size());  // the dimension before
  for (size_t d = 1, last = 0; d < dims.size(); ++d) {
    joins[d] = from[d] < 0 && dims[d] == 1;
    if (joins[d]) continue;
    joins[d] = from[last] < 0 ? from[d] < 0 : from[d] == from[last] + 1;
    last = d;
  }
  std::vector<DimGroup> groups = GroupDims(dims, [&](int64_t d) { return joins[d + 1]; });
  for (DimGroup& g : groups) g.source = from[g.first];
  return groups;
}

std::vector<DimGroup> TransposeGroups(const Instruction& i) {
  const Dims& permutation = i.dimensions();  // result dimension d is operand dimension permutation[d]
  std::vector<DimGroup> groups =
      GroupDims(i.shape().dims(), [&](int64_t d) { return permutation[d + 1] == permutation[d] + 1; });
  for (DimGroup& g : groups) g.source = permutation[g.first];
  return groups;
}

std::vector<DimGroup> ReduceGroups(const Instruction& i) {
  const Shape& operand = i.operand(0)->shape();
  const Shape& result = i.shape().IsTuple() ? i.shape().element(0) : i.shape();
  std::vector<bool> reduced(operand.rank(), false);
  for (int64_t d : i.dimensions()) reduced[d] = true;
  Int64Vector kept;
  for (int64_t d = 0; d < operand.rank(); ++d)
    if (!reduced[d]) kept.push_back(d);
  std::vector<DimGroup> groups = GroupDims(result.dims(), [&](int64_t d) { return kept[d + 1] == kept[d] + 1; });
  for (DimGroup& g : groups) g.source = kept[g.first];
  return groups;
}

// Window dimensions that are whole from the second on are one digit, as in a dynamic-slice; so are batch dimensions
// that lie side by side in the indices, but for those that say where the operand is read themselves.
std::vector<DimGroup> GatherGroups(const Instruction& i) {
  const GatherAttrs& a = i.attrs<GatherAttrs>();
  const Int64Vector& dims = i.shape().dims();
  Int64Vector window, from;  // dimensions of the operand that windows have, and where each dimension comes from
  for (int64_t d = 0; d < i.operand(0)->shape().rank(); ++d)
    if (!Contains(a.collapsed_slice_dims, d) && !Contains(a.operand_batching_dims, d)) window.push_back(d);
  size_t windows = 0;
  int64_t batches = 0;
  for (int64_t d = 0; d < static_cast<int64_t>(dims.size()); ++d) {
    const bool in_window = Contains(a.offset_dims, d);
    from.push_back(in_window ? window[windows++] : batches + (batches >= a.index_vector_dim ? 1 : 0));
    batches += in_window ? 0 : 1;
  }
  std::vector<DimGroup> groups = GroupDims(dims, [&](int64_t d) {
    if (Contains(a.offset_dims, d) != Contains(a.offset_dims, d + 1) || from[d + 1] != from[d] + 1) return false;
    if (Contains(a.offset_dims, d)) return a.slice_sizes[from[d + 1]] == i.operand(0)->shape().dim(from[d + 1]);
    return !Contains(a.start_indices_batching_dims, from[d]) && !Contains(a.start_indices_batching_dims, from[d + 1]);
  });
  for (DimGroup& g : groups) g.source = from[g.first];
  return groups;
}

}  // namespace

std::vector<DimGroup> ResultGroups(const Instruction& i) {
  const Int64Vector& dims = i.shape().dims();
  switch (i.op()) {
    case Op::Broadcast: return BroadcastGroups(i);
    case Op::Transpose: return TransposeGroups(i);
    case Op::Reduce: return ReduceGroups(i);
    case Op::Gather: return GatherGroups(i);
    case Op::Slice: {
      const SliceDims& slice = i.attrs<SliceAttrs>().slice;
      const Shape& from = i.operand(0)->shape();
      return GroupDims(dims, [&](int64_t d) {
        return slice[d].stride == 1 && slice[d + 1].start == 0 && slice[d + 1].stride == 1 &&
               dims[d + 1] == from.dim(d + 1);
      });
    }
    case Op::Reverse: {
      std::vector<bool> reversed(i.shape().rank(), false);
      for (int64_t d : i.dimensions()) reversed[d] = true;
      return GroupDims(dims, [&](int64_t d) { return reversed[d] == reversed[d + 1]; });
    }
    case Op::Pad: {
      const PaddingConfig& padding = i.attrs<PadAttrs>().padding;
      return GroupDims(dims, [&](int64_t d) { return padding[d + 1] == PaddingDim{} && padding[d].interior == 0; });
    }
    case Op::DynamicSlice: {
      const Shape& from = i.operand(0)->shape();
      return GroupDims(dims, [&](int64_t d) { return dims[d + 1] == from.dim(d + 1); });
    }
    case Op::DynamicUpdateSlice: {
      const Shape& update = i.operand(1)->shape();
      return GroupDims(dims, [&](int64_t d) { return dims[d + 1] == update.dim(d + 1); });
    }
    case Op::Concatenate: {
      const int64_t dimension = i.dimensions()[0];
      return GroupDims(dims, [&](int64_t d) { return d + 1 != dimension; });
    }
    case Op::Iota: {
      const int64_t dimension = i.attrs<IotaAttrs>().dimension;
      return GroupDims(dims, [&](int64_t d) { return d != dimension && d + 1 != dimension; });
    }
    default: return GroupDims(dims, [](int64_t) { return false; });
  }
}

int64_t PermutedTogether(const Instruction& transpose) {
  const std::vector<DimGroup> groups = ResultGroups(transpose);
  std::vector<size_t> order;
  InSourceOrder(groups, &order);
  std::erase_if(order, [&](size_t g) { return groups[g].size == 1; });
  size_t first = 0;
  while (first < order.size() &&
         std::none_of(
             order.begin() + static_cast<int64_t>(first), order.end(), [&](size_t g) { return g < order[first]; }))
    ++first;
  int64_t elements = 1;
  for (size_t k = first; k < order.size(); ++k) elements *= groups[order[k]].size;
  return elements;
}

Int64Vector StridesInOperand(const Instruction& transpose, const Int64Vector& digits) {
  const std::vector<DimGroup> groups = ResultGroups(transpose);
  std::vector<size_t> order;
  InSourceOrder(groups, &order);
  Int64Vector strides(groups.size(), 1);
  int64_t behind = 1;
  for (size_t k = order.size(); k-- > 0;) {
    strides[order[k]] = behind;
    behind *= groups[order[k]].size;
  }
  Int64Vector out(digits.size(), 0);
  size_t g = groups.size();
  int64_t left = 1, inside = 1;  // of the group: elements that digits have still to cover, and those of digits before
  for (size_t d = digits.size(); d-- > 0;) {
    while (left == 1 && g > 0 && digits[d] > 1) {
      left = groups[--g].size;
      inside = 1;
    }
    if (left % digits[d] != 0) return {};
    out[d] = strides[g < groups.size() ? g : 0] * inside;
    left /= digits[d];
    inside *= digits[d];
  }
  return out;
}

Int64Vector GroupSizes(const std::vector<DimGroup>& groups) {
  Int64Vector sizes;
  for (const DimGroup& g : groups) sizes.push_back(g.size);
  return sizes;
}

std::vector<DimGroup> InSourceOrder(const std::vector<DimGroup>& groups, std::vector<size_t>* order) {
  order->clear();
  for (size_t g = 0; g < groups.size(); ++g)
    if (groups[g].source >= 0) order->push_back(g);
  std::sort(order->begin(), order->end(), [&](size_t a, size_t b) { return groups[a].source < groups[b].source; });
  std::vector<DimGroup> sorted;
  for (size_t g : *order) sorted.push_back(groups[g]);
  return sorted;
}

}  // namespace strop
