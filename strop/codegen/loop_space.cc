#include "strop/codegen/loop_space.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <set>

#include "strop/analysis/combiner.h"
#include "strop/analysis/cost.h"
#include "strop/analysis/pairwise.h"
#include "strop/analysis/positionwise_loop.h"
#include "strop/codegen/critical_path.h"
#include "strop/codegen/dim_groups.h"
#include "strop/codegen/element.h"

namespace strop {
namespace {

// A boundary between digits of a result is named by the number of elements behind it: 3 in [512][3].
using Cuts = std::set<int64_t>;

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

// The operand of a reduce is read along its rows: the innermost dimension is reduced.
bool ReducesRows(const Instruction* i) {
  if (i->op() != Op::Reduce) return false;
  const int64_t rank = i->operand(0)->shape().rank();
  const Dims& dims = i->dimensions();
  return std::find(dims.begin(), dims.end(), rank - 1) != dims.end();
}
int64_t ReducedRowSize(const Instruction& i) {
  const Shape& operand = i.operand(0)->shape();
  const Dims& dims = i.dimensions();
  int64_t size = 1;
  for (int64_t d = operand.rank() - 1; d >= 0 && std::find(dims.begin(), dims.end(), d) != dims.end(); --d)
    size *= operand.dim(d);
  return size;
}

int RoundDownToPowerOfTwo(int64_t n) {
  return static_cast<int>(std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(n, 1, 1 << 30))));
}

int64_t FlopsPerElement(const Instruction& i) {
  if (!IsElementwise(i.op())) return 0;
  if (Is(i.op(), kFloatMath)) return 20;
  if (i.op() == Op::Divide || i.op() == Op::Remainder) return 5;
  return 1;
}

}  // namespace

int PreferredLanes(const KernelBody& body, int vector_bytes) {
  int widest = 8;
  int64_t of_widest = 0, all = 0;
  const bool codes = body.MovesSmallFloats();
  const auto consider = [&](const Shape& shape) {
    for (const Shape& leaf : shape.Leaves()) {
      if (!leaf.IsArray() || leaf.rank() == 0) continue;
      const bool code = codes && IsFloat(leaf.type()) && Bits(leaf.type()) < 32;
      const int bits = code ? 8 * Bytes(leaf.type()) : ElementBuilder::RegisterBits(leaf.type());
      if (bits > widest) of_widest = 0;
      widest = std::max(widest, bits);
      of_widest += bits == widest;
      ++all;
    }
  };
  for (const Instruction* i : body.inputs) consider(i->shape());
  for (const Instruction* i : body.Computed())
    if (i->op() != Op::Broadcast && i->op() != Op::Constant) consider(i->shape());
  // The few that are wider than the others (counters of random bits) take two registers.
  const bool few = of_widest * 4 <= all && widest > 8;
  return std::min(64, vector_bytes * 8 / (few ? widest / 2 : widest));
}

