#include "strop/spmd/partitioner.h"

#include <algorithm>
#include <optional>
#include <set>

#include "strop/analysis/trip_count.h"
#include "strop/spmd/custom_call.h"
#include "strop/spmd/exchange.h"
#include "strop/spmd/factored.h"
#include "strop/spmd/propagation.h"
#include "strop/spmd/shards.h"
#include "strop/spmd/values.h"

namespace strop::spmd {
namespace {

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

Instruction* Zeros(Builder& b, const Shape& shape) {
  if (shape.IsToken()) return b.MakeWithShape(Op::AfterAll, shape, {});
  if (!shape.IsTuple()) return b.Splat(shape.type(), 0, shape.dims());
  std::vector<Instruction*> elements;
  for (const Shape& element : shape.elements()) elements.push_back(Zeros(b, element));
  return b.Tuple(elements);
}

// Each computation that is partitioned has one caller, whose values it works on.
void GiveEachCallerItsOwn(Module& module) {
  std::set<const Computation*> seen;
  for (Computation* c : std::vector<Computation*>(module.computations())) {
    for (Instruction* i : c->instructions()) {
      if (i->op() != Op::While && i->op() != Op::Conditional && i->op() != Op::Call) continue;
      for (int64_t k = 0; k < static_cast<int64_t>(i->called().size()); ++k)
        if (!seen.insert(i->called(k)).second) i->SetCalled(k, module.CloneComputation(*i->called(k)));
    }
  }
}

class Partitioner {
 public:
  Partitioner(Module& module, const WholeOp& told, const CallOwners* owners)
      : module_(module),
        told_(told),
        owners_(owners),
        mesh_(Mesh::Of(module)),
        values_(module, mesh_),
        partitions_(module.config().num_partitions),
        replicas_(module.config().replica_count) {}

  Result<int64_t> Run() {
    // Rules are about whole values, and shapes are changed in place.
    for (Computation* c : module_.computations()) {
      for (Instruction* i : c->instructions()) {
        if (!values_.manual().Has(*i)) {
          rules_[i] = i->op() == Op::CustomCall ? RuleOfCall(*i, owners_) : RuleOf(*i);
          if (i->op() == Op::CustomCall && BatchDims(*i, owners_) > 0) batches_.insert(i);
          if (const std::optional<Rotation> rotation = RotationOf(*i)) rotations_.emplace(i, *rotation);
        }
        if (IsMark(*i)) marks_.insert(i);
        // What is had in any piece has no sharding later on.
        if (IsMark(*i) && IsFree(*i->operand(0))) free_.emplace(i, values_.Assigned(*i->operand(0)));
        if (!IsWayIn(*i)) continue;
        for (const Instruction* operand : i->operands())
          if (operand->sharding()) stated_[operand] = std::make_shared<const Sharding>(*operand->sharding());
      }
    }
    Computation* entry = module_.entry();
    if (entry->root()->sharding()) root_sharding_ = std::make_shared<const Sharding>(*entry->root()->sharding());
    const std::vector<Instruction*> order = entry->PostOrder();  // before others are added
    for (Instruction* parameter : std::vector<Instruction*>(entry->parameters())) STROP_TRY(EntryParameter(*parameter));
    STROP_TRY(Body(*entry, order));
    STROP_TRY(EntryResult());
    for (Computation* c : sorted_later_) c->SortTopologically();
    Layouts();
    const int64_t changed = changed_ + values_.resharder().moves();
    if (changed > 0) Tell();
    return changed;
  }

 private:
  template <class T>
  static Result<T> At(const Instruction& i, Result<T> result) {
    return result.ok() ? std::move(result) : std::move(result).status().At(i.Where());
  }
  Result<Tiling> TilingAt(const Instruction& at, const Sharding* sharding, const Shape& shape) {
    return At(at, TilingOf(sharding, shape, partitions_));
  }

  Status Body(Computation& computation) { return Body(computation, computation.PostOrder()); }
  // Everything but parameters.
  Status Body(Computation& computation, const std::vector<Instruction*>& order) {
    for (Instruction* i : order)
      if (!i->IsParameter()) STROP_TRY(Visit(*i));
    sorted_later_.push_back(&computation);
    return OkStatus();
  }

