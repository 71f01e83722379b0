#include "strop/spmd/factored.h"

#include <algorithm>
#include <optional>

#include "strop/spmd/exchange.h"
#include "strop/spmd/parts.h"
#include "strop/spmd/propagation.h"

namespace strop::spmd {
namespace {

constexpr double kMovedLater = 1.0 / 8;  // of a piece: less than any move

class Chooser {
 public:
  Chooser(const Instruction& i, const Rule& rule, const Values& values)
      : i_(i),
        rule_(rule),
        values_(values),
        mesh_(values.mesh()),
        wanted_(values.Assigned(i)),
        kept_(KeptParts(i, values, wanted_)),
        settled_(i.sharding() || !IsPointwise(i)) {}

  const std::vector<Spec>& wanted() const { return wanted_; }
  const Axes& kept() const { return kept_; }
  // False: nobody said how the result lies. It stays as it is made, so that what is made of it is, too, and those who
  // read it see to the rest: the sum of two values in pieces is gathered, not both of them.
  bool settled() const { return settled_; }

  FactorAxes Run() {
    std::vector<FactorAxes> candidates = {FactorAxes(rule_.factors.size())};
    const int64_t results = static_cast<int64_t>(rule_.results.size()), operands = i_.operand_count();
    for (int64_t first = 0; first < results + operands; ++first) {
      FactorAxes axes(rule_.factors.size());
      Merge(axes, first, results);
      for (int64_t t = 0; t < results + operands; ++t)
        if (t != first) Merge(axes, t, results);
      KeepContiguous(axes);
      AddUnlessThere(candidates, axes);
      AddUnlessThere(candidates, WithLeftOver(axes));
      for (size_t f = 0; f < axes.size(); ++f)
        if (rule_.factors[f].kind == FactorKind::Reduction) axes[f].clear();
      AddUnlessThere(candidates, axes);
    }
    const FactorAxes natural = CutByAllOperands();
    std::optional<size_t> best;
    double least = 0;
    for (size_t k = 0; k < candidates.size(); ++k) {
      if (!Keeps(candidates[k], natural)) continue;
      const double cost = Cost(candidates[k]);
      if (best && cost >= least) continue;
      least = cost;
      best = k;
    }
    return std::move(candidates[best.value_or(0)]);
  }

 private:
  // Axes that cut what the op needs whole (the rows that a sort orders) cut something else, if there is something.
  FactorAxes WithLeftOver(FactorAxes axes) {
    for (size_t a = 0; a < mesh_.axes().size(); ++a) {
      const auto axis = static_cast<uint8_t>(a);
      auto uses = [axis](const Axes& list) { return Contains(list, axis); };
      bool cuts_operand = false;
      for (int64_t k = 0; k < i_.operand_count(); ++k)
        cuts_operand = cuts_operand || (!IsFree(*i_.operand(k)) && values_.Of(*i_.operand(k)).specs[0].Uses(axis));
      if (!cuts_operand || std::any_of(axes.begin(), axes.end(), uses)) continue;
      for (size_t f = 0; f < axes.size(); ++f) {
        Axes longer = axes[f];
        longer.push_back(axis);
        if (rule_.factors[f].kind != FactorKind::PassThrough || rule_.factors[f].size % mesh_.SizeOf(longer) != 0)
          continue;
        const FactorAxes before = axes;
        Extend(axes, static_cast<int16_t>(f), longer);
        KeepContiguous(axes);
        if (axes != before) break;
      }
    }
    return axes;
  }

