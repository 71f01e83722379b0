// Rules of transpose.
#include <algorithm>
#include <utility>

#include "strop/ir/physical_shape.h"
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

Instruction* TransposeTranspose(Instruction* i, Builder& b) {
  Instruction* inner = i->operand(0);
  if (inner->op() != Op::Transpose) return nullptr;
  Dims permutation;
  for (int64_t d : i->dimensions()) permutation.push_back(inner->dimensions()[d]);
  return b.Transpose(inner->operand(0), permutation);
}

// At most dimensions of one element change their place: no element moves.
Instruction* TransposeIsReshape(Instruction* i, Builder& b) {
  int64_t last = -1;
  for (int64_t d : i->dimensions()) {
    if (i->operand(0)->shape().dim(d) == 1) continue;
    if (d < last) return nullptr;
    last = d;
  }
  return b.Reshape(i->operand(0), i->shape().dims());
}

Instruction* TransposeBroadcast(Instruction* i, Builder& b) {
  Instruction* x = i->operand(0);
  if (x->op() != Op::Broadcast) return nullptr;
  const Dims inverse = InversePermutation(i->dimensions());
  Dims dimensions;
  for (int64_t d : x->dimensions()) dimensions.push_back(inverse[d]);
  return b.Broadcast(x->operand(0), i->shape().dims(), dimensions);
}

Instruction* TransposeIota(Instruction* i, Builder& b) {
  const Instruction* x = i->operand(0);
  if (x->op() != Op::Iota) return nullptr;
  return b.Iota(i->shape().WithoutLayout(), InversePermutation(i->dimensions())[x->attrs<IotaAttrs>().dimension]);
}

// The dimensions of a gather's result whose positions pick from a list are given others, of as many elements: so is the
// list. Null if the windows are not the last dimensions of both.
Instruction* OfReshapedList(Instruction* gather, const Int64Vector& dims, Builder& b) {
  const GatherAttrs& a = gather->attrs<GatherAttrs>();
  const Shape &from = gather->shape(), &list = gather->operand(1)->shape();
  const int64_t windows = static_cast<int64_t>(a.offset_dims.size()), rank = static_cast<int64_t>(dims.size());
  if (!a.operand_batching_dims.empty() || a.index_vector_dim + 1 != list.rank() || windows >= rank) return nullptr;
  GatherAttrs reshaped = a;
  reshaped.offset_dims.clear();
  for (int64_t k = 0; k < windows; ++k) {
    const int64_t d = from.rank() - windows + k;
    if (a.offset_dims[k] != d || from.dim(d) != dims[static_cast<size_t>(rank - windows + k)]) return nullptr;
    reshaped.offset_dims.push_back(rank - windows + k);
  }
  Int64Vector of_list(dims.begin(), dims.end() - windows);
  reshaped.index_vector_dim = static_cast<int64_t>(of_list.size());
  of_list.push_back(list.dim(a.index_vector_dim));
  Instruction* const operands[] = {gather->operand(0), b.Reshape(gather->operand(1), of_list)};
  return b.Make(Op::Gather, operands, reshaped, {}, nullptr);
}

// A few numbers from a small table at each place, each of them in a plane of its own: gathered so (a bias for each head
// of attention, by distance). Of longer windows and larger tables rows are better read as they lie.
Instruction* TransposeGather(Instruction* i, Builder& b) {
  constexpr int64_t kMostOfWindow = 32, kLargestTable = 1 << 15;  // elements; bytes
  Instruction* gather = i->operand(0);
  const bool reshaped = gather->op() == Op::Reshape && gather->use_count() == 1;
  if (reshaped) gather = gather->operand(0);
  if (gather->op() != Op::Gather || gather->use_count() != 1 || gather->HasControlEdges()) return nullptr;
  int64_t window = 1;
  for (int64_t d : gather->attrs<GatherAttrs>().offset_dims) window *= gather->shape().dim(d);
  if (window > kMostOfWindow || gather->operand(0)->shape().byte_size() > kLargestTable) return nullptr;
  if (reshaped) gather = OfReshapedList(gather, i->operand(0)->shape().dims(), b);
  if (!gather) return nullptr;
  GatherAttrs a = gather->attrs<GatherAttrs>();
  Dims at;  // of the windows' dimensions, and of the others, where they stood
  Dims others;
  const Dims windows = std::exchange(a.offset_dims, {});
  for (int64_t d = 0; d < i->shape().rank(); ++d) {
    const int64_t from = i->dimensions()[d];
    const bool of_window = Contains(windows, from);
    (of_window ? at : others).push_back(from);
    if (of_window) a.offset_dims.push_back(d);
  }
  if (!std::ranges::is_sorted(at) || !std::ranges::is_sorted(others)) return nullptr;
  Instruction* const operands[] = {gather->operand(0), gather->operand(1)};
  return b.Make(Op::Gather, operands, a, {}, nullptr);
}

