#include "strop/spmd/propagation.h"

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>

#include "strop/spmd/custom_call.h"
#include "strop/spmd/exchange.h"
#include "strop/spmd/manual.h"
#include "strop/spmd/mesh.h"
#include "strop/spmd/rule.h"

namespace strop::spmd {
namespace {

enum Direction : uint8_t { kNowhere = 0, kForward = 1, kBackward = 2, kBoth = 3 };
constexpr int kLevels = 5;       // see AtLevel()
constexpr int kOwnersLevel = 3;  // owners of calls are asked with what is certain by then

// A value, or one leaf of a tuple.
struct Node {
  const Instruction* at = nullptr;
  int64_t leaf = 0;
  Shape shape;
  Spec spec;
  std::vector<bool> open;  // by dimension: may be cut further
  bool stated = false;
  const Instruction* source = nullptr;  // whose value it has its sharding from
};

// An op as propagation sees it: a rule over nodes. -1: a value without a sharding of its own.
struct Edge {
  const Instruction* at = nullptr;
  Rule rule;
  std::vector<int> operands, results;
  Direction allowed = kBoth;
  bool passes_through = false, forward_only = false, elementwise = false, broadcast = false, always = false;
  bool shared_operand = false;  // an operand has several uses
  bool asks_owner = false;      // no rule: the owner of the call is asked, once
};

bool IsSharedOperand(const Instruction& i) {
  for (int64_t k = 0; k < i.operand_count(); ++k)
    if (i.operand(k)->use_count() > 1 && i.operand(k)->shape().IsArray() && i.operand(k)->shape().rank() > 0)
      return true;
  return false;
}

Direction AtLevel(const Edge& e, const Factor& factor, int level) {
  if (factor.blocked) return kNowhere;
  if (e.always) return e.allowed;
  int out = kNowhere;
  const int through = !e.passes_through ? kNowhere : e.forward_only ? kForward : kBoth;
  if (!e.shared_operand || level >= 1) out |= through;
  if (level >= 2 && factor.kind == FactorKind::PassThrough) out |= e.broadcast ? kBackward : kBoth;
  if (level >= 3) out |= e.broadcast ? kBackward : kBoth;
  if (level >= 4) out |= kBoth;
  return static_cast<Direction>(out & e.allowed);
}

// The axes of one tensor by factor.
struct Projection {
  std::vector<Axes> axes;    // by factor
  std::vector<bool> has;     // by factor: is it in this tensor?
  std::vector<bool> closed;  // by factor
  std::vector<bool> minor;   // by factor: the last one of its dimension
  Axes overflow;             // what cuts no factor
};

Projection Project(const Node& node, const TensorFactors& dims, const Rule& rule, const Mesh& mesh) {
  const size_t n = rule.factors.size();
  Projection p{std::vector<Axes>(n), std::vector<bool>(n), std::vector<bool>(n, true), std::vector<bool>(n), {}};
  for (size_t d = 0; d < dims.size(); ++d) {
    const Axes& axes = node.spec.dims[d];
    size_t at = 0;
    bool full = true;  // all factors so far are cut to the end
    for (size_t k = 0; k < dims[d].size(); ++k) {
      const int16_t f = dims[d][k];
      p.has[f] = true;
      p.closed[f] = !node.open[d];
      p.minor[f] = k + 1 == dims[d].size();
      int64_t left = rule.factors[f].size;
      while (full && at < axes.size() && (p.minor[f] || left % mesh.axes()[axes[at]].size == 0)) {
        left /= mesh.axes()[axes[at]].size;
        p.axes[f].push_back(axes[at++]);
      }
      full = full && left <= 1;
    }
    for (; at < axes.size(); ++at) p.overflow.push_back(axes[at]);
  }
  for (uint8_t axis : node.spec.unreduced) p.overflow.push_back(axis);
  return p;
}

// The axes that both lists agree on; `grows`: `other` may add to them, until a conflict.
void Agree(Axes& axes, const Axes& other, bool& grows) {
  size_t same = 0;
  while (same < axes.size() && same < other.size() && axes[same] == other[same]) ++same;
  if (same < axes.size() && same < other.size()) {
    axes.resize(same);
    grows = false;
    return;
  }
  for (size_t k = same; grows && k < other.size(); ++k)
    if (k >= axes.size()) axes.push_back(other[k]);
}

class Propagation {
 public:
  Propagation(Module& module, const CallOwners* owners)
      : module_(module), owners_(owners), mesh_(Mesh::Of(module)), manual_(module) {}

