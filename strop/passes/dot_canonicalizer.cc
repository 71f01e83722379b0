// Gives every dot operands that lie in memory as one or two batch, one free and one contracting dimension, each with a
// stride of its own: the form that a GEMM reads without help.
//
//   1. Transposes of operands become other dimension numbers, where the result still has that form:
//        dot(transpose(x), y), lhs_contracting_dims={0}        dot(x, y), lhs_contracting_dims={1}
//      Where they order the free dimensions of an operand, the result is transposed instead if it is much smaller
//      (queries that share their keys: [heads, keys, queries, group] weights).
//   2. A transpose of the result that only exchanges the operands' sides exchanges the operands: (x y)^T = y^T x^T. One
//      that orders the dimensions of a side transposes that operand, if it is smaller; one that would turn the rows of
//      the exchanged product's result leaves them rows.
//   3. Contracting dimensions are paired in the order that lets them lie together on both sides.
//   4. An operand that still interleaves its dimensions is transposed: lhs to [batch, free, contracting], rhs to
//      [batch, contracting, free].
//      Where a small matrix multiplies what is interleaved, and a transpose of the result puts the outer dimensions
//      first (a function of one member, mapped over many), they become a batch, and the matrix is spread over it:
//        transpose(dot(f32[m,k] a, f32[b,k,n] x)), dimensions={1,0,2}        dot(f32[b,m,k] broadcast(a), x), batch {0}
//   5. Integers under floats are converted to the result's type first, but for those of at most 8 bits, which the dot
//      itself converts (dot-convert-folding).
#include <algorithm>
#include <numeric>

#include "strop/ir/builder.h"
#include "strop/passes/dot_sides.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

DotAttrs WithSides(DotAttrs a, const DotSides& s) {
  a.lhs_batch = s[0].batch;
  a.lhs_contracting = s[0].contracting;
  a.rhs_batch = s[1].batch;
  a.rhs_contracting = s[1].contracting;
  return a;
}
void SetSides(Instruction* dot, const DotSides& s) { dot->set_attrs(WithSides(dot->attrs<DotAttrs>(), s)); }

// Would members of a batch lie side by side? Products would be read element by element (small-products).
bool LiesSideBySide(const DotSide& side) {
  constexpr int64_t kFewestMembers = 8;
  const int64_t last = side.shape.rank() - 1;
  return last >= 0 && side.shape.dim(last) >= kFewestMembers &&
         std::find(side.batch.begin(), side.batch.end(), last) != side.batch.end();
}

bool FoldOperands(Instruction* dot) {
  bool folded = false;
  DotSides sides = SidesOf(*dot);
  for (size_t k = 0; k < 2; ++k) {
    Instruction* t = dot->operand(static_cast<int64_t>(k));
    DotSides candidate = sides;
    if (t->op() != Op::Transpose || !FoldTranspose(t->dimensions(), t->operand(0)->shape(), candidate, k) ||
        (LiesSideBySide(candidate[k]) && !LiesSideBySide(sides[k])))
      continue;
    dot->SetOperand(static_cast<int64_t>(k), t->operand(0));
    sides = candidate;
    folded = true;
  }
  if (folded) SetSides(dot, sides);
  return folded;
}

// dot(transpose(x), y) whose free dimensions lie in another order in x: transpose(dot(x, y)).
bool OrderResult(Instruction* dot) {
  constexpr int64_t kMuchSmaller = 2, kLeastBytes = 1 << 16;  // of what is less the copy is not felt
  if (dot->shape().has_layout()) return false;
  for (size_t k = 0; k < 2; ++k) {
    Instruction* t = dot->operand(static_cast<int64_t>(k));
    DotSides sides = SidesOf(*dot);
    const int64_t bytes = t->shape().byte_size();
    if (t->op() != Op::Transpose || bytes < std::max(kLeastBytes, kMuchSmaller * dot->shape().byte_size())) continue;
    const Dims free = FreeDims(sides[k].shape.rank(), sides[k].batch, sides[k].contracting);
    if (!FoldTranspose(t->dimensions(), t->operand(0)->shape(), sides, k, FreeOrder::kMayChange)) continue;
    // Which of the free dimensions comes first in x, and so on.
    Dims order(free.size());
    std::iota(order.begin(), order.end(), int64_t{0});
    std::ranges::sort(order, {},
                      [&](int64_t n) { return t->dimensions()[static_cast<size_t>(free[static_cast<size_t>(n)])]; });
    const int64_t rank = dot->shape().rank(), count = static_cast<int64_t>(free.size());
    const int64_t first = k == 0 ? static_cast<int64_t>(sides[0].batch.size()) : rank - count;
    Int64Vector sizes(dot->shape().dims());
    Dims back(static_cast<size_t>(rank));
    std::iota(back.begin(), back.end(), int64_t{0});
    for (int64_t n = 0; n < count; ++n) {
      const int64_t from = first + order[static_cast<size_t>(n)];
      sizes[static_cast<size_t>(first + n)] = dot->shape().dim(from);
      back[static_cast<size_t>(from)] = first + n;
    }
    Builder b(dot->parent());
    b.set_insert_before(dot);
    b.set_metadata(dot->shared_metadata());
    std::array<Instruction*, 2> operands = {dot->operand(0), dot->operand(1)};
    operands[k] = t->operand(0);
    Instruction* ordered = b.MakeWithShape(Op::Dot, Shape::Array(dot->shape().type(), sizes),
                                           {operands[0], operands[1]}, WithSides(dot->attrs<DotAttrs>(), sides));
    if (!b.status().ok()) return false;
    dot->parent()->ReplaceWithNew(dot, Op::Transpose, dot->shape(), {ordered}, DimensionsAttrs{back});
    return true;
  }
  return false;
}

