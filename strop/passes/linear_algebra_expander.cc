// Small factorisations and triangular systems of real numbers become plain arithmetic inside loops, of one array for
// each element of the matrix, which has the batch's dimensions:
//
//   (f32[8,2,2], s32[8,2], s32[8]) custom-call(a), target lapack_sgetrf_ffi
//     -> swap = |a10| > |a00|;  u00 = select(swap, a10, a00);  l10 = select(swap, a00, a10) / u00;  ...
//
// A call costs more than the arithmetic of so small a matrix, and a loop with a call is dispatched step by step, where
// one without can be a region (plan/region.h) or is vectors over the batch. What the results are where a pivot is zero
// or a matrix is not positive definite, and what info tells, is LAPACK's; a pivot divides, where LAPACK multiplies by
// its reciprocal. Outside of loops the library solves many systems side by side.
#include <charconv>
#include <set>

#include "strop/analysis/inside_loops.h"
#include "strop/ir/builder.h"
#include "strop/ir/config_value.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

constexpr int64_t kMostElements = 1 << 16;  // of a batch of matrices or right-hand sides
constexpr int64_t kMostInstructions = 400;  // that one computation gets: those of a region are bounded

enum class Kind : uint8_t { kLu, kCholesky, kSolve };

struct Problem {
  Kind kind;
  ElementType type = ElementType::F32;
  bool lower = true;
  Int64Vector batch;
  int64_t order = 0;
  // About how many instructions it becomes.
  int64_t Instructions() const {
    const int64_t n = order;
    switch (kind) {
      case Kind::kLu: return n * n + n * (n - 1) * 3 + n * (n - 1) * (2 * n - 1) / 2 + n * (n - 1) * n;
      case Kind::kCholesky: return n * n + n * (n + 1) * (n + 2) / 2;
      case Kind::kSolve: return n * n * 3;
    }
    return 0;
  }
};

bool IsReal(ElementType type) { return type == ElementType::F32 || type == ElementType::F64; }

// Matrices as LAPACK reads them: column by column.
bool IsByColumns(const Shape& shape) {
  const int64_t rank = shape.rank();
  if (shape.dim(rank - 1) == 1) return true;
  if (!shape.has_layout()) return false;
  const auto& order = shape.layout().minor_to_major;
  return order[0] == rank - 2 && order[1] == rank - 1;
}

// [batch..., n, n]
std::optional<Problem> SquareMatrices(Kind kind, const Shape& shape) {
  if (!shape.IsArray() || !shape.IsStatic() || !IsReal(shape.type()) || shape.rank() < 2) return std::nullopt;
  const int64_t rank = shape.rank();
  if (shape.dim(rank - 1) != shape.dim(rank - 2)) return std::nullopt;
  Problem problem{.kind = kind, .type = shape.type(), .order = shape.dim(rank - 1)};
  for (int64_t d = 0; d + 2 < rank; ++d) problem.batch.push_back(shape.dim(d));
  return problem;
}

// A call that gives the matrices factored, and `results` altogether.
std::optional<Problem> ReadFactorization(const Instruction& i, Kind kind, int64_t results) {
  const CustomCallAttrs& call = i.attrs<CustomCallAttrs>();
  if (i.operand_count() != 1 || call.has_side_effect || call.operand_layout_constraints.size() != 1)
    return std::nullopt;
  if (!i.shape().IsTuple() || i.shape().tuple_size() != results || &i == i.parent()->root()) return std::nullopt;
  for (const Use& use : i.uses())
    if (use.user->op() != Op::GetTupleElement) return std::nullopt;
  const Shape &matrix = i.operand(0)->shape(), &factors = i.shape().element(0);
  std::optional<Problem> problem = SquareMatrices(kind, matrix);
  if (!problem || !factors.IsArray() || factors.type() != matrix.type() || factors.dims() != matrix.dims())
    return std::nullopt;
  if (!IsByColumns(call.operand_layout_constraints[0]) || !IsByColumns(factors)) return std::nullopt;
  const Shape& info = i.shape().element(results - 1);
  if (!info.IsArray() || info.type() != ElementType::S32 || info.dims() != problem->batch) return std::nullopt;
  return problem;
}