  Result<int64_t> Run(const Reason& reason) {
    CollectEntry();
    ApplyConstraints();
    for (size_t e = 0; e < edges_.size(); ++e) {
      for (int node : edges_[e].operands)
        if (node >= 0) users_[node].push_back(static_cast<int>(e));
      for (int node : edges_[e].results)
        if (node >= 0) users_[node].push_back(static_cast<int>(e));
    }
    for (int level = 0; level < kLevels; ++level) RunLevel(level);
    STROP_TRY(std::move(asked_));
    return Write(reason);
  }

 private:
  // ---- nodes
  int NewNode(const Instruction& at, int64_t leaf, const Shape& shape) {
    if (!shape.IsArray() || !shape.IsStatic()) return -1;
    Node node{&at, leaf, shape, Spec(shape.rank()), std::vector<bool>(shape.rank(), true), false, nullptr};
    nodes_.push_back(std::move(node));
    users_.emplace_back();
    return static_cast<int>(nodes_.size()) - 1;
  }
  // Of a value: one a leaf.
  const std::vector<int>& NodesOf(const Instruction& i) { return of_[&i]; }

  void State(int n, const Sharding* sharding, const std::string* sdy) {
    if (n < 0 || !sharding || sharding->kind == ShardingKind::Unknown) return;
    Node& node = nodes_[n];
    if (std::optional<Spec> spec = mesh_.Read(sharding, node.shape)) node.spec = *std::move(spec);
    node.stated = true;
    node.open = OpenDims(node.shape.rank(), sdy);
  }

  // {?} and {"x", ?} of Shardy's text; all others are closed.
  static std::vector<bool> OpenDims(int64_t rank, const std::string* sdy) {
    std::vector<bool> open(rank, false);
    size_t at = sdy ? sdy->find(", [") : std::string::npos;
    for (int64_t d = 0; d < rank && at != std::string::npos; ++d) {
      at = sdy->find('{', at);
      if (at == std::string::npos) break;
      const size_t end = sdy->find('}', at);
      open[d] = sdy->substr(at, end - at).find('?') != std::string::npos;
      at = end;
    }
    return open;
  }

  static const Sharding* Leaf(const Sharding* sharding, int64_t leaf) {
    if (!sharding || sharding->kind != ShardingKind::Tuple) return sharding;
    return leaf < static_cast<int64_t>(sharding->elements.size()) ? &sharding->elements[leaf] : nullptr;
  }
  static const std::string* SdyText(const Instruction& i) {
    const auto found = i.frontend_attributes().find("xla.sdy.sharding");
    return found == i.frontend_attributes().end() ? nullptr : &found->second;
  }

  void StateFrom(const Instruction& i, const std::vector<int>& nodes) {
    if (!i.sharding()) return;
    for (size_t k = 0; k < nodes.size(); ++k)
      State(nodes[k], Leaf(i.sharding(), static_cast<int64_t>(k)), nodes.size() == 1 ? SdyText(i) : nullptr);
  }

  // ---- collecting
  bool Allows(const std::vector<bool>& flags, int64_t k) const {
    if (flags.size() == 1) return flags[0];
    return k < static_cast<int64_t>(flags.size()) && flags[k];
  }

  void CollectEntry() {
    Computation* entry = module_.entry();
    for (const Instruction* p : entry->parameters()) {
      std::vector<int> nodes = FreshNodes(*p);
      const bool allowed =
          Allows(module_.config().allow_spmd_sharding_propagation_to_parameters, p->parameter_number());
      StateFrom(*p, nodes);
      for (int n : nodes)
        if (n >= 0 && !nodes_[n].stated && !allowed) Close(n);
      of_[p] = std::move(nodes);
    }
    Collect(*entry);
    // Results are values of their own: a parameter that is returned keeps its sharding.
    const Instruction* root = entry->root();
    const std::vector<Shape> leaves = root->shape().Leaves();
    for (size_t k = 0; k < leaves.size(); ++k) {
      const int n = NewNode(*root, static_cast<int64_t>(k), leaves[k]);
      results_.push_back(n);
      if (n < 0) continue;
      State(n, Leaf(root->sharding(), static_cast<int64_t>(k)), nullptr);
      if (!nodes_[n].stated &&
          !Allows(module_.config().allow_spmd_sharding_propagation_to_output, static_cast<int64_t>(k)))
        Close(n);
      AddIdentity(*root, {NodesOf(*root)[k]}, n).always = true;
    }
  }