// The free dimensions of a dot's result: those of lhs, then those of rhs.
struct ResultDims {
  int64_t batch = 0, lhs_free = 0, rhs_free = 0;
  explicit ResultDims(const Instruction& dot) {
    const DotSides sides = SidesOf(dot);
    batch = static_cast<int64_t>(sides[0].batch.size());
    lhs_free = sides[0].shape.rank() - batch - static_cast<int64_t>(sides[0].contracting.size());
    rhs_free = dot.shape().rank() - batch - lhs_free;
  }
  bool OfRhs(int64_t d) const { return d >= batch + lhs_free; }
};

DotAttrs WithSidesExchanged(const Instruction& dot) {
  DotAttrs attrs = dot.attrs<DotAttrs>();
  std::swap(attrs.lhs_batch, attrs.rhs_batch);
  std::swap(attrs.lhs_contracting, attrs.rhs_contracting);
  if (attrs.operand_precision.size() == 2) std::swap(attrs.operand_precision[0], attrs.operand_precision[1]);
  return attrs;
}

// Orders the free dimensions of operand `k` as `order` says, which are numbers of the result's dimensions; `first` is
// that of its first.
Instruction* WithFreeDims(Instruction* dot, size_t k, std::span<const int64_t> order, int64_t first, Builder& b,
                          DotSide& side) {
  const Dims free = FreeDims(side.shape.rank(), side.batch, side.contracting);
  Dims permutation = side.batch;
  for (int64_t d : order) permutation.push_back(free[static_cast<size_t>(d - first)]);
  permutation.insert(permutation.end(), side.contracting.begin(), side.contracting.end());
  Instruction* transposed = b.Transpose(dot->operand(static_cast<int64_t>(k)), permutation);
  std::iota(side.batch.begin(), side.batch.end(), int64_t{0});
  std::iota(side.contracting.begin(), side.contracting.end(), static_cast<int64_t>(side.batch.size() + order.size()));
  side.shape = transposed->shape();
  return transposed;
}

// What a transpose of an operand costs less than one of the result: it is much smaller, or transposed already.
bool IsSmall(const Instruction& operand, const Instruction& result) {
  return operand.op() == Op::Transpose || 2 * operand.shape().num_elements() <= result.shape().num_elements();
}

// transpose(dot) whose batch dimensions stay, and then come all free dimensions of one side, and all of the other: the
// operands are transposed instead where they need it, and exchanged where rhs's come first.
bool FoldIntoSides(Instruction* transpose, Instruction* dot, const ResultDims& dims) {
  const Dims& permutation = transpose->dimensions();
  const int64_t rank = dot->shape().rank();
  for (int64_t d = 0; d < dims.batch; ++d)
    if (permutation[static_cast<size_t>(d)] != d) return false;
  const std::span<const int64_t> order(permutation.begin() + dims.batch, permutation.end());
  const bool exchanged = dims.OfRhs(order[0]);
  const size_t split = static_cast<size_t>(exchanged ? dims.rhs_free : dims.lhs_free);
  for (size_t n = 0; n < order.size(); ++n)
    if (dims.OfRhs(order[n]) != (exchanged == (n < split))) return false;
  std::array<std::span<const int64_t>, 2> own = {order.first(split), order.subspan(split)};
  if (exchanged) std::swap(own[0], own[1]);
  for (size_t k = 0; k < 2; ++k)
    if (!std::is_sorted(own[k].begin(), own[k].end()) && !IsSmall(*dot->operand(static_cast<int64_t>(k)), *dot))
      return false;
  Builder b(dot->parent());
  b.set_insert_before(dot);
  b.set_metadata(dot->shared_metadata());
  DotSides sides = SidesOf(*dot);
  std::array<Instruction*, 2> operands = {dot->operand(0), dot->operand(1)};
  for (size_t k = 0; k < 2; ++k)
    if (!std::is_sorted(own[k].begin(), own[k].end()))
      operands[k] = WithFreeDims(dot, k, own[k], k == 0 ? dims.batch : rank - dims.rhs_free, b, sides[k]);
  if (!b.status().ok()) return false;
  SetSides(dot, sides);
  DotAttrs attrs = exchanged ? WithSidesExchanged(*dot) : dot->attrs<DotAttrs>();
  if (exchanged) std::swap(operands[0], operands[1]);
  transpose->parent()->ReplaceWithNew(transpose, Op::Dot, transpose->shape(), {operands[0], operands[1]},
                                      std::move(attrs));
  return true;
}

