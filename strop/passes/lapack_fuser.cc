// What programs make of the factorisations of small matrices (lapack-rows) becomes one call:
//
//   lu, pivots = custom-call(a), target lapack_sgetrf_rows_ffi
//   y = triangular-solve(lu, gather(b, the permutation of pivots)), lower, unit diagonal
//   x = triangular-solve(lu, y)                 -> x = custom-call(a, b), target lapack_sgesv_rows_ffi
//
// The transposed system, which a gradient solves, has a call for the transposed matrix:
//
//   gather(triangular-solve(lu^T, triangular-solve(lu^T, b)), the permutation sorted)
//                                               -> custom-call(transpose(a), b), target lapack_sgesv_rows_ffi
//
//   l, info = custom-call((a + a^T) / 2), target lapack_spotrf_rows_ffi
//   select(lower triangle, select(info == 0, l, nan), 0)
//                                               -> custom-call(a), target lapack_scholesky_rows_ffi, {symmetrize}
//   two triangular solves by that, and nothing else
//                                               -> custom-call(a, b), target lapack_sposv_rows_ffi
//
// Matrices stay in the lanes of vectors from the first step to the last. If b is the unit matrix, the call has no b. A
// factorisation that something else reads too is computed for it again, which costs less than what is saved.
#include <algorithm>
#include <charconv>
#include <cmath>

#include "strop/analysis/scalar_pattern.h"
#include "strop/ir/builder.h"
#include "strop/ir/config_value.h"
#include "strop/passes/lu_permutation.h"
#include "strop/passes/pass.h"
#include "strop/rewrite/match.h"

namespace strop {
namespace {

constexpr int64_t kMostRightHandSides = 64;  // beside those, what is not fused costs little

// "lapack_s" + routine + "_rows_ffi"
std::string TargetOf(ElementType type, std::string_view routine) {
  return StrCat("lapack_", type == ElementType::F32 ? "s" : "d", routine, "_rows_ffi");
}

// x of select(true, x, ...).
const Instruction& Chosen(const Instruction& i) {
  if (i.op() != Op::Select) return i;
  const Instruction* condition = i.operand(0);
  while (condition->op() == Op::Reshape || condition->op() == Op::Broadcast) condition = condition->operand(0);
  return condition->IsSplat(1) ? *i.operand(1) : i;
}

// The call of `routine` of which `of` is the first result, matrices of the same shape; or null.
Instruction* FactorizationOf(const Instruction& of, std::string_view routine) {
  const Instruction& i = Chosen(of);
  if (i.op() != Op::GetTupleElement || i.tuple_index() != 0 || i.operand(0)->op() != Op::CustomCall) return nullptr;
  Instruction* call = i.operand(0);
  if (call->attrs<CustomCallAttrs>().target != TargetOf(i.shape().type(), routine)) return nullptr;
  const Shape& a = call->operand(0)->shape();
  return a.dims() == i.shape().dims() && a.dim(a.rank() - 1) == a.dim(a.rank() - 2) ? call : nullptr;
}

Instruction* MakeCall(Builder& b, std::string_view routine, const std::vector<Instruction*>& operands,
                      const Shape& shape, std::string attributes) {
  CustomCallAttrs call;
  call.target = TargetOf(shape.type(), routine);
  call.api_version = ApiVersion::TypedFfi;
  call.opaque = std::move(attributes);
  call.has_layout_constraints = true;
  for (const Instruction* operand : operands)
    call.operand_layout_constraints.push_back(operand->shape().WithoutLayout().WithDefaultLayout());
  const Shape result = shape.WithoutLayout();
  return b.Make(Op::CustomCall, operands, std::move(call), {}, &result);
}

// The last two dimensions exchanged.
Dims TurnedMatrices(int64_t rank) {
  Dims dims;
  for (int64_t d = 0; d < rank; ++d) dims.push_back(d);
  std::swap(dims[rank - 2], dims[rank - 1]);
  return dims;
}
bool TurnsMatrices(const Instruction& i) {
  return i.op() == Op::Transpose && i.shape().rank() >= 2 && i.dimensions() == TurnedMatrices(i.shape().rank());
}

// The triangle that a call of potrf factors, or 0.
char TriangleOfCall(const Instruction& call) {
  const CustomCallAttrs& a = call.attrs<CustomCallAttrs>();
  const std::optional<std::string> text = ConfigValue(a.opaque.empty() ? call.backend_config() : a.opaque, "uplo");
  int letter = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), letter).ec != std::errc{}) return 0;
  return letter == 'L' || letter == 'U' ? static_cast<char>(letter) : 0;
}