namespace {

std::map<const Instruction*, Cuts> AllCuts(const KernelBody& body) {
  std::map<const Instruction*, Cuts> cuts;
  for (const Instruction* i : body.Computed())
    if (i->op() != Op::Tuple) cuts[i] = CutsOf(*i, cuts);
  return cuts;
}

// The factors of `total` between the cuts, as far as each divides the one before.
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

constexpr int64_t kMaxInterleaved = 16, kMaxStacked = 32;
constexpr int64_t kMaxInterleavedCode = 512;     // instructions, for all elements
constexpr int64_t kMaxStackedCode = 1024;        // of elements each of which is another part
constexpr int64_t kConditionCode = 16;           // of an operand that not all elements are read from
constexpr int64_t kMinInterleavedElements = 32;  // fewer are not worth the code
constexpr int64_t kMinInterleavedLanes = 4;      // shorter vectors save nothing over reads of every so manieth element

// The elements of a row that a part has, at most, where parts lie side by side within the last factor: which part has
// one of its `last` elements is known. 0: no such concatenation.
int64_t WidthOfParts(const Instruction& i, int64_t last) {
  if (i.op() != Op::Concatenate) return 0;
  const int64_t dimension = i.dimensions()[0];
  int64_t inner = 1, width = 0;
  for (int64_t d = dimension + 1; d < i.shape().rank(); ++d) inner *= i.shape().dim(d);
  if (i.shape().dim(dimension) * inner != last) return 0;
  for (int64_t k = 0; k < i.operand_count(); ++k) width = std::max(width, i.operand(k)->shape().dim(dimension) * inner);
  return width;
}

// Are the parts computed, rather than moved?
bool ComputesParts(const KernelBody& body, const Instruction& stack, int64_t last) {
  std::vector<const Instruction*> parts;
  for (const Instruction* i : body.Computed())
    if (IsElementwise(i->op()) && i->shape().num_elements() < stack.shape().num_elements()) parts.push_back(i);
  return CodeOf(parts) >= 2 * last;
}

// A stack: parts of one element each, or computed ones that are shorter than a vector. (What is moved from places that
// lie at distances of several elements is moved faster as it lies.)
bool IsStack(const KernelBody& body, const Instruction& i, int64_t last, int lanes) {
  const int64_t width = WidthOfParts(i, last);
  return width == 1 || (width > 0 && width < lanes && ComputesParts(body, i, last));
}
bool HasStack(const KernelBody& body, int64_t last, int lanes) {
  const std::vector<const Instruction*> computed = body.Computed();
  return std::any_of(computed.begin(), computed.end(),
                     [&](const Instruction* i) { return IsStack(body, *i, last, lanes); });
}

// Is the last factor made of short parts that are computed rather than moved? In a period all lanes would compute every
// part. Bytes are moved so as well: there are many lanes to pick for.
bool StacksComputed(const KernelBody& body, const Int64Vector& sizes, int lanes) {
  const int64_t last = sizes.back();
  if (sizes[sizes.size() - 2] < kMinInterleavedLanes) return false;
  const std::vector<const Instruction*> computed = body.Computed();
  return std::any_of(computed.begin(), computed.end(), [&](const Instruction* i) {
    return IsStack(body, *i, last, lanes) && (Bytes(i->shape().type()) == 1 || ComputesParts(body, *i, last));
  });
}

// Of `last` elements side by side: what has fewer elements is computed for as many of them only.
int64_t InterleavedCode(const KernelBody& body, int64_t last, int lanes) {
  const int64_t elements = std::max<int64_t>(body.ElementsOf(0), 1);
  int64_t code = 0;
  for (const Instruction* i : body.Computed()) {
    int64_t times = last;
    if (i->shape().IsArray())
      times = std::clamp<int64_t>(SaturatingMultiply(i->shape().num_elements(), last) / elements, 1, last);
    int64_t own = CodeOf(*i);
    if ((i->op() == Op::Concatenate || i->op() == Op::Pad) && !IsStack(body, *i, last, lanes))
      own += kConditionCode * i->operand_count();
    code = SaturatingAdd(code, SaturatingMultiply(own, times));
  }
  return code;
}

// Takes a last factor that is shorter than a vector, or stacked, out of the walk, if the one before fills vectors, be
// they short ones.
void Interleave(const KernelBody& body, LoopSpace& space, Int64Vector& sizes) {
  if (sizes.size() < 2 || space.lanes < 4) return;
  while (sizes.size() > 2 && sizes[sizes.size() - 2] < space.lanes &&
         sizes[sizes.size() - 2] * sizes.back() <= kMaxStacked &&
         HasStack(body, sizes[sizes.size() - 2] * sizes.back(), space.lanes)) {
    const int64_t inner = sizes.back();
    sizes.pop_back();
    sizes.back() *= inner;
  }
  const int64_t last = sizes.back(), before = sizes[sizes.size() - 2];
  const bool stack = HasStack(body, last, space.lanes) && before >= space.lanes;
  if (last > (stack ? kMaxStacked : kMaxInterleaved) || (last >= space.lanes && !stack)) return;
  // An odd number of parts takes as many shuffles as its square, each of them several instructions where lanes are
  // short.
  constexpr int64_t kOddParts = 9;
  if (last % 2 == 1 && last >= kOddParts && space.lanes == 16 && !StacksComputed(body, sizes, space.lanes)) return;
  if (before < kMinInterleavedLanes ||
      InterleavedCode(body, last, space.lanes) > (stack ? kMaxStackedCode : kMaxInterleavedCode))
    return;
  int64_t elements = body.roots[0]->op() == Op::Reduce ? body.roots[0]->operand(0)->shape().num_elements() : 1;
  for (int64_t size : sizes) elements = SaturatingMultiply(elements, size);
  if (elements < kMinInterleavedElements) return;
  sizes.pop_back();
  space.interleaved = last;
  space.lanes = std::min(space.lanes, RoundDownToPowerOfTwo(before));
}

// Do neighbours come from places at one distance, whatever the row?
bool IsAtKnownDistances(Op op) {
  return IsElementwise(op) || op == Op::Broadcast || op == Op::Slice || op == Op::Reverse || op == Op::Reshape ||
         op == Op::Bitcast || op == Op::Constant || op == Op::Iota || op == Op::Parameter || op == Op::GetTupleElement;
}

// Is every element of the kernel at the distances from the others at which its operands are, whatever the row? Sets
// *conditions where that holds between the places only at which conditions change. Those along a last dimension of
// `last` elements are the same everywhere, and so is what transposes permute within as many.
bool ReadsAtDistances(const KernelBody& body, int64_t last, bool* conditions) {
  *conditions = false;
  const std::vector<const Instruction*> computed = body.Computed();
  return std::all_of(computed.begin(), computed.end(), [&](const Instruction* i) {
    if (i->op() == Op::ReduceWindow) {
      if (!i->shape().IsArray()) return false;
      for (const WindowDim& w : i->attrs<WindowAttrs>().window.dims) {
        if (w.base_dilation != 1) return false;
        *conditions |= w.pad_low != 0 || w.pad_high != 0;
      }
      return true;
    }
    const int64_t end = i->shape().IsArray() ? i->shape().rank() - 1 : -1;
    const bool at_end = end >= 0 && i->shape().dim(end) == last;
    if (i->op() == Op::Pad) {
      const PaddingConfig& padding = i->attrs<PadAttrs>().padding;
      for (size_t d = 0; d < padding.size(); ++d) {
        if (padding[d].interior != 0) return false;  // see SetInteriorPeriod
        const bool pads = padding[d].low != 0 || padding[d].high != 0;
        *conditions |= pads && !(at_end && static_cast<int64_t>(d) == end);
      }
    }
    *conditions |= i->op() == Op::Concatenate && !(at_end && i->dimensions()[0] == end);
    if (i->op() == Op::Transpose) return last % PermutedTogether(*i) == 0;
    return IsAtKnownDistances(i->op()) || i->op() == Op::Pad || i->op() == Op::Concatenate;
  });
}

// Padding between the elements of rows: vectors whose lanes are at known places between them.
bool SetInteriorPeriod(const KernelBody& body, LoopSpace& space, const Int64Vector& sizes) {
  constexpr int64_t kMostVectors = 7;
  int64_t step = 1;
  for (const Instruction* i : body.Computed()) {
    const int64_t end = i->shape().IsArray() ? i->shape().rank() - 1 : -1;
    if (i->op() == Op::Pad && end >= 0 && i->shape().dim(end) == sizes.back() && step <= space.lanes)
      step = std::lcm(step, i->attrs<PadAttrs>().padding[static_cast<size_t>(end)].interior + 1);
  }
  const int64_t period = std::lcm<int64_t>(step, space.lanes);
  if (step == 1 || period > kMostVectors * space.lanes) return false;
  space.period = period;
  return true;
}

// The dimension with so many elements behind it, of more than one itself; -1: there is none.
int64_t DimInFrontOf(const Shape& shape, int64_t inner) {
  int64_t behind = 1;
  for (int64_t d = shape.rank(); d-- > 0 && behind <= inner;) {
    if (behind == inner && shape.dim(d) > 1) return d;
    behind *= shape.dim(d);
  }
  return -1;
}

// The padding between elements of the last dimension that has any: how many elements are behind that, and how often it
// is padded.
struct InteriorPadding {
  int64_t behind = 0, pads = 0;
};
InteriorPadding FindInteriorPadding(const KernelBody& body) {
  InteriorPadding found;
  for (const Instruction* i : body.Computed()) {
    if (i->op() != Op::Pad) continue;
    int64_t behind = 1;
    for (int64_t d = i->shape().rank(); d-- > 0; behind *= i->shape().dim(d)) {
      const bool between = i->attrs<PadAttrs>().padding[static_cast<size_t>(d)].interior > 0;
      if (!between || i->operand(0)->shape().dim(d) == 1 || (found.pads > 0 && behind > found.behind)) continue;
      found = {behind, found.behind == behind ? found.pads + 1 : 1};
    }
  }
  return found;
}

// One array that is only spread: does it take its places in longer rows of single elements? What is computed at all
// places is better read as it lies, and the array's elements picked.
bool OnlySpreads(const KernelBody& body, const InteriorPadding& padding, int64_t points) {
  constexpr int64_t kLeastPoints = 8;
  const std::vector<const Instruction*> computed = body.Computed();
  return padding.behind == 1 && points >= kLeastPoints && std::ranges::none_of(computed, [&](const Instruction* i) {
           return IsElementwise(i->op()) && i->shape().num_elements() >= body.ElementsOf(0);
         });
}

// At what distance from each other are positions along the dimension in front of `inner` elements alike, as far as
// padding between elements tells them apart? 1: those of an instruction are alike.
int64_t StepOf(const Instruction& i, int64_t inner, const std::map<const Instruction*, int64_t>& known) {
  constexpr int64_t kLongest = 8;
  const auto of = [&](const Instruction* operand) {
    const auto found = known.find(operand);
    return found == known.end() ? 1 : found->second;
  };
  const int64_t d = i.shape().IsArray() ? DimInFrontOf(i.shape(), inner) : -1;
  if (d < 0) return 1;
  int64_t step = 1;
  if (i.op() == Op::Slice) {
    step = of(i.operand(0)) / std::gcd(of(i.operand(0)), i.attrs<SliceAttrs>().slice[static_cast<size_t>(d)].stride);
  } else if (i.op() == Op::Pad) {
    step = of(i.operand(0));
    if (i.operand(0)->shape().dim(d) > 1) step *= i.attrs<PadAttrs>().padding[static_cast<size_t>(d)].interior + 1;
  } else if (IsElementwise(i.op()) || i.op() == Op::Concatenate || i.op() == Op::Reverse || i.op() == Op::Reshape) {
    for (int64_t k = 0; k < i.operand_count(); ++k) {
      const Shape& from = i.operand(k)->shape();
      const int64_t same = DimInFrontOf(from, inner);
      if (same >= 0 && (i.op() == Op::Concatenate || from.dim(same) == i.shape().dim(d)))
        step = std::lcm(step, of(i.operand(k)));
    }
  }
  return step <= kLongest ? step : 1;
}

// Padding between the elements of rows, or between few elements each: which element of its group one is is known if the
// vectors hold elements of different groups.
bool SetStep(const KernelBody& body, LoopSpace& space, Int64Vector& sizes) {
  constexpr int64_t kLargestGroup = 32;
  constexpr int64_t kOddParts =
      3;  // shuffles are as many as their square, each of several instructions for short lanes
  const InteriorPadding padding = FindInteriorPadding(body);
  const int64_t inner = padding.behind;
  if (padding.pads == 0 || inner >= space.lanes || space.lanes < kMinInterleavedLanes) return false;
  std::map<const Instruction*, int64_t> steps;
  int64_t step = 1, code = 0, row = 0;
  for (const Instruction* i : body.Computed()) {
    steps[i] = StepOf(*i, inner, steps);
    code += CodeOf(*i);
  }
  for (const Instruction* root : body.roots) {
    const int64_t d = root->shape().IsArray() ? DimInFrontOf(root->shape(), inner) : -1;
    const int64_t size = d < 0 ? 0 : root->shape().dim(d) * inner;
    if (size == 0 || (row > 0 && size != row)) return false;
    row = size;
    step = std::lcm(step, steps.contains(root) ? steps[root] : 1);
  }
  const int64_t group = step * inner;
  const int64_t odd = group / std::max<int64_t>(group & -group, 1);
  if (space.lanes >= 16 && odd > kOddParts) return false;
  if (step == 1 || group > kLargestGroup || row / group < kMinInterleavedLanes ||
      SaturatingMultiply(code, group) > kMaxInterleavedCode)
    return false;
  if (padding.pads == 1 && !OnlySpreads(body, padding, row / group)) return false;
  Int64Vector outer = sizes;
  int64_t last = 1;
  while (!outer.empty() && last < row) {
    last *= outer.back();
    outer.pop_back();
  }
  if (last != row) return false;
  space.step = group;
  space.rest = row % group;
  space.lanes = std::min(space.lanes, RoundDownToPowerOfTwo(row / group));
  sizes = outer;
  sizes.push_back(row / group);
  return true;
}

// The last factors as one, where transposes permute elements among themselves that few vectors hold; each is then
// picked from those.
bool MergePermuted(const KernelBody& body, const LoopSpace& space, Int64Vector& sizes) {
  constexpr int64_t kMostVectors = 4, kMostVectorsOfBytes = 1, kLeastRows = 16;
  int64_t together = 1;
  const std::vector<const Instruction*> computed = body.Computed();
  for (const Instruction* i : computed)
    if (i->op() == Op::Transpose) together = std::lcm(together, PermutedTogether(*i));
  const bool bytes = std::any_of(computed.begin(), computed.end(), [](const Instruction* i) {
    return i->shape().IsArray() && Bytes(i->shape().type()) == 1;
  });
  if (together == 1 || together > (bytes ? kMostVectorsOfBytes : kMostVectors) * space.lanes) return false;
  Int64Vector merged = sizes;
  int64_t last = 1, rows = 1;
  while (!merged.empty() && last < together) {
    last *= merged.back();
    merged.pop_back();
  }
  for (int64_t size : merged) rows *= size;
  bool conditions = false;
  if (last != together || rows < kLeastRows || !ReadsAtDistances(body, last, &conditions)) return false;
  merged.push_back(last);
  sizes = merged;
  return true;
}

// As Interleave, of kernels where each lane can be read at its place: vectors along the last factor and the one before,
// as many as bring the lanes back to where they were; or one a row where that is mostly full.
void SetPeriod(const KernelBody& body, int vector_bytes, LoopSpace& space, Int64Vector& sizes) {
  constexpr int64_t kFewVectors = 3, kMostVectors = 7, kLeastLanes = 8, kLeastRows = 16;
  constexpr int kMaskedBytes = 64;  // a part of a vector is only stored at once where vectors are so long
  bool conditions = false;
  if (space.lanes < kLeastLanes || SetInteriorPeriod(body, space, sizes) || sizes.size() < 2) return;
  if (MergePermuted(body, space, sizes) && sizes.back() >= space.lanes) {
    space.period = (sizes.back() + space.lanes - 1) / space.lanes * space.lanes;
    return;
  }
  if (sizes.back() >= space.lanes) return;
  while (sizes.size() > 2 && sizes[sizes.size() - 2] * sizes.back() < space.lanes) {
    // Together they are a short row still: the pixels of an image twice each, [110,2,3].
    const int64_t inner = sizes.back();
    sizes.pop_back();
    sizes.back() *= inner;
  }
  if (!ReadsAtDistances(body, sizes.back(), &conditions) || StacksComputed(body, sizes, space.lanes)) return;
  const int64_t last = sizes.back(), period = std::lcm<int64_t>(last, space.lanes), vectors = period / space.lanes;
  const int64_t at_a_time = VectorsAtATime(body, vector_bytes);
  int64_t rows = 1;
  for (size_t d = 0; d + 2 < sizes.size(); ++d) rows *= sizes[d];
  if (conditions && rows < kLeastRows) return;  // whose pieces would begin at places that are not known
  const bool row_by_row = vectors > kMostVectors || (at_a_time == 1 && vector_bytes >= kMaskedBytes);
  if (2 * last > space.lanes && vectors > kFewVectors && !conditions && row_by_row) {
    space.period = space.lanes;
  } else if (vectors <= kMostVectors) {
    space.period = period * ((at_a_time + vectors - 1) / vectors);
    space.short_row = last;
    sizes.pop_back();
    sizes.back() *= last;
  }
  space.whole_rows |= conditions && space.period > 0;
}

// Are columns reduced whose rows are short and at no even places of a vector? Then a masked vector is a row: with rows
// side by side in it, its lanes would be gathered.
bool ReducesShortRows(const KernelBody& body, const LoopSpace& space, const Int64Vector& sizes, bool by_period) {
  constexpr int64_t kLeastOfChoices = 5;  // which take long, and wait for each other
  const int64_t last = sizes.back(), least = body.roots[0]->shape().IsTuple() ? kLeastOfChoices : 2;
  if (sizes.size() < 2 || last < least || last >= space.lanes) return false;
  if (by_period && space.lanes % last == 0) return false;  // inside other functions they are gathered, too
  const std::vector<const Instruction*> computed = body.Computed();
  return std::all_of(computed.begin(), computed.end(), [&](const Instruction* i) {
    if (i->op() != Op::Reduce) return IsAtKnownDistances(i->op());
    const Shape& operand = i->operand(0)->shape();
    return operand.rank() > 0 && operand.dim(operand.rank() - 1) == last &&
           !Contains(i->dimensions(), operand.rank() - 1);
  });
}

constexpr int kStrips = 4;  // vectors at a time of a reduction

// Vectors along the last factors, merged until they fill one.
void VectorizeRows(LoopSpace& space, Int64Vector& sizes, bool wide) {
  while (sizes.size() > 1 && sizes.back() < space.lanes) {
    const int64_t inner = sizes.back();
    sizes.pop_back();
    sizes.back() *= inner;
  }
  if (wide && sizes.back() >= kStrips * space.lanes) space.lanes *= kStrips;
  space.lanes = std::min(space.lanes, std::max(1, RoundDownToPowerOfTwo(sizes.back())));
}

// What is as wide as several registers becomes as many vectors side by side, if all that waits for several trips is
// reductions that are results. Long elements (random bits) stay wide: one vector's operations wait for each other, and
// those of the next come too late to fill the gaps.
void CutIntoStrips(const KernelBody& body, int register_lanes, LoopSpace& space) {
  constexpr int64_t kLongElement = 100;
  const std::vector<const Instruction*> computed = body.Computed();
  const bool nested = std::any_of(computed.begin(), computed.end(), [&](const Instruction* i) {
    return i->op() == Op::While ||
           (i->op() == Op::Reduce && std::find(body.roots.begin(), body.roots.end(), i) == body.roots.end());
  });
  if (nested || register_lanes == 1 || space.lanes <= register_lanes || CodeOf(computed) > kLongElement) return;
  space.strips = space.lanes / register_lanes;
  space.lanes = register_lanes;
}

// Is the one large input reversed along its rows?
bool ReadsBackwards(const KernelBody& body) {
  const int64_t elements = body.ElementsOf(0);
  const auto is_large = [&](const Instruction* i) {
    return i->shape().IsArray() && i->shape().num_elements() >= elements;
  };
  if (body.roots.size() != 1 || std::count_if(body.inputs.begin(), body.inputs.end(), is_large) != 1) return false;
  const std::vector<const Instruction*> computed = body.Computed();
  return std::any_of(computed.begin(), computed.end(), [](const Instruction* i) {
    const Dims& dims = i->op() == Op::Reverse ? i->dimensions() : Dims();
    return std::find(dims.begin(), dims.end(), i->shape().rank() - 1) != dims.end();
  });
}

// Several vectors at a time, where rows consist of them.
void WidenForLongChains(const KernelBody& body, int vector_bytes, int64_t row_size, LoopSpace& space) {
  constexpr int64_t kLeastIterations = 16;
  if (space.lanes <= 1) return;
  const int lanes = space.lanes * VectorsAtATime(body, vector_bytes);
  if (row_size % lanes == 0 || row_size >= kLeastIterations * lanes) space.lanes = lanes;
}

// Are integers reduced that are read as one or two bytes, without choosing places?
bool ReducesBytes(const KernelBody& body) {
  const auto is_short = [](const Instruction* i) {
    return i->shape().IsArray() && i->shape().rank() > 0 && Bits(i->shape().type()) <= 16;
  };
  return std::ranges::any_of(body.inputs, is_short) && std::ranges::all_of(body.roots, [](const Instruction* root) {
           return root->op() == Op::Reduce && root->operand_count() == 2 &&
                  !IsFloat(root->operand(0)->shape().type()) && !IsComplex(root->operand(0)->shape().type());
         });
}

// Of rows that are reduced, is a lane a row, read at distances, rather than an element of it? Where they fill no
// vector; where lanes that are combined at the end of each are more work than reads one by one: choices of one element,
// which compare and select values and places at each step, of rows that leave much of their last vector empty others as
// well. Sums are added in an order of their own, which must not change. More than a few bytes are combined sooner than
// dealt out, if they are not chosen from.
bool LanesAreRows(const KernelBody& body, int64_t lanes, int64_t row_size) {
  constexpr int64_t kMostOfChoice = 64, kFewestVectors = 4, kMostBytes = 6;
  if (lanes <= 1) return false;  // (a GPU's code has none)
  if (row_size < lanes) return row_size <= kMostBytes || !ReducesBytes(body);
  int64_t most = kMostOfChoice;
  for (const Instruction* root : body.roots) {
    if (root->op() != Op::Reduce) continue;
    const ElementType type = root->operand(0)->shape().type();
    const LaneCombiner combiner = RecognizeCombiner(*root->called(0));
    const bool sums = combiner.op == Op::Add || combiner.op == Op::Multiply;
    if (!combiner.reorderable || (sums && IsFloat(type)) || IsComplex(type) || ReducesBytes(body)) return false;
    if (root->operand(0)->shape().num_elements() < kFewestVectors * lanes * row_size) return false;
    if (root->operand_count() > 2) continue;
    if (row_size % lanes == 0) return false;
    most = std::min(most, 2 * lanes);
  }
  return row_size <= most;
}

void SetRows(LoopSpace& space, Int64Vector sizes) {
  space.row_size = sizes.back();
  sizes.pop_back();
  space.row_sizes = sizes;
  for (int64_t s : sizes) space.rows *= s;
}

}  // namespace

