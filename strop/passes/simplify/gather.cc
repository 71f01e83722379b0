// Rules of gather.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

constexpr int64_t kFew = 4, kFewOfStack = 12;  // more are found sooner than compared with
constexpr int64_t kMostSelected = 1 << 15;     // elements; of larger arrays only what is picked is read

// A gather of one window: gathers keep their windows inside the operand as dynamic slices do.
Instruction* GatherOneWindow(Instruction* i, Builder& b) {
  const GatherAttrs& a = i->attrs<GatherAttrs>();
  Instruction *operand = i->operand(0), *indices = i->operand(1);
  const int64_t components = static_cast<int64_t>(a.start_index_map.size()), rank = operand->shape().rank();
  if (!a.operand_batching_dims.empty() || components == 0 || rank == 0 || i->shape().num_elements() == 0 ||
      indices->shape().num_elements() != components || IsPred(Type(indices)))
    return nullptr;
  std::vector<Instruction*> operands(rank + 1, nullptr);
  operands[0] = operand;
  Instruction* list = components == 1 ? nullptr : b.Reshape(indices, {components});
  for (int64_t k = 0; k < components; ++k)
    operands[1 + a.start_index_map[k]] = b.Reshape(list ? b.Slice(list, {k}, {k + 1}, {1}) : indices, {});
  for (Instruction*& start : operands)
    if (!start) start = b.Scalar(Type(indices), 0);
  return b.Reshape(b.Make(Op::DynamicSlice, operands, DynamicSliceAttrs{a.slice_sizes}, {}, nullptr),
                   i->shape().dims());
}

// Of windows that begin at a counted place, all of it: rows 0, 1, 2, ...
Instruction* GatherEverything(Instruction* i, Builder& b) {
  const GatherAttrs& a = i->attrs<GatherAttrs>();
  Instruction *operand = i->operand(0), *iota = i->operand(1);
  while (iota->op() == Op::Reshape) iota = iota->operand(0);
  if (iota->op() != Op::Iota || iota->shape().dim(iota->attrs<IotaAttrs>().dimension) != iota->shape().num_elements() ||
      a.start_index_map.size() != 1 || !a.operand_batching_dims.empty())
    return nullptr;
  const int64_t along = a.start_index_map[0], size = operand->shape().dim(along);
  const int64_t counted = iota->shape().num_elements();
  const Shape& indices = i->operand(1)->shape();
  // One batch dimension, along which the windows of one element stand in the operand's order
  const int64_t batch_rank = indices.rank() - (a.index_vector_dim < indices.rank() ? 1 : 0);
  if (counted != size || batch_rank != 1 || a.slice_sizes[along] != 1 || !Contains(a.collapsed_slice_dims, along) ||
      a.collapsed_slice_dims.size() != 1 || (Bits(Type(iota)) < 32 && size > 127))
    return nullptr;
  for (int64_t d = 0; d < operand->shape().rank(); ++d)
    if (d != along && a.slice_sizes[d] != operand->shape().dim(d)) return nullptr;
  Dims permutation;
  for (int64_t d = 0, window = 0; d < i->shape().rank(); ++d) {
    if (!Contains(a.offset_dims, d)) {
      permutation.push_back(along);
      continue;
    }
    if (window == along) ++window;
    permutation.push_back(window++);
  }
  return b.Transpose(operand, permutation);
}

// Is component `k` of a list of starts, concatenated of them, the number of its place along a dimension of the batch:
// 0, 1, 2, ... up to `size`? Then that dimension of the list, else -1.
int64_t CountedAlong(const Instruction& indices, int64_t vector_dim, int64_t k, int64_t size) {
  if (indices.operand_count() != indices.shape().dim(vector_dim)) return -1;
  const Instruction* part = indices.operand(k);
  Dims at;  // of the list's dimensions, those of `part`
  for (int64_t d = 0; d < part->shape().rank(); ++d) at.push_back(d);
  while (part->op() != Op::Iota) {
    if (part->op() == Op::Broadcast) {
      Dims below;
      for (int64_t d : part->dimensions()) below.push_back(at[d]);
      at = below;
    } else if (part->op() == Op::Reshape) {
      // Dimensions of one element come and go.
      const Shape &from = part->operand(0)->shape(), &to = part->shape();
      Dims below(from.rank(), -1);
      int64_t d = 0, e = 0;
      for (; d < from.rank() && e < to.rank();) {
        if (from.dim(d) == to.dim(e))
          below[d++] = at[e++];
        else if (from.dim(d) == 1)
          ++d;
        else if (to.dim(e) == 1)
          ++e;
        else
          return -1;
      }
      at = below;
    } else {
      return -1;
    }
    part = part->operand(0);
  }
  const int64_t along = part->attrs<IotaAttrs>().dimension;
  const bool wraps = Bits(Type(part)) < 32 && size > 127;
  return part->shape().dim(along) == size && !wraps ? at[along] : -1;
}