  Status Visit(Instruction& i) {
    switch (i.op()) {
      case Op::Tuple: values_.SetTuple(i); return OkStatus();
      case Op::GetTupleElement: return Element(i);
      case Op::OptimizationBarrier: return HandOn(i);
      case Op::While: return Loop(i);
      case Op::Conditional: return Branches(i);
      case Op::Call: return NotInlined(i);
      case Op::CustomCall: return Call(i);
      default: break;
    }
    if (IsFree(i)) {
      for (int64_t k = 0; k < i.operand_count(); ++k) i.SetOperand(k, values_.Of(*i.operand(k)).value);
      values_.SetWhole(i, &i, i.shape());
      i.clear_sharding();
      return OkStatus();
    }
    if (Rotated(i)) return OkStatus();
    return ByFactors(i);
  }

  Status ByFactors(Instruction& i) {
    if (!values_.manual().Has(i)) {
      STROP_ASSIGN(bool on_shards, PartitionByFactors(i, rules_[&i], values_));
      changed_ += on_shards;
      if (on_shards) return OkStatus();
    }
    return Whole(i);
  }

  bool Rotated(Instruction& i) {
    const auto rotation = rotations_.find(&i);
    if (rotation == rotations_.end()) return false;
    const std::vector<Spec> wanted = values_.Assigned(i);
    Builder b = Before(i);
    Instruction* value = RotateShards(b, rotation->second, values_, wanted[0]);
    if (!value) return false;
    values_.Set(i, value, i.shape(), wanted);
    values_.Replaced(i);
    ++changed_;
    return true;
  }

  // Computed on every partition, of whole values.
  Status Whole(Instruction& i) {
    Builder b = Before(i);
    bool gathers = false;
    for (int64_t k = 0; k < i.operand_count(); ++k) {
      const Instruction& operand = *i.operand(k);
      for (const Spec& spec : values_.Of(operand).specs) gathers = gathers || !spec.whole();
      Instruction* value = values_.RequireWhole(b, operand);
      STROP_TRY(b.status());
      i.SetOperand(k, value);
    }
    if (gathers) told_(i);
    i.clear_sharding();
    values_.SetWhole(i, &i, i.shape());
    return OkStatus();
  }

  Status Element(Instruction& i) {
    const Parted& tuple = values_.Of(*i.operand(0));
    int64_t first = 0;
    for (int64_t k = 0; k < i.tuple_index(); ++k) first += tuple.whole.element(k).num_leaves();
    const Shape whole = i.shape();
    std::vector<Spec> specs(tuple.specs.begin() + first, tuple.specs.begin() + first + whole.num_leaves());
    i.clear_sharding();
    if (tuple.value->op() == Op::Tuple && tuple.value != i.operand(0)) {  // each brought into its form
      values_.Set(i, tuple.value->operand(i.tuple_index()), whole, std::move(specs));
      values_.Replaced(i);
      return OkStatus();
    }
    i.SetOperand(0, tuple.value);
    i.set_shape(ShardShapeOf(mesh_, whole, specs));
    values_.Set(i, &i, whole, std::move(specs));
    return OkStatus();
  }

  // A barrier: whatever it is given.
  Status HandOn(Instruction& i) {
    const Parted operand = values_.Of(*i.operand(0));
    i.SetOperand(0, operand.value);
    i.set_shape(ShardShapeOf(mesh_, operand.whole, operand.specs));
    i.clear_sharding();
    values_.Set(i, &i, operand.whole, operand.specs);
    return OkStatus();
  }

  // ---- control flow
  // What the loop only reads, and what is made of that alone.
  void ShareInvariants(const Instruction& loop) {
    const std::optional<Counter> counter = FindCounter(loop);
    const Computation& body = *loop.body();
    if (!counter || counter->trips < 2 || body.root()->op() != Op::Tuple || loop.operand(0)->op() != Op::Tuple) return;
    for (const Instruction* i : body.PostOrder()) {
      if (i->op() == Op::GetTupleElement && i->operand(0) == body.parameter(0)) {
        const int64_t k = i->tuple_index();
        if (body.root()->operand(k) == i)
          values_.SetShare(*i, values_.ShareOf(*loop.operand(0)->operand(k)) / static_cast<double>(counter->trips));
      } else if (i->operand_count() > 0 && i->called().empty()) {
        double share = 0;
        for (const Instruction* operand : i->operands())
          if (!IsFree(*operand)) share = std::max(share, values_.ShareOf(*operand));
        values_.SetShare(*i, share);
      }
    }
  }

