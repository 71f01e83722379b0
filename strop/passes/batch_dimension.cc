#include "strop/passes/batch_dimension.h"

#include <algorithm>

namespace strop {
namespace {

int64_t IndexOf(const Dims& dims, int64_t d) { return std::find(dims.begin(), dims.end(), d) - dims.begin(); }

// The new number of dimension `k` when `d` goes behind all others; d < 0: none does.
int64_t NumberOf(int64_t k, int64_t rank, int64_t d) {
  if (d < 0 || k < d) return k;
  return k == d ? rank - 1 : k - 1;
}

Shape Permuted(const Shape& shape, int64_t d, int64_t members) {
  Int64Vector dims;
  for (int64_t k : WithInnermost(shape.rank(), d)) dims.push_back(k == d ? members : shape.dim(k));
  return Shape::Array(shape.type(), dims);
}

int64_t ElementsBefore(const Shape& shape, int64_t d) {
  int64_t n = 1;
  for (int64_t k = 0; k < d; ++k) n *= shape.dim(k);
  return n;
}

// One of the first operands has the batch as the result has it; the others are scalars.
Dims FirstHave(const Instruction& i, int64_t count, int64_t d) {
  Dims dims(static_cast<size_t>(i.operand_count()), -1);
  std::fill_n(dims.begin(), count, d);
  return dims;
}

// The dimensions of an operand that are neither batch nor summed over, in its order.
Dims FreeDims(const Shape& shape, const Dims& batch, const Dims& contracting) {
  Dims free;
  for (int64_t k = 0; k < shape.rank(); ++k)
    if (!Contains(batch, k) && !Contains(contracting, k)) free.push_back(k);
  return free;
}

std::optional<Dims> OfProduct(const Instruction& dot, int64_t d) {
  const DotAttrs& a = dot.attrs<DotAttrs>();
  if (dot.operand_count() != 2) return std::nullopt;
  const Shape &lhs = dot.operand(0)->shape(), &rhs = dot.operand(1)->shape();
  const bool same = lhs.type() == dot.shape().type() && rhs.type() == dot.shape().type();
  if (!same || !IsFloat(lhs.type()) || Bits(lhs.type()) < 32 || !a.algorithm.empty() || a.lhs_contracting.empty())
    return std::nullopt;
  const auto batches = static_cast<int64_t>(a.lhs_batch.size());
  if (d < batches) return Dims{a.lhs_batch[static_cast<size_t>(d)], a.rhs_batch[static_cast<size_t>(d)]};
  const Dims of_lhs = FreeDims(lhs, a.lhs_batch, a.lhs_contracting),
             of_rhs = FreeDims(rhs, a.rhs_batch, a.rhs_contracting);
  const auto place = static_cast<size_t>(d - batches);
  return place < of_lhs.size() ? Dims{of_lhs[place], -1} : Dims{-1, of_rhs[place - of_lhs.size()]};
}

// Both operands spread over [other batches..., free of lhs..., free of rhs..., summed..., batch], multiplied, and
// summed.
Instruction* Product(Builder& b, const Instruction& dot, const Dims& batch, int64_t members, Instruction* lhs,
                     Instruction* rhs) {
  const DotAttrs& a = dot.attrs<DotAttrs>();
  const auto others = [](const Dims& batches, int64_t d) {
    Dims list;
    for (int64_t k : batches)
      if (k != d) list.push_back(k);
    return list;
  };
  const auto free = [](const Instruction& x, Dims batches, int64_t d, const Dims& contracting) {
    if (d >= 0) batches.push_back(d);
    return FreeDims(x.shape(), batches, contracting);
  };
  const Dims others_lhs = others(a.lhs_batch, batch[0]), others_rhs = others(a.rhs_batch, batch[1]),
             free_lhs = free(*dot.operand(0), a.lhs_batch, batch[0], a.lhs_contracting),
             free_rhs = free(*dot.operand(1), a.rhs_batch, batch[1], a.rhs_contracting);
  Int64Vector sizes;
  Dims summed;
  for (int64_t k : others_lhs) sizes.push_back(dot.operand(0)->shape().dim(k));
  for (int64_t k : free_lhs) sizes.push_back(dot.operand(0)->shape().dim(k));
  for (int64_t k : free_rhs) sizes.push_back(dot.operand(1)->shape().dim(k));
  for (int64_t k : a.lhs_contracting) {
    summed.push_back(static_cast<int64_t>(sizes.size()));
    sizes.push_back(dot.operand(0)->shape().dim(k));
  }
  sizes.push_back(members);
  const auto spread = [&](Instruction* x, const Instruction& original, int64_t d, const Dims& others, const Dims& free,
                          int64_t first_free, const Dims& contracting) {
    const int64_t rank = original.shape().rank();
    Dims to(static_cast<size_t>(rank));
    for (int64_t k = 0; k < rank; ++k) {
      int64_t at = static_cast<int64_t>(sizes.size()) - 1;
      if (Contains(others, k)) at = IndexOf(others, k);
      if (Contains(free, k)) at = first_free + IndexOf(free, k);
      if (Contains(contracting, k)) at = summed[static_cast<size_t>(IndexOf(contracting, k))];
      to[static_cast<size_t>(NumberOf(k, rank, d))] = at;
    }
    // A broadcast names dimensions in the result's order.
    Dims order = to, sorted = to;
    std::sort(sorted.begin(), sorted.end());
    for (size_t k = 0; k < sorted.size(); ++k) order[k] = IndexOf(to, sorted[k]);
    if (order != WithInnermost(rank, rank - 1)) x = b.Transpose(x, order);
    return b.Broadcast(x, sizes, sorted);
  };
  const auto first = static_cast<int64_t>(others_lhs.size());
  Instruction* left = spread(lhs, *dot.operand(0), batch[0], others_lhs, free_lhs, first, a.lhs_contracting);
  Instruction* right = spread(rhs, *dot.operand(1), batch[1], others_rhs, free_rhs,
                              first + static_cast<int64_t>(free_lhs.size()), a.rhs_contracting);
  Computation* sum = dot.module()->AddComputation("sum");
  const Shape scalar = Shape::Array(dot.shape().type(), {});
  Instruction *x = sum->AddParameter(0, scalar), *y = sum->AddParameter(1, scalar);
  sum->set_root(sum->Add(Op::Add, scalar, {x, y}));
  return b.Reduce(b.Make(Op::Multiply, {left, right}), b.Scalar(dot.shape().type(), 0), summed, sum);
}

}  // namespace

Dims WithInnermost(int64_t rank, int64_t d) {
  Dims order;
  for (int64_t k = 0; k < rank; ++k)
    if (k != d) order.push_back(k);
  order.push_back(d);
  return order;
}

std::optional<Dims> BatchDimsOfOperands(const Instruction& i, int64_t d) {
  const Shape& shape = i.shape();
  for (int64_t k = 0; k < i.operand_count(); ++k)
    if (!i.operand(k)->shape().IsArray() || !i.operand(k)->shape().IsStatic()) return std::nullopt;
  switch (i.op()) {
    case Op::Iota: return Dims{};
    case Op::Broadcast: return Dims{Contains(i.dimensions(), d) ? IndexOf(i.dimensions(), d) : -1};
    case Op::Transpose: return Dims{i.dimensions()[static_cast<size_t>(d)]};
    case Op::Reshape: {
      const Shape& from = i.operand(0)->shape();
      for (int64_t k = 0; k < from.rank(); ++k)
        if (from.dim(k) == shape.dim(d) && ElementsBefore(from, k) == ElementsBefore(shape, d)) return Dims{k};
      return std::nullopt;
    }
    case Op::Slice:
    case Op::DynamicSlice:
    case Op::Pad:
      if (i.operand(0)->shape().dim(d) != shape.dim(d)) return std::nullopt;
      if (i.op() == Op::Pad && i.attrs<PadAttrs>().padding[static_cast<size_t>(d)] != PaddingDim{}) return std::nullopt;
      return FirstHave(i, 1, d);
    case Op::DynamicUpdateSlice:
      if (i.operand(1)->shape().dim(d) != shape.dim(d)) return std::nullopt;
      return FirstHave(i, 2, d);
    case Op::Reverse:
    case Op::Concatenate:
      if (Contains(i.dimensions(), d)) return std::nullopt;
      return FirstHave(i, i.operand_count(), d);
    case Op::Reduce: {
      if (i.operand_count() != 2) return std::nullopt;
      const Dims kept = FreeDims(i.operand(0)->shape(), {}, i.dimensions());
      return Dims{kept[static_cast<size_t>(d)], -1};
    }
    case Op::Dot: return OfProduct(i, d);
    default: break;
  }
  if (!IsElementwise(i.op())) return std::nullopt;
  Dims dims;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const Shape& operand = i.operand(k)->shape();
    if (!operand.IsScalar() && operand.dims() != shape.dims()) return std::nullopt;
    dims.push_back(operand.IsScalar() ? -1 : d);
  }
  return dims;
}

