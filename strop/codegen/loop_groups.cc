#include "strop/codegen/loop_groups.h"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>

#include "strop/codegen/critical_path.h"
#include "strop/codegen/dim_groups.h"
#include "strop/codegen/loop_cuts.h"

namespace strop {
namespace {

constexpr int64_t kMaxInterleaved = 16, kMaxStacked = 32;
constexpr int64_t kMaxInterleavedCode = 512;  // instructions, for all elements
constexpr int64_t kMaxStackedCode = 1024;     // of elements each of which is another part
constexpr int64_t kConditionCode = 16;        // of an operand that not all elements are read from
constexpr int64_t kFarCode = 12;              // of what lies so far apart in rows of an array that lanes are gathered
constexpr int64_t kMinInterleavedElements = 32;  // fewer are not worth the code
constexpr int64_t kMinInterleavedLanes = 4;      // shorter vectors save nothing over reads of every so manieth element

// The elements of a row that a part has, at most, where parts lie side by side within the last factor: which part has
// one of its `last` elements is known. So it is where single elements are stacked and other dimensions are in the
// factor, too: x0 y0 z0 x1 y1 z1, of stacks x and y and z. 0: no such concatenation.
int64_t WidthOfParts(const Instruction& i, int64_t last) {
  if (i.op() != Op::Concatenate) return 0;
  const int64_t dimension = i.dimensions()[0];
  int64_t inner = 1, width = 0;
  for (int64_t d = dimension + 1; d < i.shape().rank(); ++d) inner *= i.shape().dim(d);
  for (int64_t k = 0; k < i.operand_count(); ++k) width = std::max(width, i.operand(k)->shape().dim(dimension) * inner);
  int64_t around = i.shape().dim(dimension) * inner;
  for (int64_t d = dimension; width == 1 && around < last && d-- > 0;) around *= i.shape().dim(d);
  return around == last ? width : 0;
}

// Does a concatenation join what belongs to one of `points`, so that which part has an element of it is known?
bool JoinsWithinPoints(const Instruction& i, int64_t points) {
  int64_t before = 1;
  for (int64_t d = 0; d < i.dimensions()[0] && before < points; ++d) before *= i.shape().dim(d);
  return before == points;
}

// The instructions of one elementwise op: extremes of floats mind NaN, and divisions take long.
int64_t CodeOfPart(const Instruction& i) {
  constexpr int64_t kExtreme = 3, kDivision = 8;
  const bool floats = IsFloat(i.shape().type());
  if (floats && (i.op() == Op::Maximum || i.op() == Op::Minimum)) return kExtreme;
  return floats && (i.op() == Op::Divide || i.op() == Op::Sqrt) ? kDivision : CodeOf(i);
}

// Are the parts computed, rather than moved?
bool ComputesParts(const KernelBody& body, const Instruction& stack, int64_t last) {
  int64_t code = 0;
  for (const Instruction* i : body.Computed())
    if (IsElementwise(i->op()) && i->shape().num_elements() < stack.shape().num_elements()) code += CodeOfPart(*i);
  return code >= 2 * last;
}

// Is a part of the stack a stack itself, of single elements that are computed (a cross product)?
bool StacksParts(const KernelBody& body, const Instruction& stack, int64_t last) {
  const std::vector<const Instruction*> computed = body.Computed();
  return std::ranges::any_of(computed, [&](const Instruction* i) { return IsElementwise(i->op()); }) &&
         std::ranges::any_of(computed, [&](const Instruction* i) {
           return i != &stack && i->op() == Op::Concatenate &&
                  JoinsWithinPoints(*i, stack.shape().num_elements() / last) &&
                  i->dimensions()[0] == i->shape().rank() - 1 &&
                  i->operand_count() == i->shape().dim(i->dimensions()[0]);
         });
}

// A stack: parts of one element each, or computed ones that are shorter than a vector. (What is moved from places that
// lie at distances of several elements is moved faster as it lies.)
bool IsStack(const KernelBody& body, const Instruction& i, int64_t last, int lanes) {
  const int64_t width = WidthOfParts(i, last);
  return width == 1 || (width > 0 && width < lanes && (ComputesParts(body, i, last) || StacksParts(body, i, last)));
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
    return IsStack(body, *i, last, lanes) &&
           (Bytes(i->shape().type()) == 1 || ComputesParts(body, *i, last) || StacksParts(body, *i, last));
  });
}