  Status Loop(Instruction& i) {
    ShareInvariants(i);
    const std::vector<Spec> carry = values_.Assigned(i);
    const Shape whole = i.shape();
    const Shape shard = ShardShapeOf(mesh_, whole, carry);
    Builder b = Before(i);
    Instruction* init = values_.RequireAll(b, *i.operand(0), carry);
    STROP_TRY(b.status());
    i.SetOperand(0, init);
    for (Computation* c : i.called()) {
      Instruction* parameter = c->parameter(0);
      parameter->set_shape(shard);
      values_.Set(*parameter, parameter, whole, carry);
      STROP_TRY(Body(*c));
      STROP_TRY(Root(*c, c == i.body() ? carry : Values::WholeSpecs(Shape::Scalar(ElementType::Pred))));
    }
    i.set_shape(shard);
    i.clear_sharding();
    values_.Set(i, &i, whole, carry);
    return OkStatus();
  }

  Status Branches(Instruction& i) {
    const std::vector<Spec> results = values_.Assigned(i);
    Builder b = Before(i);
    Instruction* index = values_.RequireWhole(b, *i.operand(0));
    STROP_TRY(b.status());
    i.SetOperand(0, index);
    for (int64_t k = 0; k < static_cast<int64_t>(i.called().size()); ++k) {
      Computation* branch = i.called(k);
      Instruction* parameter = branch->parameter(0);
      const Parted argument = values_.Of(*i.operand(k + 1));
      i.SetOperand(k + 1, argument.value);
      values_.Set(*parameter, parameter, argument.whole, argument.specs);
      parameter->set_shape(argument.value->shape().WithoutLayout());
      STROP_TRY(Body(*branch));
      STROP_TRY(Root(*branch, results));
    }
    values_.Set(i, &i, i.shape(), results);
    i.set_shape(ShardShapeOf(mesh_, i.shape(), results));
    i.clear_sharding();
    return OkStatus();
  }

  // On whole values, which its body may cut.
  Status NotInlined(Instruction& i) {
    STROP_TRY(Whole(i));
    Computation* body = i.to_apply();
    for (Instruction* parameter : body->parameters()) values_.SetWhole(*parameter, parameter, parameter->shape());
    STROP_TRY(Body(*body));
    return Root(*body, Values::WholeSpecs(i.shape()));
  }

  Status Root(Computation& computation, const std::vector<Spec>& specs) {
    Builder b(&computation);
    b.set_metadata(computation.root()->shared_metadata());
    Instruction* root = values_.RequireAll(b, *computation.root(), specs);
    STROP_TRY(b.status());
    computation.set_root(root);
    return OkStatus();
  }

