// A large reduction to few elements is made two, so that its operand is read in contiguous pieces, by all threads:
//
//   %s = f32[2048] reduce(f32[65536,2048] %x, %zero), dimensions={0}
//   ->
//   %pieces = f32[64,1024,2048] reshape(%x)
//   %partial = f32[64,2048] reduce(%pieces, %zero), dimensions={1}
//   %s = f32[2048] reduce(%partial, %zero), dimensions={0}
//
// Rows that are shorter than vectors are summed several at a time:
//
//   %s = f32[4] reduce(f32[1000000,4] %x, %zero), dimensions={0}
//   ->
//   %partial = f32[50,16,4] reduce(f32[50,1250,16,4] reshape(%x), %zero), dimensions={1}
//   %s = f32[4] reduce(%partial, %zero), dimensions={0,1}
//
// So are rows of bytes and halves in smaller arrays, where no order counts; what is left of the rows is reduced by
// itself:
//
//   %s = s8[7] reduce(s8[3001,7] %x, %low), dimensions={0}, to_apply=%max
//   ->
//   %partial = s8[32,7] reduce(s8[93,32,7] reshape(slice(%x)), %low), dimensions={0}
//   %s = s8[7] maximum(reduce(%partial, %low), reduce(s8[25,7] slice(%x), %low)), dimensions={0}
//
// Rows that the operand tells apart (it broadcasts something along them, gathers each from another place, slices, pads
// or reverses them: strop/analysis/rows_told_apart.h) are summed each by itself: a vector across two rows would gather
// what it reads. In small arrays, rows of whole vectors are not.
//
//   %s = f32[] reduce(multiply(f32[128,51] %x, broadcast(f32[128] %w), dimensions={0}), %zero), dimensions={0,1}
//   ->
//   %partial = f32[128] reduce(.., %zero), dimensions={1}
//   %s = f32[] reduce(%partial, %zero), dimensions={0}
//
// A dimension in front, and a short last one, are reduced one after the other (means of groups of channels): all
// columns of rows first, a vector at a time, where an element at a time would be gathered.
//
//   %s = f32[2,8] reduce(f32[2,3136,8,8] %x, %zero), dimensions={1,3}
//   ->
//   %partial = f32[2,8,8] reduce(%x, %zero), dimensions={1}
//   %s = f32[2,8] reduce(%partial, %zero), dimensions={2}
//
// The pieces follow from the program alone, so that the order of a sum does. The initial value is combined once a
// piece: it must be the combiner's identity, or the combiner one that does not count. An argmax combines its pieces in
// order.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "strop/analysis/combiner.h"
#include "strop/analysis/cost.h"
#include "strop/analysis/pairwise.h"
#include "strop/analysis/rows_told_apart.h"
#include "strop/ir/builder.h"
#include "strop/ir/contraction.h"
#include "strop/passes/part_of.h"
#include "strop/passes/partial_reduction.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

constexpr int64_t kMinBytes = int64_t{1} << 20;      // that are read: what is less is not worth a second kernel
constexpr int64_t kPieceBytes = int64_t{256} << 10;  // a task, of which there are some at least
constexpr int64_t kSomePieces = 8;
constexpr int64_t kBytesOfElement = 2;    // at the least, however little is read
constexpr int64_t kMostOfElement = 8;     // two floats: what more is read, another kernel may have computed from
constexpr int64_t kBytesOfFunction = 24;  // that are read while exp, log and their like are computed
constexpr int64_t kMaxPieces = 64;
constexpr int64_t kMaxPiecesOfColumns = 1024;  // a piece stays in the cache while its columns are walked
constexpr int64_t kRowBytes = 256;             // several vectors
constexpr int64_t kRowsAtATime = 8;  // of which pieces of columns are multiples, so that some can be summed at once
constexpr int64_t kMinLength = 32;  // elements that a piece combines: partial results are so much less than the operand

bool IsZeroOrOne(const Instruction& initial, int64_t wanted) {
  if (initial.op() != Op::Constant) return false;
  const Literal& value = initial.literal();
  if (IsComplex(value.type())) return value.GetComplex(0) == static_cast<double>(wanted);
  return IsFloat(value.type()) ? value.GetDouble(0) == static_cast<double>(wanted) : value.GetInt(0) == wanted;
}