int64_t CodeOf(const Instruction& i) {
  int64_t code = Is(i.op(), kFloatMath) ? 20 : 1;
  if (i.op() == Op::ReduceWindow)
    for (const WindowDim& w : i.attrs<WindowAttrs>().window.dims) code = SaturatingMultiply(code, w.size);
  return code;
}

int64_t CodeOf(const KernelBody& body) { return CodeOf(body.Computed()); }

bool IsRoot(const KernelBody& body, const Instruction* i) {
  return std::ranges::find(body.roots, i) != body.roots.end();
}

// The size of the rows that the kernel reduces on its way (a softmax); 0: none.
int64_t RowThatIsReduced(const KernelBody& body) {
  for (const Instruction* i : body.Computed())
    if (i->op() == Op::Reduce && !IsShortReduce(*i) && !IsRoot(body, i)) return ReducedRowSize(*i);
  return 0;
}

Int64Vector DigitsOf(const KernelBody& body) {
  const Shape& shape = body.roots[0]->shape();
  const int64_t total = (shape.IsTuple() ? shape.element(0) : shape).num_elements();
  const std::map<const Instruction*, Cuts> cuts = AllCuts(body);
  Cuts wanted;
  for (const Instruction* root : body.roots)
    if (const auto c = cuts.find(root); c != cuts.end()) wanted.insert(c->second.begin(), c->second.end());
  // What is reduced once a row is so only if a row of the walk is one.
  const bool reduces = std::ranges::any_of(body.roots, [](const Instruction* r) { return r->op() == Op::Reduce; });
  if (const int64_t row = RowThatIsReduced(body); row > 0 && !reduces) {
    std::erase_if(wanted, [row](int64_t cut) { return cut % row != 0; });
    wanted.insert(row);
  }
  return Factors(total, wanted);
}