  // Where all operands are cut alike along a dimension that is reduced, the program wants parts to be summed. Nothing
  // follows from how a table lies for what is read from it, nor from updates for what they are added to.
  FactorAxes CutByAllOperands() {
    FactorAxes out(rule_.factors.size());
    if (i_.op() != Op::Dot && i_.op() != Op::Reduce && i_.op() != Op::Convolution) return out;
    for (size_t f = 0; f < out.size(); ++f) {
      if (rule_.factors[f].kind != FactorKind::Reduction) continue;
      bool all = true, first = true;
      for (int64_t k = 0; k < i_.operand_count(); ++k) {
        for (size_t d = 0; d < rule_.operands[k].size(); ++d) {
          const auto& factors = rule_.operands[k][d];
          if (factors.size() != 1 || factors[0] != static_cast<int16_t>(f)) continue;
          const Axes& axes = values_.Of(*i_.operand(k)).specs[0].dims[d];
          if (first) out[f] = axes;
          first = false;
          all = all && out[f] == axes && !IsFree(*i_.operand(k));
        }
      }
      if (!all || !CanCut(i_, rule_, values_, static_cast<int64_t>(f), mesh_.SizeOf(out[f]))) out[f].clear();
    }
    return out;
  }

  bool Keeps(const FactorAxes& candidate, const FactorAxes& natural) const {
    for (size_t f = 0; f < natural.size(); ++f)
      if ((!natural[f].empty() && candidate[f].empty()) || Overlap(candidate[f], kept_)) return false;
    return true;
  }

  static void AddUnlessThere(std::vector<FactorAxes>& candidates, const FactorAxes& axes) {
    if (std::find(candidates.begin(), candidates.end(), axes) == candidates.end()) candidates.push_back(axes);
  }

  // Adds the axes of tensor t (results, then operands) where they are free.
  void Merge(FactorAxes& axes, int64_t t, int64_t results) {
    if (t < results) {
      Merge(axes, wanted_[t], rule_.results[t]);
      return;
    }
    const Instruction& operand = *i_.operand(t - results);
    if (!IsFree(operand)) Merge(axes, values_.Of(operand).specs[0], rule_.operands[t - results]);
  }

  void Merge(FactorAxes& axes, const Spec& spec, const TensorFactors& dims) {
    for (size_t d = 0; d < dims.size(); ++d) {
      size_t at = 0;
      for (size_t k = 0; k < dims[d].size() && at < spec.dims[d].size(); ++k) {
        const int16_t f = dims[d][k];
        int64_t left = rule_.factors[f].size;
        Axes here;
        const bool last = k + 1 == dims[d].size();
        while (at < spec.dims[d].size() && (last || left % mesh_.axes()[spec.dims[d][at]].size == 0)) {
          left /= mesh_.axes()[spec.dims[d][at]].size;
          here.push_back(spec.dims[d][at++]);
        }
        Extend(axes, f, here);
        if (left > 1) break;
      }
    }
  }

  void Extend(FactorAxes& axes, int16_t f, const Axes& by) {
    if (!IsPrefix(axes[f], by)) return;
    for (size_t k = axes[f].size(); k < by.size(); ++k) {
      const bool taken =
          std::any_of(axes.begin(), axes.end(), [&](const Axes& other) { return Contains(other, by[k]); });
      Axes longer = axes[f];
      longer.push_back(by[k]);
      if (taken || !CanCut(i_, rule_, values_, f, mesh_.SizeOf(longer))) return;
      axes[f] = std::move(longer);
    }
  }

  // Of a dimension that is made of several factors, one is cut only where those before it are cut to the end.
  void KeepContiguous(FactorAxes& axes) const {
    bool changed = true;
    auto check = [&](const std::vector<TensorFactors>& tensors) {
      for (const TensorFactors& dims : tensors) {
        for (const auto& factors : dims) {
          bool full = true;
          for (int16_t f : factors) {
            if (!full && !axes[f].empty()) {
              axes[f].clear();
              changed = true;
            }
            full = full && mesh_.SizeOf(axes[f]) == rule_.factors[f].size;
          }
        }
      }
    };
    while (changed) {
      changed = false;
      check(rule_.operands);
      check(rule_.results);
    }
  }