// One of the starts counts the members of the batch (x[arange(n), chosen]): the operand has a member for each.
Instruction* GatherCounted(Instruction* i, Builder& b) {
  GatherAttrs a = i->attrs<GatherAttrs>();
  Instruction *operand = i->operand(0), *indices = i->operand(1);
  const int64_t components = static_cast<int64_t>(a.start_index_map.size()), rank = indices->shape().rank();
  if (!a.operand_batching_dims.empty() || components < 2 || a.index_vector_dim != rank - 1 ||
      indices->op() != Op::Concatenate || indices->dimensions()[0] != rank - 1)
    return nullptr;
  for (int64_t k = 0; k < components; ++k) {
    const int64_t d = a.start_index_map[k];
    if (a.slice_sizes[d] != 1 || !Contains(a.collapsed_slice_dims, d)) continue;
    const int64_t along = CountedAlong(*indices, rank - 1, k, operand->shape().dim(d));
    if (along < 0 || along >= rank - 1 || indices->shape().dim(along) != operand->shape().dim(d)) continue;
    a.operand_batching_dims = {d};
    a.start_indices_batching_dims = {along};
    a.collapsed_slice_dims.erase(std::find(a.collapsed_slice_dims.begin(), a.collapsed_slice_dims.end(), d));
    a.start_index_map.erase(a.start_index_map.begin() + k);
    std::vector<Instruction*> rest;
    for (int64_t n = 0; n < components; ++n)
      if (n != k) rest.push_back(indices->operand(n));
    Instruction* list =
        rest.size() == 1 ? rest[0] : b.Make(Op::Concatenate, rest, DimensionsAttrs{{rank - 1}}, {}, nullptr);
    Instruction* const operands[] = {operand, list};
    return b.Make(Op::Gather, operands, a, {}, nullptr);
  }
  return nullptr;
}

// Each member of a batch picks one of a few: selected, which vectors do for many members at a time.
Instruction* GatherOneOfFew(Instruction* i, Builder& b) {
  const GatherAttrs& a = i->attrs<GatherAttrs>();
  Instruction *operand = i->operand(0), *indices = i->operand(1);
  if (a.operand_batching_dims.empty() || a.start_index_map.size() != 1 || !i->shape().IsStatic()) return nullptr;
  const int64_t along = a.start_index_map[0], choices = operand->shape().dim(along), rank = operand->shape().rank();
  // Of a stack of what is computed, no part has to go through memory.
  const bool stack = operand->op() == Op::Concatenate && operand->dimensions()[0] == along &&
                     operand->operand_count() == choices && operand->use_count() == 1;
  const bool large = operand->shape().num_elements() > kMostSelected || i->shape().num_elements() > kMostSelected;
  if (choices > (stack ? kFewOfStack : kFew) || choices < 1 || (large && !stack) || a.slice_sizes[along] != 1 ||
      Bits(Type(indices)) < 8)
    return nullptr;
  // Where the dimensions of the indices, and those of the operand, stand in the result.
  Dims of_indices, to(rank, -1);
  for (int64_t d = 0; d < i->shape().rank(); ++d)
    if (!Contains(a.offset_dims, d)) of_indices.push_back(d);
  for (size_t k = 0; k < a.operand_batching_dims.size(); ++k) {
    const int64_t d = a.start_indices_batching_dims[k];
    to[a.operand_batching_dims[k]] = of_indices[d > a.index_vector_dim ? d - 1 : d];
  }
  size_t window = 0;
  for (int64_t d = 0; d < rank; ++d) {
    if (Contains(a.operand_batching_dims, d) || Contains(a.collapsed_slice_dims, d)) continue;
    to[d] = a.offset_dims[window++];
    if (d != along && a.slice_sizes[d] != operand->shape().dim(d)) return nullptr;
  }
  for (int64_t d = 0; d < rank; ++d)
    if (d != along && to[d] < 0) return nullptr;  // a dimension of one element
  const auto spread = [&](Instruction* x, Dims dims) {
    Dims sorted = dims, order;
    std::sort(sorted.begin(), sorted.end());
    for (int64_t d : sorted) order.push_back(std::find(dims.begin(), dims.end(), d) - dims.begin());
    if (!std::is_sorted(order.begin(), order.end())) x = b.Transpose(x, order);
    return b.Broadcast(x, i->shape().dims(), sorted);
  };
  Int64Vector batch, kept;
  Dims others;
  for (int64_t d : of_indices) batch.push_back(i->shape().dim(d));
  for (int64_t d = 0; d < rank; ++d) {
    if (d == along) continue;
    kept.push_back(operand->shape().dim(d));
    others.push_back(to[d]);
  }
  Instruction* chosen = spread(b.Reshape(indices, batch), of_indices);
  Instruction* result = nullptr;
  for (int64_t k = choices; k-- > 0;) {  // what is outside takes the first or the last
    Dims start(rank, 0), limit(operand->shape().dims().begin(), operand->shape().dims().end());
    start[along] = k;
    limit[along] = k + 1;
    Instruction* choice = spread(b.Reshape(b.Slice(operand, start, limit, Dims(rank, 1)), kept), others);
    Instruction* number = b.Splat(Type(indices), static_cast<double>(k), i->shape().dims());
    result = result ? b.Make(Op::Select, {b.Compare(chosen, number, CompareDirection::Le), choice, result}) : choice;
  }
  return result;
}

constexpr Rule kRules[] = {
    {"gather-one-window", Op::Gather, &GatherOneWindow},
    {"gather-everything", Op::Gather, &GatherEverything},
    {"gather-counted", Op::Gather, &GatherCounted},
    {"gather-one-of-few", Op::Gather, &GatherOneOfFew},
};

}  // namespace

RuleSet GatherRules() { return kRules; }

}  // namespace strop::simplify