// ---- systems --------------------------------------------------------------------------------------------------------

// Transposes and reshapes that values take one after the other, and what becomes of their dimensions. Those of one
// element say nothing.
class Moves {
 public:
  enum : int64_t { kRow = -1, kColumn = -2 };  // labels, beside those of the batch's dimensions, from 0 on
  using Labels = std::vector<int64_t>;

  // Walks from `end` to where the moves begin, which is given back.
  Instruction* Begin(Instruction* end) {
    for (; IsMove(*end); end = end->operand(0)) moves_.insert(moves_.begin(), end);
    return end;
  }
  static bool IsMove(const Instruction& i) { return i.op() == Op::Transpose || IsReshape(i); }
  Instruction* Apply(Builder& b, Instruction* value) const {
    for (const Instruction* move : moves_)
      value =
          move->op() == Op::Transpose ? b.Transpose(value, move->dimensions()) : b.Reshape(value, move->shape().dims());
    return value;
  }
  // Of a value of `shape`; false if a reshape does more than to leave dimensions of one element out.
  bool Follow(Shape shape, Labels& labels) const {
    for (const Instruction* move : moves_) {
      Labels next;
      if (move->op() == Op::Transpose) {
        for (int64_t d : move->dimensions()) next.push_back(labels[static_cast<size_t>(d)]);
      } else {
        int64_t from = 0;
        for (int64_t d = 0; d < move->shape().rank(); ++d) {
          while (from < shape.rank() && shape.dim(from) == 1) ++from;
          const bool one = move->shape().dim(d) == 1;
          if (!one && (from == shape.rank() || shape.dim(from) != move->shape().dim(d))) return false;
          next.push_back(one ? kColumn : labels[static_cast<size_t>(from++)]);
        }
      }
      labels = std::move(next);
      shape = move->shape();
    }
    return true;
  }
  // The same value by the fewest moves.
  static Instruction* Straight(Builder& b, Instruction* end) {
    Moves all;
    Instruction* begin = all.Begin(end);
    while (!all.moves_.empty()) {
      Labels labels(static_cast<size_t>(begin->shape().rank()));
      for (size_t d = 0; d < labels.size(); ++d) labels[d] = static_cast<int64_t>(d);
      if (all.Follow(begin->shape(), labels) && IsInOrder(end->shape(), labels))
        return begin->shape().dims() == end->shape().dims() ? begin : b.Reshape(begin, end->shape().dims());
      begin = all.moves_.front();
      all.moves_.erase(all.moves_.begin());
    }
    return end;
  }
  // [batch..., row, column]
  static Labels OfMatrices(int64_t rank) {
    Labels labels;
    for (int64_t d = 0; d < rank; ++d) labels.push_back(d == rank - 1 ? kColumn : d == rank - 2 ? kRow : d);
    return labels;
  }
  static bool Agree(const Shape& shape, const Labels& a, const Labels& b) {
    for (int64_t d = 0; d < shape.rank(); ++d)
      if (shape.dim(d) != 1 && a[static_cast<size_t>(d)] != b[static_cast<size_t>(d)]) return false;
    return true;
  }

 private:
  static bool IsInOrder(const Shape& shape, const Labels& labels) {
    int64_t before = -1;
    for (int64_t d = 0; d < shape.rank(); ++d) {
      if (shape.dim(d) == 1) continue;
      if (labels[static_cast<size_t>(d)] < before) return false;
      before = labels[static_cast<size_t>(d)];
    }
    return true;
  }

  std::vector<Instruction*> moves_;
};