  double Cost(const FactorAxes& axes) const {
    double bytes = 0;
    for (int64_t k = 0; k < i_.operand_count(); ++k) {
      if (!i_.operand(k)->shape().IsArray()) continue;
      const Spec spec = WithParts(OperandSpec(i_, rule_, values_, k, axes), i_, values_, k, kept_);
      bytes += values_.BytesToRequire(*i_.operand(k), spec);
    }
    bytes += ExchangedBytes(i_, rule_, values_, axes) + BytesToJoin(i_, rule_, mesh_, axes);
    const std::vector<Shape> leaves = i_.shape().Leaves();
    for (size_t k = 0; settled_ && k < leaves.size(); ++k)
      bytes += ReshardBytes(mesh_, leaves[k], WithParts(ResultSpec(mesh_, rule_, k, axes), kept_), wanted_[k]);
    for (size_t k = 0; k < leaves.size(); ++k) bytes += LaterMoves(leaves[k], ResultSpec(mesh_, rule_, k, axes));
    double work = 1;
    for (size_t f = 0; f < axes.size(); ++f) {
      const int64_t pieces = mesh_.SizeOf(axes[f]);
      work *= static_cast<double>((rule_.factors[f].size + pieces - 1) / pieces);
    }
    return bytes + work / kWorkPerByte;
  }

  // Uneven pieces come into another form as a whole or not at all: of ways that cost the same, one without them.
  double LaterMoves(const Shape& whole, const Spec& spec) const {
    for (int64_t d = 0; d < whole.rank(); ++d)
      if (whole.dim(d) % mesh_.SizeOf(spec.dims[d]) != 0)
        return static_cast<double>(mesh_.ShardShape(whole, spec).byte_size()) * kMovedLater;
    return 0;
  }

  const Instruction& i_;
  const Rule& rule_;
  const Values& values_;
  const Mesh& mesh_;
  const std::vector<Spec> wanted_;
  const Axes kept_;     // along which the op works on parts
  const bool settled_;  // does it matter how the result lies?
};

// The shard, of what the op makes.
Instruction* Shard(Builder& b, const LocalOp& op) {
  if (op.larger.empty()) return &op.i;
  const Shape& shape = op.i.shape();
  Dims first(shape.rank(), 0), limit(shape.dims().begin(), shape.dims().end()), stride(shape.rank(), 1);
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (op.larger[d].size == 0) continue;
    first[d] = op.larger[d].first;
    limit[d] =
        first[d] + op.values.mesh().ShardShape(op.wholes[0], ResultSpec(op.values.mesh(), op.rule, 0, op.axes)).dim(d);
  }
  return b.Slice(&op.i, first, limit, stride);
}

// Brings an array into the form that is wanted; those on the way may serve others.
Instruction* SettleArray(Builder& b, Values& values, Instruction* made, const Shape& whole, const Spec& spec,
                         const Spec& wanted, Op combiner) {
  Trail trail = {{spec, made}};
  Instruction* value = values.resharder().Reshard(b, made, whole, spec, wanted, combiner, &trail);
  for (const auto& [form, on_the_way] : trail)
    if (value && (combiner == Op::Add || form.unreduced.empty())) values.SetForm(value, form, on_the_way);
  return value;
}

// Brings the result, or each leaf of it, into the form that is wanted.
Instruction* Settle(Builder& b, const LocalOp& op, const Shape& whole, const std::vector<Spec>& wanted,
                    const Axes& kept) {
  Instruction& i = op.i;
  Values& values = op.values;
  const Mesh& mesh = values.mesh();
  const Rule& rule = op.rule;
  const FactorAxes& axes = op.axes;
  const Op combiner = op.combiner;
  if (whole.IsArray()) {
    Instruction* value = op.instead ? op.instead : Shard(b, op);
    if (op.kept) {
      value = b.Make(Op::Select, {op.kept, value, b.Splat(whole.type(), 0, i.shape().dims())});
      if (!value) return nullptr;
    }
    const Spec made = WithParts(ResultSpec(mesh, rule, 0, axes), kept);
    if (!op.joined_after) return SettleArray(b, values, value, whole, made, wanted[0], combiner);
    value = values.resharder().Reshard(b, value, whole, made, wanted[0], combiner);
    if (!value) return nullptr;
    return b.Make(combiner, {value, b.Broadcast(op.joined_after, value->shape().dims(), {})});
  }
  std::vector<Instruction*> elements;
  bool same = true;
  for (int64_t k = 0; k < whole.tuple_size(); ++k) same = same && ResultSpec(mesh, rule, k, axes) == wanted[k];
  Instruction* made = op.instead ? op.instead : &i;
  if (same) return made;
  for (int64_t k = 0; k < whole.tuple_size(); ++k)
    elements.push_back(SettleArray(b, values, b.GetTupleElement(made, k), whole.element(k),
                                   ResultSpec(mesh, rule, k, axes), wanted[k], combiner));
  return b.Tuple(elements);
}

}  // namespace