// Does it tell positions along the reduced dimension?
bool CountsAlong(const Instruction& i, int64_t dimension) {
  if (i.op() == Op::Iota) return i.attrs<IotaAttrs>().dimension == dimension;
  if (i.op() != Op::Broadcast || i.operand(0)->op() != Op::Iota) return false;
  const Dims& to = i.dimensions();
  return to[static_cast<size_t>(i.operand(0)->attrs<IotaAttrs>().dimension)] == dimension;
}

// May its pieces be combined with each other in order?
bool IsSplittable(const Instruction& reduce) {
  const int64_t inputs = reduce.operand_count() / 2;
  const LaneCombiner combiner = RecognizeCombiner(*reduce.to_apply());
  if (!combiner.reorderable) return false;
  if (inputs > 1) {
    if (combiner.op != Op::kEnd || reduce.dimensions().size() != 1) return false;
    for (int64_t k = 0; k < inputs; ++k)
      if (CountsAlong(*reduce.operand(k), reduce.dimensions()[0])) return true;
    return false;
  }
  const ElementType type = reduce.operand(0)->shape().type();
  switch (combiner.op) {
    case Op::Minimum:
    case Op::Maximum:
    case Op::And:
    case Op::Or: return true;
    // Small floats are summed in f32 and rounded once.
    case Op::Add: return !(IsFloat(type) && Bits(type) < 32) && IsZeroOrOne(*reduce.operand(1), 0);
    case Op::Multiply: return !(IsFloat(type) && Bits(type) < 32) && IsZeroOrOne(*reduce.operand(1), 1);
    case Op::Xor: return IsZeroOrOne(*reduce.operand(1), 0);
    default: return false;
  }
}

// The outermost run of reduced dimensions, as one.
struct Outermost {
  int64_t first = 0, last = 0;  // dimensions [first, last)
  int64_t before = 1;           // elements of the dimensions in front of it
  int64_t size = 1;
  int64_t behind = 1;
};

Outermost OutermostOf(const Instruction& reduce) {
  const Shape& operand = reduce.operand(0)->shape();
  std::vector<bool> reduced(static_cast<size_t>(operand.rank()), false);
  for (int64_t d : reduce.dimensions()) reduced[static_cast<size_t>(d)] = true;
  Outermost run;
  int64_t d = 0;
  for (; d < operand.rank() && !reduced[static_cast<size_t>(d)]; ++d) run.before *= operand.dim(d);
  run.first = d;
  for (; d < operand.rank() && reduced[static_cast<size_t>(d)]; ++d) run.size *= operand.dim(d);
  run.last = d;
  for (; d < operand.rank(); ++d) run.behind *= operand.dim(d);
  return run;
}

// The bytes that it reads, in which what is computed of them element by element is counted as well.
int64_t BytesOf(const Instruction& reduce) {
  constexpr size_t kMost = 64;  // instructions that are looked at
  std::vector<const Instruction*> found;
  std::unordered_set<const Instruction*> seen;
  const auto find = [&](const Instruction* i) {
    if (i->shape().IsArray() && seen.insert(i).second) found.push_back(i);
  };
  for (int64_t k = 0; k < reduce.operand_count() / 2; ++k) find(reduce.operand(k));
  int64_t bytes = 0, functions = 0;
  for (size_t n = 0; n < found.size(); ++n) {
    const Instruction& i = *found[n];
    if (i.op() == Op::Iota || i.op() == Op::Constant) continue;
    const bool computed = IsElementwise(i.op()) || i.op() == Op::Reshape || i.op() == Op::Broadcast;
    if (!computed || n >= kMost) {
      bytes = SaturatingAdd(bytes, i.shape().byte_size());
      continue;
    }
    functions = SaturatingAdd(functions, SaturatingMultiply(Transcendentals(i), kBytesOfFunction));
    for (const Instruction* operand : i.operands()) find(operand);
  }
  const int64_t elements = reduce.operand(0)->shape().num_elements();
  bytes =
      std::clamp(bytes, SaturatingMultiply(elements, kBytesOfElement), SaturatingMultiply(elements, kMostOfElement));
  return SaturatingAdd(bytes, functions);
}