// Are the elements those of an input, each of them some times?
bool OnlyRepeats(const KernelBody& body) {
  return std::ranges::all_of(body.Computed(), [](const Instruction* i) {
    return i->op() == Op::Broadcast || i->op() == Op::Reshape || i->op() == Op::Bitcast;
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
    const bool known = i->op() == Op::Concatenate && JoinsWithinPoints(*i, elements / last);
    if (i->op() == Op::Slice && i->operand(0)->shape().dims().back() > kMaxInterleaved) own += kFarCode;
    if ((i->op() == Op::Concatenate || i->op() == Op::Pad) && !known && !IsStack(body, *i, last, lanes))
      own += kConditionCode * i->operand_count();
    code = SaturatingAdd(code, SaturatingMultiply(own, times));
  }
  return code;
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

}  // namespace

int RoundDownToPowerOfTwo(int64_t n) {
  return static_cast<int>(std::bit_floor(static_cast<uint64_t>(std::clamp<int64_t>(n, 1, 1 << 30))));
}

bool GathersRows(const KernelBody& body, int64_t last) {
  constexpr int64_t kLeast = 8, kMostCode = 64;
  return last >= kLeast && CodeOf(body) <= kMostCode && std::ranges::any_of(body.Computed(), [&](const Instruction* i) {
           if (i->op() != Op::Gather || i->shape().rank() == 0) return false;
           const int64_t end = i->shape().rank() - 1;
           return i->shape().dim(end) == last && Contains(i->attrs<GatherAttrs>().offset_dims, end);
         });
}

bool IsAtKnownDistances(Op op) {
  return IsElementwise(op) || op == Op::Broadcast || op == Op::Slice || op == Op::Reverse || op == Op::Reshape ||
         op == Op::Bitcast || op == Op::Constant || op == Op::Iota || op == Op::Parameter || op == Op::GetTupleElement;
}

// Takes a last factor that is shorter than a vector, or stacked, out of the walk, if the one before fills vectors, be
// they short ones.
void Interleave(const KernelBody& body, LoopSpace& space, Int64Vector& sizes) {
  if (sizes.size() < 2 || space.lanes < 4) return;
  while (sizes.size() > 2 && sizes[sizes.size() - 2] < space.lanes &&
         sizes[sizes.size() - 2] * sizes.back() <= kMaxStacked &&
         HasStack(body, sizes[sizes.size() - 2] * sizes.back(), space.lanes)) {
    MergeLast(sizes);
  }
  const int64_t last = sizes.back(), before = sizes[sizes.size() - 2];
  const bool stack = HasStack(body, last, space.lanes) && before >= space.lanes;
  if (last > (stack ? kMaxStacked : kMaxInterleaved) || (last >= space.lanes && !stack)) return;
  if (GathersRows(body, last)) return;
  // An odd number of parts takes as many shuffles as its square, each of them several instructions where lanes are
  // short.
  constexpr int64_t kOddParts = 9;
  const bool shuffles = space.lanes == 16 || (space.lanes > 16 && !OnlyRepeats(body));
  const bool odd = last % 2 == 1 && last >= kOddParts && shuffles;
  if (odd && !StacksComputed(body, sizes, space.lanes)) return;
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

bool PadsBetweenRows(const KernelBody& body, int64_t last) {
  const InteriorPadding padding = FindInteriorPadding(body);
  return padding.pads > 0 && last > 1 && padding.behind % last == 0;
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

// How often something is put together, or padded.
int64_t Joins(const KernelBody& body) {
  const std::vector<const Instruction*> computed = body.Computed();
  return std::ranges::count_if(computed,
                               [](const Instruction* i) { return i->op() == Op::Concatenate || i->op() == Op::Pad; });
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
    MergeLast(sizes);
  }
  if (!ReadsAtDistances(body, sizes.back(), &conditions) || StacksComputed(body, sizes, space.lanes)) return;
  const int64_t last = sizes.back(), period = std::lcm<int64_t>(last, space.lanes), vectors = period / space.lanes;
  const int64_t at_a_time = VectorsAtATime(body, vector_bytes);
  int64_t rows = 1;
  for (size_t d = 0; d + 2 < sizes.size(); ++d) rows *= sizes[d];
  if (conditions && rows < kLeastRows) return;  // whose pieces would begin at places that are not known
  const bool row_by_row = vectors > kMostVectors || (at_a_time == 1 && vector_bytes >= kMaskedBytes);
  const bool mostly_full = 2 * last > space.lanes && vectors > kFewVectors && row_by_row;
  // Edges of several dimensions: of rows as they are, fewer vectors ask where they lie.
  if (mostly_full && conditions && Joins(body) > 1) return;
  if (mostly_full && !conditions) {
    space.period = space.lanes;
  } else if (vectors <= kMostVectors) {
    space.period = period * ((at_a_time + vectors - 1) / vectors);
    space.short_row = last;
    MergeLast(sizes);
  }
  space.whole_rows |= conditions && space.period > 0;
}

}  // namespace strop
