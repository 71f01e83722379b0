// Rules of dot.
#include <algorithm>
#include <cmath>
#include <optional>

#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

// Nothing is summed: zero
Instruction* DotOfEmpty(Instruction* i, Builder& b) {
  if (i->operand_count() != 2 || i->operand(0)->shape().num_elements() != 0 || IsComplex(Type(i))) return nullptr;
  return b.Splat(Type(i), 0, i->shape().dims());
}

// Are numbers of type `from` all numbers of type `to`, and products of them what they are in `to`?
bool MultipliesAs(ElementType from, ElementType to) {
  if (from == to) return true;
  if (IsPred(from) || Bits(from) >= Bits(to) || Bits(to) < 32) return false;
  return (IsFloat(from) && IsFloat(to) && Bits(from) >= 16) || (IsInteger(from) && IsInteger(to));
}

// Every sum has one term: an outer product, elementwise. It begins at zero: 0 + -0 is not -0. Halves are summed in f32,
// as all sums of them, and rounded once.
Instruction* DotIsOuterProduct(Instruction* i, Builder& b) {
  const auto& a = i->attrs<DotAttrs>();
  if (i->operand_count() != 2 || !MultipliesAs(Type(i->operand(0)), Type(i)) ||
      !MultipliesAs(Type(i->operand(1)), Type(i)) || !a.algorithm.empty())
    return nullptr;
  for (int64_t d : a.lhs_contracting)
    if (i->operand(0)->shape().dim(d) != 1) return nullptr;
  const ElementType sum_type = IsFloat(Type(i)) && Bits(Type(i)) < 32 ? ElementType::F32 : Type(i);
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
    Instruction* reshaped = b.Convert(b.Reshape(x, dims), sum_type);
    return i->shape().IsScalar() ? reshaped : b.Broadcast(reshaped, i->shape().dims(), dimensions);
  };
  Instruction* lhs = spread(i->operand(0), a.lhs_batch, a.lhs_contracting);
  Instruction* rhs = spread(i->operand(1), a.rhs_batch, a.rhs_contracting);
  Instruction* product = b.Make(IsPred(Type(i)) ? Op::And : Op::Multiply, {lhs, rhs});
  if (IsInteger(Type(i)) || IsPred(Type(i))) return product;
  return b.Convert(b.Make(Op::Add, {product, b.Splat(sum_type, 0, i->shape().dims())}), Type(i));
}

