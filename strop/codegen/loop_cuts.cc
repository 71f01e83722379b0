#include "strop/codegen/loop_cuts.h"

#include <algorithm>

#include "strop/codegen/dim_groups.h"

namespace strop {
namespace {

int64_t SuffixOf(const std::vector<DimGroup>& groups, size_t g) {
  int64_t suffix = 1;
  for (size_t k = g + 1; k < groups.size(); ++k) suffix *= groups[k].size;
  return suffix;
}

// Cuts of the operand, as far as they fall inside the groups that come from it.
void AddOperandCuts(const std::vector<DimGroup>& groups, const std::vector<size_t>& order,
                    const std::vector<int64_t>& operand_sizes, const Cuts& operand_cuts, Cuts& cuts) {
  int64_t operand_suffix = 1;
  for (size_t k = order.size(); k-- > 0;) {
    const int64_t result_suffix = SuffixOf(groups, order[k]);
    for (int64_t cut : operand_cuts) {
      if (cut <= operand_suffix || cut >= operand_suffix * operand_sizes[k] || cut % operand_suffix != 0) continue;
      const int64_t local = cut / operand_suffix;
      if (groups[order[k]].size % local == 0) cuts.insert(local * result_suffix);
    }
    operand_suffix *= operand_sizes[k];
  }
}

// Cuts of what is reduced, where they fall into dimensions that are left.
void AddReducedCuts(const Instruction& reduce, const Cuts& operand_cuts, Cuts& cuts) {
  const Shape& operand = reduce.operand(0)->shape();
  const Dims& reduced = reduce.dimensions();
  int64_t operand_suffix = 1, result_suffix = 1;
  for (int64_t d = operand.rank(); d-- > 0;) {
    const int64_t size = operand.dim(d);
    if (std::find(reduced.begin(), reduced.end(), d) == reduced.end()) {
      for (int64_t cut : operand_cuts)
        if (cut >= operand_suffix && cut < operand_suffix * size && cut % operand_suffix == 0)
          cuts.insert(cut / operand_suffix * result_suffix);
      result_suffix *= size;
    }
    operand_suffix *= size;
  }
}

// Where a slice begins at a place that is not known, each of its rows is known to come from one part, or from the
// padding, if rows are walked that are not joined along the dimension that is put together.
void AddPartsOfSlice(const Instruction& slice, Cuts& cuts) {
  const Instruction& from = *slice.operand(0);
  int64_t suffix = 1;
  for (int64_t d = slice.shape().rank(); d-- > 0;) {
    const bool joins = (from.op() == Op::Concatenate && from.dimensions()[0] == d) ||
                       (from.op() == Op::Pad && from.attrs<PadAttrs>().padding[static_cast<size_t>(d)] != PaddingDim{});
    if (joins && slice.shape().dim(d) < from.shape().dim(d)) cuts.insert(suffix);
    suffix *= slice.shape().dim(d);
  }
}

// Cuts of an operand of a concatenation, where they do not fall into the dimension that grows.
void AddPartCuts(const Instruction& concatenate, const Shape& part, const Cuts& part_cuts, Cuts& cuts) {
  const int64_t dimension = concatenate.dimensions()[0];
  int64_t behind = 1;
  for (int64_t d = dimension + 1; d < part.rank(); ++d) behind *= part.dim(d);
  const int64_t from = part.dim(dimension) * behind, to = concatenate.shape().dim(dimension) * behind;
  for (int64_t cut : part_cuts) {
    if (cut <= behind) cuts.insert(cut);
    if (from > 0 && cut % from == 0) cuts.insert(cut / from * to);
  }
}

// Cuts of what is gathered within its windows, and of the indices within batches.
void AddGatherCuts(const Instruction& gather, const std::vector<DimGroup>& groups, const Cuts& operand_cuts,
                   const Cuts& index_cuts, Cuts& cuts) {
  const Dims& windows = gather.attrs<GatherAttrs>().offset_dims;
  for (size_t g = 0; g < groups.size(); ++g) {
    const bool window = std::find(windows.begin(), windows.end(), groups[g].first) != windows.end();
    const Shape& from = gather.operand(window ? 0 : 1)->shape();
    int64_t behind = 1;
    for (int64_t d = groups[g].source + groups[g].last - groups[g].first; d < from.rank(); ++d) behind *= from.dim(d);
    Cuts inside;
    for (int64_t cut : window ? operand_cuts : index_cuts)
      if (behind > 0 && cut % behind == 0) inside.insert(cut / behind);
    AddOperandCuts(groups, {g}, {from.dim(groups[g].source) * groups[g].inner}, inside, cuts);
  }
}

Cuts CutsOf(const Instruction& i, const std::map<const Instruction*, Cuts>& known) {
  Cuts cuts;
  const auto of = [&](const Instruction* operand) -> const Cuts& {
    static const Cuts kNone;
    const auto found = known.find(operand);
    return found == known.end() ? kNone : found->second;
  };
  const Shape& shape = i.shape().IsTuple() ? i.shape().element(0) : i.shape();
  if (IsElementwise(i.op()) || i.op() == Op::Reshape || i.op() == Op::Copy || i.op() == Op::Map ||
      i.op() == Op::Bitcast || i.op() == Op::BitcastConvert || i.op() == Op::OptimizationBarrier) {
    for (int64_t k = 0; k < i.operand_count(); ++k) {
      if (!i.operand(k)->shape().IsArray() || i.operand(k)->shape().num_elements() != shape.num_elements()) continue;
      const Cuts& c = of(i.operand(k));
      cuts.insert(c.begin(), c.end());
    }
    return cuts;
  }
  if (i.op() == Op::Constant || i.op() == Op::Parameter || i.op() == Op::GetTupleElement || i.op() == Op::While)
    return cuts;
  const std::vector<DimGroup> groups = ResultGroups(i);
  for (size_t g = 0; g < groups.size(); ++g) cuts.insert(SuffixOf(groups, g));
  std::vector<size_t> order;
  std::vector<int64_t> sizes;
  switch (i.op()) {
    case Op::Reduce:
      for (int64_t k = 0; k < i.operand_count() / 2; ++k) AddReducedCuts(i, of(i.operand(k)), cuts);
      break;
    case Op::Broadcast:
    case Op::Transpose: {
      for (const DimGroup& g : InSourceOrder(groups, &order)) sizes.push_back(g.size);
      AddOperandCuts(groups, order, sizes, of(i.operand(0)), cuts);
      break;
    }
    case Op::Slice:
    case Op::Pad:
    case Op::DynamicSlice:
    case Op::Reverse: {
      for (size_t g = 0; g < groups.size(); ++g) {
        order.push_back(g);
        sizes.push_back(i.operand(0)->shape().dim(groups[g].first) * groups[g].inner);
      }
      AddOperandCuts(groups, order, sizes, of(i.operand(0)), cuts);
      if (i.op() == Op::DynamicSlice && known.contains(i.operand(0))) AddPartsOfSlice(i, cuts);
      break;
    }
    case Op::Gather: AddGatherCuts(i, groups, of(i.operand(0)), of(i.operand(1)), cuts); break;
    case Op::Concatenate:
      for (int64_t k = 0; k < i.operand_count(); ++k) AddPartCuts(i, i.operand(k)->shape(), of(i.operand(k)), cuts);
      break;
    default: break;
  }
  return cuts;
}

}  // namespace

std::map<const Instruction*, Cuts> AllCuts(const KernelBody& body) {
  std::map<const Instruction*, Cuts> cuts;
  for (const Instruction* i : body.Computed())
    if (i->op() != Op::Tuple) cuts[i] = CutsOf(*i, cuts);
  return cuts;
}

Int64Vector Factors(int64_t total, const Cuts& cuts) {
  Int64Vector sizes;
  int64_t rest = total;
  for (auto cut = cuts.rbegin(); cut != cuts.rend(); ++cut) {
    if (*cut <= 1 || *cut >= rest || rest % *cut != 0) continue;
    sizes.push_back(rest / *cut);
    rest = *cut;
  }
  sizes.push_back(rest);
  return sizes;
}

void MergeLast(Int64Vector& sizes) {
  const int64_t inner = sizes.back();
  sizes.pop_back();
  sizes.back() *= inner;
}

}  // namespace strop