// As many pieces as are worth it; 1 where splitting gains nothing.
int64_t MostPieces(const Instruction& reduce, const Outermost& run) {
  const int64_t bytes = BytesOf(reduce), row = run.behind * Bytes(reduce.operand(0)->shape().type());
  const bool long_rows = run.behind > 1 && row >= kRowBytes;  // several sums are under way at once
  if (bytes < (long_rows ? 2 * kMinBytes : kMinBytes) || reduce.operand(0)->shape().num_elements() == 0) return 1;
  const int64_t pieces = std::min({run.behind > 1 ? kMaxPiecesOfColumns : kMaxPieces,
                                   std::max(bytes / kPieceBytes, kSomePieces), run.size / kMinLength});
  return std::max<int64_t>(pieces / run.before, 1);
}

// Pieces of equal size, about so many: as many as divide the run, or the first of its dimensions; 1 if there are none.
int64_t EqualPieces(const Instruction& reduce, const Outermost& run, int64_t most) {
  int64_t pieces = most;
  while (pieces > 1 && run.size % pieces != 0) --pieces;
  int64_t before = 1;
  for (int64_t d = run.first; d < run.last && 2 * pieces < most; ++d) {
    before *= reduce.operand(0)->shape().dim(d);
    if (2 * before >= most && run.size / before >= kMinLength) return before;
  }
  return pieces;
}

// Rows of a sum over several dimensions that are told apart, and neither parts of a vector nor, in small arrays, whole
// vectors: how many; 1 if it is not so.
int64_t SeparateRows(const Instruction& reduce, const Outermost& run) {
  constexpr int64_t kVector = 16, kMinRow = 32, kMinElements = 512;
  constexpr int64_t kManyElements = 128 << 10;  // from here on threads share the rows
  if (reduce.operand_count() != 2 || run.behind != 1 || run.last - run.first < 2 || run.size < kMinElements) return 1;
  const bool many = run.before * run.size >= kManyElements;
  for (int64_t row : RowsToldApart(*reduce.operand(0))) {
    if (row == 0 || row >= run.size || run.size % row != 0) return 1;
    if (kVector % row != 0 && (row % kVector != 0 || (many && row >= kMinRow))) return run.size / row;
  }
  return 1;
}

// How many rows of a piece are one to the partial reduction.
int64_t RowsAtATime(const Instruction& reduce, const Outermost& run, int64_t pieces) {
  const bool only_run = static_cast<int64_t>(reduce.dimensions().size()) == run.last - run.first;
  if (reduce.operand_count() != 2 || run.behind == 1 || !only_run) return 1;
  const Shape& operand = reduce.operand(0)->shape();
  const int64_t least = Bits(operand.type()) < 32 ? 2 * kMinBytes : kMinBytes;  // narrow ones are dealt to many lanes
  if (operand.byte_size() < least || operand.num_elements() == 0) return 1;
  const int64_t row = run.behind * Bytes(operand.type()), length = run.size / pieces;
  int64_t rows = 1;
  while (2 * rows * row <= kRowBytes && length % (2 * rows) == 0 && length / (2 * rows) >= kMinLength) rows *= 2;
  return rows;
}

// How many rows of bytes or halves, whose columns are combined in any order, are one; 1 if they are long or few.
int64_t NarrowRows(const Instruction& reduce, const Outermost& run) {
  constexpr int64_t kLeastBytes = int64_t{16} << 10, kLongRow = 64, kLeastTrips = 8;
  const Shape& operand = reduce.operand(0)->shape();
  if (reduce.operand_count() != 2 || run.first != 0 || run.behind == 1 || !reduce.shape().IsArray()) return 1;
  if (static_cast<int64_t>(reduce.dimensions().size()) != run.last || IsComplex(operand.type())) return 1;
  const int64_t element = Bytes(operand.type()), row = run.behind * element;
  if (element > 2 || row >= kLongRow || operand.byte_size() < kLeastBytes || operand.byte_size() >= kMinBytes) return 1;
  int64_t rows = 1;
  while (2 * rows * row <= kRowBytes) rows *= 2;
  return run.size / rows < kLeastTrips ? 1 : rows;
}

// The operands of a computation in pieces, as they were made: reductions of the same one share it.
using Pieces = std::unordered_map<const Instruction*, std::vector<Instruction*>>;