  // ---- manual regions: the ways in and out
  Status Region(Instruction& call) {
    const std::string& target = call.attrs<CustomCallAttrs>().target;
    const bool in = IsWayIn(call), leaves_axes = values_.manual().LeavesAxes(call);
    const std::optional<Axes> manual = AxesOfWay(call, mesh_);
    Builder b = Before(call);
    const std::vector<Shape> results = call.shape().Leaves();
    if (static_cast<int64_t>(results.size()) != call.operand_count())
      return InvalidArgument(target, " of ", call.operand_count(), " values has ", results.size(), " results")
          .At(call.Where());
    std::vector<Instruction*> values;
    std::vector<Spec> specs;
    for (int64_t k = 0; k < call.operand_count(); ++k) {
      const Instruction& operand = *call.operand(k);
      const Shape given = values_.Of(operand).whole;
      if (given.IsToken()) {
        values.push_back(values_.Of(operand).value);
        specs.emplace_back(0);
        continue;
      }
      // GSPMD says how a value is cut on the value itself, Shardy on the region.
      const Sharding* sharding = Values::Leaf(call.sharding(), k);
      if (target == "SPMDFullToShardShape") sharding = stated_[&operand].get();
      const Shape& whole = in ? given : results[k];
      const Shape& shard = in ? results[k] : given;
      std::optional<Spec> outside;
      if (leaves_axes && sharding) outside = mesh_.Read(sharding, whole);
      STROP_ASSIGN(const Shape expected, outside ? mesh_.ShardShape(whole, OnlyManual(*outside, *manual))
                                                 : At(call, values_.StatedShape(whole, sharding)));
      if (!expected.Compatible(shard))
        return InvalidArgument(target, ": a shard of ", whole, " with sharding ",
                               sharding ? sharding->ToString() : "{replicated}", " is ", expected, ", the region has ",
                               shard)
            .At(call.Where());
      if (outside) {
        Spec inside = Inside(*outside, *manual);
        values.push_back(values_.Require(b, operand, in ? *outside : inside));
        specs.push_back(std::move(in ? inside : *outside));
      } else if (in) {
        STROP_ASSIGN(Instruction * value, At(call, values_.RequireStated(b, operand, sharding)));
        values.push_back(value);
        specs.emplace_back(shard.rank());
      } else {
        Instruction* value = values_.RequireWhole(b, operand);
        STROP_ASSIGN(Parted parted, At(call, values_.FromStated(b, value, whole, sharding)));
        values.push_back(parted.value);
        specs.push_back(std::move(parted.specs[0]));
      }
    }
    Instruction* value = call.shape().IsTuple() ? b.Tuple(values) : values[0];
    STROP_TRY(b.status());
    values_.Set(call, value, call.shape(), std::move(specs));
    values_.Replaced(call);
    ++changed_;
    return OkStatus();
  }

  // ---- marks, and calls that one device makes
  Status Call(Instruction& call) {
    if (IsWayIn(call) || IsWayOut(call)) return Region(call);
    const std::string& target = call.attrs<CustomCallAttrs>().target;
    if (target == "xla.sdy.ShardingGroup") {
      groups_.push_back(&call);
      return Whole(call);
    }
    if (marks_.contains(&call)) return Mark(call);
    if (owners_ && owners_->Cuts(target)) {
      ++changed_;
      return CutByOwner(call, rules_[&call], *owners_, values_);
    }
    if (IsMadeOnShards(call)) {
      ++changed_;
      MakeOnShards(call, values_);
      return OkStatus();
    }
    const int64_t owner = MaximalDevice(call.sharding());
    if (owner < 0) return batches_.contains(&call) ? ByFactors(call) : Whole(call);
    if (owner >= partitions_)
      return InvalidArgument("custom-call ", target, " is for device ", owner, ", there are ", partitions_)
          .At(call.Where());
    return OnOneDevice(call, owner);
  }

  Status Mark(Instruction& call) {
    const Parted operand = values_.Of(*call.operand(0));
    values_.Replaced(call);
    ++changed_;
    const std::string& target = call.attrs<CustomCallAttrs>().target;
    if (target == kInspectSharding) STROP_TRY(Inspect(call, operand));
    const bool moves = target == "Sharding" || target == "xla.sdy.FuncResultSharding";
    // The mark on a result says how it is returned: the entry's border reads it.
    if (!moves || !operand.whole.IsArray() || !call.sharding() || &call == module_.entry()->root() ||
        values_.manual().Has(call)) {
      values_.Set(call, operand.value, operand.whole, operand.specs);
      return OkStatus();
    }
    std::optional<Spec> spec = mesh_.Read(call.sharding(), operand.whole);
    if (!spec || call.sharding()->kind == ShardingKind::Unknown) spec = operand.specs[0];
    Builder b = Before(call);
    Instruction* value = values_.Require(b, *call.operand(0), *spec);
    STROP_TRY(b.status());
    values_.Set(call, value, operand.whole, {*spec});
    return OkStatus();
  }

  Status Inspect(const Instruction& call, const Parted& operand) {
    if (!owners_ || !operand.whole.IsArray()) return OkStatus();
    const auto free = free_.find(&call);
    Sharding sharding = mesh_.Write(mesh_.OfNamedAxes(free == free_.end() ? operand.specs[0] : free->second[0]));
    if (values_.manual().Has(*call.operand(0))) sharding = {.kind = ShardingKind::Manual};
    Status told = owners_->Inspect(call.attrs<CustomCallAttrs>().opaque, sharding);
    return told.ok() ? OkStatus() : std::move(told).At(call.Where());
  }