  void Close(int n) { nodes_[n].open.assign(nodes_[n].shape.rank(), false); }

  std::vector<int> FreshNodes(const Instruction& i) {
    std::vector<int> nodes;
    const std::vector<Shape> leaves = i.shape().Leaves();
    for (size_t k = 0; k < leaves.size(); ++k) nodes.push_back(NewNode(i, static_cast<int64_t>(k), leaves[k]));
    return nodes;
  }

  Edge& AddIdentity(const Instruction& at, std::vector<int> operands, int result) {
    Edge e;
    e.at = &at;
    e.rule = IdentityRule(nodes_[result].shape, static_cast<int64_t>(operands.size()));
    e.operands = std::move(operands);
    e.results = {result};
    e.passes_through = e.elementwise = true;
    edges_.push_back(std::move(e));
    return edges_.back();
  }

  void Collect(const Computation& computation) {
    for (const Instruction* i : computation.PostOrder())
      if (!i->IsParameter()) of_[i] = Visit(*i);
  }

  std::vector<int> Visit(const Instruction& i) {
    if (manual_.Has(i)) {
      return std::vector<int>(i.shape().num_leaves(), -1);
    }
    switch (i.op()) {
      case Op::Tuple: {
        std::vector<int> all;
        for (int64_t k = 0; k < i.operand_count(); ++k) {
          const std::vector<int>& part = NodesOf(*i.operand(k));
          all.insert(all.end(), part.begin(), part.end());
        }
        return all;
      }
      case Op::GetTupleElement: {
        const Shape& tuple = i.operand(0)->shape();
        int64_t first = 0;
        for (int64_t k = 0; k < i.tuple_index(); ++k) first += tuple.element(k).num_leaves();
        const std::vector<int>& all = NodesOf(*i.operand(0));
        return {all.begin() + first, all.begin() + first + i.shape().num_leaves()};
      }
      case Op::OptimizationBarrier:
      case Op::Domain:
      case Op::AddDependency: return NodesOf(*i.operand(0));
      case Op::While: return Loop(i);
      case Op::Conditional: return Branches(i);
      case Op::CustomCall: return CustomCall(i);
      default: return Ordinary(i);
    }
  }

  std::vector<int> Loop(const Instruction& i) {
    std::vector<int> carry = FreshNodes(i);
    StateFrom(i, carry);
    of_[i.body()->parameter(0)] = carry;
    of_[i.condition()->parameter(0)] = carry;
    Collect(*i.body());
    Collect(*i.condition());
    for (size_t k = 0; k < carry.size(); ++k)
      if (carry[k] >= 0) AddIdentity(i, {NodesOf(*i.operand(0))[k], NodesOf(*i.body()->root())[k]}, carry[k]);
    return carry;
  }

  std::vector<int> Branches(const Instruction& i) {
    std::vector<int> results = FreshNodes(i);
    StateFrom(i, results);
    for (int64_t k = 0; k < static_cast<int64_t>(i.called().size()); ++k) {
      const Instruction& parameter = *i.called(k)->parameter(0);
      std::vector<int> inside = FreshNodes(parameter);
      for (size_t leaf = 0; leaf < inside.size(); ++leaf)
        if (inside[leaf] >= 0) AddIdentity(i, {NodesOf(*i.operand(k + 1))[leaf]}, inside[leaf]);
      of_[&parameter] = std::move(inside);
      Collect(*i.called(k));
    }
    for (size_t leaf = 0; leaf < results.size(); ++leaf) {
      if (results[leaf] < 0) continue;
      std::vector<int> roots;
      for (const Computation* branch : i.called()) roots.push_back(NodesOf(*branch->root())[leaf]);
      AddIdentity(i, std::move(roots), results[leaf]);
    }
    return results;
  }

