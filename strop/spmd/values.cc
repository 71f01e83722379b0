#include "strop/spmd/values.h"

#include <algorithm>
#include <limits>

#include "strop/spmd/propagation.h"
#include "strop/spmd/shards.h"

namespace strop::spmd {
namespace {

constexpr int kLongestRecipe = 4;  // ops in a row

Shape ShardShapeFrom(const Mesh& mesh, const Shape& whole, const std::vector<Spec>& specs, size_t& leaf) {
  if (!whole.IsTuple()) {
    const Spec& spec = specs[leaf++];
    return whole.IsArray() && whole.IsStatic() ? mesh.ShardShape(whole, spec) : whole;
  }
  std::vector<Shape> elements;
  for (const Shape& element : whole.elements()) elements.push_back(ShardShapeFrom(mesh, element, specs, leaf));
  return Shape::Tuple(std::move(elements));
}

}  // namespace

Shape ShardShapeOf(const Mesh& mesh, const Shape& whole, const std::vector<Spec>& specs) {
  size_t leaf = 0;
  return ShardShapeFrom(mesh, whole, specs, leaf);
}

void Resize(Shape& shape, const Shape& to) {
  if (shape.IsTuple() && to.IsTuple() && shape.tuple_size() == to.tuple_size()) {
    for (int64_t k = 0; k < to.tuple_size(); ++k) Resize(shape.mutable_elements()[k], to.element(k));
  } else if (shape.IsArray() && to.IsArray() && shape.rank() == to.rank()) {
    for (int64_t d = 0; d < to.rank(); ++d) shape.set_dim(d, to.dim(d));
  }
}

bool IsPointwise(const Instruction& i) { return i.shape().IsArray() && (IsElementwise(i.op()) || i.op() == Op::Copy); }

bool IsMadeAgain(const Instruction& i) {
  const bool moves =
      i.op() == Op::Broadcast || i.op() == Op::Transpose || i.op() == Op::Reshape || i.op() == Op::Concatenate;
  return IsPointwise(i) || moves;
}

Builder Before(Instruction& i) {
  Builder b(i.parent());
  b.set_insert_before(&i);
  b.set_metadata(i.shared_metadata());
  return b;
}

Values::Values(Module& module, const Mesh& mesh)
    : module_(module), mesh_(mesh), manual_(module, mesh), resharder_(mesh, module.config().replica_count) {}

std::vector<Spec> Values::WholeSpecs(const Shape& shape) {
  std::vector<Spec> specs;
  for (const Shape& leaf : shape.Leaves()) specs.emplace_back(leaf.IsArray() ? leaf.rank() : 0);
  return specs;
}

const Sharding* Values::Leaf(const Sharding* sharding, int64_t i) {
  if (!sharding || sharding->kind != ShardingKind::Tuple) return sharding;
  return i < static_cast<int64_t>(sharding->elements.size()) ? &sharding->elements[i] : nullptr;
}

void Values::Set(const Instruction& i, Instruction* value, Shape whole, std::vector<Spec> specs) {
  of_[&i] = {value, std::move(whole), std::move(specs)};
}

void Values::SetWhole(const Instruction& i, Instruction* value, Shape whole) {
  std::vector<Spec> specs = WholeSpecs(whole);
  Set(i, value, std::move(whole), std::move(specs));
}

void Values::SetTuple(Instruction& tuple) {
  std::vector<Instruction*> elements = tuple.operands();
  Shape whole = tuple.shape();
  std::vector<Spec> specs;
  for (size_t k = 0; k < elements.size(); ++k) {
    const Parted& p = Of(*elements[k]);
    specs.insert(specs.end(), p.specs.begin(), p.specs.end());
    tuple.SetOperand(static_cast<int64_t>(k), p.value);
  }
  tuple.set_shape(ShardShapeOf(mesh_, whole, specs));
  tuple_elements_[&tuple] = std::move(elements);
  Set(tuple, &tuple, std::move(whole), std::move(specs));
}

std::vector<Spec> Values::Assigned(const Instruction& i) const {
  std::vector<Spec> specs = WholeSpecs(i.shape());
  const Sharding* sharding = i.sharding();
  if (!sharding || manual_.Has(i)) return specs;
  const std::vector<Shape> leaves = i.shape().Leaves();
  for (size_t k = 0; k < leaves.size(); ++k) {
    std::optional<Spec> spec = mesh_.Read(Leaf(sharding, static_cast<int64_t>(k)), leaves[k]);
    if (spec) specs[k] = *std::move(spec);
  }
  return specs;
}

double Values::BytesToRequire(const Instruction& operand, const Spec& spec, int depth) const {
  const Parted& p = Of(operand);
  if (IsFree(operand) || p.specs[0] == spec) return 0;
  const double bytes = ReshardBytes(mesh_, p.whole, Nearest(p, spec).spec, spec) * ShareOf(operand);
  return bytes == 0 ? 0 : std::min(bytes, BytesToMakeAgain(p, spec, depth));
}

// More than any other way costs where it can't be made again, or only from what would have to be, too, for long.
double Values::BytesToMakeAgain(const Parted& p, const Spec& spec, int depth) const {
  const auto recipe = recipes_.find(p.value);
  const bool whole_only = recipe != recipes_.end() && !IsPointwise(*recipe->second.op);
  if (recipe == recipes_.end() || depth == kLongestRecipe || !spec.unreduced.empty() || (whole_only && !spec.whole()))
    return std::numeric_limits<double>::infinity();
  double bytes = static_cast<double>(mesh_.ShardShape(p.whole, spec).num_elements()) / kWorkPerByte;
  for (const Instruction* operand : recipe->second.operands)
    bytes += BytesToRequire(*operand, SpecOfOperand(*operand, spec), depth + 1);
  return bytes;
}

Spec Values::SpecOfOperand(const Instruction& operand, const Spec& spec) const {
  const int64_t rank = Of(operand).whole.rank();
  return !spec.whole() && rank == static_cast<int64_t>(spec.dims.size()) ? spec : Spec(rank);
}

Instruction* Values::MakeAgain(Builder& b, const Parted& p, const Spec& spec) {
  const Recipe& recipe = recipes_.at(p.value);
  std::vector<Instruction*> operands;
  for (const Instruction* operand : recipe.operands) {
    operands.push_back(Require(b, *operand, SpecOfOperand(*operand, spec)));
    if (!operands.back()) return nullptr;
  }
  Instruction* made = b.computation()->AddClone(*recipe.op, mesh_.ShardShape(p.whole, spec), operands);
  made->clear_sharding();
  return made;
}

Values::Form Values::Nearest(const Parted& p, const Spec& spec) const {
  Form nearest{p.specs[0], p.value};
  const auto forms = forms_.find(p.value);
  if (forms == forms_.end()) return nearest;
  double least = ReshardBytes(mesh_, p.whole, p.specs[0], spec);
  for (const Form& form : forms->second) {
    if (form.value->parent() != p.value->parent()) continue;
    const double bytes = form.spec == spec ? -1 : ReshardBytes(mesh_, p.whole, form.spec, spec);
    if (bytes >= least) continue;
    least = bytes;
    nearest = form;
  }
  return nearest;
}

Instruction* Values::Require(Builder& b, const Instruction& operand, const Spec& spec) {
  const Parted& p = Of(operand);
  if (p.specs[0] == spec) return p.value;
  const Form nearest = Nearest(p, spec);  // not a reference: others are made
  if (nearest.spec == spec && nearest.value->parent() == b.computation()) return nearest.value;
  Instruction* piece = IsFree(operand) && spec.unreduced.empty() ? PieceOfFree(b, operand, spec) : nullptr;
  const double bytes = piece ? 0 : ReshardBytes(mesh_, p.whole, nearest.spec, spec);
  if (bytes > 0 && BytesToMakeAgain(p, spec, 0) < bytes) piece = MakeAgain(b, p, spec);
  if (piece) {
    SetForm(p.value, spec, piece);
    return piece;
  }
  Trail trail;
  Instruction* made = resharder_.Reshard(b, nearest.value, p.whole, nearest.spec, spec, Op::Add, &trail);
  for (const auto& [form, value] : trail) SetForm(p.value, form, value);
  return made;
}

// The piece of a constant of equal elements, an iota, or a scalar that is spread; null where it is cut like others.
Instruction* Values::PieceOfFree(Builder& b, const Instruction& i, const Spec& spec) {
  const Shape& whole = Of(i).whole;
  const Shape shard = mesh_.ShardShape(whole, spec);
  if (i.op() == Op::Broadcast) return b.Broadcast(i.operand(0), shard.dims(), {});
  if (i.op() == Op::Constant) {
    const Literal& literal = i.literal();
    if (!literal.has_values() || whole.num_elements() == 0 || !literal.AllElementsEqual()) return nullptr;
    const auto bytes = literal.bytes().first(Bytes(whole.type()));
    Result<Literal> one = Literal::FromBytes(Shape::Scalar(whole.type()), bytes);
    return one.ok() ? b.Broadcast(b.Constant(*std::move(one)), shard.dims(), {}) : nullptr;
  }
  // Counted as integers and rounded once, as the whole iota is.
  const int64_t d = i.attrs<IotaAttrs>().dimension;
  if (spec.dims[d].empty()) return b.Iota(shard, d);
  Instruction* first = b.Make(Op::Multiply, {resharder_.Coordinate(b, spec.dims[d]),
                                             b.Constant(Literal::ScalarOfInt(ElementType::S32, shard.dim(d)))});
  Instruction* counted = b.Iota(shard.WithType(ElementType::S32), d);
  return b.Convert(b.Make(Op::Add, {counted, b.Broadcast(first, shard.dims(), {})}), whole.type());
}

Instruction* Values::RequireTree(Builder& b, Instruction* value, const Shape& whole, const std::vector<Spec>& from,
                                 const std::vector<Spec>& to, size_t& leaf) {
  if (!whole.IsTuple()) {
    const size_t k = leaf++;
    return whole.IsArray() ? resharder_.Reshard(b, value, whole, from[k], to[k]) : value;
  }
  std::vector<Instruction*> elements;
  for (int64_t k = 0; k < whole.tuple_size(); ++k)
    elements.push_back(RequireTree(b, b.GetTupleElement(value, k), whole.element(k), from, to, leaf));
  return b.Tuple(elements);
}

Instruction* Values::RequireAll(Builder& b, const Instruction& operand, const std::vector<Spec>& specs) {
  const Parted& p = Of(operand);
  if (p.specs == specs) return p.value;
  if (p.whole.IsArray()) return Require(b, operand, specs[0]);
  if (tuple_elements_.contains(&operand)) {
    // Elements are asked for one by one: those that are free cost nothing.
    std::vector<Instruction*> elements;
    size_t first = 0;
    for (int64_t k = 0; k < operand.operand_count(); ++k) {
      const Instruction* element = tuple_elements_.at(&operand)[k];
      const size_t leaves = Of(*element).specs.size();
      elements.push_back(RequireAll(
          b, *element,
          {specs.begin() + static_cast<int64_t>(first), specs.begin() + static_cast<int64_t>(first + leaves)}));
      first += leaves;
    }
    return b.Tuple(elements);
  }
  size_t leaf = 0;
  return RequireTree(b, p.value, p.whole, p.specs, specs, leaf);
}

Instruction* Values::RequireWhole(Builder& b, const Instruction& operand) {
  return RequireAll(b, operand, WholeSpecs(Of(operand).whole));
}

Result<Instruction*> Values::RequireStated(Builder& b, const Instruction& operand, const Sharding* sharding) {
  const Shape& whole = Of(operand).whole;
  if (const std::optional<Spec> spec = mesh_.Read(sharding, whole)) return Require(b, operand, *spec);
  STROP_ASSIGN(Tiling tiling, TilingOf(sharding, whole, module_.config().num_partitions));
  return TakeShard(b, RequireWhole(b, operand), tiling);
}

Result<Parted> Values::FromStated(Builder& b, Instruction* shard, const Shape& whole, const Sharding* sharding) {
  if (std::optional<Spec> spec = mesh_.Read(sharding, whole)) return Parted{shard, whole, {*std::move(spec)}};
  const ModuleConfig& config = module_.config();
  STROP_ASSIGN(Tiling tiling, TilingOf(sharding, whole, config.num_partitions));
  return Parted{GatherShards(b, shard, tiling, whole, config.replica_count), whole, {Spec(whole.rank())}};
}

Result<Shape> Values::StatedShape(const Shape& whole, const Sharding* sharding) const {
  if (const std::optional<Spec> spec = mesh_.Read(sharding, whole)) return mesh_.ShardShape(whole, *spec);
  STROP_ASSIGN(Tiling tiling, TilingOf(sharding, whole, module_.config().num_partitions));
  return ShardShape(whole, tiling);
}

}  // namespace strop::spmd
