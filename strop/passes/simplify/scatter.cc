// Rules of scatter.
#include <optional>

#include "strop/passes/simplify/constants.h"
#include "strop/passes/simplify/simplify.h"

namespace strop::simplify {
namespace {

Instruction* ScatterOfNothing(Instruction* i, Builder&) {
  const bool one = i->operand_count() == 3 && i->shape().Compatible(i->operand(0)->shape());
  return one && i->operand(2)->shape().num_elements() == 0 ? i->operand(0) : nullptr;
}

// What element `k` of a list of integers is an element of, behind reshapes and lists one after the other; `k` becomes
// its number there.
const Instruction* PartOf(const Instruction* list, int64_t& k) {
  for (;;) {
    if (list->op() == Op::Reshape) {
      list = list->operand(0);
    } else if (list->op() == Op::Concatenate &&
               list->shape().dim(list->dimensions()[0]) == list->shape().num_elements()) {
      int64_t n = 0;
      while (k >= list->operand(n)->shape().num_elements()) k -= list->operand(n++)->shape().num_elements();
      list = list->operand(n);
    } else {
      return list;
    }
  }
}

// Element k of a list, if it is a constant.
std::optional<int64_t> KnownElement(const Instruction* list, int64_t k) {
  const Instruction* part = PartOf(list, k);
  if (const Literal* splat = Splat(part)) return splat->GetInt(0);
  if (part->IsConstant()) return part->literal().GetInt(k);
  return std::nullopt;
}

// Is element k of a list at least 0 and at most `high`: a number, or clamped?
bool IsWithin(const Instruction* list, int64_t k, int64_t high) {
  if (const std::optional<int64_t> known = KnownElement(list, k)) return *known >= 0 && *known <= high;
  const Instruction* part = PartOf(list, k);
  if (part->op() != Op::Clamp) return false;
  const std::optional<int64_t> least = KnownElement(part->operand(0), k), most = KnownElement(part->operand(2), k);
  return least && most && *least >= 0 && *most >= *least && *most <= high;
}

// The starts and sizes of the one window of a scatter, all inside the operand; false if that is not known. Starts that
// are no numbers are -1.
bool OneKnownWindow(const Instruction& scatter, Dims& starts, Dims& sizes) {
  const ScatterAttrs& a = scatter.attrs<ScatterAttrs>();
  const Instruction* indices = scatter.operand(1);
  const int64_t components = static_cast<int64_t>(a.scatter_dims_to_operand_dims.size());
  if (!a.input_batching_dims.empty() || indices->shape().num_elements() != components) return false;
  const Shape& operand = scatter.operand(0)->shape();
  const Shape& updates = scatter.operand(2)->shape();
  size_t next = 0;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    sizes.push_back(Contains(a.inserted_window_dims, d) ? 1 : updates.dim(a.update_window_dims[next++]));
    starts.push_back(0);
  }
  // Without components, every window of the updates is at 0.
  if (updates.num_elements() != Shape::Array(updates.type(), Int64Vector(sizes.begin(), sizes.end())).num_elements())
    return false;
  for (int64_t k = 0; k < components; ++k) {
    const int64_t d = a.scatter_dims_to_operand_dims[k];
    if (!IsWithin(indices, k, operand.dim(d) - sizes[d])) return false;  // it might be skipped
    starts[d] = KnownElement(indices, k).value_or(-1);
  }
  return true;
}

// The starts as scalars.
std::vector<Instruction*> Places(const Instruction& scatter, const Dims& starts, Builder& b) {
  const Dims& of = scatter.attrs<ScatterAttrs>().scatter_dims_to_operand_dims;
  Instruction* indices = scatter.operand(1);
  const bool known = std::find(starts.begin(), starts.end(), -1) == starts.end();
  std::vector<Instruction*> places;
  for (int64_t start : starts)
    places.push_back(
        b.Scalar(known ? ElementType::S64 : Type(indices), static_cast<double>(std::max<int64_t>(start, 0))));
  for (size_t k = 0; k < of.size(); ++k) {
    if (starts[of[k]] >= 0) continue;
    const int64_t n = static_cast<int64_t>(k);
    Instruction* list = b.Reshape(indices, {static_cast<int64_t>(of.size())});
    places[of[k]] = b.Reshape(b.Slice(list, {n}, {n + 1}, {1}), {});
  }
  return places;
}

// x.at[1:-1].add(y): one window that is certainly inside is a slice, the combiner, and an update in place.
Instruction* ScatterOneWindow(Instruction* i, Builder& b) {
  if (i->operand_count() != 3) return nullptr;
  const Computation& combiner = *i->called(0);
  const Instruction* root = combiner.root();
  const bool replaces = root->IsParameter() && root->parameter_number() == 1;
  const bool combines = root->operand_count() == 2 && IsElementwise(root->op()) && Type(root) == Type(i) &&
                        root->operand(0)->IsParameter() && root->operand(1)->IsParameter() &&
                        root->operand(0) != root->operand(1);
  Dims starts, sizes;
  if ((!replaces && !combines) || !OneKnownWindow(*i, starts, sizes)) return nullptr;
  Instruction* window = b.Reshape(i->operand(2), Int64Vector(sizes.begin(), sizes.end()));
  const std::vector<Instruction*> places = Places(*i, starts, b);
  std::vector<Instruction*> operands = {i->operand(0)};
  operands.insert(operands.end(), places.begin(), places.end());
  if (!replaces) {
    Instruction* current = b.Make(Op::DynamicSlice, operands, DynamicSliceAttrs{sizes}, {}, nullptr);
    const bool in_order = root->operand(0)->parameter_number() == 0;
    window = b.Make(root->op(), {in_order ? current : window, in_order ? window : current}, root->any_attrs());
  }
  operands.insert(operands.begin() + 1, window);
  return b.Make(Op::DynamicUpdateSlice, operands, NoAttrs{}, {}, nullptr);
}

// Each member of a batch replaces one of a few: selected, which vectors do for many members at a time.
Instruction* ScatterOneOfFew(Instruction* i, Builder& b) {
  constexpr int64_t kFew = 4, kMostSelected = 1 << 14;  // elements; of larger arrays only what is replaced is written
  const ScatterAttrs& a = i->attrs<ScatterAttrs>();
  const Instruction* root = i->called(0)->root();
  if (i->operand_count() != 3 || a.input_batching_dims.empty() || a.scatter_dims_to_operand_dims.size() != 1 ||
      !root->IsParameter() || root->parameter_number() != 1 || !i->shape().IsStatic())
    return nullptr;
  Instruction *operand = i->operand(0), *indices = i->operand(1), *updates = i->operand(2);
  const Shape& shape = operand->shape();
  const int64_t along = a.scatter_dims_to_operand_dims[0], rank = shape.rank();
  const int64_t batch_rank = indices->shape().rank() - (a.index_vector_dim < indices->shape().rank() ? 1 : 0);
  if (shape.dim(along) > kFew || shape.num_elements() > kMostSelected || Bits(Type(indices)) < 8 ||
      !Contains(a.inserted_window_dims, along) || a.inserted_window_dims.size() != 1 ||
      batch_rank != static_cast<int64_t>(a.input_batching_dims.size()))  // others could name an element twice
    return nullptr;
  // Where the dimensions of the indices, and those of the updates, stand in the operand.
  Dims of_indices(batch_rank, -1), of_updates(updates->shape().rank(), -1), scattered;
  for (size_t k = 0; k < a.input_batching_dims.size(); ++k) {
    const int64_t d = a.scatter_indices_batching_dims[k];
    of_indices[d > a.index_vector_dim ? d - 1 : d] = a.input_batching_dims[k];
  }
  size_t window = 0, member = 0;
  for (int64_t d = 0; d < rank; ++d)
    if (d != along && !Contains(a.input_batching_dims, d)) of_updates[a.update_window_dims[window++]] = d;
  for (int64_t& d : of_updates)
    if (d < 0) d = of_indices[member++];
  for (size_t k = 0; k < of_updates.size(); ++k)
    if (updates->shape().dim(static_cast<int64_t>(k)) != shape.dim(of_updates[k])) return nullptr;
  if (!std::is_sorted(of_updates.begin(), of_updates.end()) || !std::is_sorted(of_indices.begin(), of_indices.end()))
    return nullptr;
  Int64Vector batch;
  for (int64_t d : of_indices) batch.push_back(shape.dim(d));
  Instruction* chosen = b.Broadcast(b.Reshape(indices, batch), shape.dims(), of_indices);
  Instruction* number = b.Iota(Shape::Array(Type(indices), shape.dims()), along);
  return b.Make(Op::Select, {b.Compare(chosen, number, CompareDirection::Eq),
                             b.Broadcast(updates, shape.dims(), of_updates), operand});
}

constexpr Rule kRules[] = {
    {"scatter-of-nothing", Op::Scatter, &ScatterOfNothing},
    {"scatter-one-window", Op::Scatter, &ScatterOneWindow},
    {"scatter-one-of-few", Op::Scatter, &ScatterOneOfFew},
};

}  // namespace

RuleSet ScatterRules() { return kRules; }

}  // namespace strop::simplify