// transpose(dot) that makes rows of what lhs has in a row: with the operands exchanged, rows stay rows.
bool FoldRows(Instruction* transpose, Instruction* dot, const ResultDims& dims) {
  const int64_t rank = dot->shape().rank(), last = dims.batch + dims.lhs_free - 1;
  if (transpose->dimensions().back() != last || dot->shape().dim(last) == 1) return false;
  Builder b(dot->parent());
  b.set_insert_before(dot);
  b.set_metadata(dot->shared_metadata());
  Int64Vector sizes;
  std::vector<int64_t> place(static_cast<size_t>(rank));
  const auto add = [&](int64_t first, int64_t count) {
    for (int64_t d = first; d < first + count; ++d) {
      place[static_cast<size_t>(d)] = static_cast<int64_t>(sizes.size());
      sizes.push_back(dot->shape().dim(d));
    }
  };
  add(0, dims.batch);
  add(dims.batch + dims.lhs_free, dims.rhs_free);
  add(dims.batch, dims.lhs_free);
  const Shape shape = Shape::Array(dot->shape().type(), sizes);
  Instruction* exchanged =
      b.MakeWithShape(Op::Dot, shape, {dot->operand(1), dot->operand(0)}, WithSidesExchanged(*dot));
  Dims permutation;
  for (int64_t d : transpose->dimensions()) permutation.push_back(place[static_cast<size_t>(d)]);
  if (!b.status().ok()) return false;
  transpose->parent()->ReplaceWithNew(transpose, Op::Transpose, transpose->shape(), {exchanged},
                                      DimensionsAttrs{permutation});
  return true;
}

bool FoldResult(Instruction* transpose) {
  Instruction* dot = transpose->operand(0);
  if (dot->use_count() != 1 || dot->shape().has_layout() || transpose->shape().has_layout()) return false;
  const ResultDims dims(*dot);
  if (dims.lhs_free == 0 || dims.rhs_free == 0) return false;
  return FoldIntoSides(transpose, dot, dims) || FoldRows(transpose, dot, dims);
}

// See 4. above. The matrix is copied: it must be smaller than what one of the transposes would have moved.
bool FoldIntoBatch(Instruction* dot) {
  constexpr int64_t kMostOfMatrix = 1 << 12, kFewRows = 4, kFewTerms = 8;
  const DotSides sides = SidesOf(*dot);
  if (!sides[0].batch.empty() || sides[0].contracting.size() != 1 || dot->use_count() != 1) return false;
  Instruction* transpose = dot->users()[0];
  if (transpose->op() != Op::Transpose || dot->shape().has_layout() || transpose->shape().has_layout()) return false;
  if (transpose->HasControlEdges()) return false;
  const size_t mixed = sides[0].Fits() ? 1 : 0;
  const DotSide &matrix = sides[1 - mixed], &other = sides[mixed];
  if (other.Fits() || matrix.shape.rank() != 2 || matrix.shape.num_elements() > kMostOfMatrix) return false;
  const int64_t summed = other.contracting[0], rank = other.shape.rank();
  int64_t inner = 1;
  for (int64_t d = summed + 1; d < rank; ++d) inner *= other.shape.dim(d);
  const int64_t rows = matrix.shape.dim(1 - matrix.contracting[0]);
  if (rows > inner) return false;
  // Small products of other types than their sums are converted one by one, but for those that become sums of products.
  const bool converted = Bits(matrix.shape.type()) < 32 || Bits(other.shape.type()) < 32;
  if (converted && (rows > kFewRows || other.shape.dim(summed) > kFewTerms)) return false;
  // In the order of the result, the outer dimensions, the matrix's, and the inner ones: -1 is the matrix's.
  Dims from, wanted;
  if (mixed == 1) from.push_back(-1);
  for (int64_t d = 0; d < rank; ++d)
    if (d != summed) from.push_back(d);
  if (mixed == 0) from.push_back(-1);
  for (int64_t d = 0; d < rank; ++d) wanted.push_back(d == summed ? -1 : d);
  const Dims& permutation = transpose->dimensions();
  for (size_t d = 0; d < permutation.size(); ++d)
    if (from[static_cast<size_t>(permutation[d])] != wanted[d]) return false;
  Builder b(dot->parent());
  b.set_insert_before(dot);
  b.set_metadata(dot->shared_metadata());
  Int64Vector sizes;
  DotAttrs attrs = dot->attrs<DotAttrs>();
  attrs.lhs_batch.clear();
  for (int64_t d = 0; d < summed; ++d) sizes.push_back(other.shape.dim(d)), attrs.lhs_batch.push_back(d);
  for (int64_t d = 0; d < 2; ++d) sizes.push_back(matrix.shape.dim(d));
  attrs.rhs_batch = attrs.lhs_batch;
  Instruction* const spread =
      b.Broadcast(dot->operand(static_cast<int64_t>(1 - mixed)), sizes, Dims{summed, summed + 1});
  attrs.lhs_contracting = {summed + matrix.contracting[0]};
  attrs.rhs_contracting = {summed};
  if (attrs.operand_precision.size() == 2 && mixed == 0)
    std::swap(attrs.operand_precision[0], attrs.operand_precision[1]);
  if (!b.status().ok()) return false;
  transpose->parent()->ReplaceWithNew(transpose, Op::Dot, transpose->shape(),
                                      {spread, dot->operand(static_cast<int64_t>(mixed))}, std::move(attrs));
  return true;
}

