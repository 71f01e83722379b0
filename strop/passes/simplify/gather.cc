// Rules of gather.
#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

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

constexpr Rule kRules[] = {
    {"gather-one-window", Op::Gather, &GatherOneWindow},
    {"gather-everything", Op::Gather, &GatherEverything},
};

}  // namespace

RuleSet GatherRules() { return kRules; }

}  // namespace strop::simplify