// A gather that takes whole rows, those of each member of a batch by indices of its own.
class RowGather {
 public:
  // Null: it is none.
  static std::optional<RowGather> Of(Instruction* gather) {
    if (gather->op() != Op::Gather) return std::nullopt;
    RowGather rows(gather);
    if (!rows.Read()) return std::nullopt;
    return rows;
  }
  Instruction* operand() const { return gather_->operand(0); }
  const Moves::Labels& operand_labels() const { return operand_labels_; }
  const Moves::Labels& result_labels() const { return result_labels_; }
  // What the indices are made of, s32[batch..., n].
  Instruction* Indices() const { return Bare(WithoutWrap(Bare(gather_->operand(1)))); }
  // `value`, which is as the operand is, with all its rows in their order in the place of those that the gather takes.
  Instruction* InOrder(Builder& b, Instruction* value) const {
    for (int64_t d = 0; d < static_cast<int64_t>(order_.size()); ++d)
      if (order_[d] != d) return b.Transpose(value, order_);
    return value;
  }

 private:
  explicit RowGather(Instruction* gather) : gather_(gather) {}

  static bool Has(const Dims& dims, int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }

  bool Read() {
    const GatherAttrs& a = gather_->attrs<GatherAttrs>();
    const Shape &from = operand()->shape(), &indices = gather_->operand(1)->shape();
    const int64_t batch = static_cast<int64_t>(a.operand_batching_dims.size());
    if (a.start_index_map.size() != 1 || a.collapsed_slice_dims != a.start_index_map) return false;
    if (indices.rank() != batch + 2 || a.index_vector_dim != batch + 1) return false;
    const int64_t row = a.start_index_map[0];
    if (indices.dim(batch) != from.dim(row)) return false;
    operand_labels_.assign(static_cast<size_t>(from.rank()), Moves::kColumn);
    operand_labels_[static_cast<size_t>(row)] = Moves::kRow;
    for (int64_t d = 0; d < batch; ++d) {
      if (a.start_indices_batching_dims[d] != d) return false;
      operand_labels_[static_cast<size_t>(a.operand_batching_dims[d])] = d;
    }
    std::vector<int64_t> windows;  // the operand's dimensions that are taken whole
    for (int64_t d = 0; d < from.rank(); ++d) {
      if (operand_labels_[static_cast<size_t>(d)] != Moves::kColumn) continue;
      if (a.slice_sizes[d] != from.dim(d)) return false;
      windows.push_back(d);
    }
    size_t window = 0;
    int64_t other = 0;
    for (int64_t d = 0; d < gather_->shape().rank(); ++d) {
      const bool whole = Has(a.offset_dims, d);
      order_.push_back(whole ? windows[window++] : other < batch ? a.operand_batching_dims[other] : row);
      other += !whole;
      result_labels_.push_back(operand_labels_[static_cast<size_t>(order_.back())]);
    }
    return true;
  }

  Instruction* gather_;
  Dims order_;  // the operand's dimensions, as the result has them
  Moves::Labels operand_labels_, result_labels_;
};

bool IsSolve(const Instruction& i, bool lower, bool unit_diagonal, bool transposed = false) {
  if (i.op() != Op::TriangularSolve) return false;
  const TriangularSolveAttrs& a = i.attrs<TriangularSolveAttrs>();
  const bool is_transposed = a.transpose_a != TransposeA::NoTranspose;
  return a.left_side && a.lower == lower && a.unit_diagonal == unit_diagonal && is_transposed == transposed;
}
bool HasFewColumns(const Shape& b) { return b.dim(b.rank() - 1) <= kMostRightHandSides; }

// Is this the permutation of that call's pivots?
bool IsPermutationOf(const Instruction& permutation, const Instruction* call) {
  const Instruction* pivots = PivotsOfPermutation(permutation);
  return pivots && pivots->op() == Op::GetTupleElement && pivots->operand(0) == call && pivots->tuple_index() == 1;
}