Status Untangle(Instruction* dot, bool& changed) {
  DotSides sides = WithBestPairing(SidesOf(*dot));
  bool transposed = false;
  for (size_t k = 0; k < 2; ++k) {
    DotSide& side = sides[k];
    if (side.Fits()) continue;
    const Dims free = FreeDims(side.shape.rank(), side.batch, side.contracting);
    Dims permutation = side.batch;
    const Dims& second = k == 0 ? free : side.contracting;
    const Dims& third = k == 0 ? side.contracting : free;
    permutation.insert(permutation.end(), second.begin(), second.end());
    permutation.insert(permutation.end(), third.begin(), third.end());
    Builder b(dot->parent());
    b.set_insert_before(dot);
    b.set_metadata(dot->shared_metadata());
    Instruction* t = b.Transpose(dot->operand(static_cast<int64_t>(k)), permutation);
    STROP_TRY(b.status());
    dot->SetOperand(static_cast<int64_t>(k), t);
    std::iota(side.batch.begin(), side.batch.end(), int64_t{0});
    const int64_t first = static_cast<int64_t>(side.batch.size() + (k == 0 ? free.size() : 0));
    std::iota(side.contracting.begin(), side.contracting.end(), first);
    side.shape = t->shape();
    transposed = true;
  }
  if (transposed || sides[0].contracting != dot->attrs<DotAttrs>().lhs_contracting) {
    SetSides(dot, sides);
    changed = true;
  }
  return OkStatus();
}

Status ConvertIntegers(Instruction* dot, bool& changed) {
  const ElementType type = dot->shape().type();
  const bool mixed = IsFloat(dot->operand(0)->shape().type()) != IsFloat(dot->operand(1)->shape().type());
  if (!IsFloat(type) || !mixed) return OkStatus();
  for (int64_t k = 0; k < 2; ++k) {
    const ElementType integer = dot->operand(k)->shape().type();
    if (!IsInteger(integer) || (Bits(integer) <= 8 && Bits(type) > 8 && Bits(type) < 64)) continue;
    Builder b(dot->parent());
    b.set_insert_before(dot);
    Instruction* converted = b.Convert(dot->operand(k), type);
    STROP_TRY(b.status());
    dot->SetOperand(k, converted);
    changed = true;
  }
  return OkStatus();
}

bool IsOrdinary(const Instruction& dot) {
  return dot.op() == Op::Dot && dot.operand_count() == 2 && dot.operand(0)->shape().IsStatic() &&
         dot.operand(1)->shape().IsStatic();
}

struct DotCanonicalizer final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t folded = 0;
    bool changed = false;
    for (Computation* c : module.computations()) {
      std::vector<Instruction*> candidates;
      for (Instruction* i : c->instructions())
        if (IsOrdinary(*i) || i->op() == Op::Transpose) candidates.push_back(i);
      for (Instruction* i : candidates) {
        if (i->parent() != c || i->HasControlEdges()) continue;
        if (i->op() == Op::Transpose) {
          if (!IsOrdinary(*i->operand(0))) continue;
          folded += FoldResult(i);
          continue;
        }
        folded += FoldOperands(i);
        STROP_TRY(ConvertIntegers(i, changed));
        if (FoldIntoBatch(i) || OrderResult(i)) {
          ++folded;
          continue;
        }
        STROP_TRY(Untangle(i, changed));
      }
    }
    context.Count("dot-canonicalizer.folded-transposes", folded);
    return changed || folded > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeDotCanonicalizer() { return std::make_unique<DotCanonicalizer>(); }

}  // namespace strop