Instruction* InPieces(Builder& b, Instruction* operand, const Int64Vector& dims, Pieces& made) {
  std::vector<Instruction*>& of_operand = made[operand];
  for (Instruction* reshape : of_operand)
    if (reshape->shape().dims() == dims) return reshape;
  Instruction* reshape = b.Reshape(operand, dims);
  if (reshape) of_operand.push_back(reshape);
  return reshape;
}

// Products are added by the first step now.
void MoveContractionMark(Instruction& whole, std::initializer_list<Instruction*> steps) {
  FrontendAttributes attributes = whole.frontend_attributes();
  const auto mark = attributes.find(kContractionMark);
  if (mark == attributes.end()) return;
  for (Instruction* step : steps)
    if (step->operand(0)->op() == Op::Multiply) step->set_frontend_attribute(kContractionMark, mark->second);
  attributes.erase(mark);
  whole.set_frontend_attributes(std::move(attributes));
}

// [.., run, ..] -> [.., pieces, size / pieces, ..] or [.., pieces, size / pieces / rows, rows, ..], one piece without a
// dimension of its own, and what is reduced of it. Other dimensions are reduced with the run, or (`others_later`) with
// what is left of it.
void Split(Instruction& reduce, const Outermost& run, int64_t pieces, int64_t rows, Pieces& made,
           bool others_later = false) {
  Builder b(reduce.parent());
  b.set_insert_before(&reduce);
  if (reduce.has_metadata()) b.set_metadata(reduce.shared_metadata());
  const int64_t inputs = reduce.operand_count() / 2;
  std::vector<Instruction*> operands, partial;
  for (int64_t k = 0; k < 2 * inputs; ++k) {
    Instruction* operand = reduce.operand(k);
    if (k < inputs) {
      Int64Vector dims;
      for (int64_t d = 0; d < run.first; ++d) dims.push_back(operand->shape().dim(d));
      if (pieces > 1) dims.push_back(pieces);
      dims.push_back(run.size / pieces / rows);
      if (rows > 1) dims.push_back(rows);
      for (int64_t d = run.last; d < operand->shape().rank(); ++d) dims.push_back(operand->shape().dim(d));
      operand = InPieces(b, operand, dims, made);
    }
    operands.push_back(operand);
  }
  const int64_t along = run.first + (pieces > 1 ? 1 : 0);
  Dims inside{along}, left;
  if (pieces > 1) left.push_back(run.first);
  if (rows > 1) left.push_back(along);
  for (int64_t d : reduce.dimensions())  // of others, rows are one at a time
    if (d >= run.last) (others_later ? left : inside).push_back(d - run.last + along + (others_later ? 0 : 1));
  Computation* const called[] = {reduce.to_apply()};
  Instruction* first = b.Make(Op::Reduce, operands, DimensionsAttrs{inside}, called, nullptr);
  if (first) first->set_frontend_attribute(kPartialReduction, "true");
  for (int64_t k = 0; k < inputs; ++k) partial.push_back(inputs == 1 ? first : b.GetTupleElement(first, k));
  for (int64_t k = 0; k < inputs; ++k) partial.push_back(reduce.operand(inputs + k));
  Instruction* whole = b.Make(Op::Reduce, partial, DimensionsAttrs{left}, called, nullptr);
  if (!b.status().ok()) return;
  reduce.parent()->Replace(&reduce, whole);
  MoveContractionMark(*whole, {first});
}

// A reduction of the first elements, or rows, along the run, as many as are a multiple of `unit`, whose result is
// combined with that of what is left of them. Null: it could not be made.
Instruction* WithoutRest(Instruction& reduce, const Outermost& run, int64_t unit) {
  const int64_t whole = run.size - run.size % unit;
  if (whole == run.size) return &reduce;
  Builder b(reduce.parent());
  b.set_insert_before(&reduce);
  if (reduce.has_metadata()) b.set_metadata(reduce.shared_metadata());
  Instruction* operand = reduce.operand(0);
  Dims dims = reduce.dimensions();
  if (run.last - run.first > 1) {
    operand = b.Reshape(operand, {run.before, run.size, run.behind});
    dims = {1};
  }
  const int64_t along = run.last - run.first > 1 ? 1 : run.first;
  const auto reduced = [&](int64_t begin, int64_t end) -> Instruction* {
    PartsMade made;
    Instruction* part = PartOf(operand, along, begin, end, &reduce, made);
    return part ? b.Reduce(part, reduce.operand(1), dims, reduce.to_apply()) : nullptr;
  };
  Instruction *first = reduced(0, whole), *rest = reduced(whole, run.size);
  if (!first || !rest) return nullptr;
  Instruction* both = b.Make(RecognizeCombiner(*reduce.to_apply()).op, {first, rest});
  if (both && both->shape().dims() != reduce.shape().dims()) both = b.Reshape(both, reduce.shape().dims());
  if (!b.status().ok()) return nullptr;
  reduce.parent()->Replace(&reduce, both);
  MoveContractionMark(*both, {first, rest});
  return first;
}