// Replaces `old` by `x`, and the moves that follow it by fewer.
void Deliver(Builder& b, Instruction* old, Instruction* x) {
  Computation* c = old->parent();
  Instruction* end = x;
  c->Replace(old, x);
  while (end->use_count() == 1 && !end->IsRoot() && Moves::IsMove(*end->uses()[0].user)) end = end->uses()[0].user;
  if (end == x) return;
  b.set_insert_before(end);
  Instruction* straight = Moves::Straight(b, end);
  if (straight && straight != end) c->Replace(end, straight);
}

Result<bool> FuseSolve(Instruction* upper) {
  if (!IsSolve(*upper, false, false)) return false;
  const Shape& shape = upper->shape();
  Instruction *call = FactorizationOf(*upper->operand(0), "getrf"), *lower = upper->operand(1);
  if (!call || !HasFewColumns(shape)) return false;
  while (IsReshape(*lower) && lower->use_count() == 1) lower = lower->operand(0);
  if (!IsSolve(*lower, true, true) || lower->use_count() != 1 || lower->shape().dims() != shape.dims()) return false;
  if (FactorizationOf(*lower->operand(0), "getrf") != call) return false;
  Moves moves;
  Instruction* taken = moves.Begin(lower->operand(1));
  const std::optional<RowGather> gather = RowGather::Of(taken);
  if (!gather || !IsPermutationOf(*gather->Indices(), call)) return false;
  Moves::Labels labels = gather->result_labels();
  if (!moves.Follow(taken->shape(), labels) || !Moves::Agree(shape, labels, Moves::OfMatrices(shape.rank())))
    return false;
  Builder b(upper->parent());
  b.set_insert_before(upper);
  b.set_metadata(upper->shared_metadata());
  Instruction* rows = moves.Apply(b, gather->InOrder(b, gather->operand()));
  STROP_TRY(b.status());
  Instruction* x = MakeCall(b, "gesv", {call->operand(0), Moves::Straight(b, rows)}, shape, "{}");
  STROP_TRY(b.status());
  Deliver(b, upper, x);
  STROP_TRY(b.status());
  return true;
}

// A system whose right-hand sides are the unit matrix needs none.
Result<bool> FuseInverse(Instruction* i) {
  using namespace match;
  if (i->op() != Op::CustomCall || i->operand_count() != 2 ||
      i->attrs<CustomCallAttrs>().target != TargetOf(i->operand(0)->shape().type(), "gesv"))
    return false;
  const Instruction* unit = i->operand(1);
  if (unit->op() != Op::Broadcast || unit->operand(0)->op() != Op::Convert) return false;
  Instruction *r = nullptr, *c = nullptr, *compare = unit->operand(0)->operand(0);
  if (!Match(compare, Compare(Iota(&r), Iota(&c))) || r->shape().rank() != 2) return false;
  const int64_t rank = unit->shape().rank();
  const Dims& to = unit->dimensions();
  const bool last = (to[0] == rank - 2 && to[1] == rank - 1) || (to[0] == rank - 1 && to[1] == rank - 2);
  if (!last || r->shape().dim(0) != r->shape().dim(1) ||
      compare->attrs<CompareAttrs>().direction != CompareDirection::Eq ||
      r->attrs<IotaAttrs>().dimension == c->attrs<IotaAttrs>().dimension)
    return false;
  Builder b(i->parent());
  b.set_insert_before(i);
  b.set_metadata(i->shared_metadata());
  Instruction* x = MakeCall(b, "gesv", {i->operand(0)}, i->shape(), "{}");
  STROP_TRY(b.status());
  i->parent()->Replace(i, x);
  return true;
}

// The permutation of which `i` is the inverse, which JAX finds by sorting it beside the numbers from 0 on; or null.
Instruction* InverseOf(const Instruction& i) {
  if (i.op() != Op::GetTupleElement || i.tuple_index() != 1 || i.operand(0)->op() != Op::Sort) return nullptr;
  const Instruction& sort = *i.operand(0);
  const int64_t last = i.shape().rank() - 1;
  if (sort.operand_count() != 2 || sort.attrs<SortAttrs>().dimensions != Dims{last}) return nullptr;
  const std::optional<SortOrder> order = MatchSortOrder(*sort.to_apply());
  if (!order || order->operand != 0 || order->descending) return nullptr;
  const Instruction* numbers = Bare(sort.operand(1));
  if (numbers->op() == Op::Broadcast && numbers->dimensions() == Dims{last} && numbers->operand(0)->op() == Op::Iota)
    return sort.operand(0);
  return numbers->op() == Op::Iota && numbers->attrs<IotaAttrs>().dimension == last ? sort.operand(0) : nullptr;
}

