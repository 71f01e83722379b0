#include "strop/spmd/partitioner.h"

#include <algorithm>
#include <array>
#include <optional>

#include "strop/spmd/shards.h"

namespace strop::spmd {
namespace {

// The sharding of leaf `i` of a value; null if nothing is said.
const Sharding* Leaf(const Sharding* sharding, int64_t i) {
  if (!sharding || sharding->kind != ShardingKind::Tuple) return sharding;
  return i < static_cast<int64_t>(sharding->elements.size()) ? &sharding->elements[i] : nullptr;
}

// The device, if the value, or every leaf of it, is on one device only; otherwise -1.
int64_t MaximalDevice(const Sharding* sharding) {
  if (!sharding) return -1;
  if (sharding->kind == ShardingKind::Maximal) return sharding->device;
  if (sharding->kind != ShardingKind::Tuple || sharding->elements.empty()) return -1;
  const int64_t device = MaximalDevice(&sharding->elements[0]);
  for (const Sharding& element : sharding->elements)
    if (MaximalDevice(&element) != device) return -1;
  return device;
}

constexpr std::array<std::string_view, 8> kMarks = {
    "Sharding",         "xla.sdy.FuncResultSharding", "xla.sdy.PropagationBarrier",
    "LayoutConstraint", "annotate_device_placement",  "MoveToHost",
    "MoveToDevice",     "AssumeGatherIndicesInBound"};

Instruction* Zeros(Builder& b, const Shape& shape) {
  if (shape.IsToken()) return b.MakeWithShape(Op::AfterAll, shape, {});
  if (!shape.IsTuple()) return b.Splat(shape.type(), 0, shape.dims());
  std::vector<Instruction*> elements;
  for (const Shape& element : shape.elements()) elements.push_back(Zeros(b, element));
  return b.Tuple(elements);
}

class Partitioner {
 public:
  explicit Partitioner(Module& module)
      : module_(module), partitions_(module.config().num_partitions), replicas_(module.config().replica_count) {}

  Result<int64_t> Run() {
    for (Computation* c : std::vector<Computation*>(module_.computations()))
      for (Instruction* i : c->instructions())
        if (i->op() == Op::CustomCall) STROP_TRY(Region(*i));
    for (Computation* c : std::vector<Computation*>(module_.computations()))
      for (Instruction* i : c->instructions())
        if (i->op() == Op::CustomCall) STROP_TRY(Call(*i));
    STROP_TRY(EntryResult());
    STROP_TRY(Parameters());
    Layouts();
    return changed_;
  }

 private:
  Builder Before(Instruction& i) {
    Builder b(i.parent());
    b.set_insert_before(&i);
    b.set_metadata(i.shared_metadata());
    return b;
  }

  Result<Tiling> TilingAt(const Instruction& at, const Sharding* sharding, const Shape& shape) {
    Result<Tiling> tiling = TilingOf(sharding, shape, partitions_);
    return tiling.ok() ? std::move(tiling) : std::move(tiling).status().At(at.Where());
  }

  // ---- manual regions: the ways in and out
  Status Region(Instruction& call) {
    const std::string& target = call.attrs<CustomCallAttrs>().target;
    const bool sdy_in = target == "xla.sdy.GlobalToLocalShape", sdy_out = target == "xla.sdy.LocalToGlobalShape";
    const bool in = sdy_in || target == "SPMDFullToShardShape", out = sdy_out || target == "SPMDShardToFullShape";
    if (!in && !out) return OkStatus();
    Builder b = Before(call);
    const std::vector<Shape> results = call.shape().Leaves();
    if (static_cast<int64_t>(results.size()) != call.operand_count())
      return InvalidArgument(target, " of ", call.operand_count(), " values has ", results.size(), " results")
          .At(call.Where());
    std::vector<Instruction*> values;
    for (int64_t k = 0; k < call.operand_count(); ++k) {
      Instruction* operand = call.operand(k);
      if (operand->shape().IsToken()) {
        values.push_back(operand);
        continue;
      }
      // GSPMD says how a value is cut on the value itself, Shardy on the region.
      const Sharding* sharding = target == "SPMDFullToShardShape" ? operand->sharding() : Leaf(call.sharding(), k);
      const Shape& whole = in ? operand->shape() : results[k];
      const Shape& shard = in ? results[k] : operand->shape();
      STROP_ASSIGN(Tiling tiling, TilingAt(call, sharding, whole));
      if (!ShardShape(whole, tiling).Compatible(shard))
        return InvalidArgument(target, ": a shard of ", whole, " with sharding ",
                               sharding ? sharding->ToString() : "{replicated}", " is ", ShardShape(whole, tiling),
                               ", the region has ", shard)
            .At(call.Where());
      values.push_back(in ? TakeShard(b, operand, tiling) : GatherShards(b, operand, tiling, whole, replicas_));
    }
    Instruction* value = call.shape().IsTuple() ? b.Tuple(values) : values[0];
    STROP_TRY(b.status());
    return Replace(call, value);
  }

