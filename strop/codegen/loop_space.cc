#include "strop/codegen/loop_space.h"

#include <algorithm>
#include <climits>
#include <map>

#include "strop/analysis/combiner.h"
#include "strop/analysis/cost.h"
#include "strop/analysis/pairwise.h"
#include "strop/analysis/positionwise_loop.h"
#include "strop/codegen/critical_path.h"
#include "strop/codegen/dim_groups.h"
#include "strop/codegen/element.h"
#include "strop/codegen/loop_cuts.h"
#include "strop/codegen/loop_groups.h"

namespace strop {
namespace {

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

constexpr int kStrips = 4;             // vectors at a time of a reduction
constexpr int kFarStrips = 16;         // at most, of columns that come from memory
constexpr int64_t kShortElement = 16;  // of code: vectors that are not full cost little

// So many vectors along the last factors, merged until they fill one; or shorter vectors along rows of `least_row` and
// more, which in merged ones would be read lane by lane.
void VectorizeRows(LoopSpace& space, Int64Vector& sizes, int strips, int least_row = INT_MAX) {
  const int least = std::min(least_row, space.lanes);
  while (sizes.size() > 1 && sizes.back() < least) MergeLast(sizes);
  if (sizes.back() >= strips * space.lanes)
    space.lanes *= strips;
  else if (sizes.back() >= kStrips * space.lanes && strips > 1)
    space.lanes *= kStrips;
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

// How many vectors of sums of columns are added up at a time: those of a whole row, if half of the registers hold them
// and rows come from memory, which then is read from end to end.
int StripsOfColumns(const KernelBody& body, int vector_bytes, const LoopSpace& space, const Int64Vector& sizes) {
  constexpr int64_t kFarBytes = int64_t{4} << 20, kFewestTasks = 16;
  const Instruction* root = body.roots[0];
  if (body.roots.size() != 1 || root->op() != Op::Reduce || root->operand_count() != 2) return kStrips;
  const int64_t row = sizes.back(), most = vector_bytes >= 64 ? kFarStrips : kFarStrips / 2;
  const bool far = BytesAccessed(*body.kernel) >= kFarBytes, many = root->shape().num_elements() >= kFewestTasks * row;
  const bool plain = CodeOf(body) <= kShortElement / 4 && Bits(root->operand(0)->shape().type()) == 32;
  const bool fits = row == RoundDownToPowerOfTwo(row) && row > kStrips * space.lanes && row <= most * space.lanes;
  return far && plain && many && fits ? static_cast<int>(row / space.lanes) : kStrips;
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

// Is an array read whose elements have at most so many bits?
bool ReadsShort(const KernelBody& body, int bits) {
  return std::ranges::any_of(body.inputs, [&](const Instruction* i) {
    return i->shape().IsArray() && i->shape().rank() > 0 && Bits(i->shape().type()) <= bits;
  });
}

// Are integers reduced that are read as one or two bytes, without choosing places?
bool ReducesBytes(const KernelBody& body) {
  return ReadsShort(body, 16) && std::ranges::all_of(body.roots, [](const Instruction* root) {
           return root->op() == Op::Reduce && root->operand_count() == 2 &&
                  !IsFloat(root->operand(0)->shape().type()) && !IsComplex(root->operand(0)->shape().type());
         });
}

// Are floats of four bytes or more summed, multiplied, or the greatest or least taken of them, without a place? What
// takes long to compute is computed for whole vectors.
bool FoldsFloats(const KernelBody& body) {
  return CodeOf(body) <= kShortElement && std::ranges::all_of(body.roots, [](const Instruction* root) {
           if (root->op() != Op::Reduce || root->operand_count() != 2) return false;
           const ElementType type = root->operand(0)->shape().type();
           return IsFloat(type) && Bits(type) >= 32 && RecognizeCombiner(*root->called(0)).reorderable;
         });
}

// Of rows that are reduced, is a lane a row, read at distances, rather than an element of it? Where they fill no
// vector; where lanes that are combined at the end of each are more work than rows that are dealt out, or read one by
// one: choices of one element, which compare and select values and places at each step, of rows that leave much of
// their last vector empty others as well. Longer sums are added in an order of their own, which must not change. More
// than a few bytes are combined sooner than dealt out, if they are not chosen from.
bool LanesAreRows(const KernelBody& body, int64_t lanes, int64_t row_size) {
  constexpr int64_t kMostOfChoice = 64, kFewestVectors = 4, kMostBytes = 6, kMostBytesOfMany = 12;
  if (lanes <= 1) return false;  // (a GPU's code has none)
  const int64_t most_bytes = lanes >= 64 ? kMostBytesOfMany : kMostBytes;
  if (row_size < lanes) return row_size <= most_bytes || !ReducesBytes(body);
  int64_t most = kMostOfChoice;
  for (const Instruction* root : body.roots) {
    if (root->op() != Op::Reduce) continue;
    const ElementType type = root->operand(0)->shape().type();
    const LaneCombiner combiner = RecognizeCombiner(*root->called(0));
    const bool sums = combiner.op == Op::Add || combiner.op == Op::Multiply;
    if (!combiner.reorderable || (sums && IsFloat(type)) || IsComplex(type) || ReducesBytes(body)) return false;
    if (root->operand(0)->shape().num_elements() < kFewestVectors * lanes * row_size) return false;
    if (root->operand_count() > 2) continue;
    if (row_size % lanes != 0 && ReducesNeighbours(*root)) continue;
    if (row_size % lanes == 0 || FoldsFloats(body)) return false;
    most = std::min(most, 3 * lanes / 2 - 1);
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

// Is something cut out of rows, joined of parts, or padded, along its last dimension?
bool MovesWithinRows(const KernelBody& body) {
  return std::ranges::any_of(body.Computed(), [&](const Instruction* i) {
    const int64_t last = i->shape().IsArray() ? i->shape().rank() - 1 : -1;
    if (last < 0 || i->shape().dim(last) == 1) return false;
    if (i->op() == Op::Concatenate) return i->dimensions()[0] == last;
    if (i->op() == Op::Slice)
      return i->shape().dim(last) != i->operand(0)->shape().dim(last) &&
             i->shape().num_elements() > i->shape().dim(last);
    return i->op() == Op::Pad && i->attrs<PadAttrs>().padding[static_cast<size_t>(last)] != PaddingDim{};
  });
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
    // In a region rows are kept where parts begin and end inside of them: lanes of several rows would each ask for
    // theirs. (Not where rows fill a vector of words: each lane has a place in them that is known.)
    constexpr int64_t kLeastPart = 4, kLeastPartOfBytes = 6;
    const bool words = 4 * space.lanes <= vector_bytes;
    const bool keeps_parts = !by_period && !columns && !trips && MovesWithinRows(body) &&
                             (words ? space.lanes % sizes.back() != 0 : sizes.back() >= kLeastPartOfBytes);
    if (((!columns && !trips) || groups) && (words || !keeps_parts)) Interleave(body, space, sizes);
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
    const bool deals_bytes = reduce != body.roots.end() && ReadsShort(body, 8);
    // Some elements of each row, where a lane is a row, are all there at once: more lanes at a time are only more code.
    constexpr int64_t kFewestOfRow = 8, kMostOfRow = 32;
    const int64_t of_row =
        reduce == body.roots.end() || by_point(**reduce)
            ? 0
            : (*reduce)->operand(0)->shape().num_elements() / std::max<int64_t>(body.ElementsOf(0), 1);
    const bool far_rows = of_row >= kFewestOfRow && of_row <= kMostOfRow;
    const bool in_strips = columns && space.interleaved == 1 && !neighbours && !all_short && !deals_bytes && !far_rows;
    const bool short_element = CodeOf(body) <= kShortElement || GathersRows(body, sizes.back());
    const bool keeps_rows = by_period && !columns && !trips && space.interleaved == 1 && short_element;
    constexpr int kLeastRow = 8;
    const bool pads_rows = !columns && !trips && PadsBetweenRows(body, sizes.back());
    const int least_row = (keeps_parts || pads_rows) && space.interleaved == 1 ? std::min<int>(kLeastPart, space.lanes)
                          : keeps_rows                                         ? std::min(kLeastRow, space.lanes / 2)
                                                                               : INT_MAX;
    const bool alone = in_strips && by_period;
    const int strips = alone ? StripsOfColumns(body, vector_bytes, space, sizes) : in_strips || trips ? kStrips : 1;
    VectorizeRows(space, sizes, strips, least_row);
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
  constexpr int kLeastRow = 2;  // which is written no slower than its elements would be one by one
  VectorizeRows(space, sizes, 1, CodeOf(body) <= kShortElement ? kLeastRow : INT_MAX);
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