Result<bool> FuseTransposedSolve(Instruction* i) {
  const std::optional<RowGather> gather = RowGather::Of(i);
  if (!gather) return false;
  Moves moves;
  Instruction* lower = moves.Begin(gather->operand());
  if (!IsSolve(*lower, true, true, true)) return false;
  Instruction *call = FactorizationOf(*lower->operand(0), "getrf"), *upper = lower->operand(1);
  if (!call || !HasFewColumns(lower->shape())) return false;
  while (IsReshape(*upper)) upper = upper->operand(0);
  if (!IsSolve(*upper, false, false, true) || upper->shape().dims() != lower->shape().dims()) return false;
  if (FactorizationOf(*upper->operand(0), "getrf") != call) return false;
  const Instruction* permutation = InverseOf(*gather->Indices());
  if (!permutation || !IsPermutationOf(*permutation, call)) return false;
  Moves::Labels labels = Moves::OfMatrices(lower->shape().rank());
  if (!moves.Follow(lower->shape(), labels) ||
      !Moves::Agree(gather->operand()->shape(), labels, gather->operand_labels()))
    return false;
  Builder b(i->parent());
  b.set_insert_before(i);
  b.set_metadata(i->shared_metadata());
  Instruction* turned = b.Transpose(call->operand(0), TurnedMatrices(lower->shape().rank()));
  STROP_TRY(b.status());
  Instruction* x = MakeCall(b, "gesv", {turned, Moves::Straight(b, upper->operand(1))}, lower->shape(), "{}");
  STROP_TRY(b.status());
  Instruction* value = Moves::Straight(b, gather->InOrder(b, moves.Apply(b, x)));
  STROP_TRY(b.status());
  i->parent()->Replace(i, value);
  return true;
}

// By the clean factor of FuseCholesky, once as it is and once transposed.
Result<bool> FusePositive(Instruction* second) {
  if (second->op() != Op::TriangularSolve || second->operand(1)->op() != Op::TriangularSolve) return false;
  Instruction *factor = second->operand(0), *first = second->operand(1);
  if (factor->op() != Op::CustomCall || first->operand(0) != factor || first->use_count() != 1) return false;
  const CustomCallAttrs& call = factor->attrs<CustomCallAttrs>();
  if (call.target != TargetOf(factor->shape().type(), "cholesky") || !HasFewColumns(second->shape())) return false;
  const bool lower = TriangleOfCall(*factor) == 'L';
  if (!IsSolve(*first, lower, false, !lower) || !IsSolve(*second, lower, false, lower)) return false;
  if (factor->use_count() != 2 || factor->IsRoot()) return false;
  Builder b(second->parent());
  b.set_insert_before(second);
  b.set_metadata(second->shared_metadata());
  Instruction* x = MakeCall(b, "posv", {factor->operand(0), first->operand(1)}, second->shape(), call.opaque);
  STROP_TRY(b.status());
  second->parent()->Replace(second, x);
  return true;
}

// ---- Cholesky -------------------------------------------------------------------------------------------------------

// 'L' or 'U': the triangle with the diagonal for which this is true, of every matrix; 0: something else.
char TriangleOf(const Instruction& mask) {
  using namespace match;
  const Instruction* compare = &mask;
  Dims to = TurnedMatrices(mask.shape().rank());
  std::swap(to[to.size() - 2], to[to.size() - 1]);
  if (mask.op() == Op::Broadcast) {
    compare = mask.operand(0);
    to = mask.dimensions();
  }
  if (compare->op() != Op::Compare || compare->operand(0)->op() != Op::Iota || compare->operand(1)->op() != Op::Iota)
    return 0;
  const int64_t first = to[compare->operand(0)->attrs<IotaAttrs>().dimension];
  const int64_t second = to[compare->operand(1)->attrs<IotaAttrs>().dimension];
  const int64_t row = mask.shape().rank() - 2, column = row + 1;
  const CompareDirection direction = compare->attrs<CompareAttrs>().direction;
  if (direction != CompareDirection::Ge && direction != CompareDirection::Le) return 0;
  const bool greater = direction == CompareDirection::Ge;
  if (first == row && second == column) return greater ? 'L' : 'U';
  if (first == column && second == row) return greater ? 'U' : 'L';
  return 0;
}

