#include "strop/spmd/result_shardings.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "strop/spmd/partitioner.h"

namespace strop::spmd {
namespace {

using Leaves = std::vector<std::optional<Sharding>>;  // of a value; nothing for what is not known

constexpr int kMaxDepth = 16;  // of calls

bool IsTiled(const std::optional<Sharding>& s) { return s && s->kind == ShardingKind::Tiled; }

Leaves FromAttribute(const Sharding* sharding, const Shape& shape) {
  Leaves out(shape.num_leaves());
  for (size_t i = 0; sharding && i < out.size(); ++i) {
    const Sharding* leaf = sharding;
    if (sharding->kind == ShardingKind::Tuple) {
      if (i >= sharding->elements.size()) break;
      leaf = &sharding->elements[i];
    }
    const bool says_something = leaf->kind == ShardingKind::Replicated || leaf->kind == ShardingKind::Tiled;
    if (says_something) out[i] = *leaf;
  }
  return out;
}

// Dimensions in another order; iota forms become lists.
Sharding Permuted(const Sharding& from, const Dims& permutation) {
  Sharding out = from;
  const auto rank = static_cast<int64_t>(permutation.size());
  const std::vector<int64_t> devices = from.TileDevices();
  std::vector<int64_t> strides(from.tile_dims.size(), 1);
  for (size_t d = strides.size(); d-- > 1;) strides[d - 1] = strides[d] * from.tile_dims[d];
  std::vector<int64_t> order(from.tile_dims.size());
  for (size_t d = 0; d < order.size(); ++d)
    order[d] = static_cast<int64_t>(d) < rank ? permutation[d] : static_cast<int64_t>(d);
  for (size_t d = 0; d < order.size(); ++d) out.tile_dims[d] = from.tile_dims[order[d]];
  out.iota_reshape_dims.clear();
  out.iota_transpose_perm.clear();
  out.devices.assign(devices.size(), 0);
  for (size_t i = 0; i < devices.size(); ++i) {
    int64_t rest = static_cast<int64_t>(i), source = 0;
    for (size_t d = order.size(); d-- > 0;) {
      source += rest % out.tile_dims[d] * strides[order[d]];
      rest /= out.tile_dims[d];
    }
    out.devices[i] = devices[source];
  }
  return out;
}

class Walk {
 public:
  Leaves Run(const Computation& computation, std::vector<Leaves> parameters, int depth) {
    std::unordered_map<const Instruction*, Leaves> of;
    for (const Instruction* i : computation.PostOrder()) of[i] = Of(*i, of, parameters, depth);
    return of[computation.root()];
  }

 private:
  Leaves Of(const Instruction& i, const std::unordered_map<const Instruction*, Leaves>& of,
            const std::vector<Leaves>& parameters, int depth) {
    Leaves own = FromAttribute(i.sharding(), i.shape());
    if (std::any_of(own.begin(), own.end(), [](const auto& leaf) { return leaf.has_value(); })) return own;
    auto operand = [&](int64_t k) -> const Leaves& { return of.at(i.operand(k)); };
    switch (i.op()) {
      case Op::Parameter:
        return static_cast<size_t>(i.parameter_number()) < parameters.size() ? parameters[i.parameter_number()] : own;
      case Op::Tuple: {
        Leaves all;
        for (int64_t k = 0; k < i.operand_count(); ++k) all.insert(all.end(), operand(k).begin(), operand(k).end());
        return all;
      }
      case Op::GetTupleElement: {
        const Shape& tuple = i.operand(0)->shape();
        int64_t first = 0;
        for (int64_t k = 0; k < i.tuple_index(); ++k) first += tuple.element(k).num_leaves();
        const Leaves& all = operand(0);
        return {all.begin() + first, all.begin() + first + i.shape().num_leaves()};
      }
      case Op::Call: {
        if (depth >= kMaxDepth) return own;
        std::vector<Leaves> arguments;
        for (int64_t k = 0; k < i.operand_count(); ++k) arguments.push_back(operand(k));
        return Run(*i.to_apply(), std::move(arguments), depth + 1);
      }
      case Op::Transpose: {
        if (IsTiled(operand(0)[0])) own[0] = Permuted(*operand(0)[0], i.dimensions());
        return own;
      }
      default: break;
    }
    if (IsMark(i)) return operand(0);
    if (!IsElementwise(i.op()) || !i.shape().IsArray()) return own;
    // Tiled operands win over replicated ones, the first over the others.
    for (int64_t k = 0; k < i.operand_count(); ++k) {
      if (!i.operand(k)->shape().IsArray() || !i.operand(k)->shape().SameDims(i.shape())) continue;
      const std::optional<Sharding>& leaf = operand(k)[0];
      if (leaf && (!own[0] || (!IsTiled(own[0]) && IsTiled(leaf)))) own[0] = leaf;
    }
    return own;
  }
};

// Can it be cut without padding? Frameworks take no other results.
bool Divides(const Sharding& sharding, const Shape& shape) {
  if (sharding.kind != ShardingKind::Tiled) return true;
  if (!shape.IsArray() || static_cast<int64_t>(sharding.tile_dims.size()) < shape.rank()) return false;
  for (int64_t d = 0; d < shape.rank(); ++d)
    if (shape.dim(d) % sharding.tile_dims[d] != 0) return false;
  return true;
}

}  // namespace

void ChooseResultShardings(Module& module) {
  Computation* entry = module.entry();
  const Leaves found = Walk().Run(*entry, {}, 0);
  Instruction* root = entry->root();
  const std::vector<Shape> shapes = root->shape().Leaves();
  Sharding all;
  all.kind = ShardingKind::Tuple;
  bool any = false;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const Sharding* given = root->sharding();
    if (given && given->kind == ShardingKind::Tuple) given = i < given->elements.size() ? &given->elements[i] : nullptr;
    const bool open = !given || given->kind == ShardingKind::Unknown;
    const bool chosen = open && i < found.size() && found[i] && Divides(*found[i], shapes[i]);
    any = any || chosen;
    all.elements.push_back(chosen ? *found[i] : given ? *given : Sharding{.kind = ShardingKind::Unknown});
  }
  if (!any) return;
  if (!root->shape().IsTuple()) {
    // A parameter's or a shared value's own sharding is another thing than the result's.
    if (root->IsParameter() || root->use_count() > 0) {
      CustomCallAttrs mark;
      mark.target = "Sharding";
      root = entry->Add(Op::CustomCall, root->shape(), {root}, std::move(mark));
      entry->set_root(root);
    }
    root->set_sharding(std::move(all.elements[0]));
  } else {
    root->set_sharding(std::move(all));
  }
}

}  // namespace strop::spmd