LoopSpace ChooseLoopSpace(const KernelBody& body, int vector_bytes, bool by_period) {
  LoopSpace space;
  space.lanes = PreferredLanes(body, vector_bytes);
  const std::vector<const Instruction*> computed = body.Computed();
  space.whole_rows = RowThatIsReduced(body) > 0;
  Int64Vector sizes = DigitsOf(body);
  const auto reduce = std::find_if(body.roots.begin(), body.roots.end(), ReducesRows);
  // A lane a point chooses the nearest without a look at other lanes.
  constexpr int64_t kMostToChooseFrom = 1024;
  const auto by_point = [&](const Instruction& i) {
    return ChoosesAmongPairs(i) && ReducedRowSize(i) <= kMostToChooseFrom && sizes.back() >= 4 * space.lanes;
  };
  if (reduce != body.roots.end() && !by_point(**reduce) && !LanesAreRows(body, space.lanes, ReducedRowSize(**reduce))) {
    space.uniform = true;
    const int register_lanes = space.lanes;
    // (Vectors of more single bits than a register has bytes are taken apart where they live longer than a block.)
    const bool bits = IsPred((*reduce)->operand(0)->shape().type());
    const int64_t strips = bits ? std::clamp<int64_t>(vector_bytes / space.lanes, 1, kStrips) : kStrips;
    space.lanes = RoundDownToPowerOfTwo(std::min<int64_t>(strips * space.lanes, ReducedRowSize(**reduce)));
    if (by_period) CutIntoStrips(body, register_lanes, space);
  } else {
    // A reduction of columns: more sums at a time, and longer reads.
    const bool columns =
        std::any_of(body.roots.begin(), body.roots.end(), [](const Instruction* r) { return r->op() == Op::Reduce; });
    // So has a loop of trips, each of which waits for the one before, as long as registers hold what it needs.
    constexpr int64_t kMostCodeOfTrip = 48;
    const bool trips = std::any_of(computed.begin(), computed.end(), [&](const Instruction* i) {
      return i->op() == Op::While && CodeOf(i->body()->instructions()) <= kMostCodeOfTrip;
    });
    const bool groups = body.roots.size() == 1 && ReducesPairsToGroups(*body.roots[0]);
    if (!columns && !trips && !space.whole_rows && SetStep(body, space, sizes)) {
      SetRows(space, sizes);
      return space;
    }
    if (by_period && !columns && !trips && !space.whole_rows) SetPeriod(body, vector_bytes, space, sizes);
    if (columns && !trips && !space.whole_rows && ReducesShortRows(body, space, sizes, by_period))
      space.period = space.lanes;
    if (space.period > 0) {
      SetRows(space, sizes);
      return space;
    }
    if ((!columns && !trips) || groups) Interleave(body, space, sizes);
    if (space.interleaved == 1 && !columns && !space.whole_rows)
      WidenForLongChains(body, vector_bytes, sizes.back(), space);
    space.backwards = space.interleaved == 1 && !columns && !space.whole_rows && ReadsBackwards(body);
    const bool neighbours =
        std::any_of(body.roots.begin(), body.roots.end(), [](const Instruction* r) { return ReducesNeighbours(*r); });
    const int register_lanes = space.lanes;
    // What sums up a few sums of a few elements has all of them in registers at once, and reads them far apart.
    const bool short_sums = std::any_of(computed.begin(), computed.end(), [&](const Instruction* i) {
      return i->op() == Op::Reduce && IsShortReduce(*i) &&
             std::find(body.roots.begin(), body.roots.end(), i) == body.roots.end();
    });
    const bool all_short = short_sums && std::all_of(body.roots.begin(), body.roots.end(),
                                                     [](const Instruction* r) { return IsShortReduce(*r); });
    // Rows of bytes dealt to more lanes than a register has take LLVM long.
    const bool deals_bytes = reduce != body.roots.end() && std::ranges::any_of(body.inputs, [](const Instruction* i) {
                               return i->shape().IsArray() && i->shape().rank() > 0 && Bits(i->shape().type()) <= 8;
                             });
    const bool in_strips = columns && space.interleaved == 1 && !neighbours && !all_short && !deals_bytes;
    VectorizeRows(space, sizes, in_strips || trips);
    if (in_strips && by_period) CutIntoStrips(body, register_lanes, space);
  }
  SetRows(space, sizes);
  return space;
}