Result<bool> FuseCholesky(Instruction* clean) {
  using namespace match;
  Instruction *mask = nullptr, *right = nullptr, *value = nullptr, *nan = nullptr, *info = nullptr;
  if (!Match(clean, Select(Any(&mask), Select(Any(&right), Any(&value), Splat(&nan)), Scalar(0)))) return false;
  if (!IsFloat(nan->shape().type()) || !std::isnan(nan->literal().GetDouble(0))) return false;
  if (right->op() != Op::Broadcast || !Match(right->operand(0), Compare(Any(&info), Scalar(0)))) return false;
  if (right->operand(0)->attrs<CompareAttrs>().direction != CompareDirection::Eq) return false;
  const bool turned = TurnsMatrices(*value);
  const Instruction& factor = turned ? *value->operand(0) : *value;
  Instruction* call = FactorizationOf(factor, "potrf");
  if (!call || info->op() != Op::GetTupleElement || info->operand(0) != call || info->tuple_index() != 1) return false;
  Dims batch;
  for (int64_t d = 0; d + 2 < clean->shape().rank(); ++d) batch.push_back(d);
  if (right->dimensions() != batch) return false;
  char triangle = TriangleOfCall(*call);
  if (triangle && turned) triangle = triangle == 'L' ? 'U' : 'L';
  if (!triangle || TriangleOf(*mask) != triangle) return false;
  Builder b(clean->parent());
  b.set_insert_before(clean);
  b.set_metadata(clean->shared_metadata());
  Instruction *a = call->operand(0), *plain = nullptr, *across = nullptr, *end = clean;
  const bool symmetrize = Match(a, Multiply(Add(Transpose(Any(&plain), &across), Any()), Scalar(0.5))) &&
                          TurnsMatrices(*across) && Match(a, Multiply(Add(Same(across), Same(plain)), Scalar(0.5)));
  bool turns = turned;
  if (clean->use_count() == 1 && !clean->IsRoot() && TurnsMatrices(*clean->uses()[0].user)) {
    end = clean->uses()[0].user;
    triangle = triangle == 'L' ? 'U' : 'L';
    turns = !turns;
  }
  if (symmetrize)
    a = plain;
  else if (turns)
    a = TurnsMatrices(*a) ? a->operand(0) : b.Transpose(a, TurnedMatrices(a->shape().rank()));
  const std::string attributes =
      StrCat("{symmetrize = ", symmetrize ? 1 : 0, " : i32, uplo = ", static_cast<int>(triangle), " : ui8}");
  Instruction* result = MakeCall(b, "cholesky", {a}, clean->shape(), attributes);
  STROP_TRY(b.status());
  end->parent()->Replace(end, result);
  return true;
}

Result<bool> Fuse(Instruction* i) {
  for (const auto fuse : {&FuseSolve, &FuseTransposedSolve, &FuseInverse, &FuseCholesky, &FusePositive}) {
    STROP_ASSIGN(const bool done, fuse(i));
    if (done) return true;
  }
  return false;
}

struct LapackFuser final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t fused = 0;
    for (Computation* c : module.computations()) {
      for (Instruction* i = c->first(); i != nullptr;) {
        STROP_ASSIGN(const bool any, Fuse(i));
        fused += any;
        i = any ? c->first() : i->next();  // what is dead now may have been the next one
      }
    }
    context.Count("lapack-fuser.fused", fused);
    return fused > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeLapackFuser() { return std::make_unique<LapackFuser>(); }

}  // namespace strop