  Status OnOneDevice(Instruction& call, int64_t owner) {
    Builder b = Before(call);
    const Shape result = call.shape().WithoutLayout();
    std::vector<Instruction*> operands;
    for (Instruction* operand : call.operands()) operands.push_back(values_.RequireWhole(b, *operand));
    STROP_TRY(b.status());
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
    values_.SetWhole(call, value, result);
    values_.Replaced(call);
    ++changed_;
    return OkStatus();
  }

  Instruction* Send(Builder& b, Instruction* value, int64_t owner) {
    if (value->shape().IsToken()) return value;
    if (!value->shape().IsTuple()) return BroadcastFrom(b, value, owner, partitions_, replicas_);
    std::vector<Instruction*> elements;
    for (int64_t k = 0; k < value->shape().tuple_size(); ++k)
      elements.push_back(Send(b, b.GetTupleElement(value, k), owner));
    return b.Tuple(elements);
  }

  // ---- the entry's border
  Status EntryParameter(Instruction& parameter) {
    const Sharding* sharding = parameter.sharding();
    const Shape whole = parameter.shape();
    const int64_t owner = MaximalDevice(sharding);
    if (!whole.IsArray()) {
      if (sharding && !whole.IsToken() && sharding->kind != ShardingKind::Replicated)
        return Unimplemented("parameter ", parameter.parameter_number(), " is ", whole, " with shardings; arrays are")
            .At(parameter.Where());
      values_.SetWhole(parameter, &parameter, whole);
      return OkStatus();
    }
    Builder b(parameter.parent());
    b.set_insert_before(parameter.next());
    Instruction* value = &parameter;
    Spec spec(whole.rank());
    if (owner >= 0) {
      if (owner >= partitions_)
        return InvalidArgument("parameter ", parameter.parameter_number(), " is on device ", owner, ", there are ",
                               partitions_);
      value = BroadcastFrom(b, value, owner, partitions_, replicas_);
    } else if (sharding && sharding->kind != ShardingKind::Manual) {
      if (std::optional<Spec> read = mesh_.Read(sharding, whole)) {
        spec = *std::move(read);
        parameter.set_shape(mesh_.ShardShape(whole, spec));
        changed_ += !spec.whole();
      } else {
        STROP_ASSIGN(Tiling tiling, TilingAt(parameter, sharding, whole));
        parameter.set_shape(ShardShape(whole, tiling));
        value = GatherShards(b, value, tiling, whole, replicas_);
        ++changed_;
      }
    }
    STROP_TRY(b.status());
    changed_ += value != &parameter;
    values_.Set(parameter, value, whole, {std::move(spec)});
    return OkStatus();
  }

  Status EntryResult() {
    Computation* entry = module_.entry();
    const Instruction& root = *entry->root();
    std::optional<Sharding> sharding;
    if (root_sharding_) sharding = *root_sharding_;
    Builder b(entry);
    b.set_metadata(root.shared_metadata());
    int64_t leaf = 0;
    STROP_ASSIGN(Instruction * value, Returned(b, root, sharding ? &*sharding : nullptr, leaf));
    STROP_TRY(b.status());
    changed_ += value != entry->root();
    entry->set_root(value);
    return RemoveDead();
  }

