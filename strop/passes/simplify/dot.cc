// Rules of dot.
#include <algorithm>

#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

// Nothing is summed: zero
Instruction* DotOfEmpty(Instruction* i, Builder& b) {
  if (i->operand_count() != 2 || i->operand(0)->shape().num_elements() != 0 || IsComplex(Type(i))) return nullptr;
  return b.Splat(Type(i), 0, i->shape().dims());
}

// Every sum has one term: an outer product, elementwise. It begins at zero: 0 + -0 is not -0.
Instruction* DotIsOuterProduct(Instruction* i, Builder& b) {
  const auto& a = i->attrs<DotAttrs>();
  if (i->operand_count() != 2 || Type(i->operand(0)) != Type(i) || Type(i->operand(1)) != Type(i) ||
      !a.algorithm.empty())
    return nullptr;
  for (int64_t d : a.lhs_contracting)
    if (i->operand(0)->shape().dim(d) != 1) return nullptr;
  // Result dimensions: batch, those of lhs that are left, those of rhs that are left.
  int64_t next = static_cast<int64_t>(a.lhs_batch.size());
  auto spread = [&](Instruction* x, const Dims& batch, const Dims& contracting) {
    Int64Vector dims;
    Dims dimensions;
    for (int64_t d = 0; d < x->shape().rank(); ++d) {
      if (Contains(contracting, d)) continue;
      const auto at = std::find(batch.begin(), batch.end(), d);
      dims.push_back(x->shape().dim(d));
      dimensions.push_back(at == batch.end() ? next++ : at - batch.begin());
    }
    Instruction* reshaped = b.Reshape(x, dims);
    return i->shape().IsScalar() ? reshaped : b.Broadcast(reshaped, i->shape().dims(), dimensions);
  };
  Instruction* lhs = spread(i->operand(0), a.lhs_batch, a.lhs_contracting);
  Instruction* rhs = spread(i->operand(1), a.rhs_batch, a.rhs_contracting);
  Instruction* product = b.Make(IsPred(Type(i)) ? Op::And : Op::Multiply, {lhs, rhs});
  if (IsInteger(Type(i)) || IsPred(Type(i))) return product;
  return b.Make(Op::Add, {product, b.Splat(Type(i), 0, i->shape().dims())});
}

// The number of dimension `d` among those that are left without others.
int64_t Behind(const Dims& without, int64_t d) {
  return d - std::count_if(without.begin(), without.end(), [&](int64_t gone) { return gone < d; });
}

// The operand's dimension behind each dimension of a gather's result that counts inside windows; -1 for the others.
Int64Vector OperandDims(const Instruction& gather) {
  const GatherAttrs& a = gather.attrs<GatherAttrs>();
  Int64Vector dims(gather.shape().rank(), -1);
  size_t next = 0;
  for (int64_t d = 0; d < gather.operand(0)->shape().rank(); ++d)
    if (!Contains(a.collapsed_slice_dims, d)) dims[a.offset_dims[next++]] = d;
  return dims;
}

// Rows are gathered, more than there are, and multiplied by a matrix: the product of each row is computed once, and
// gathered. dot(x[ids], w) -> dot(x, w)[ids], from either side.
Instruction* DotOfGatheredRows(Instruction* i, Builder& b) {
  constexpr int64_t kFewestRepeats = 2;  // fewer gain little, and the product is moved once more
  const auto& dot = i->attrs<DotAttrs>();
  if (i->operand_count() != 2 || !dot.lhs_batch.empty() || i->shape().num_elements() == 0) return nullptr;
  for (const int64_t side : {0, 1}) {
    Instruction *gather = i->operand(side), *other = i->operand(1 - side);
    if (gather->op() != Op::Gather) continue;
    const GatherAttrs& a = gather->attrs<GatherAttrs>();
    Instruction* rows = gather->operand(0);
    if (!a.operand_batching_dims.empty() ||
        gather->shape().num_elements() / kFewestRepeats < rows->shape().num_elements())
      continue;
    // What is summed over must be whole in every window.
    const Int64Vector operand_dims = OperandDims(*gather);
    const Dims& summed = side == 0 ? dot.lhs_contracting : dot.rhs_contracting;
    Dims summed_of_rows;
    for (int64_t d : summed) {
      const int64_t from = operand_dims[d];
      if (from >= 0 && a.slice_sizes[from] == rows->shape().dim(from) && !Contains(a.start_index_map, from))
        summed_of_rows.push_back(from);
    }
    if (summed_of_rows.size() != summed.size()) continue;

    DotAttrs product = dot;
    (side == 0 ? product.lhs_contracting : product.rhs_contracting) = summed_of_rows;
    Instruction* products = b.Dot(side == 0 ? rows : other, side == 0 ? other : rows, product, Type(i));
    // The other operand's dimensions are whole in every window, before or behind those of the rows.
    const int64_t free = other->shape().rank() - static_cast<int64_t>(summed.size());
    const int64_t rows_at = side == 0 ? 0 : free, free_at = side == 0 ? i->shape().rank() - free : 0;
    GatherAttrs picked;
    picked.index_vector_dim = a.index_vector_dim;
    picked.indices_are_sorted = a.indices_are_sorted;
    const auto of_products = [&](int64_t d) { return rows_at + Behind(summed_of_rows, d); };
    for (int64_t d : a.start_index_map) picked.start_index_map.push_back(of_products(d));
    for (int64_t d : a.collapsed_slice_dims) picked.collapsed_slice_dims.push_back(of_products(d));
    for (int64_t d = 0; d < free; ++d) picked.offset_dims.push_back(free_at + d);
    for (int64_t d : a.offset_dims)
      if (!Contains(summed, d)) picked.offset_dims.push_back(rows_at + Behind(summed, d));
    std::sort(picked.offset_dims.begin(), picked.offset_dims.end());
    const Int64Vector& sizes = products->shape().dims();
    picked.slice_sizes.assign(sizes.begin(), sizes.end());
    for (int64_t d = 0; d < rows->shape().rank(); ++d)
      if (!Contains(summed_of_rows, d)) picked.slice_sizes[of_products(d)] = a.slice_sizes[d];
    return b.Make(Op::Gather, {products, gather->operand(1)}, picked);
  }
  return nullptr;
}

constexpr Rule kRules[] = {
    {"dot-of-empty", Op::Dot, &DotOfEmpty},
    {"dot-is-outer-product", Op::Dot, &DotIsOuterProduct},
    {"dot-of-gathered-rows", Op::Dot, &DotOfGatheredRows},
};

}  // namespace

RuleSet DotRules() { return kRules; }

}  // namespace strop::simplify