  // ---- marks, and calls that one device makes
  Status Call(Instruction& call) {
    const std::string& target = call.attrs<CustomCallAttrs>().target;
    if (target == "xla.sdy.ShardingGroup") {
      if (call.use_count() == 0 && &call != call.parent()->root()) call.parent()->Remove(&call);
      return OkStatus();
    }
    if (IsMark(call)) {
      // The mark on a result is still to be read.
      if (&call == module_.entry()->root()) return OkStatus();
      return Replace(call, call.operand(0));
    }
    const int64_t owner = MaximalDevice(call.sharding());
    if (owner < 0) return OkStatus();
    if (owner >= partitions_)
      return InvalidArgument("custom-call ", target, " is for device ", owner, ", there are ", partitions_)
          .At(call.Where());
    return OnOneDevice(call, owner);
  }

  Status OnOneDevice(Instruction& call, int64_t owner) {
    Builder b = Before(call);
    const Shape result = call.shape().WithoutLayout();
    const std::vector<Instruction*> operands = call.operands();
    Instruction* packed = b.Tuple(operands);
    Computation* there = module_.AddComputation(StrCat(call.name(), ".on_device"));
    Builder inner(there);
    Instruction* parameter = inner.Parameter(0, packed->shape().WithoutLayout());
    std::vector<Instruction*> arguments;
    for (size_t k = 0; k < operands.size(); ++k)
      arguments.push_back(inner.GetTupleElement(parameter, static_cast<int64_t>(k)));
    Instruction* clone = there->AddClone(call, call.shape(), arguments);
    clone->clear_sharding();
    there->set_root(clone);
    Computation* elsewhere = module_.AddComputation(StrCat(call.name(), ".elsewhere"));
    Builder other(elsewhere);
    other.Parameter(0, packed->shape().WithoutLayout());
    STROP_TRY(other.Finish(Zeros(other, result)));
    Instruction* branches[] = {IsPartition(b, owner), packed, packed};
    Computation* called[] = {there, elsewhere};
    Instruction* conditional = b.Make(Op::Conditional, branches, ConditionalAttrs{}, called, &result);
    STROP_TRY(inner.status());
    STROP_TRY(b.status());
    Instruction* value =
        call.use_count() > 0 || &call == call.parent()->root() ? Send(b, conditional, owner) : conditional;
    STROP_TRY(b.status());
    return Replace(call, value);
  }

  Instruction* Send(Builder& b, Instruction* value, int64_t owner) {
    if (value->shape().IsToken()) return value;
    if (!value->shape().IsTuple()) return BroadcastFrom(b, value, owner, partitions_, replicas_);
    std::vector<Instruction*> elements;
    for (int64_t k = 0; k < value->shape().tuple_size(); ++k)
      elements.push_back(Send(b, b.GetTupleElement(value, k), owner));
    return b.Tuple(elements);
  }

  Status Replace(Instruction& old, Instruction* value) {
    Computation* c = old.parent();
    old.ReplaceAllUsesWith(value);
    if (c->root() == &old) c->set_root(value);
    c->Remove(&old);
    ++changed_;
    return OkStatus();
  }

  // ---- the entry's border
  Status EntryResult() {
    Computation* entry = module_.entry();
    Instruction* root = entry->root();
    std::optional<Sharding> sharding;
    if (root->sharding()) sharding = *root->sharding();
    std::vector<Instruction*> marks;
    for (; IsMark(*root); root = root->operand(0)) marks.push_back(root);
    Builder b(entry);
    b.set_metadata(root->shared_metadata());
    int64_t leaf = 0;
    if (sharding) {
      STROP_ASSIGN(root, Cut(b, root, *sharding, leaf));
    }
    STROP_TRY(b.status());
    entry->set_root(root);
    for (Instruction* mark : marks)
      if (mark->use_count() == 0) entry->Remove(mark);
    return OkStatus();
  }