  std::vector<int> CustomCall(const Instruction& i) {
    const std::string& target = i.attrs<CustomCallAttrs>().target;
    if (IsWayOut(i)) {
      std::vector<int> nodes = FreshNodes(i);
      StateFrom(i, nodes);
      for (int n : nodes)
        if (n >= 0 && !nodes_[n].stated) Close(n);
      return nodes;
    }
    if (target == "xla.sdy.ShardingGroup") {
      const auto group = i.frontend_attributes().find("xla.sdy.sharding_group_id");
      const int n = NodesOf(*i.operand(0)).empty() ? -1 : NodesOf(*i.operand(0))[0];
      if (group != i.frontend_attributes().end() && n >= 0) {
        auto [first, is_new] = groups_.try_emplace(group->second, n);
        if (!is_new) AddIdentity(i, {first->second}, n).always = true;
      }
      return std::vector<int>(i.shape().num_leaves(), -1);
    }
    if (!IsMark(i)) return Call(i);
    const bool says = target == "Sharding" || target == "xla.sdy.FuncResultSharding";
    const bool barrier = target == "xla.sdy.PropagationBarrier";
    if (!i.shape().IsArray() || (!says && !barrier)) return NodesOf(*i.operand(0));
    const int n = NewNode(i, 0, i.shape());
    if (n < 0) return {n};
    if (says) State(n, i.sharding(), SdyText(i));
    if (says) OpenUnspecified(i, n);
    Edge& e = AddIdentity(i, {NodesOf(*i.operand(0))[0]}, n);
    e.shared_operand = IsSharedOperand(i);
    if (barrier) e.allowed = BarrierDirection(i);
    return {n};
  }

  // backend_config="unspecified_dims=[1]" of GSPMD's constraint.
  void OpenUnspecified(const Instruction& i, int n) {
    const std::string& opaque = i.attrs<CustomCallAttrs>().opaque;
    size_t at = opaque.find("unspecified_dims=[");
    if (at == std::string::npos) return;
    for (at = opaque.find('[', at) + 1; at < opaque.size() && opaque[at] != ']'; ++at) {
      const int64_t d = opaque[at] - '0';
      if (d >= 0 && d < nodes_[n].shape.rank()) nodes_[n].open[d] = true;
    }
  }

  static Direction BarrierDirection(const Instruction& i) {
    const auto found = i.frontend_attributes().find("xla.sdy.allowed_direction");
    if (found == i.frontend_attributes().end()) return kNowhere;
    const std::string& text = found->second;
    auto says = [&](std::string_view word, char number) {
      return text.find(word) != std::string::npos || text.find(number) == 0;
    };
    if (says("BOTH", '3')) return kBoth;
    if (says("FORWARD", '1')) return kForward;
    return says("BACKWARD", '2') ? kBackward : kNowhere;
  }

  std::vector<int> Call(const Instruction& i) {
    if (Rule rule = RuleOfCall(i, owners_); !rule.empty()) return OfRule(i, std::move(rule));
    if (!owners_ || module_.config().use_shardy_partitioner || !owners_->Cuts(i.attrs<CustomCallAttrs>().target))
      return Others(i);
    Edge e;
    e.at = &i;
    e.asks_owner = true;
    for (const Instruction* operand : i.operands())
      e.operands.push_back(NodesOf(*operand).size() == 1 ? NodesOf(*operand)[0] : -1);
    e.results = FreshNodes(i);
    StateFrom(i, e.results);
    edges_.push_back(e);
    return e.results;
  }

  // Values of which nothing is known: whole, unless the program says otherwise.
  std::vector<int> Others(const Instruction& i) {
    std::vector<int> nodes = FreshNodes(i);
    StateFrom(i, nodes);
    for (int n : nodes)
      if (n >= 0 && !nodes_[n].stated) Close(n);
    return nodes;
  }

  std::vector<int> Ordinary(const Instruction& i) {
    std::vector<int> nodes = OfItsRule(i);
    // What goes around lies as it did.
    if (const std::optional<Rotation> rotation = RotationOf(i); rotation && nodes[0] >= 0)
      if (const int n = NodesOf(*rotation->of)[0]; n >= 0) AddIdentity(i, {n}, nodes[0]).elementwise = false;
    return nodes;
  }

  std::vector<int> OfItsRule(const Instruction& i) {
    const bool stated = i.sharding() && i.sharding()->kind != ShardingKind::Unknown && i.op() != Op::Constant;
    if (IsFree(i) && !stated) return {-1};
    Rule rule = RuleOf(i);
    if (rule.empty() && i.shape().num_leaves() > 0 && !IsFree(i)) return Others(i);
    return OfRule(i, std::move(rule));
  }