std::optional<Problem> ReadLu(const Instruction& i) {
  const std::string& target = i.attrs<CustomCallAttrs>().target;
  if (target != "lapack_sgetrf_ffi" && target != "lapack_dgetrf_ffi") return std::nullopt;
  std::optional<Problem> problem = ReadFactorization(i, Kind::kLu, 3);
  if (!problem || (target[7] == 's') != (problem->type == ElementType::F32)) return std::nullopt;
  const Shape& pivots = i.shape().element(1);
  Int64Vector dims = problem->batch;
  dims.push_back(problem->order);
  if (!pivots.IsArray() || pivots.type() != ElementType::S32 || pivots.dims() != dims) return std::nullopt;
  return problem;
}

std::optional<Problem> ReadCholesky(const Instruction& i) {
  const CustomCallAttrs& call = i.attrs<CustomCallAttrs>();
  if (call.target != "lapack_spotrf_ffi" && call.target != "lapack_dpotrf_ffi") return std::nullopt;
  std::optional<Problem> problem = ReadFactorization(i, Kind::kCholesky, 2);
  if (!problem || (call.target[7] == 's') != (problem->type == ElementType::F32)) return std::nullopt;
  const std::string& config = call.opaque.empty() ? i.backend_config() : call.opaque;
  const std::optional<std::string> text = ConfigValue(config, "uplo");
  int letter = 0;
  if (!text || std::from_chars(text->data(), text->data() + text->size(), letter).ec != std::errc{})
    return std::nullopt;
  if (letter != 'L' && letter != 'U') return std::nullopt;
  problem->lower = letter == 'L';
  return problem;
}

std::optional<Problem> Read(const Instruction& i) {
  if (i.HasControlEdges()) return std::nullopt;
  if (i.op() == Op::TriangularSolve) return SquareMatrices(Kind::kSolve, i.operand(0)->shape());
  if (i.op() != Op::CustomCall) return std::nullopt;
  std::optional<Problem> problem = ReadLu(i);
  return problem ? problem : ReadCholesky(i);
}

// Is its matrix a factor that a call makes, by columns or by rows (lapack-rows), and that stays? That call solves the
// system as well (lapack-fuser).
bool IsOfCall(const Instruction& solve) {
  const Instruction* a = solve.operand(0);
  while (a->op() == Op::Select || a->op() == Op::Transpose) a = a->operand(a->op() == Op::Select ? 1 : 0);
  if (a->op() != Op::GetTupleElement || a->operand(0)->op() != Op::CustomCall) return false;
  constexpr size_t kBehindType = 8;  // lapack_sgetrf_ffi
  const std::string& target = a->operand(0)->attrs<CustomCallAttrs>().target;
  return target.starts_with("lapack_") && (target.find("getrf") == kBehindType || target.find("potrf") == kBehindType);
}

// The largest order that is worth the code. The library factors many matrices side by side; the elements of not too
// many lie beside each other in loops (batch-innermost).
int64_t MostOrder(Kind kind, int64_t elements) {
  constexpr int64_t kFewElements = 64, kManyElements = 9216;
  if (elements > kManyElements) return 2;
  if (elements > kFewElements || kind == Kind::kLu) return 4;
  // A factor of order 6 with the two systems by it is more than one computation gets.
  return kind == Kind::kCholesky ? 5 : 6;
}

bool IsSmall(const Instruction& i, const Problem& problem) {
  if (problem.kind == Kind::kSolve && IsOfCall(i)) return false;
  const int64_t matrices = i.operand(0)->shape().num_elements();
  const int64_t elements = problem.kind == Kind::kSolve ? std::max(matrices, i.shape().num_elements()) : matrices;
  return problem.order >= 1 && problem.order <= MostOrder(problem.kind, matrices) && elements > 0 &&
         elements <= kMostElements;
}

// Writes one problem.
class Expander {
 public:
  Expander(Instruction& i, const Problem& problem) : i_(i), problem_(problem), b_(i.parent()) {
    b_.set_insert_before(&i);
    b_.set_metadata(i.shared_metadata());
  }

  Result<Instruction*> Run() {
    Instruction* value = problem_.kind == Kind::kLu ? Lu() : problem_.kind == Kind::kCholesky ? Cholesky() : Solve();
    STROP_TRY(b_.status());
    return value;
  }

 private:
  using Value = Instruction*;
  using Values = std::vector<Instruction*>;