// Sums without dimensions of one side alone: products that are reduced, which kernels compute wherever they are needed;
// along rows as long as one task sums them, else of a few terms each. Of integers and complex numbers, for which the
// library has no loops along two vectors, of more.
Instruction* DotIsShortSums(Instruction* i, Builder& b) {
  constexpr int64_t kFewTerms = 8, kMostTerms = 1024, kMostElements = 1 << 16;
  const auto& a = i->attrs<DotAttrs>();
  const Shape& operand = i->operand(0)->shape();
  if (i->operand_count() != 2 || !a.algorithm.empty() || operand != i->operand(1)->shape() ||
      !MultipliesAs(operand.type(), Type(i)) || Bits(Type(i)) < 32)
    return nullptr;
  if (a.lhs_batch != a.rhs_batch || a.lhs_contracting != a.rhs_contracting ||
      !std::is_sorted(a.lhs_batch.begin(), a.lhs_batch.end()) ||
      static_cast<int64_t>(a.lhs_batch.size() + a.lhs_contracting.size()) != operand.rank())
    return nullptr;
  int64_t terms = 1;
  for (int64_t d : a.lhs_contracting) terms = SaturatingMultiply(terms, operand.dim(d));
  const int64_t last = operand.rank() - static_cast<int64_t>(a.lhs_contracting.size());
  const bool rows = std::ranges::all_of(a.lhs_contracting, [&](int64_t d) { return d >= last; });
  const bool along = rows && operand.num_elements() <= kMostElements;
  if (terms > (along ? kMostTerms : IsFloat(Type(i)) ? kFewTerms : 256) || terms < 2) return nullptr;
  Computation* sum = i->parent()->module()->AddComputation("sum");
  const Shape scalar = Shape::Array(Type(i), {});
  Instruction *left = sum->AddParameter(0, scalar), *right = sum->AddParameter(1, scalar);
  sum->set_root(sum->Add(Op::Add, scalar, {left, right}));
  Instruction *x = b.Convert(i->operand(0), Type(i)), *y = b.Convert(i->operand(1), Type(i));
  return b.Reduce(b.Make(Op::Multiply, {x, y}), b.Scalar(Type(i), 0), a.lhs_contracting, sum);
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

// An array whose elements are 1 where the number of their place along `dim` equals the id of all other places, else 0.
struct OneHot {
  Instruction* ids = nullptr;
  int64_t dim = 0;
};

// The dimension along which an array counts 0, 1, 2, ..., or -1.
int64_t CountedDim(const Instruction* i) {
  if (i->op() == Op::Iota) return i->attrs<IotaAttrs>().dimension;
  if (i->op() != Op::Broadcast || i->operand(0)->op() != Op::Iota) return -1;
  return i->dimensions()[i->operand(0)->attrs<IotaAttrs>().dimension];
}

std::optional<OneHot> OneHotOf(const Instruction* i) {
  if (i->op() != Op::Convert || i->operand(0)->op() != Op::Compare) return std::nullopt;
  const Instruction* equal = i->operand(0);
  if (equal->attrs<CompareAttrs>().direction != CompareDirection::Eq || !IsInt(equal->operand(0))) return std::nullopt;
  for (const int64_t side : {0, 1}) {
    const int64_t dim = CountedDim(equal->operand(side));
    const Instruction* spread = equal->operand(1 - side);
    if (dim < 0 || spread->op() != Op::Broadcast) continue;
    Dims others;
    for (int64_t d = 0; d < i->shape().rank(); ++d)
      if (d != dim) others.push_back(d);
    const ElementType type = Type(spread);
    const int bits = std::min(62, Bits(type) - (IsSigned(type) ? 1 : 0));
    // The count must not wrap.
    if (spread->dimensions() == others && !others.empty() && (i->shape().dim(dim) - 1) >> bits == 0)
      return OneHot{spread->operand(0), dim};
  }
  return std::nullopt;
}

// Floats that have infinities and NaN.
bool HoldsNonFinite(ElementType type) {
  return type == ElementType::F16 || type == ElementType::BF16 || type == ElementType::F32 || type == ElementType::F64;
}

Instruction* CountNotFinite(Instruction* x, int64_t dim, Builder& b) {
  Computation* sum = b.computation()->module()->AddComputation("sum");
  Builder body(sum);
  const Shape scalar = Shape::Scalar(ElementType::S32);
  body.Make(Op::Add, {body.Parameter(0, scalar), body.Parameter(1, scalar)});
  if (!body.Finish().ok()) return nullptr;
  Instruction* ones = b.Convert(b.Make(Op::Not, {b.Make(Op::IsFinite, {x})}), ElementType::S32);
  return b.Reduce(ones, b.Scalar(ElementType::S32, 0), {dim}, sum);
}

// Rows of a table, picked by a product with ones and zeros: they are gathered. Zero times what is not finite is NaN:
// the sum is that where a column has such an element, other than the one that is picked. It begins at zero: 0 + -0 is
// not -0, and a row of no id is zero.
Instruction* DotOfOneHot(Instruction* i, Builder& b) {
  constexpr int64_t kFewestRows = 8, kLeastProducts = 1 << 16;  // of which a product is as good
  const auto& dot = i->attrs<DotAttrs>();
  if (i->operand_count() != 2 || !dot.lhs_batch.empty() || dot.lhs_contracting.size() != 1 || !dot.algorithm.empty())
    return nullptr;
  for (const int64_t side : {0, 1}) {
    const std::optional<OneHot> hot = OneHotOf(i->operand(side));
    const Dims &summed = side == 0 ? dot.lhs_contracting : dot.rhs_contracting,
               &of_table = side == 0 ? dot.rhs_contracting : dot.lhs_contracting;
    if (!hot || hot->dim != summed[0]) continue;
    Instruction *table = i->operand(1 - side), *ids = hot->ids;
    const int64_t row = of_table[0], rows = table->shape().dim(row), picked = ids->shape().num_elements();
    const bool floats = HoldsNonFinite(Type(table)) && HoldsNonFinite(Type(i));
    if (!(floats || (IsInt(table) && IsInt(i))) || picked < kFewestRows ||
        picked * table->shape().num_elements() < kLeastProducts)
      continue;
    const Int64Vector& dims = i->shape().dims();
    const int64_t free = table->shape().rank() - 1, ids_rank = ids->shape().rank();
    const int64_t ids_at = side == 0 ? 0 : free, free_at = side == 0 ? ids_rank : 0;
    Dims id_dims, free_dims;
    for (int64_t d = 0; d < ids_rank; ++d) id_dims.push_back(ids_at + d);
    for (int64_t d = 0; d < free; ++d) free_dims.push_back(free_at + d);

    const Int64Vector& table_dims = table->shape().dims();
    GatherAttrs gather{.offset_dims = free_dims,
                       .collapsed_slice_dims = {row},
                       .start_index_map = {row},
                       .index_vector_dim = ids_rank,
                       .slice_sizes = Dims(table_dims.begin(), table_dims.end())};
    gather.slice_sizes[row] = 1;
    Int64Vector index_dims = ids->shape().dims();
    index_dims.push_back(1);
    Instruction* found = b.Make(Op::Gather, {table, b.Reshape(ids, index_dims)}, gather);
    Instruction* is_row = b.Make(Op::And, {b.Compare(ids, Like(b, ids, 0), CompareDirection::Ge),
                                           b.Compare(ids, Like(b, ids, rows - 1), CompareDirection::Le)});
    Instruction* inside = b.Broadcast(is_row, dims, id_dims);
    Instruction *value = b.Convert(found, Type(i)), *zero = b.Splat(Type(i), 0, dims);
    if (!floats) return b.Make(Op::Select, {inside, value, zero});
    value = b.Make(Op::Select, {inside, b.Make(Op::Add, {value, zero}), zero});
    Instruction* own = b.Make(Op::And, {inside, b.Make(Op::Not, {b.Make(Op::IsFinite, {found})})});
    Instruction* all = CountNotFinite(table, row, b);
    if (!all) return nullptr;
    Instruction* spoiled =
        b.Compare(b.Broadcast(all, dims, free_dims), b.Convert(own, ElementType::S32), CompareDirection::Gt);
    return b.Make(Op::Select, {spoiled, b.Splat(Type(i), NAN, dims), value});
  }
  return nullptr;
}

constexpr Rule kRules[] = {
    {"dot-of-empty", Op::Dot, &DotOfEmpty},
    {"dot-is-outer-product", Op::Dot, &DotIsOuterProduct},
    {"dot-is-short-sums", Op::Dot, &DotIsShortSums},
    {"dot-of-one-hot", Op::Dot, &DotOfOneHot},
    {"dot-of-gathered-rows", Op::Dot, &DotOfGatheredRows},
};

}  // namespace

RuleSet DotRules() { return kRules; }

}  // namespace strop::simplify