void WalkVectorByVector(const KernelBody& body, int vector_bytes, LoopSpace& space) {
  if (space.period > 0 || space.interleaved > 1 || space.step > 1 || VectorsAtATime(body, vector_bytes) == 1) return;
  space.lanes = std::min(space.lanes, PreferredLanes(body, vector_bytes));
}

int64_t WalkShortRows(LoopSpace& space) {
  const bool split = std::any_of(space.splits.begin(), space.splits.end(), [](const auto& s) { return !s.empty(); });
  if (space.short_row == 0 || space.whole_rows || split) return 0;
  const int64_t rows = space.row_size / space.short_row;
  space.row_sizes.push_back(rows);
  space.rows *= rows;
  space.row_size = space.short_row;
  space.period = space.lanes;
  space.short_row = 0;
  space.splits.clear();
  return rows;
}

LoopSpace ChooseWindowSpace(const KernelBody& body, const Instruction& update, int vector_bytes) {
  LoopSpace space;
  space.lanes = PreferredLanes(body, vector_bytes);
  const std::map<const Instruction*, Cuts> cuts = AllCuts(body);
  Cuts wanted;
  if (const auto c = cuts.find(body.roots[0]); c != cuts.end()) wanted = c->second;
  // The window's rows are where its position in the result jumps.
  const Shape& window = update.operand(1)->shape();
  int64_t suffix = 1;
  const std::vector<DimGroup> groups = ResultGroups(update);
  for (size_t g = groups.size(); g-- > 0;) {
    suffix *= window.dim(groups[g].first) * groups[g].inner;
    wanted.insert(suffix);
  }
  Int64Vector sizes = Factors(window.num_elements(), wanted);
  VectorizeRows(space, sizes, false);
  SetRows(space, sizes);
  return space;
}