  // Element (r, c) of the matrices, [batch...].
  Value Element(Value matrices, int64_t r, int64_t c) {
    const Shape& shape = matrices->shape();
    Dims start(shape.rank(), 0), limit(shape.dims().begin(), shape.dims().end()), stride(shape.rank(), 1);
    start[shape.rank() - 2] = r;
    limit[shape.rank() - 2] = r + 1;
    start[shape.rank() - 1] = c;
    limit[shape.rank() - 1] = c + 1;
    return b_.Reshape(b_.Slice(matrices, start, limit, stride), problem_.batch);
  }
  Values Elements(Value matrices) {
    Values all;
    for (int64_t r = 0; r < problem_.order; ++r)
      for (int64_t c = 0; c < problem_.order; ++c) all.push_back(Element(matrices, r, c));
    return all;
  }
  // Arrays [batch...] as [batch..., dims...] of as many elements.
  Value Together(const Values& parts, std::initializer_list<int64_t> dims) {
    Int64Vector one = problem_.batch, all = problem_.batch;
    one.push_back(1);
    for (int64_t d : dims) all.push_back(d);
    Values columns;
    for (Value part : parts) columns.push_back(b_.Reshape(part, one));
    return b_.Reshape(Concatenate(columns, static_cast<int64_t>(one.size()) - 1), all);
  }
  Value Concatenate(const Values& parts, int64_t dimension) {
    return parts.size() == 1 ? parts[0] : b_.Make(Op::Concatenate, parts, DimensionsAttrs{{dimension}}, {}, nullptr);
  }
  Value Number(ElementType type, double value) { return b_.Splat(type, value, problem_.batch); }
  Value Select(Value condition, Value a, Value c) { return a == c ? a : b_.Make(Op::Select, {condition, a, c}); }
  Value Less(Value a, Value c) { return b_.Compare(a, c, CompareDirection::Lt); }

  Value Lu() {
    const int64_t n = problem_.order;
    Values a = Elements(i_.operand(0)), pivots;
    const auto at = [&](int64_t r, int64_t c) -> Value& { return a[static_cast<size_t>(r * n + c)]; };
    Value info = Number(ElementType::S32, 0), none = info, zero = Number(problem_.type, 0);
    for (int64_t k = 0; k < n; ++k) {
      Value pivot = Number(ElementType::S32, static_cast<double>(k + 1));
      Value largest = b_.Make(Op::Abs, {at(k, k)});
      for (int64_t r = k + 1; r < n; ++r) {
        Value magnitude = b_.Make(Op::Abs, {at(r, k)}), larger = Less(largest, magnitude);
        pivot = Select(larger, Number(ElementType::S32, static_cast<double>(r + 1)), pivot);
        if (r + 1 < n) largest = Select(larger, magnitude, largest);
      }
      pivots.push_back(pivot);
      for (int64_t r = k + 1; r < n; ++r) {
        Value here = b_.Compare(pivot, Number(ElementType::S32, static_cast<double>(r + 1)), CompareDirection::Eq);
        for (int64_t c = 0; c < n; ++c) {
          Value above = at(k, c);
          at(k, c) = Select(here, at(r, c), above);
          at(r, c) = Select(here, above, at(r, c));
        }
      }
      Value left = b_.Compare(at(k, k), zero, CompareDirection::Eq);  // a column of zeros stays as it is
      Value first = b_.Make(Op::And, {left, b_.Compare(info, none, CompareDirection::Eq)});
      info = Select(first, Number(ElementType::S32, static_cast<double>(k + 1)), info);
      for (int64_t r = k + 1; r < n; ++r) {
        at(r, k) = Select(left, at(r, k), b_.Make(Op::Divide, {at(r, k), at(k, k)}));
        for (int64_t c = k + 1; c < n; ++c) {
          Value less = b_.Make(Op::Subtract, {at(r, c), b_.Make(Op::Multiply, {at(r, k), at(k, c)})});
          at(r, c) = Select(left, at(r, c), less);
        }
      }
    }
    const Value results[] = {Together(a, {n, n}), Together(pivots, {n}), info};
    return b_.Tuple(results);
  }