  std::vector<int> OfRule(const Instruction& i, Rule rule) {
    std::vector<int> nodes = FreshNodes(i);
    StateFrom(i, nodes);
    if (IsFree(i)) return nodes;
    Edge e;
    e.at = &i;
    e.rule = std::move(rule);
    for (int64_t k = 0; k < i.operand_count(); ++k) {
      const std::vector<int>& operand = NodesOf(*i.operand(k));
      e.operands.push_back(operand.size() == 1 ? operand[0] : -1);
    }
    e.results = nodes;
    e.elementwise = IsElementwise(i.op()) || i.op() == Op::Copy || i.op() == Op::Map;
    e.forward_only = i.op() == Op::DynamicSlice || i.op() == Op::DynamicUpdateSlice;
    e.passes_through = e.elementwise || e.forward_only || i.op() == Op::Reshape || i.op() == Op::Transpose;
    e.broadcast = i.op() == Op::Broadcast;
    e.shared_operand = IsSharedOperand(i);
    edges_.push_back(std::move(e));
    return nodes;
  }

  // A constraint, or the way into a manual region, says what its operand is, if nothing else does.
  void ApplyConstraints() {
    std::map<int, std::optional<Spec>> wanted;  // nothing where constraints differ
    auto want = [&](int n, const Spec& spec) {
      if (n < 0 || nodes_[n].stated) return;
      auto [found, is_new] = wanted.try_emplace(n, spec);
      if (!is_new && found->second != spec) found->second.reset();
    };
    for (const auto& [i, nodes] : Sorted()) {
      if (i->op() != Op::CustomCall) continue;
      if (IsWayIn(*i)) {
        for (int64_t k = 0; k < i->operand_count(); ++k) {
          if (manual_.Has(*i->operand(k))) continue;
          const std::vector<int>& operand = NodesOf(*i->operand(k));
          const Sharding* sharding = i->attrs<CustomCallAttrs>().target == "SPMDFullToShardShape"
                                         ? i->operand(k)->sharding()
                                         : Leaf(i->sharding(), k);
          const std::optional<Spec> spec = mesh_.Read(sharding, i->operand(k)->shape());
          if (spec && operand.size() == 1) want(operand[0], *spec);
        }
      } else if (IsMark(*i) && nodes.size() == 1 && nodes[0] >= 0 && nodes_[nodes[0]].stated) {
        const Node& node = nodes_[nodes[0]];
        const bool closed = std::find(node.open.begin(), node.open.end(), true) == node.open.end();
        const std::vector<int>& operand = NodesOf(*i->operand(0));
        if (closed && operand.size() == 1) want(operand[0], node.spec);
      }
    }
    for (const auto& [n, spec] : wanted) {
      const Instruction* at = nodes_[n].at;
      if (!spec || at->op() == Op::While || at->op() == Op::Conditional) continue;
      if (std::find(nodes_[n].open.begin(), nodes_[n].open.end(), false) != nodes_[n].open.end()) continue;
      nodes_[n].spec = *spec;
      Close(n);
      nodes_[n].source = at;
    }
    while (CarryParts()) {}
  }

  // What a loop begins with in parts, and each trip leaves so, is carried in parts. Returns whether a carry became so,
  // which one of a loop around it may follow.
  bool CarryParts() {
    bool changed = false;
    for (const auto& [i, carry] : Sorted()) {
      if (i->op() != Op::While || manual_.Has(*i)) continue;
      const std::vector<int>&init = NodesOf(*i->operand(0)), &next = NodesOf(*i->body()->root());
      for (size_t k = 0; k < carry.size(); ++k) {
        if (carry[k] < 0 || next[k] < 0 || nodes_[carry[k]].stated) continue;
        Spec& spec = nodes_[carry[k]].spec;
        for (uint8_t axis : nodes_[next[k]].spec.unreduced) {
          const bool begins = init[k] < 0 || Contains(nodes_[init[k]].spec.unreduced, axis);
          if (!begins || spec.Uses(axis)) continue;
          spec.unreduced.push_back(axis);
          nodes_[carry[k]].source = i;
          changed = true;
        }
      }
    }
    return changed;
  }

  // Values in the order of their ids.
  std::vector<std::pair<const Instruction*, std::vector<int>>> Sorted() {
    std::vector<std::pair<const Instruction*, std::vector<int>>> out(of_.begin(), of_.end());
    std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first->id() < b.first->id(); });
    return out;
  }