Instruction* WithBatchInnermost(Builder& b, const Instruction& i, int64_t d, int64_t members,
                                const std::function<Instruction*(int64_t k)>& operand) {
  const Dims from = *BatchDimsOfOperands(i, d);
  const Shape shape = Permuted(i.shape(), d, members);
  const int64_t rank = shape.rank();
  std::vector<Instruction*> operands;
  for (int64_t k = 0; k < i.operand_count(); ++k) operands.push_back(operand(k));
  const auto moved = [&](const Dims& dims) {
    Dims numbers;
    for (int64_t k : dims) numbers.push_back(NumberOf(k, rank, d));
    return numbers;
  };
  // Of lists with an entry a dimension.
  const auto in_order = [&](auto list) {
    auto ordered = list;
    for (int64_t k = 0; k < rank; ++k)
      ordered[static_cast<size_t>(NumberOf(k, rank, d))] = list[static_cast<size_t>(k)];
    return ordered;
  };
  switch (i.op()) {
    case Op::Iota: return b.Iota(shape, NumberOf(i.attrs<IotaAttrs>().dimension, rank, d));
    case Op::Broadcast: {
      const int64_t operand_rank = i.operand(0)->shape().rank();
      Dims to(static_cast<size_t>(operand_rank));
      for (int64_t k = 0; k < operand_rank; ++k)
        to[static_cast<size_t>(NumberOf(k, operand_rank, from[0]))] =
            NumberOf(i.dimensions()[static_cast<size_t>(k)], rank, d);
      return b.Broadcast(operands[0], shape.dims(), to);
    }
    case Op::Transpose: {
      Dims permutation(static_cast<size_t>(rank));
      for (int64_t k = 0; k < rank; ++k)
        permutation[static_cast<size_t>(NumberOf(k, rank, d))] =
            NumberOf(i.dimensions()[static_cast<size_t>(k)], rank, from[0]);
      return b.Transpose(operands[0], permutation);
    }
    case Op::Reshape: return b.Reshape(operands[0], shape.dims());
    case Op::Slice: {
      SliceDims slice = in_order(i.attrs<SliceAttrs>().slice);
      slice.back() = {0, members, 1};
      return b.Make(Op::Slice, operands, SliceAttrs{slice}, {}, nullptr);
    }
    case Op::Pad: return b.Make(Op::Pad, operands, PadAttrs{in_order(i.attrs<PadAttrs>().padding)}, {}, nullptr);
    case Op::DynamicSlice:
    case Op::DynamicUpdateSlice: {
      const auto starts = operands.end() - rank;
      const std::vector<Instruction*> ordered = in_order(std::vector<Instruction*>(starts, operands.end()));
      std::copy(ordered.begin(), ordered.end(), starts);
      if (i.op() == Op::DynamicUpdateSlice) return b.Make(i.op(), operands, i.any_attrs(), {}, nullptr);
      Dims sizes = in_order(i.attrs<DynamicSliceAttrs>().sizes);
      sizes.back() = members;
      return b.Make(i.op(), operands, DynamicSliceAttrs{sizes}, {}, nullptr);
    }
    case Op::Reverse:
    case Op::Concatenate: return b.Make(i.op(), operands, DimensionsAttrs{moved(i.dimensions())}, {}, nullptr);
    case Op::Reduce: {
      Dims dims;
      for (int64_t k : i.dimensions()) dims.push_back(NumberOf(k, i.operand(0)->shape().rank(), from[0]));
      std::sort(dims.begin(), dims.end());
      return b.Reduce(operands[0], operands[1], dims, i.to_apply());
    }
    case Op::Dot: return Product(b, i, from, members, operands[0], operands[1]);
    default: return b.Make(i.op(), operands, i.any_attrs(), {}, &shape);
  }
}

}  // namespace strop
