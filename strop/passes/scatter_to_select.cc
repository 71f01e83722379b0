// A scatter of one element into each row of equal numbers chooses by the index instead, element by element, and is
// computed where it is read:
//
//   %s = f32[2048,4096] scatter(broadcast(%c), s32[2048,1] %i, f32[2048] %u), input_batching_dims={0}, to_apply=%add
//   ->
//   %s = f32[2048,4096] select(compare(iota, broadcast(%i)), broadcast(add(%c, %u)), broadcast(%c))
//
// So are gradients of what was picked from each row (the logit of a label), and rows of zeros with a one. An index
// beyond the row chooses nothing, as in a scatter.
#include <algorithm>
#include <optional>

#include "strop/analysis/combiner.h"
#include "strop/ir/builder.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

// The number that all elements of `i` are, a scalar, or null.
Instruction* NumberOf(Instruction* i) {
  return i->op() == Op::Broadcast && i->operand(0)->shape().rank() == 0 ? i->operand(0) : nullptr;
}

// Does a scatter's computation give its second parameter?
bool Replaces(const Computation& c) { return c.root()->IsParameter() && c.root()->parameter_number() == 1; }

// One dimension, `along`, that an index is for; all others are rows, in order, each of one update.
struct Choice {
  Dims rows;
  int64_t along = 0;
  Instruction* index = nullptr;  // one for each row
};

// Are rows batches of the scatter?
bool IsOfBatches(const Instruction& scatter, Choice& choice) {
  const ScatterAttrs& a = scatter.attrs<ScatterAttrs>();
  if (a.input_batching_dims.empty() || a.scatter_dims_to_operand_dims.size() != 1) return false;
  if (!std::ranges::is_sorted(a.input_batching_dims) || !std::ranges::is_sorted(a.scatter_indices_batching_dims))
    return false;
  choice = {a.input_batching_dims, a.scatter_dims_to_operand_dims[0], scatter.operand(1)};
  return true;
}

// Or are they counted by one of two components of the indices: [0, i], [1, j], [2, k]?
bool IsCounted(const Instruction& scatter, Choice& choice) {
  const ScatterAttrs& a = scatter.attrs<ScatterAttrs>();
  const Instruction* indices = scatter.operand(1);
  if (!a.input_batching_dims.empty() || a.scatter_dims_to_operand_dims.size() != 2 || a.index_vector_dim != 1 ||
      indices->op() != Op::Concatenate || indices->shape().rank() != 2 || indices->dimensions()[0] != 1 ||
      indices->operand_count() != 2)
    return false;
  for (int64_t k = 0; k < 2; ++k) {
    const Instruction* count = indices->operand(k);
    if (count->op() != Op::Iota || count->attrs<IotaAttrs>().dimension != 0 || count->shape().dim(1) != 1) continue;
    choice = {{a.scatter_dims_to_operand_dims[k]}, a.scatter_dims_to_operand_dims[1 - k], indices->operand(1 - k)};
    return count->shape().dim(0) == scatter.shape().dim(choice.rows[0]);
  }
  return false;
}

std::optional<Choice> ChoiceOf(const Instruction& scatter) {
  if (scatter.op() != Op::Scatter || scatter.operand_count() != 3 || scatter.HasControlEdges()) return std::nullopt;
  for (int64_t k = 0; k < 3; ++k)
    if (!scatter.operand(k)->shape().IsArray() || !scatter.operand(k)->shape().IsStatic()) return std::nullopt;
  const ScatterAttrs& a = scatter.attrs<ScatterAttrs>();
  const Shape& operand = scatter.shape();
  const Computation& combined = *scatter.to_apply();
  Choice choice;
  if (!a.update_window_dims.empty() || (!IsOfBatches(scatter, choice) && !IsCounted(scatter, choice)))
    return std::nullopt;
  if (static_cast<int64_t>(choice.rows.size()) != operand.rank() - 1 || operand.num_elements() == 0)
    return std::nullopt;
  const int64_t rows = operand.num_elements() / operand.dim(choice.along);
  if (choice.index->shape().num_elements() != rows || scatter.operand(2)->shape().num_elements() != rows)
    return std::nullopt;
  const bool known = RecognizeCombiner(combined).op == Op::Add || Replaces(combined);
  return known && Bits(choice.index->shape().type()) >= 32 ? std::optional<Choice>(choice) : std::nullopt;
}

void Rewrite(Instruction& scatter, const Choice& choice, Instruction* number) {
  const Shape& shape = scatter.shape();
  Builder b(scatter.parent());
  b.set_insert_before(&scatter);
  if (scatter.has_metadata()) b.set_metadata(scatter.shared_metadata());
  Int64Vector rows;
  for (int64_t d : choice.rows) rows.push_back(shape.dim(d));
  const Int64Vector all(shape.dims());
  const auto along_rows = [&](Instruction* i) { return b.Broadcast(b.Reshape(i, rows), all, choice.rows); };
  Instruction* counted = b.Iota(Shape::Array(choice.index->shape().type(), all), choice.along);
  Instruction* chosen = b.Compare(counted, along_rows(choice.index), CompareDirection::Eq);
  Instruction *updates = scatter.operand(2), *value = updates;
  if (!Replaces(*scatter.to_apply()))
    value = b.Make(Op::Add, {b.Broadcast(number, Int64Vector(updates->shape().dims()), {}), updates});
  Instruction* select = b.Make(Op::Select, {chosen, along_rows(value), b.Broadcast(number, all, {})});
  if (b.status().ok()) scatter.parent()->Replace(&scatter, select);
}

struct ScatterToSelect final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t rewritten = 0;
    for (Computation* c : module.PostOrder())
      for (Instruction* i : c->instructions()) {
        const std::optional<Choice> choice = ChoiceOf(*i);
        Instruction* number = choice ? NumberOf(i->operand(0)) : nullptr;
        if (!number) continue;
        Rewrite(*i, *choice, number);
        ++rewritten;
      }
    context.Count("scatter-to-select.rewritten", rewritten);
    return rewritten > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeScatterToSelect() { return std::make_unique<ScatterToSelect>(); }

}  // namespace strop
