// All-reduce and reduce-scatter by computations other than a sum, a product, the least, the largest, and, or: devices
// exchange their values and combine them in the order of the group.
//
//   %r = f32[4] all-reduce(%x), replica_groups={{0,1}}, to_apply=%f
//   ->  %g = f32[2,4] all-gather(f32[1,4] reshape(%x)), dimensions={0}, replica_groups={{0,1}}
//       %r = f32[4] map(%g[0], %g[1]), to_apply=%f
//
// A reduce-scatter exchanges pieces by all-to-all, where that means the same groups.
#include "strop/analysis/combiner.h"
#include "strop/ir/builder.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

bool HasReduction(const Instruction& i) {
  switch (RecognizeCombiner(*i.to_apply()).op) {
    case Op::Add:
    case Op::Multiply:
    case Op::Minimum:
    case Op::Maximum:
    case Op::And:
    case Op::Or: return true;
    default: return false;
  }
}

// How many devices combine their values: replica_groups name replicas, with all of their partitions if there is a
// channel, or devices.
Result<int64_t> GroupSize(const Instruction& i) {
  const auto& a = i.attrs<CollectiveAttrs>();
  const auto& config = i.parent()->module()->config();
  const bool of_devices = a.channel_id != 0 && a.use_global_device_ids;
  STROP_ASSIGN(std::vector<std::vector<int64_t>> groups, a.replica_groups.Expand());
  const int64_t named = !groups.empty() ? static_cast<int64_t>(groups[0].size())
                        : of_devices    ? config.replica_count * config.num_partitions
                                        : config.replica_count;
  return a.channel_id != 0 && !of_devices ? named * config.num_partitions : named;
}

class Expander {
 public:
  Expander(Instruction* collective, int64_t devices) : i_(collective), devices_(devices), b_(collective->parent()) {
    b_.set_insert_before(collective);
    b_.set_metadata(collective->shared_metadata());
  }

  Result<Instruction*> Run() {
    std::vector<Instruction*> results;
    for (Instruction* operand : i_->operands())
      results.push_back(i_->op() == Op::AllReduce ? Gathered(operand) : Scattered(operand));
    Instruction* result = i_->shape().IsArray() ? results[0] : b_.Tuple(results);
    STROP_TRY(b_.status());
    return result;
  }

 private:
  CollectiveAttrs Attrs(int64_t dimension) const {
    CollectiveAttrs attrs = i_->attrs<CollectiveAttrs>();
    attrs.dimensions = {dimension};
    return attrs;
  }

  Instruction* Gathered(Instruction* x) {
    Int64Vector one(x->shape().dims().begin(), x->shape().dims().end());
    const Int64Vector dims = one;
    one.insert(one.begin(), 1);
    Instruction* row = b_.Reshape(x, one);
    if (!row) return nullptr;
    one[0] = devices_;
    const Shape all = Shape::Array(x->shape().type(), one);
    return Folded(b_.Make(Op::AllGather, std::span(&row, 1), Attrs(0), {}, &all), 0, dims);
  }

  Instruction* Scattered(Instruction* x) {
    const int64_t dimension = i_->attrs<CollectiveAttrs>().dimensions[0];
    Int64Vector dims(x->shape().dims().begin(), x->shape().dims().end());
    const Shape same = x->shape().WithoutLayout();
    Instruction* exchanged = b_.Make(Op::AllToAll, std::span(&x, 1), Attrs(dimension), {}, &same);
    dims[dimension] /= devices_;
    return Folded(exchanged, dimension, dims);
  }

  // The pieces of `all` along a dimension, each then of `dims`, combined one after the other.
  Instruction* Folded(Instruction* all, int64_t dimension, const Int64Vector& dims) {
    Instruction* result = nullptr;
    for (int64_t k = 0; all && k < devices_; ++k) {
      const int64_t size = all->shape().dim(dimension) / devices_;
      Dims start(all->shape().rank(), 0), limit(all->shape().dims().begin(), all->shape().dims().end());
      start[dimension] = k * size, limit[dimension] = (k + 1) * size;
      Instruction* piece = b_.Reshape(b_.Slice(all, start, limit, Dims(all->shape().rank(), 1)), dims);
      result = result ? Combined(result, piece, static_cast<int64_t>(dims.size())) : piece;
    }
    return result;
  }

  Instruction* Combined(Instruction* before, Instruction* piece, int64_t rank) {
    DimensionsAttrs attrs;
    for (int64_t d = 0; d < rank; ++d) attrs.dimensions.push_back(d);
    return b_.Make(Op::Map, {before, piece}, attrs, {i_->to_apply()});
  }

  Instruction* i_;
  const int64_t devices_;
  Builder b_;
};

struct CollectiveReducerExpander final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t expanded = 0;
    for (Computation* c : module.computations()) {
      for (Instruction* i : c->PostOrder()) {
        if ((i->op() != Op::AllReduce && i->op() != Op::ReduceScatter) || HasReduction(*i)) continue;
        // With a channel and numbers of replicas, all-to-all would exchange among partitions alone.
        const auto& a = i->attrs<CollectiveAttrs>();
        if (i->op() == Op::ReduceScatter && a.channel_id != 0 && !a.use_global_device_ids) continue;
        STROP_ASSIGN(const int64_t devices, GroupSize(*i));
        STROP_ASSIGN(Instruction * result, Expander(i, devices).Run());
        i->ReplaceAllUsesWith(result);
        if (c->root() == i) c->set_root(result);
        c->Remove(i);
        ++expanded;
      }
    }
    context.Count("collective-reducer-expander.expanded", expanded);
    return expanded > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeCollectiveReducerExpander() { return std::make_unique<CollectiveReducerExpander>(); }

}  // namespace strop