  // L L^T, or U^T U; the other triangle stays as it is, and so does what comes behind the first pivot that is not above
  // zero.
  Value Cholesky() {
    const int64_t n = problem_.order;
    Values a = Elements(i_.operand(0));
    const auto at = [&](int64_t r, int64_t c) -> Value& {
      return a[static_cast<size_t>(problem_.lower ? r * n + c : c * n + r)];
    };
    Value info = Number(ElementType::S32, 0), none = info, zero = Number(problem_.type, 0);
    for (int64_t k = 0; k < n; ++k) {
      Value going = b_.Compare(info, none, CompareDirection::Eq);
      const auto reduced = [&](int64_t r) {
        Value rest = at(r, k);
        for (int64_t c = 0; c < k; ++c)
          rest = b_.Make(Op::Subtract, {rest, b_.Make(Op::Multiply, {at(r, c), at(k, c)})});
        return rest;
      };
      Value pivot = reduced(k), positive = Less(zero, pivot);
      Value fails = b_.Make(Op::And, {going, b_.Make(Op::Not, {positive})});
      info = Select(fails, Number(ElementType::S32, static_cast<double>(k + 1)), info);
      going = b_.Make(Op::And, {going, positive});
      Value root = b_.Make(Op::Sqrt, {pivot}, AccuracyAttrs{});
      for (int64_t r = k + 1; r < n; ++r) at(r, k) = Select(going, b_.Make(Op::Divide, {reduced(r), root}), at(r, k));
      at(k, k) = Select(going, root, Select(fails, pivot, at(k, k)));
    }
    const Value results[] = {Together(a, {n, n}), info};
    return b_.Tuple(results);
  }

  // Unknown by unknown: rows of b, or columns if the triangle stands to the right.
  Value Solve() {
    const TriangularSolveAttrs& attrs = i_.attrs<TriangularSolveAttrs>();
    const int64_t n = problem_.order, rank = i_.shape().rank();
    const int64_t along = attrs.left_side ? rank - 2 : rank - 1;
    const bool turned = attrs.transpose_a == TransposeA::Transpose || attrs.transpose_a == TransposeA::Adjoint;
    // The factor of unknown c in equation r is element (r, c), or the other way round.
    const bool by_rows = attrs.left_side != turned;
    const bool forward = by_rows == attrs.lower;
    const Shape& b = i_.operand(1)->shape();
    Int64Vector line = b.dims();
    line[static_cast<size_t>(along)] = 1;
    Dims of_batch;
    for (int64_t d = 0; d + 2 < rank; ++d) of_batch.push_back(d);
    const auto factor = [&](int64_t equation, int64_t unknown) {
      Value element = by_rows ? Element(i_.operand(0), equation, unknown) : Element(i_.operand(0), unknown, equation);
      return b_.Broadcast(element, line, of_batch);
    };
    Values x(static_cast<size_t>(n));
    for (int64_t step = 0; step < n; ++step) {
      const int64_t r = forward ? step : n - 1 - step;
      Dims start(rank, 0), limit(b.dims().begin(), b.dims().end()), stride(rank, 1);
      start[static_cast<size_t>(along)] = r;
      limit[static_cast<size_t>(along)] = r + 1;
      Value rest = b_.Slice(i_.operand(1), start, limit, stride);
      for (int64_t before = 0; before < step; ++before) {
        const int64_t c = forward ? before : n - 1 - before;
        rest = b_.Make(Op::Subtract, {rest, b_.Make(Op::Multiply, {factor(r, c), x[static_cast<size_t>(c)]})});
      }
      x[static_cast<size_t>(r)] = attrs.unit_diagonal ? rest : b_.Make(Op::Divide, {rest, factor(r, r)});
    }
    return Concatenate(x, along);
  }

  Instruction& i_;
  const Problem& problem_;
  Builder b_;
};

struct LinearAlgebraExpander final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t expanded = 0;
    const std::set<const Computation*> inside = InsideLoops(module);
    for (Computation* c : module.computations()) {
      if (!inside.contains(c)) continue;
      int64_t left = kMostInstructions;
      for (Instruction* i : c->instructions()) {
        const std::optional<Problem> problem = Read(*i);
        if (!problem || !IsSmall(*i, *problem) || problem->Instructions() > left) continue;
        left -= problem->Instructions();
        STROP_ASSIGN(Instruction * value, Expander(*i, *problem).Run());
        c->Replace(i, value);
        ++expanded;
      }
    }
    context.Count("linear-algebra-expander.expanded", expanded);
    return expanded > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeLinearAlgebraExpander() { return std::make_unique<LinearAlgebraExpander>(); }

}  // namespace strop
