// Gives every dot operands that lie in memory as one batch, one free and one contracting dimension, each with a stride
// of its own: the form that a GEMM reads without help.
//
//   1. Transposes of operands become other dimension numbers, where the result still has that form:
//        dot(transpose(x), y), lhs_contracting_dims={0}        dot(x, y), lhs_contracting_dims={1}
//   2. A transpose of the result that only exchanges the operands' sides exchanges the operands: (x y)^T = y^T x^T.
//   3. Contracting dimensions are paired in the order that lets them lie together on both sides.
//   4. An operand that still interleaves its dimensions is transposed: lhs to [batch, free, contracting], rhs to
//      [batch, contracting, free].
//   5. Integers under floats are converted to the result's type first, but for those of at most 8 bits, which the dot
//      itself converts (dot-convert-folding).
#include <algorithm>
#include <array>
#include <numeric>

#include "strop/ir/builder.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

bool Contains(const Dims& dims, int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }

Dims FreeDims(int64_t rank, const Dims& batch, const Dims& contracting) {
  Dims free;
  for (int64_t d = 0; d < rank; ++d)
    if (!Contains(batch, d) && !Contains(contracting, d)) free.push_back(d);
  return free;
}

// Do `dims`, in this order, lie in a row-major array like one dimension? Sizes of one don't count.
bool Merge(const Shape& shape, const Dims& dims) {
  const Int64Vector strides = shape.Strides();
  int64_t size = 1, stride = 0;
  for (size_t i = dims.size(); i-- > 0;) {
    if (shape.dim(dims[i]) == 1) continue;
    if (size == 1)
      stride = strides[dims[i]];
    else if (strides[dims[i]] != SaturatingMultiply(stride, size))
      return false;
    size = SaturatingMultiply(size, shape.dim(dims[i]));
  }
  return true;
}

struct Side {
  Shape shape;
  Dims batch, contracting;
  bool Fits() const {
    return Merge(shape, batch) && Merge(shape, contracting) && Merge(shape, FreeDims(shape.rank(), batch, contracting));
  }
};
using Sides = std::array<Side, 2>;

int64_t FittingSides(const Sides& s) { return s[0].Fits() + s[1].Fits(); }

Sides SidesOf(const Instruction& dot) {
  const auto& a = dot.attrs<DotAttrs>();
  return {Side{dot.operand(0)->shape(), a.lhs_batch, a.lhs_contracting},
          Side{dot.operand(1)->shape(), a.rhs_batch, a.rhs_contracting}};
}

void SetSides(Instruction* dot, const Sides& s) {
  DotAttrs a = dot->attrs<DotAttrs>();
  a.lhs_batch = s[0].batch;
  a.lhs_contracting = s[0].contracting;
  a.rhs_batch = s[1].batch;
  a.rhs_contracting = s[1].contracting;
  dot->set_attrs(std::move(a));
}

// The order of contracting pairs that suits most sides: as given, sorted by lhs, or sorted by rhs.
Sides WithBestPairing(const Sides& given) {
  Sides best = given;
  for (size_t by = 0; by < 2; ++by) {
    std::vector<size_t> order(given[0].contracting.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(),
              [&](size_t x, size_t y) { return given[by].contracting[x] < given[by].contracting[y]; });
    Sides sorted = given;
    for (size_t side = 0; side < 2; ++side)
      for (size_t k = 0; k < order.size(); ++k) sorted[side].contracting[k] = given[side].contracting[order[k]];
    if (FittingSides(sorted) > FittingSides(best)) best = sorted;
  }
  return best;
}

// `side` as dimensions of the operand of `transpose`; false if its free dimensions would come in another order.
bool FoldTranspose(const Instruction& transpose, Side& side) {
  const Dims& permutation = transpose.dimensions();
  const Dims free = FreeDims(side.shape.rank(), side.batch, side.contracting);
  for (size_t k = 1; k < free.size(); ++k)
    if (permutation[free[k - 1]] > permutation[free[k]]) return false;
  for (Dims* dims : {&side.batch, &side.contracting})
    for (int64_t& d : *dims) d = permutation[d];
  side.shape = transpose.operand(0)->shape();
  return true;
}

bool FoldOperands(Instruction* dot) {
  bool folded = false;
  Sides sides = SidesOf(*dot);
  for (size_t k = 0; k < 2; ++k) {
    Instruction* t = dot->operand(static_cast<int64_t>(k));
    Sides candidate = sides;
    if (t->op() != Op::Transpose || !FoldTranspose(*t, candidate[k])) continue;
    candidate = WithBestPairing(candidate);
    if (!candidate[k].Fits() || FittingSides(candidate) < FittingSides(sides)) continue;
    dot->SetOperand(static_cast<int64_t>(k), t->operand(0));
    sides = candidate;
    folded = true;
  }
  if (folded) SetSides(dot, sides);
  return folded;
}

// transpose(dot) that moves rhs's free dimensions before lhs's, both in order, batch dimensions in place.
bool FoldResult(Instruction* transpose) {
  Instruction* dot = transpose->operand(0);
  if (dot->op() != Op::Dot || dot->use_count() != 1 || dot->operand_count() != 2) return false;
  const Sides sides = SidesOf(*dot);
  const int64_t batch = static_cast<int64_t>(sides[0].batch.size()), rank = dot->shape().rank();
  const int64_t lhs_free = sides[0].shape.rank() - batch - static_cast<int64_t>(sides[0].contracting.size());
  const int64_t rhs_free = rank - batch - lhs_free;
  if (lhs_free == 0 || rhs_free == 0) return false;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t wanted = d < batch ? d : d < batch + rhs_free ? d + lhs_free : d - rhs_free;
    if (transpose->dimensions()[d] != wanted) return false;
  }
  DotAttrs attrs = dot->attrs<DotAttrs>();
  std::swap(attrs.lhs_batch, attrs.rhs_batch);
  std::swap(attrs.lhs_contracting, attrs.rhs_contracting);
  if (attrs.operand_precision.size() == 2) std::swap(attrs.operand_precision[0], attrs.operand_precision[1]);
  Instruction *lhs = dot->operand(1), *rhs = dot->operand(0);
  transpose->parent()->ReplaceWithNew(transpose, Op::Dot, transpose->shape(), {lhs, rhs}, std::move(attrs));
  return true;
}

Status Untangle(Instruction* dot, bool& changed) {
  Sides sides = WithBestPairing(SidesOf(*dot));
  bool transposed = false;
  for (size_t k = 0; k < 2; ++k) {
    Side& side = sides[k];
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
        if (i->parent() != c || !i->control_predecessors().empty() || !i->control_successors().empty()) continue;
        if (i->op() == Op::Transpose) {
          if (!IsOrdinary(*i->operand(0))) continue;
          folded += FoldResult(i);
          continue;
        }
        folded += FoldOperands(i);
        STROP_TRY(ConvertIntegers(i, changed));
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
