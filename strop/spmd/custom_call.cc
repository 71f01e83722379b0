#include "strop/spmd/custom_call.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "strop/base/cursor.h"
#include "strop/spmd/local_op.h"
#include "strop/spmd/propagation.h"

namespace strop::spmd {
namespace {

// Each device calls back with what it has, whatever device JAX says (jax.debug.callback with partitioned=True).
constexpr std::array<std::string_view, 2> kMadeOnShards = {"xla_ffi_partitioned_python_cpu_callback",
                                                           "xla_ffi_partitioned_python_gpu_callback"};

// ---- Shardy's text of rules

// i, j, .. z, z_1, z_2, ..: the number of the factor; -1: none is there.
int64_t FactorNumber(Cursor& at) {
  const char letter = at.Peek();
  if (letter < 'i' || letter > 'z' || !at.Consume(letter)) return -1;
  int64_t number = letter - 'i';
  if (letter != 'z' || !at.ConsumeAdjacent('_')) return number;
  int64_t more = 0;
  while (!at.rest().empty() && at.rest()[0] >= '0' && at.rest()[0] <= '9' && more < INT16_MAX) {
    more = more * 10 + (at.rest()[0] - '0');
    at.set_offset(at.offset() + 1);
  }
  return number + more;
}

// "([i, jk], [k])": the dimensions of some tensors.
bool ReadTensors(Cursor& at, std::vector<TensorFactors>& tensors) {
  if (!at.Consume('(')) return false;
  while (!at.Consume(')')) {
    if (!tensors.empty() && !at.Consume(',')) return false;
    if (!at.Consume('[')) return false;
    TensorFactors& dims = tensors.emplace_back();
    while (!at.Consume(']')) {
      if (!dims.empty() && !at.Consume(',')) return false;
      auto& factors = dims.emplace_back();
      for (int64_t f = FactorNumber(at); f >= 0; f = FactorNumber(at)) {
        if (f > INT16_MAX) return false;
        factors.push_back(static_cast<int16_t>(f));
      }
      if (at.AtEnd()) return false;
    }
  }
  return true;
}

// "{i=8, j=4}"
bool ReadSizes(Cursor& at, std::vector<Factor>& factors) {
  if (!at.Consume('{')) return true;
  while (!at.Consume('}')) {
    if (!factors.empty() && !at.Consume(',')) return false;
    if (FactorNumber(at) != static_cast<int64_t>(factors.size()) || !at.Consume('=')) return false;
    const std::string digits(at.rest().substr(0, 20));
    char* end = nullptr;
    const int64_t size = std::strtoll(digits.c_str(), &end, 10);
    if (end == digits.c_str() || size <= 0) return false;
    at.set_offset(at.offset() + static_cast<size_t>(end - digits.c_str()));
    factors.push_back({.size = size});
  }
  return true;
}

// " reduction={k} need_replication={j}"
bool ReadKinds(Cursor& at, std::vector<Factor>& factors) {
  for (std::string_view kind : {"reduction", "need_replication", "permutation", "blocked_propagation"}) {
    at.SkipSpace();
    if (!at.rest().starts_with(kind)) continue;
    at.set_offset(at.offset() + kind.size());
    if (!at.Consume('=') || !at.Consume('{')) return false;
    while (!at.Consume('}')) {
      const int64_t f = FactorNumber(at);
      if (f < 0 || f >= static_cast<int64_t>(factors.size())) return false;
      if (kind == "reduction") factors[f].kind = FactorKind::Reduction;
      if (kind == "need_replication") factors[f].kind = FactorKind::NeedReplication;
      if (kind == "permutation") factors[f].kind = FactorKind::Permutation;
      if (kind == "blocked_propagation") factors[f].blocked = true;
      at.Consume(',');
    }
  }
  return true;
}

bool Fits(const std::vector<TensorFactors>& tensors, const std::vector<Shape>& shapes, size_t factors) {
  if (tensors.size() != shapes.size()) return false;
  for (size_t k = 0; k < tensors.size(); ++k) {
    if (static_cast<int64_t>(tensors[k].size()) != (shapes[k].IsArray() ? shapes[k].rank() : 0)) return false;
    for (const auto& dim : tensors[k])
      for (int16_t f : dim)
        if (static_cast<size_t>(f) >= factors) return false;
  }
  return true;
}

std::vector<Shape> OperandShapes(const Instruction& call) {
  std::vector<Shape> shapes;
  for (const Instruction* operand : call.operands()) shapes.push_back(operand->shape());
  return shapes;
}

// Its leading dimensions are factors of all operands and results that have them.
Rule RuleOfBatches(const Instruction& call, int64_t dims) {
  Rule rule;
  const std::vector<Shape> operands = OperandShapes(call), results = call.shape().Leaves();
  for (const Shape& leaf : results)
    if (!leaf.IsArray() || !leaf.IsStatic() || leaf.rank() < dims) return {};
  if (results.empty()) return {};
  for (int64_t d = 0; d < dims; ++d) rule.factors.push_back({.size = results[0].dim(d)});
  auto place = [&](const std::vector<Shape>& shapes, std::vector<TensorFactors>& tensors) {
    for (const Shape& shape : shapes) {
      TensorFactors& factors = tensors.emplace_back(shape.IsArray() ? shape.rank() : 0);
      bool has = shape.IsArray() && shape.rank() >= dims;
      for (int64_t d = 0; has && d < dims; ++d) has = shape.dim(d) == rule.factors[d].size;
      for (int64_t d = 0; has && d < dims; ++d) factors[d].push_back(static_cast<int16_t>(d));
    }
  };
  place(operands, rule.operands);
  place(results, rule.results);
  return rule;
}

// ---- calls that are cut by their owner

// How a value without a sharding of its own should lie, for the call's rule.
Spec SpecOfFree(const Rule& rule, int64_t k, const Instruction& call, const Values& values) {
  FactorAxes axes(rule.factors.size());
  auto take = [&](const TensorFactors& dims, const Spec& spec) {
    for (size_t d = 0; d < dims.size() && d < spec.dims.size(); ++d)
      if (dims[d].size() == 1 && axes[dims[d][0]].empty()) axes[dims[d][0]] = spec.dims[d];
  };
  const std::vector<Spec> wanted = values.Assigned(call);
  for (size_t r = 0; r < rule.results.size(); ++r) take(rule.results[r], wanted[r]);
  for (int64_t o = 0; o < call.operand_count(); ++o)
    if (!IsFree(*call.operand(o))) take(rule.operands[o], values.Of(*call.operand(o)).specs[0]);
  Spec spec = SpecOf(values.mesh(), rule, rule.operands[k], axes);
  Axes seen;
  for (Axes& dim : spec.dims) {
    if (Overlap(seen, dim)) dim.clear();
    for (uint8_t axis : dim) seen.push_back(axis);
  }
  return spec;
}

CallToCut Describe(const Instruction& call, const Rule& rule, const Values& values) {
  const auto& attrs = call.attrs<CustomCallAttrs>();
  CallToCut out{attrs.target, attrs.opaque, {}, call.shape(), {}, {}};
  const Mesh& mesh = values.mesh();
  auto write = [&](const Spec& spec) { return mesh.Write(mesh.OfNamedAxes(spec)); };
  for (int64_t k = 0; k < call.operand_count(); ++k) {
    const Parted& operand = values.Of(*call.operand(k));
    out.operands.push_back(operand.whole);
    const bool free = IsFree(*call.operand(k)) && !rule.empty();
    out.operand_shardings.push_back(write(free ? SpecOfFree(rule, k, call, values) : operand.specs[0]));
  }
  const std::vector<Spec> wanted = values.Assigned(call);
  out.result_sharding.kind = ShardingKind::Tuple;
  for (const Spec& spec : wanted) out.result_sharding.elements.push_back(write(spec));
  if (!call.shape().IsTuple()) out.result_sharding = Sharding(out.result_sharding.elements[0]);
  return out;
}

// Does what the owner made fit the shardings that it names?
Status CheckCut(const Instruction& call, const CallToCut& asked, const CutCall& cut, const Values& values) {
  const std::string& target = call.attrs<CustomCallAttrs>().target;
  const Computation& entry = *cut.program->entry();
  if (cut.operands.size() != asked.operands.size() ||
      entry.parameter_count() != static_cast<int64_t>(asked.operands.size()))
    return InvalidArgument("the partitioner of ", target, " returned ", cut.operands.size(), " shardings and ",
                           entry.parameter_count(), " parameters for ", asked.operands.size(), " operands");
  for (size_t k = 0; k < asked.operands.size(); ++k) {
    STROP_ASSIGN(const Shape shard, values.StatedShape(asked.operands[k], &cut.operands[k]));
    const Shape& made = entry.parameter(static_cast<int64_t>(k))->shape();
    if (!shard.Compatible(made))
      return InvalidArgument("the partitioner of ", target, " cuts operand ", k, " to ", shard,
                             ", what it returned works on ", made);
  }
  const std::vector<Shape> wholes = asked.result.Leaves(), made = entry.root()->shape().Leaves();
  if (wholes.size() != made.size())
    return InvalidArgument("the partitioner of ", target, " returned ", made.size(), " results for ", wholes.size());
  for (size_t k = 0; k < wholes.size(); ++k) {
    STROP_ASSIGN(const Shape shard, values.StatedShape(wholes[k], Values::Leaf(&cut.result, static_cast<int64_t>(k))));
    if (!shard.Compatible(made[k]))
      return InvalidArgument("the partitioner of ", target, " cuts result ", k, " to ", shard,
                             ", what it returned makes ", made[k]);
  }
  return OkStatus();
}

Status Exchange(Instruction& call, const CallToCut& asked, const CutCall& cut, Values& values) {
  STROP_TRY(CheckCut(call, asked, cut, values));
  Builder b = Before(call);
  std::vector<Instruction*> arguments;
  for (int64_t k = 0; k < call.operand_count(); ++k) {
    STROP_ASSIGN(Instruction * shard, values.RequireStated(b, *call.operand(k), &cut.operands[k]));
    arguments.push_back(shard);
  }
  STROP_TRY(b.status());
  Computation* called[] = {values.module().CloneComputation(*cut.program->entry(), StrCat(call.name(), ".on_shards"))};
  for (Instruction* i : called[0]->instructions()) i->clear_sharding();
  Instruction* made = b.Make(Op::Call, arguments, CallAttrs{}, called, nullptr);
  if (!made) return b.status();
  const std::vector<Shape> wholes = asked.result.Leaves();
  std::vector<Instruction*> leaves;
  std::vector<Spec> specs;
  for (size_t k = 0; k < wholes.size(); ++k) {
    const auto leaf = static_cast<int64_t>(k);
    Instruction* shard = made->shape().IsTuple() ? b.GetTupleElement(made, leaf) : made;
    STROP_ASSIGN(Parted parted, values.FromStated(b, shard, wholes[k], Values::Leaf(&cut.result, leaf)));
    leaves.push_back(parted.value);
    specs.push_back(std::move(parted.specs[0]));
  }
  Instruction* value = call.shape().IsTuple() ? b.Tuple(leaves) : leaves[0];
  STROP_TRY(b.status());
  values.Set(call, value, asked.result, std::move(specs));
  values.Replaced(call);
  return OkStatus();
}

}  // namespace

Rule RuleOfText(std::string_view text, const Instruction& call) {
  constexpr std::string_view kBegin = "#sdy.op_sharding_rule<";
  if (!text.starts_with(kBegin)) return {};
  Cursor at(text.substr(kBegin.size()));
  Rule rule;
  const bool read = ReadTensors(at, rule.operands) && at.Consume('-') && at.Consume('>') &&
                    ReadTensors(at, rule.results) && ReadSizes(at, rule.factors) && ReadKinds(at, rule.factors);
  if (!read || !Fits(rule.operands, OperandShapes(call), rule.factors.size()) ||
      !Fits(rule.results, call.shape().Leaves(), rule.factors.size()))
    return {};
  return rule;
}

int64_t BatchDims(const Instruction& call, const CallOwners* owners) {
  const auto dims = call.frontend_attributes().find("num_batch_dims");
  if (dims == call.frontend_attributes().end()) return 0;
  if (owners && !owners->WorksOnBatches(call.attrs<CustomCallAttrs>().target)) return 0;
  const long n = std::strtol(dims->second.c_str(), nullptr, 10);
  return n > 0 && n <= INT16_MAX ? n : 0;
}

Rule RuleOfCall(const Instruction& call, const CallOwners* owners) {
  for (const Shape& leaf : call.shape().Leaves())
    if (leaf.IsArray() && !leaf.IsStatic()) return {};
  if (const int64_t dims = BatchDims(call, owners); dims > 0) return RuleOfBatches(call, dims);
  const auto rule = call.frontend_attributes().find("xla.sdy.sharding_rule");
  return rule == call.frontend_attributes().end() ? Rule{} : RuleOfText(rule->second, call);
}

bool IsMadeOnShards(const Instruction& call) {
  const std::string& target = call.attrs<CustomCallAttrs>().target;
  const std::vector<Shape> results = call.shape().Leaves();
  return std::find(kMadeOnShards.begin(), kMadeOnShards.end(), target) != kMadeOnShards.end() &&
         std::none_of(results.begin(), results.end(), [](const Shape& leaf) { return leaf.IsArray(); });
}

void MakeOnShards(Instruction& call, Values& values) {
  for (int64_t k = 0; k < call.operand_count(); ++k) call.SetOperand(k, values.Of(*call.operand(k)).value);
  ResizeConstraints(call, call.operands());
  call.clear_sharding();
  values.SetWhole(call, &call, call.shape());
}

void ResizeConstraints(Instruction& call, std::span<Instruction* const> operands) {
  CustomCallAttrs attrs = call.attrs<CustomCallAttrs>();
  for (size_t k = 0; k < attrs.operand_layout_constraints.size() && k < operands.size(); ++k)
    Resize(attrs.operand_layout_constraints[k], operands[k]->shape());
  call.set_attrs(std::move(attrs));
}

Status CutByOwner(Instruction& call, const Rule& rule, const CallOwners& owners, Values& values) {
  for (const Instruction* operand : call.operands())
    if (!values.Of(*operand).whole.IsArray())
      return Unimplemented("custom-call ", call.attrs<CustomCallAttrs>().target, " has an operand ",
                           values.Of(*operand).whole, "; a partitioner can cut arrays")
          .At(call.Where());
  const CallToCut asked = Describe(call, rule, values);
  Result<CutCall> cut = owners.Cut(asked);
  Status done = cut.ok() ? Exchange(call, asked, *cut, values) : std::move(cut).status();
  return done.ok() ? OkStatus() : std::move(done).At(call.Where());
}

}  // namespace strop::spmd