  Result<Instruction*> Cut(Builder& b, Instruction* value, const Sharding& sharding, int64_t& leaf) {
    if (value->shape().IsTuple()) {
      std::vector<Instruction*> elements;
      for (int64_t k = 0; k < value->shape().tuple_size(); ++k) {
        Instruction* element = value->op() == Op::Tuple ? value->operand(k) : b.GetTupleElement(value, k);
        STROP_ASSIGN(Instruction * cut, Cut(b, element, sharding, leaf));
        elements.push_back(cut);
      }
      return b.Tuple(elements);
    }
    const Sharding* own = Leaf(&sharding, leaf++);
    if (value->shape().IsToken() || MaximalDevice(own) >= 0 || (own && own->kind == ShardingKind::Manual)) return value;
    STROP_ASSIGN(Tiling tiling, TilingAt(*value, own, value->shape()));
    changed_ += !tiling.whole();
    return TakeShard(b, value, tiling);
  }

  Status Parameters() {
    Computation* entry = module_.entry();
    for (Instruction* parameter : std::vector<Instruction*>(entry->parameters())) {
      const Sharding* sharding = parameter->sharding();
      if (!sharding || sharding->kind == ShardingKind::Manual) continue;
      const int64_t owner = MaximalDevice(sharding);
      if (!parameter->shape().IsArray()) {
        if (parameter->shape().IsToken() || sharding->kind == ShardingKind::Replicated) continue;
        return Unimplemented("parameter ", parameter->parameter_number(), " is ", parameter->shape(),
                             " with shardings; arrays are")
            .At(parameter->Where());
      }
      const std::vector<Use> uses(parameter->uses().begin(), parameter->uses().end());
      const Shape whole = parameter->shape();
      Builder b(entry);
      b.set_insert_before(parameter->next());
      Instruction* value;
      if (owner >= 0) {
        if (owner >= partitions_)
          return InvalidArgument("parameter ", parameter->parameter_number(), " is on device ", owner, ", there are ",
                                 partitions_);
        value = BroadcastFrom(b, parameter, owner, partitions_, replicas_);
      } else {
        STROP_ASSIGN(Tiling tiling, TilingAt(*parameter, sharding, whole));
        if (tiling.whole()) continue;
        parameter->set_shape(ShardShape(whole, tiling));
        value = GatherShards(b, parameter, tiling, whole, replicas_);
      }
      STROP_TRY(b.status());
      for (const Use& use : uses) use.user->SetOperand(use.operand_number, value);
      if (entry->root() == parameter) entry->set_root(value);
      ++changed_;
    }
    entry->SortTopologically();
    return OkStatus();
  }

  // What the caller sees: shards, in the layouts that were asked for.
  void Layouts() {
    ModuleConfig& config = module_.config();
    Computation* entry = module_.entry();
    if (config.has_entry_layout) {
      EntryLayout& layout = config.entry_layout;
      for (size_t i = 0; i < layout.parameters.size() && i < entry->parameters().size(); ++i)
        Resize(layout.parameters[i], entry->parameter(static_cast<int64_t>(i))->shape());
      Resize(layout.result, entry->root()->shape());
    }
    // A donated shard that is no longer of its result's size is only a buffer that may be used.
    std::erase_if(config.input_output_alias, [&](const InputOutputAlias& alias) {
      if (!alias.parameter_index.empty() || alias.parameter >= entry->parameter_count()) return false;
      const Shape* result = &entry->root()->shape();
      for (int64_t index : alias.output_index) {
        if (!result->IsTuple() || index >= result->tuple_size()) return false;
        result = &result->element(index);
      }
      if (result->Compatible(entry->parameter(alias.parameter)->shape())) return false;
      config.buffer_donors.push_back({alias.parameter, {}});
      return true;
    });
  }

  static void Resize(Shape& shape, const Shape& to) {
    if (shape.IsTuple() && to.IsTuple() && shape.tuple_size() == to.tuple_size()) {
      for (int64_t k = 0; k < to.tuple_size(); ++k) Resize(shape.mutable_elements()[k], to.element(k));
    } else if (shape.IsArray() && to.IsArray() && shape.rank() == to.rank()) {
      for (int64_t d = 0; d < to.rank(); ++d) shape.set_dim(d, to.dim(d));
    }
  }

  Module& module_;
  const int64_t partitions_, replicas_;
  int64_t changed_ = 0;
};

}  // namespace

bool IsMark(const Instruction& i) {
  if (i.op() != Op::CustomCall || i.operand_count() != 1 || !i.shape().Compatible(i.operand(0)->shape())) return false;
  return std::find(kMarks.begin(), kMarks.end(), i.attrs<CustomCallAttrs>().target) != kMarks.end();
}

Result<int64_t> PartitionModule(Module& module) {
  if (module.config().num_partitions <= 1) return 0;
  return Partitioner(module).Run();
}

}  // namespace strop::spmd