  // ---- to the fixpoint
  void RunLevel(int level) {
    std::deque<int> queue;
    std::vector<bool> queued(edges_.size(), true);
    for (size_t e = 0; e < edges_.size(); ++e) queue.push_back(static_cast<int>(e));
    while (!queue.empty()) {
      const int e = queue.front();
      queue.pop_front();
      queued[e] = false;
      for (int node : edges_[e].asks_owner ? Ask(edges_[e], level) : Spread(edges_[e], level)) {
        for (int user : users_[node]) {
          if (queued[user]) continue;
          queued[user] = true;
          queue.push_back(user);
        }
      }
    }
  }

  bool Says(const std::vector<int>& nodes) const {
    return std::any_of(nodes.begin(), nodes.end(), [&](int n) { return n >= 0 && !nodes_[n].spec.whole(); });
  }

  Sharding Written(int n) const { return n < 0 ? Sharding{} : mesh_.Write(mesh_.OfNamedAxes(nodes_[n].spec)); }

  // What the owner of a call says of its results. Returns the nodes that changed.
  std::vector<int> Ask(Edge& e, int level) {
    const bool stated =
        std::all_of(e.results.begin(), e.results.end(), [&](int n) { return n < 0 || nodes_[n].stated; });
    const bool by_users = Says(e.results);
    if (level < kOwnersLevel || stated || !asked_.ok() || (!by_users && !Says(e.operands))) return {};
    const auto& attrs = e.at->attrs<CustomCallAttrs>();
    CallToCut call{attrs.target, attrs.opaque, {}, e.at->shape(), {}, {}};
    for (int64_t k = 0; k < e.at->operand_count(); ++k) {
      call.operands.push_back(e.at->operand(k)->shape());
      call.operand_shardings.push_back(Written(e.operands[k]));
    }
    call.result_sharding.kind = ShardingKind::Tuple;
    for (int n : e.results) call.result_sharding.elements.push_back(Written(n));
    if (!e.at->shape().IsTuple()) call.result_sharding = Sharding(call.result_sharding.elements[0]);
    e.asks_owner = false;
    Result<std::optional<Sharding>> answer = by_users ? owners_->FromUsers(call) : owners_->FromOperands(call);
    if (!answer.ok()) asked_ = std::move(answer).status().At(e.at->Where());
    std::vector<int> changed;
    for (size_t k = 0; answer.ok() && *answer && k < e.results.size(); ++k) {
      const int n = e.results[k];
      if (n < 0 || nodes_[n].stated) continue;
      std::optional<Spec> spec = mesh_.Read(Leaf(&**answer, static_cast<int64_t>(k)), nodes_[n].shape);
      if (!spec || *spec == nodes_[n].spec) continue;
      nodes_[n].spec = *std::move(spec);
      nodes_[n].source = e.at;
      Close(n);
      changed.push_back(n);
    }
    return changed;
  }

  // Returns the nodes that changed.
  std::vector<int> Spread(const Edge& e, int level) {
    const size_t n = e.rule.factors.size();
    std::vector<std::optional<Projection>> operands, results;
    auto project = [&](const std::vector<int>& nodes, const std::vector<TensorFactors>& dims,
                       std::vector<std::optional<Projection>>& out) {
      for (size_t k = 0; k < nodes.size(); ++k)
        out.push_back(nodes[k] < 0 || k >= dims.size()
                          ? std::nullopt
                          : std::optional(Project(nodes_[nodes[k]], dims[k], e.rule, mesh_)));
    };
    project(e.operands, e.rule.operands, operands);
    project(e.results, e.rule.results, results);
    std::vector<Axes> axes(n);
    bool any = false;
    for (size_t f = 0; f < n; ++f) {
      axes[f] = Compatible(operands, results, f, AtLevel(e, e.rule.factors[f], level));
      any = any || !axes[f].empty();
    }
    if (!any) return {};
    const std::vector<size_t> order = FactorOrder(e, axes, operands, results);
    std::vector<int> changed;
    for (size_t k = 0; k < results.size(); ++k)
      if (results[k] && Expand(*results[k], e, axes, order, nullptr))
        Store(e, e.results[k], e.rule.results[k], *results[k], changed);
    for (size_t k = 0; k < operands.size(); ++k)
      if (operands[k] && Expand(*operands[k], e, axes, order, e.elementwise ? &results : nullptr))
        Store(e, e.operands[k], e.rule.operands[k], *operands[k], changed);
    return changed;
  }