// May a part of the run that makes no piece be reduced by itself?
bool HasRest(const Instruction& reduce, const Outermost& run) {
  return reduce.operand_count() == 2 && run.last - run.first == 1 && reduce.dimensions().size() == 1;
}

// Is a long dimension reduced in front of others that stay, and a short one behind them?
bool ReducesGroupsOfColumns(const Instruction& reduce, const Outermost& run) {
  constexpr int64_t kLongest = 128, kFewestElements = 4096;
  const Shape& operand = reduce.operand(0)->shape();
  if (reduce.operand_count() != 2 || operand.num_elements() < kFewestElements || run.size < kMinLength) return false;
  int64_t last = 1, d = operand.rank();
  for (; d > run.last && Contains(reduce.dimensions(), d - 1); --d) last *= operand.dim(d - 1);
  return last > 1 && last <= kLongest && d > run.last && run.behind > last;
}

// Combines what another reduction left: the second of two steps.
bool IsSecondStep(const Instruction& reduce) {
  const Instruction* operand = reduce.operand(0);
  if (operand->op() == Op::GetTupleElement) operand = operand->operand(0);
  return operand->frontend_attributes().contains(kPartialReduction);
}

struct ReductionSplitter final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t split = 0;
    for (Computation* c : module.PostOrder()) {
      Pieces made;
      for (Instruction* i : c->instructions()) {
        if (i->op() != Op::Reduce || !i->operand(0)->shape().IsArray() || !i->operand(0)->shape().IsStatic()) continue;
        if (IsSecondStep(*i) || ReducesPairsToGroups(*i)) continue;
        if (i->HasControlEdges()) continue;
        const Outermost run = OutermostOf(*i);
        if (const int64_t narrow = NarrowRows(*i, run); narrow > 1 && IsSplittable(*i)) {
          Instruction* first = WithoutRest(*i, run, narrow);
          if (!first) continue;
          Split(*first, OutermostOf(*first), 1, narrow, made);
          ++split;
          continue;
        }
        if (ReducesGroupsOfColumns(*i, run) && IsSplittable(*i)) {
          const int64_t most = std::min(BytesOf(*i) / kPieceBytes, run.size / kMinLength) / run.before;
          Split(*i, run, EqualPieces(*i, run, std::max<int64_t>(most, 1)), 1, made, /*others_later=*/true);
          ++split;
          continue;
        }
        const int64_t told_apart = SeparateRows(*i, run);
        const int64_t most = told_apart > 1 ? told_apart : MostPieces(*i, run);
        const int64_t pieces = told_apart > 1 ? told_apart : EqualPieces(*i, run, most);
        if (2 * pieces < most && HasRest(*i, run) && IsSplittable(*i)) {
          const int64_t together = run.behind > 1 ? kRowsAtATime : 1;
          int64_t uneven = most;
          while (uneven > 2 && run.size % (uneven * together) == 1) --uneven;  // a single one is not reduced
          Instruction* first = WithoutRest(*i, run, uneven * together);
          if (!first) continue;
          const Outermost of_first = OutermostOf(*first);
          Split(*first, of_first, uneven, RowsAtATime(*first, of_first, uneven), made);
          ++split;
          continue;
        }
        const int64_t rows = RowsAtATime(*i, run, pieces);
        if ((pieces == 1 && rows == 1) || !IsSplittable(*i)) continue;
        Split(*i, run, pieces, rows, made);
        ++split;
      }
    }
    context.Count("reduction-splitter.split", split);
    return split > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeReductionSplitter() { return std::make_unique<ReductionSplitter>(); }

}  // namespace strop