  // A value in the form in which it is returned.
  Result<Instruction*> Returned(Builder& b, const Instruction& value, const Sharding* sharding, int64_t& leaf) {
    const Parted& p = values_.Of(value);
    if (p.whole.IsTuple()) {
      const std::vector<Instruction*>* parts = values_.ElementsOf(value);
      std::vector<Instruction*> elements;
      for (int64_t k = 0; k < p.whole.tuple_size(); ++k) {
        if (!parts) {
          STROP_ASSIGN(Instruction * part, ReturnedElement(b, value, k, sharding, leaf));
          elements.push_back(part);
        } else {
          STROP_ASSIGN(Instruction * part, Returned(b, *(*parts)[k], sharding, leaf));
          elements.push_back(part);
        }
      }
      return b.Tuple(elements);
    }
    const Sharding* own = Values::Leaf(sharding, leaf++);
    if (!p.whole.IsArray() || MaximalDevice(own) >= 0 || (own && own->kind == ShardingKind::Manual)) return p.value;
    std::optional<Spec> spec = mesh_.Read(own, p.whole);
    if (spec) {
      changed_ += !spec->whole();
      return values_.Require(b, value, *spec);
    }
    STROP_ASSIGN(Tiling tiling, TilingAt(value, own, p.whole));
    changed_ += !tiling.whole();
    return TakeShard(b, values_.RequireWhole(b, value), tiling);
  }

  // Of a tuple that something else than a tuple makes.
  Result<Instruction*> ReturnedElement(Builder& b, const Instruction& tuple, int64_t k, const Sharding* sharding,
                                       int64_t& leaf) {
    const Parted& p = values_.Of(tuple);
    size_t first = 0;
    for (int64_t e = 0; e < k; ++e) first += p.whole.element(e).num_leaves();
    const Shape whole = p.whole.element(k);
    std::vector<Spec> specs(p.specs.begin() + static_cast<int64_t>(first),
                            p.specs.begin() + static_cast<int64_t>(first) + whole.num_leaves());
    Instruction* element = b.GetTupleElement(p.value, k);
    if (!element) return b.status();
    values_.Set(*element, element, whole, std::move(specs));
    return Returned(b, *element, sharding, leaf);
  }

  // Marks, ways in and out, and what was made again elsewhere.
  Status RemoveDead() {
    for (Instruction* group : groups_)
      if (group->use_count() == 0) group->parent()->Remove(group);
    const std::vector<Instruction*>& replaced = values_.replaced();
    for (size_t k = replaced.size(); k-- > 0;)
      if (replaced[k]->use_count() == 0) replaced[k]->parent()->Remove(replaced[k]);
    return OkStatus();
  }

  // For the caller: passes make other parameters and another root.
  void Tell() {
    auto append = [](const Instruction& value, const Sharding* sharding, Sharding& all) {
      for (int64_t k = 0; k < value.shape().num_leaves(); ++k) {
        const Sharding* leaf = Values::Leaf(sharding, k);
        all.elements.push_back(leaf ? *leaf : Sharding{});
      }
    };
    Sharding parameters{.kind = ShardingKind::Tuple}, results{.kind = ShardingKind::Tuple};
    for (const Instruction* p : module_.entry()->parameters()) append(*p, p->sharding(), parameters);
    append(*module_.entry()->root(), root_sharding_.get(), results);
    FrontendAttributes& attributes = module_.config().frontend_attributes;
    attributes[kPartitionedMark] = "true";
    attributes[kParameterShardings] = parameters.ToString();
    attributes[kResultShardings] = results.ToString();
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

  Module& module_;
  const WholeOp& told_;
  const CallOwners* owners_;
  const Mesh mesh_;
  Values values_;
  const int64_t partitions_, replicas_;
  int64_t changed_ = 0;
  std::unordered_map<const Instruction*, Rule> rules_;
  std::unordered_map<const Instruction*, Rotation> rotations_;  // looked up only
  // Of what comes into manual regions.
  std::unordered_map<const Instruction*, std::shared_ptr<const Sharding>> stated_;
  std::shared_ptr<const Sharding> root_sharding_;                   // how the program returns its result
  std::set<const Instruction*> marks_;                              // looked up only
  std::unordered_map<const Instruction*, std::vector<Spec>> free_;  // by mark, of what it is of; looked up only
  std::set<const Instruction*> batches_;                            // calls that work on batches; looked up only
  std::vector<Instruction*> groups_;
  std::vector<Computation*> sorted_later_;
};

}  // namespace

Result<int64_t> PartitionModule(Module& module, const WholeOp& told, const CallOwners* owners) {
  if (module.config().num_partitions <= 1 || !StatesShardings(module)) return 0;
  RemoveMarksOfElements(module);
  GiveEachCallerItsOwn(module);
  return Partitioner(module, told, owners).Run();
}

}  // namespace strop::spmd