  Axes Compatible(const std::vector<std::optional<Projection>>& operands,
                  const std::vector<std::optional<Projection>>& results, size_t f, Direction direction) const {
    Axes out;
    if (direction == kNowhere) return out;
    bool grows = true;
    auto agree = [&](const std::vector<std::optional<Projection>>& tensors) {
      for (const std::optional<Projection>& t : tensors)
        if (t && t->has[f]) Agree(out, t->axes[f], grows);
    };
    agree(direction == kBackward ? results : operands);
    if (direction != kBoth) grows = false;
    agree(direction == kBackward ? operands : results);
    return out;
  }

  std::vector<size_t> FactorOrder(const Edge& e, const std::vector<Axes>& axes,
                                  const std::vector<std::optional<Projection>>& operands,
                                  const std::vector<std::optional<Projection>>& results) const {
    const size_t n = e.rule.factors.size();
    std::vector<std::tuple<int64_t, int64_t, int64_t, size_t>> keys(n);
    std::vector<int64_t> size(n, -1), index(n, -1);
    int64_t number = 0;
    auto look = [&](const std::vector<std::optional<Projection>>& tensors) {
      for (const std::optional<Projection>& t : tensors) {
        int64_t elements = 1;
        for (size_t f = 0; t && f < n; ++f)
          if (t->has[f]) elements *= e.rule.factors[f].size;
        for (size_t f = 0; t && f < n; ++f) {
          if (!t->has[f] || axes[f].empty() || !IsPrefix(axes[f], t->axes[f]) || elements <= size[f]) continue;
          size[f] = elements;
          index[f] = number;
        }
        ++number;
      }
    };
    look(operands);
    look(results);
    std::vector<size_t> order(n);
    for (size_t f = 0; f < n; ++f) {
      order[f] = f;
      keys[f] = {-size[f], e.elementwise ? -mesh_.SizeOf(axes[f]) : 0, index[f], f};
    }
    std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return keys[a] < keys[b]; });
    return order;
  }

  // Gives the tensor the axes of each factor as far as they are free there and divide the factor.
  bool Expand(Projection& p, const Edge& e, const std::vector<Axes>& axes, const std::vector<size_t>& order,
              const std::vector<std::optional<Projection>>* results) const {
    bool changed = false;
    for (size_t f : order) {
      if (!p.has[f] || axes[f].size() <= p.axes[f].size() || !IsPrefix(p.axes[f], axes[f])) continue;
      if (p.closed[f]) continue;
      Axes wanted = axes[f];
      // An operand gets no more than the result can have.
      for (size_t k = 0; results && k < results->size(); ++k)
        if ((*results)[k] && (*results)[k]->has[f] && (*results)[k]->axes[f].size() < wanted.size() &&
            IsPrefix((*results)[k]->axes[f], wanted))
          wanted = (*results)[k]->axes[f];
      int64_t cut = 1;
      for (size_t k = 0; k < wanted.size(); ++k) {
        cut *= mesh_.axes()[wanted[k]].size;
        if (k < p.axes[f].size()) continue;
        if (e.rule.factors[f].size % cut != 0 || IsTaken(p, wanted[k])) break;
        p.axes[f].push_back(wanted[k]);
        changed = true;
      }
    }
    return changed;
  }

  static bool IsTaken(const Projection& p, uint8_t axis) {
    if (Contains(p.overflow, axis)) return true;
    return std::any_of(p.axes.begin(), p.axes.end(), [axis](const Axes& axes) { return Contains(axes, axis); });
  }

  void Store(const Edge& e, int n, const TensorFactors& dims, const Projection& p, std::vector<int>& changed) {
    Node& node = nodes_[n];
    bool differs = false;
    for (size_t d = 0; d < dims.size(); ++d) {
      Axes all;
      for (int16_t f : dims[d]) {
        for (uint8_t axis : p.axes[f]) all.push_back(axis);
        if (mesh_.SizeOf(p.axes[f]) < e.rule.factors[f].size) break;
      }
      if (all.size() <= node.spec.dims[d].size()) continue;
      node.spec.dims[d] = std::move(all);
      differs = true;
    }
    if (!differs) return;
    node.source = e.at;
    changed.push_back(n);
  }

  // ---- writing
  // The spec with as many axes of each dimension as cut it into even pieces: callers take no others.
  Spec Even(const Node& node) const {
    Spec spec = node.spec;
    for (int64_t d = 0; d < node.shape.rank(); ++d)
      while (node.shape.dim(d) % mesh_.SizeOf(spec.dims[d]) != 0) spec.dims[d].pop_back();
    return spec;
  }

  int64_t Write(const Reason& reason) {
    int64_t count = 0;
    for (Computation* c : module_.computations()) {
      for (Instruction* i : c->instructions()) {
        const auto found = of_.find(i);
        if (found == of_.end() || (i->IsParameter() && c != module_.entry())) continue;
        // Not of what only hands on other values.
        const bool own =
            std::any_of(found->second.begin(), found->second.end(), [&](int n) { return n >= 0 && nodes_[n].at == i; });
        if (own) count += WriteValue(*i, found->second, reason);
      }
    }
    WriteResults();
    return count;
  }

  int64_t WriteValue(Instruction& i, const std::vector<int>& nodes, const Reason& reason) {
    bool any = false;
    for (int n : nodes) any = any || (n >= 0 && !nodes_[n].spec.whole() && nodes_[n].source);
    if (!any) return 0;
    Sharding all;
    all.kind = ShardingKind::Tuple;
    for (size_t k = 0; k < nodes.size(); ++k) {
      const Node* node = nodes[k] < 0 ? nullptr : &nodes_[nodes[k]];
      const Sharding* given = Leaf(i.sharding(), static_cast<int64_t>(k));
      const bool keep = !node || (node->stated && !node->source);
      all.elements.push_back(!keep ? mesh_.Write(node->spec) : given ? *given : Sharding{});
      if (node && node->source)
        reason(i, StrCat(mesh_.Text(node->spec), node->source == &i ? std::string(", from its operands")
                                                                    : StrCat(", from ", Name(node->source->op()), " %",
                                                                             node->source->name(), " that uses it")));
    }
    i.set_sharding(i.shape().IsTuple() ? std::move(all) : std::move(all.elements[0]));
    return 1;
  }

  void WriteResults() {
    Computation* entry = module_.entry();
    Instruction* root = entry->root();
    Sharding all;
    all.kind = ShardingKind::Tuple;
    for (size_t k = 0; k < results_.size(); ++k) {
      const Node* node = results_[k] < 0 ? nullptr : &nodes_[results_[k]];
      const Sharding* given = Leaf(root->sharding(), static_cast<int64_t>(k));
      const bool allowed = Allows(module_.config().allow_spmd_sharding_propagation_to_output, static_cast<int64_t>(k));
      if (node && (!node->stated || node->source || (allowed && Even(*node) != node->spec))) {
        all.elements.push_back(mesh_.Write(mesh_.OfNamedAxes(Even(*node))));
      } else {
        all.elements.push_back(given ? *given : Sharding{});
      }
    }
    const bool is_array = !root->shape().IsTuple();
    if (is_array && (!IsMark(*root) || root->use_count() > 0)) {
      if (all.elements[0].kind == ShardingKind::Replicated && !root->sharding()) return;
      CustomCallAttrs mark;
      mark.target = "Sharding";
      root = entry->Add(Op::CustomCall, root->shape(), {root}, std::move(mark));
      entry->set_root(root);
    } else if (!is_array && root->op() != Op::Tuple) {
      std::vector<Instruction*> parts;
      for (int64_t k = 0; k < root->shape().tuple_size(); ++k)
        parts.push_back(entry->Add(Op::GetTupleElement, root->shape().element(k), {root}, GetTupleElementAttrs{k}));
      root = entry->Add(Op::Tuple, root->shape(), parts, NoAttrs{});
      entry->set_root(root);
    }
    root->set_sharding(is_array ? std::move(all.elements[0]) : std::move(all));
  }

  Module& module_;
  const CallOwners* owners_;
  const Mesh mesh_;
  const ManualRegions manual_;
  Status asked_;  // of owners
  std::vector<Node> nodes_;
  std::vector<Edge> edges_;
  std::vector<std::vector<int>> users_;  // edges by node
  std::unordered_map<const Instruction*, std::vector<int>> of_;
  std::map<std::string, int> groups_;
  std::vector<int> results_;
};

}  // namespace

bool IsFree(const Instruction& i) {
  if (i.op() == Op::Broadcast) return i.operand(0)->shape().rank() == 0;
  return i.op() == Op::Constant || i.op() == Op::Iota;
}

Result<int64_t> PropagateShardings(Module& module, const Reason& reason, const CallOwners* owners) {
  if (module.config().num_partitions <= 1 || !StatesShardings(module)) return 0;
  return Propagation(module, owners).Run(reason);
}

}  // namespace strop::spmd