KernelCost CostOf(const KernelBody& body) {
  KernelCost cost;
  cost.bytes = BytesAccessed(*body.kernel);
  for (const Instruction* i : body.Computed()) {
    int64_t per_element = FlopsPerElement(*i), elements = 0;
    const Shape& result =
        i->shape().IsTuple() ? (i->shape().tuple_size() ? i->shape().element(0) : i->shape()) : i->shape();
    if (result.IsArray()) elements = result.num_elements();
    if (i->op() == Op::Reduce) {
      elements = i->operand(0)->shape().num_elements();
      per_element = i->operand_count() / 2;
    } else if (i->op() == Op::Dot) {
      per_element = 2;
      for (int64_t d : i->attrs<DotAttrs>().lhs_contracting)
        per_element = SaturatingMultiply(per_element, i->operand(0)->shape().dim(d));
    } else if (i->op() == Op::Convolution) {
      const int64_t features = std::max<int64_t>(
          1, i->operand(1)->shape().dim(i->attrs<ConvolutionAttrs>().dim_labels.kernel_output_feature));
      per_element = SaturatingMultiply(2, i->operand(1)->shape().num_elements() / features);
    } else if (i->op() == Op::ReduceWindow) {
      per_element = 1;
      for (const WindowDim& w : i->attrs<WindowAttrs>().window.dims)
        per_element = SaturatingMultiply(per_element, w.size);
    } else if (i->op() == Op::Map) {
      per_element = i->called(0)->instruction_count();
    } else if (i->op() == Op::While) {
      if (const auto loop = FindPositionwiseLoop(*i)) {
        elements = loop->elements;
        per_element = SaturatingMultiply(loop->trips, loop->instructions);
      }
    }
    cost.flops = SaturatingAdd(cost.flops, SaturatingMultiply(per_element, elements));
  }
  return cost;
}

}  // namespace strop
