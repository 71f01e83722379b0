#include "strop/plan/fusion_cost.h"

#include <algorithm>

#include "strop/analysis/pairwise.h"
#include "strop/ir/contraction.h"

namespace strop::plan_internal {
namespace {

constexpr int64_t kMinRow = 64, kMaxRow = 16384;  // elements of a row whose reduction is part of a kernel over it
constexpr int64_t kTurned = 2;                    // times that it takes to read what is transposed
constexpr int64_t kFewParts = 4;                  // of a concatenation that several kernels compute
constexpr int64_t kMostWritten = 4;               // elements for one that is sliced, and so many at least
constexpr int64_t kLeastWritten = 1024;
constexpr int64_t kShortRun = 64, kShortRunOfMany = 1024;  // bytes that come from one of two parts, or of more
constexpr int64_t kLeastPart = int64_t{1} << 16;           // bytes of what gets a kernel of its own
constexpr int64_t kLeastStack = int64_t{1} << 11;          // the same of a stack
constexpr size_t kMostOperands = 512;                      // that are looked at

}  // namespace

// (Kernels end where they did before quotients by constants became products: a mean is computed once a row, not again
// wherever it is subtracted.)
Cost CostOf(const Instruction& i) {
  if (IsQuotient(i)) return Cost::Expensive;
  switch (i.op()) {
    case Op::Constant:
    case Op::Iota:
    case Op::Broadcast:
    case Op::Reshape:
    case Op::Bitcast:
    case Op::Parameter:
    case Op::Slice:
    case Op::Transpose:
    case Op::Reverse: return Cost::Free;
    case Op::Remainder:
    case Op::Gather:
    case Op::Clz:
    case Op::Mulhi:
    case Op::Reduce:
    case Op::Dot:
    case Op::StochasticConvert: return Cost::Expensive;
    case Op::Concatenate: return i.operand_count() <= kFewParts ? Cost::Cheap : Cost::Expensive;
    case Op::Multiply: return IsComplex(i.shape().type()) ? Cost::Expensive : Cost::Cheap;
    default: return Is(i.op(), kFloatMath) ? Cost::Expensive : Cost::Cheap;
  }
}

bool IsInlinable(const Instruction& i) {
  if (!i.shape().IsArray() || i.HasControlEdges()) return false;
  switch (i.op()) {
    case Op::Constant: return i.shape().num_elements() == 1;
    case Op::Iota:
    case Op::Broadcast:
    case Op::Reshape:
    case Op::Transpose:
    case Op::Slice:
    case Op::Pad:
    case Op::Concatenate:
    case Op::Reverse:
    case Op::DynamicSlice:
    case Op::Gather:
    case Op::BitcastConvert: return true;
    case Op::Reduce: return IsShortReduce(i);
    default: return IsElementwise(i.op());
  }
}

bool IsMadeFromNothing(const Instruction& i) {
  switch (i.op()) {
    case Op::Constant: return i.shape().IsArray() && i.shape().num_elements() == 1;
    case Op::Iota: return true;
    case Op::Broadcast:
    case Op::Reshape: return IsMadeFromNothing(*i.operand(0));
    default: return false;
  }
}

bool IsRowReduce(const Instruction& i) {
  if (i.op() != Op::Reduce || !i.shape().IsArray() || i.shape().rank() == 0) return false;
  if (i.HasControlEdges()) return false;
  const Shape& operand = i.operand(0)->shape();
  const int64_t last = operand.rank() - 1;
  if (i.dimensions().size() != 1 || i.dimensions()[0] != last) return false;
  return operand.dim(last) >= kMinRow && operand.dim(last) <= kMaxRow;
}

bool SpreadsAlongRows(const Instruction& i) {
  if (i.op() != Op::Broadcast) return false;
  const Dims& to = i.dimensions();
  const int64_t rank = i.shape().rank();
  if (static_cast<int64_t>(to.size()) != rank - 1 || to.empty()) return false;
  for (int64_t d = 0; d + 1 < rank; ++d)
    if (to[static_cast<size_t>(d)] != d) return false;
  return i.shape().dim(rank - 1) >= kMinRow && i.shape().dim(rank - 1) <= kMaxRow;
}

int64_t PaddingFactor(const Instruction& user, int64_t k) {
  if (user.op() != Op::Pad || k != 0) return 1;
  const int64_t in = std::max<int64_t>(user.operand(0)->shape().num_elements(), 1);
  return std::max<int64_t>(1, (user.shape().num_elements() + in / 2) / in);
}

bool ReadsPart(Op op) {
  switch (op) {
    case Op::Slice:
    case Op::DynamicSlice:
    case Op::Gather:
    case Op::Pad:
    case Op::Concatenate:
    case Op::DynamicUpdateSlice: return true;
    default: return false;
  }
}

bool CrossesParts(const Instruction& slice, const Instruction& joined) {
  const bool dynamic = slice.op() == Op::DynamicSlice, concatenates = joined.op() == Op::Concatenate;
  if ((!dynamic && slice.op() != Op::Gather) || (!concatenates && joined.op() != Op::Pad)) return false;
  const Shape& from = joined.shape();
  if (slice.operand(0) != &joined || from.num_elements() < kLeastWritten ||
      SaturatingMultiply(slice.shape().num_elements(), kMostWritten) < from.num_elements())
    return false;
  const Dims& sizes = dynamic ? slice.attrs<DynamicSliceAttrs>().sizes : slice.attrs<GatherAttrs>().slice_sizes;
  // Elements that are gathered one by one ask all parts each, which is more than to write them where they are as many.
  if (concatenates && joined.operand_count() > 2 && slice.shape().num_elements() >= from.num_elements() &&
      std::ranges::all_of(sizes, [](int64_t size) { return size == 1; }))
    return true;
  const int64_t element = Bytes(from.type());
  // Each run chooses between two parts, or by several conditions.
  const int64_t short_run = concatenates && joined.operand_count() > 2 ? kShortRunOfMany : kShortRun;
  int64_t run = 1;
  for (int64_t d = from.rank(); d-- > 0; run = SaturatingMultiply(run, sizes[d])) {
    const bool joins = concatenates ? joined.dimensions()[0] == d
                                    : joined.attrs<PadAttrs>().padding[static_cast<size_t>(d)] != PaddingDim{};
    if (!joins || sizes[d] == 1 || sizes[d] == from.dim(d)) continue;
    // Single elements are vectors under a mask, which short ones may not have.
    if (run == 1 ? element < 4 : SaturatingMultiply(run, element) < short_run) return true;
  }
  return false;
}

bool JoinsShortRuns(const Instruction& i) {
  if (i.op() != Op::Concatenate || i.operand_count() <= 2) return false;
  const int64_t dimension = i.dimensions()[0];
  int64_t inner = Bytes(i.shape().type());
  for (int64_t d = dimension + 1; d < i.shape().rank(); ++d) inner = SaturatingMultiply(inner, i.shape().dim(d));
  return std::ranges::any_of(i.operands(), [&](const Instruction* part) {
    return SaturatingMultiply(inner, part->shape().dim(dimension)) < kShortRun;
  });
}

namespace {

// Does it read runs shorter than a vector in another order, of large parts?
bool ReadsShortRuns(const Instruction& moved, const Instruction& joined) {
  if (moved.op() != Op::Transpose && moved.op() != Op::Reverse) return false;
  const Shape& shape = moved.shape();
  const int64_t element = Bytes(shape.type());
  int64_t behind = element, run = element;  // of a part's place along the dimension; as in memory
  for (int64_t d = joined.dimensions()[0]; d < shape.rank(); ++d) behind = SaturatingMultiply(behind, shape.dim(d));
  for (int64_t d = shape.rank(); d-- > 0; run = SaturatingMultiply(run, shape.dim(d)))
    if (moved.op() == Op::Transpose ? moved.dimensions()[d] != d : Contains(moved.dimensions(), d)) break;
  return behind >= kLeastPart && run < kShortRun && run > element;
}

}  // namespace

bool ReordersShortRuns(const Instruction& moved, const Instruction& joined) {
  constexpr int64_t kFewest = 3;
  if (joined.op() != Op::Concatenate || !ReadsShortRuns(moved, joined)) return false;
  const auto reads = [&](const Instruction* i) { return ReadsShortRuns(*i, joined); };
  return std::ranges::count_if(joined.operands(), reads) >= kFewest;
}

bool JoinsOnePieces(const Instruction& i, int64_t least_bytes) {
  if (i.op() != Op::Concatenate || i.operand_count() < 2 || !i.shape().IsStatic()) return false;
  for (int64_t d = 0; d < i.dimensions()[0]; ++d)
    if (i.shape().dim(d) != 1) return false;
  return std::ranges::all_of(i.operands(), [&](const Instruction* part) {
    return part->shape().byte_size() >= least_bytes && part->shape().layout_or_default().IsRowMajor();
  });
}

bool JoinsStacks(const Instruction& i) {
  const auto is_stack = [](const Instruction* part) {
    while (part->op() == Op::Reshape) part = part->operand(0);
    return JoinsShortRuns(*part) && part->dimensions()[0] > 0;
  };
  return JoinsOnePieces(i, kLeastStack) && std::ranges::count_if(i.operands(), is_stack) >= 2;
}

bool IsComputedByParts(const Instruction& i) {
  if (JoinsStacks(i)) return i.parent() == i.parent()->module()->entry();
  if (!JoinsOnePieces(i, kLeastPart) || i.parent() != i.parent()->module()->entry()) return false;
  int64_t computed = 0, apart = 0;
  for (const Instruction* part : i.operands()) {
    const Instruction* by = part;
    while (by->op() == Op::Reshape || by->op() == Op::Bitcast) by = by->operand(0);
    if (by->IsParameter() || by->IsConstant() || by->op() == Op::GetTupleElement) continue;
    computed += part->shape().byte_size();
    if (!IsInlinable(*by) || ReadsShortRuns(*by, i)) apart += part->shape().byte_size();
  }
  return 2 * computed >= i.shape().byte_size() && 2 * apart >= computed;
}

int64_t RepeatFactor(const Instruction& user, int64_t k) {
  const int64_t in = std::max<int64_t>(user.operand(k)->shape().num_elements(), 1);
  switch (user.op()) {
    case Op::Pad: return PaddingFactor(user, k);
    case Op::Broadcast:
    case Op::Gather:
    case Op::DynamicSlice:
    case Op::DynamicUpdateSlice:
      if (user.op() == Op::DynamicUpdateSlice && k == 1) return 1;
      return std::max<int64_t>(1, user.shape().num_elements() / in);
    case Op::ReduceWindow: {
      int64_t n = 1;
      for (const WindowDim& d : user.attrs<WindowAttrs>().window.dims)
        n = SaturatingMultiply(n, std::max<int64_t>(d.size, 1));
      return n;
    }
    case Op::Dot: {
      int64_t reads = user.shape().num_elements();
      for (int64_t d : user.attrs<DotAttrs>().lhs_contracting)
        reads = SaturatingMultiply(reads, std::max<int64_t>(user.operand(0)->shape().dim(d), 1));
      return std::max<int64_t>(1, reads / in);
    }
    case Op::Clamp:
    case Op::Select:  // scalar bounds and predicates
      return std::max<int64_t>(1, user.shape().num_elements() / in);
    default: return 1;
  }
}

int64_t BytesRead(const Instruction& i) {
  struct Read {
    const Instruction* of;
    int64_t elements, times;
  };
  std::vector<Read> stack = {{&i, i.shape().num_elements(), 1}};
  std::vector<const Instruction*> seen;
  int64_t bytes = 0;
  while (!stack.empty()) {
    const auto [at, elements, times] = stack.back();
    stack.pop_back();
    const bool is_computed = at == &i || (at->use_count() == 1 && IsInlinable(*at) && CostOf(*at) != Cost::Expensive);
    if (!is_computed && at->shape().IsArray()) {
      const int64_t read = std::min(elements, at->shape().num_elements());
      bytes = SaturatingAdd(bytes, SaturatingMultiply(read, times * Bytes(at->shape().type())));
    }
    for (int64_t k = 0; is_computed && k < at->operand_count() && seen.size() < kMostOperands; ++k) {
      const Instruction* o = at->operand(k);
      if (IsMadeFromNothing(*o) || std::find(seen.begin(), seen.end(), o) != seen.end()) continue;
      seen.push_back(o);
      stack.push_back({o, std::min(elements, at->shape().num_elements()), at->op() == Op::Transpose ? kTurned : times});
    }
  }
  return bytes;
}

}  // namespace strop::plan_internal