Spec SpecOf(const Mesh& mesh, const Rule& rule, const TensorFactors& dims, const FactorAxes& axes) {
  Spec spec(static_cast<int64_t>(dims.size()));
  for (size_t d = 0; d < dims.size(); ++d) {
    for (int16_t f : dims[d]) {
      for (uint8_t axis : axes[f]) spec.dims[d].push_back(axis);
      if (mesh.SizeOf(axes[f]) < rule.factors[f].size) break;
    }
  }
  return spec;
}

Spec ResultSpec(const Mesh& mesh, const Rule& rule, size_t leaf, const FactorAxes& axes) {
  Spec spec = SpecOf(mesh, rule, rule.results[leaf], axes);
  for (size_t f = 0; f < axes.size(); ++f)
    if (rule.factors[f].kind == FactorKind::Reduction)
      for (uint8_t axis : axes[f]) spec.unreduced.push_back(axis);
  return spec;
}

Result<bool> PartitionByFactors(Instruction& i, const Rule& rule, Values& values) {
  if (rule.empty()) return false;
  for (const Shape& leaf : i.shape().Leaves())
    if (!leaf.IsArray()) return false;
  Chooser chooser(i, rule, values);
  const FactorAxes axes = chooser.Run();
  const Axes& kept = chooser.kept();
  if (kept.empty() && std::all_of(axes.begin(), axes.end(), [](const Axes& a) { return a.empty(); })) return false;
  const Mesh& mesh = values.mesh();
  const Shape whole = i.shape();
  Builder b = Before(i);
  LocalOp local{i, rule, axes, values, b, {}, {}};
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    local.wholes.push_back(values.Of(*i.operand(k)).whole);
    const Spec spec = WithParts(OperandSpec(i, rule, values, k, axes), i, values, k, kept);
    local.operands.push_back(values.Require(b, *i.operand(k), spec));
    if (!local.operands.back()) return b.status();
  }
  std::vector<Spec> specs;
  for (size_t k = 0; k < rule.results.size(); ++k) specs.push_back(ResultSpec(mesh, rule, k, axes));
  const std::vector<Spec> wanted = chooser.settled() ? chooser.wanted() : specs;
  STROP_TRY(MakeLocal(local));
  STROP_TRY(b.status());
  const std::vector<Instruction*> given = i.operands();
  for (int64_t k = 0; k < i.operand_count(); ++k) i.SetOperand(k, local.operands[k]);
  Shape shard = ShardShapeOf(mesh, whole, specs);
  for (size_t d = 0; d < local.larger.size() && shard.IsArray(); ++d)
    if (local.larger[d].size > 0) shard.set_dim(static_cast<int64_t>(d), local.larger[d].size);
  Shape resized = whole;  // a custom call keeps its layouts, which shapes of shards have not
  Resize(resized, shard);
  i.set_shape(i.op() == Op::CustomCall ? resized : shard);
  i.clear_sharding();
  if (local.instead) values.Replaced(i);
  Builder after(i.parent());
  after.set_insert_before(i.next());
  after.set_metadata(i.shared_metadata());
  Instruction* value = Settle(after, local, whole, wanted, kept);
  STROP_TRY(after.status());
  values.Set(i, value, whole, wanted);
  if (value && kept.empty() && IsMadeAgain(i)) values.SetRecipe(value, i, {given.begin(), given.end()});
  return true;
}

}  // namespace strop::spmd
