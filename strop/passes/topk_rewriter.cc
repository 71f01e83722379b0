// A sort of values, perhaps with their positions, of which only the first k are used is a topk, which is linear:
//
//   %s = sort(%x, iota), to_apply=greater, dimensions={last}         %t = topk(%x), k=8
//   slice(get-tuple-element(%s, 0)), slice=[0:8]               ->    get-tuple-element(%t, 0)
//   slice(get-tuple-element(%s, 1)), slice=[0:8]                     get-tuple-element(%t, 1)
//
// topk keeps the order of equal elements, so it serves stable sorts and others. Floats must be compared in total order,
// as topk does.
#include <algorithm>
#include <optional>
#include <vector>

#include "strop/analysis/scalar_pattern.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

// Most of a row is as well sorted, keys alone sooner than with their positions. Short rows are sorted either way, and
// topk makes the positions.
constexpr int64_t kFew = 4, kFewOfKeys = 16;  // of so many elements one
constexpr int64_t kShortRow = 64;

// How many of a row's elements are chosen sooner than the row is sorted. A few are kept in order, several rows
// together, or one element after another of a lone row or of wide elements; rows are sorted together if they are short.
int64_t MostChosen(const Shape& whole, bool keys_alone) {
  const int64_t n = whole.dim(whole.rank() - 1), bytes = Bytes(whole.type()), rows = whole.num_elements() / n;
  int64_t kept = 0;
  if (rows < 4 && n <= 4 * kShortRow)
    kept = 32;
  else if (n <= kShortRow)
    kept = bytes == 2 || bytes == 4 ? n / 4 : 0;
  else
    kept = bytes == 1 ? 16 : bytes <= 4 ? 64 : std::min<int64_t>(32, n / 4);
  return std::max(kept, n / (keys_alone ? kFewOfKeys : kFew));
}

// Of values along the last dimension, with their positions or alone.
std::optional<SortOrder> OrderOfValues(const Instruction& sort) {
  if (sort.operand_count() > 2) return std::nullopt;
  const Shape& shape = sort.operand(0)->shape();
  const Dims& along = sort.attrs<SortAttrs>().dimensions;
  const int64_t last = shape.rank() - 1;
  if (along.size() != 1 || along[0] != last || !shape.IsStatic() || IsComplex(shape.type())) return std::nullopt;
  if (sort.operand_count() == 2) {
    const Instruction& positions = *sort.operand(1);
    if (positions.op() != Op::Iota || positions.shape().type() != ElementType::S32 ||
        positions.attrs<IotaAttrs>().dimension != last)
      return std::nullopt;
  }
  const std::optional<SortOrder> order = MatchSortOrder(*sort.to_apply());
  if (!order || order->operand != 0) return std::nullopt;
  if (order->kind != SortOrder::Kind::Total && IsFloat(shape.type())) return std::nullopt;
  return order;
}

// The number of leading elements of the last dimension that this slice keeps, or -1 if it is no such slice.
int64_t LeadingElements(const Instruction& i) {
  if (i.op() != Op::Slice) return -1;
  const SliceDims& slice = i.attrs<SliceAttrs>().slice;
  const Shape& from = i.operand(0)->shape();
  for (int64_t d = 0; d < from.rank(); ++d) {
    if (slice[d].start != 0 || slice[d].stride != 1) return -1;
    if (d + 1 < from.rank() && slice[d].limit != from.dim(d)) return -1;
  }
  return slice[from.rank() - 1].limit;
}

// All slices of `values`, and the largest number that they keep; false if something else reads them.
bool AddLeadingSlices(const Instruction& values, std::vector<Instruction*>& slices, int64_t& k) {
  if (values.IsRoot()) return false;
  for (const Use& use : values.uses()) {
    const int64_t kept = LeadingElements(*use.user);
    if (kept < 0) return false;
    k = std::max(k, kept);
    slices.push_back(use.user);
  }
  return true;
}

// The same of all results of the sort; empty if something else reads one.
std::vector<Instruction*> LeadingSlices(const Instruction& sort, int64_t& k) {
  std::vector<Instruction*> slices;
  k = 0;
  if (!sort.shape().IsTuple()) return AddLeadingSlices(sort, slices, k) ? slices : std::vector<Instruction*>();
  for (const Use& use : sort.uses())
    if (use.user->op() != Op::GetTupleElement || !AddLeadingSlices(*use.user, slices, k)) return {};
  return slices;
}

struct TopkRewriter final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t rewritten = 0;
    for (Computation* c : module.PostOrder()) {
      for (Instruction* i : c->instructions())
        if (i->op() == Op::Sort && i != c->root())
          if (const std::optional<SortOrder> order = OrderOfValues(*i)) rewritten += Rewrite(*c, *i, order->descending);
    }
    context.Count("topk-rewriter.rewritten", rewritten);
    return rewritten > 0;
  }

  static bool Rewrite(Computation& c, Instruction& sort, bool largest) {
    int64_t k;
    const std::vector<Instruction*> slices = LeadingSlices(sort, k);
    const Shape& whole = sort.operand(0)->shape();
    const int64_t last = whole.rank() - 1;
    if (slices.empty() || k == 0) return false;
    const bool positions = std::ranges::any_of(
        slices, [&](const Instruction* s) { return s->operand(0) != &sort && s->operand(0)->tuple_index() == 1; });
    if (k > MostChosen(whole, sort.operand_count() == 1) && !(positions && whole.dim(last) <= kShortRow)) return false;
    Shape values = whole.WithoutLayout();
    values.set_dim(last, k);
    const Shape result = Shape::Tuple({values, values.WithType(ElementType::S32)});
    Instruction* topk = c.Add(Op::TopK, result, {sort.operand(0)}, TopKAttrs{k, largest}, "topk", &sort);
    if (sort.has_metadata()) topk->set_metadata(sort.shared_metadata());
    for (Instruction* slice : slices) {
      const int64_t leaf = slice->operand(0) == &sort ? 0 : slice->operand(0)->tuple_index();
      Instruction* part =
          c.Add(Op::GetTupleElement, result.element(leaf), {topk}, GetTupleElementAttrs{leaf}, "topk", slice);
      if (slice->shape().dim(last) != k)
        part = c.Add(Op::Slice, slice->shape(), {part}, slice->attrs<SliceAttrs>(), "slice", slice);
      slice->ReplaceAllUsesWith(part);
    }
    return true;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeTopkRewriter() { return std::make_unique<TopkRewriter>(); }

}  // namespace strop
