// Gives every dot operands that lie in memory as one or two batch, one free and one contracting dimension, each with a
// stride of its own: the form that a GEMM reads without help.
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
#include <numeric>

#include "strop/ir/builder.h"
#include "strop/passes/dot_sides.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

void SetSides(Instruction* dot, const DotSides& s) {
  DotAttrs a = dot->attrs<DotAttrs>();
  a.lhs_batch = s[0].batch;
  a.lhs_contracting = s[0].contracting;
  a.rhs_batch = s[1].batch;
  a.rhs_contracting = s[1].contracting;
  dot->set_attrs(std::move(a));
}

bool FoldOperands(Instruction* dot) {
  bool folded = false;
  DotSides sides = SidesOf(*dot);
  for (size_t k = 0; k < 2; ++k) {
    Instruction* t = dot->operand(static_cast<int64_t>(k));
    DotSides candidate = sides;
    if (t->op() != Op::Transpose || !FoldTranspose(t->dimensions(), t->operand(0)->shape(), candidate, k)) continue;
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
  const DotSides sides = SidesOf(*dot);
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