// A tree of elementwise ops above a transpose, each used by the tree only.
struct TransposedTree {
  const Dims& permutation;               // of the transpose below
  std::vector<Instruction*> inner = {};  // operands before their users
  int64_t gone = 0, made = 0;            // transposes, if the tree is computed in the order of its result

  static constexpr size_t kMaxSize = 16;

  // What costs nothing to have in another order.
  static bool IsFree(const Instruction* leaf) {
    return leaf->shape().IsScalar() || leaf->op() == Op::Broadcast || leaf->op() == Op::Iota;
  }
  // A transpose that the one below undoes.
  bool IsUndone(const Instruction* leaf) const {
    if (leaf->op() != Op::Transpose) return false;
    for (size_t d = 0; d < permutation.size(); ++d)
      if (leaf->dimensions()[permutation[d]] != static_cast<int64_t>(d)) return false;
    return true;
  }

  bool Collect(Instruction* root) {
    std::vector<Instruction*> left = {root};
    while (!left.empty()) {
      Instruction* i = left.back();
      left.pop_back();
      inner.push_back(i);
      if (inner.size() > kMaxSize) return false;
      for (int64_t k = 0; k < i->operand_count(); ++k) {
        Instruction* x = i->operand(k);
        bool again = false;
        for (int64_t before = 0; before < k; ++before) again |= i->operand(before) == x;
        if (again || IsFree(x)) continue;
        const bool only_here = x->use_count() == 1 || (x->use_count() == 2 && x->uses()[0].user == x->uses()[1].user);
        if (IsUndone(x))
          gone += only_here;
        else if (only_here && IsElementwise(x->op()) && x->shape().SameDims(root->shape()) && NoControl(x))
          left.push_back(x);
        else
          ++made;
      }
    }
    std::reverse(inner.begin(), inner.end());
    return true;
  }
  static bool NoControl(const Instruction* i) { return !i->HasControlEdges(); }

  Instruction* Permuted(Builder& b, Instruction* leaf) const {
    if (leaf->shape().IsScalar()) return leaf;
    return IsUndone(leaf) ? leaf->operand(0) : b.Transpose(leaf, permutation);
  }

  Instruction* Rebuild(Builder& b, const Shape& shape) const {
    std::vector<std::pair<Instruction*, Instruction*>> made_of;  // at most kMaxSize
    const auto find = [&](Instruction* x) -> Instruction* {
      for (const auto& [old, fresh] : made_of)
        if (old == x) return fresh;
      return Permuted(b, x);
    };
    for (Instruction* i : inner) {
      std::vector<Instruction*> operands;
      for (int64_t k = 0; k < i->operand_count(); ++k) operands.push_back(find(i->operand(k)));
      const Shape own = shape.WithType(Type(i));
      made_of.emplace_back(i, b.Make(i->op(), operands, i->any_attrs(), {}, &own));
    }
    return made_of.back().second;
  }
};

// transpose(f(transpose(x), y)) -> f(x, transpose(y)), where that leaves fewer transposes
Instruction* TransposeElementwise(Instruction* i, Builder& b) {
  Instruction* x = i->operand(0);
  if (!IsElementwise(x->op()) || x->use_count() != 1 || !TransposedTree::NoControl(x)) return nullptr;
  TransposedTree tree{i->dimensions()};
  if (!tree.Collect(x) || tree.made > tree.gone) return nullptr;
  return tree.Rebuild(b, i->shape().WithoutLayout());
}

constexpr Rule kRules[] = {
    {"transpose-transpose", Op::Transpose, &TransposeTranspose},
    {"transpose-is-reshape", Op::Transpose, &TransposeIsReshape},
    {"transpose-broadcast", Op::Transpose, &TransposeBroadcast},
    {"transpose-iota", Op::Transpose, &TransposeIota},
    {"transpose-gather", Op::Transpose, &TransposeGather},
    {"transpose-elementwise", Op::Transpose, &TransposeElementwise},
};

}  // namespace

RuleSet TransposeRules() { return kRules; }

}  // namespace strop::simplify
