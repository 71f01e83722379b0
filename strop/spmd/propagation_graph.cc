#include "strop/spmd/propagation_graph.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "strop/spmd/custom_call.h"
#include "strop/spmd/exchange.h"
#include "strop/spmd/propagation.h"

namespace strop::spmd {
namespace {

bool IsSharedOperand(const Instruction& i) {
  for (int64_t k = 0; k < i.operand_count(); ++k)
    if (i.operand(k)->use_count() > 1 && i.operand(k)->shape().IsArray() && i.operand(k)->shape().rank() > 0)
      return true;
  return false;
}

// Shall it lie as something else does?
bool IsGrouped(const Instruction& i) {
  return std::any_of(i.uses().begin(), i.uses().end(), [](const Use& use) {
    return use.user->op() == Op::CustomCall && use.user->attrs<CustomCallAttrs>().target == "xla.sdy.ShardingGroup";
  });
}

// One flag for all, or one each.
bool Allows(const std::vector<bool>& flags, int64_t k) {
  if (flags.size() == 1) return flags[0];
  return k < static_cast<int64_t>(flags.size()) && flags[k];
}

class Collector {
 public:
  explicit Collector(PropagationGraph& graph) : g_(graph) {}
  void Run() { CollectEntry(); }

 private:
  // ---- nodes
  int NewNode(const Instruction& at, int64_t leaf, const Shape& shape) {
    if (!shape.IsArray() || !shape.IsStatic()) return -1;
    Node node;
    node.at = &at;
    node.leaf = leaf;
    node.shape = shape;
    node.spec = Spec(shape.rank());
    node.open.assign(shape.rank(), true);
    node.replicated = g_.manual.AxesOf(at);
    g_.nodes.push_back(std::move(node));
    return static_cast<int>(g_.nodes.size()) - 1;
  }
  void State(int n, const Sharding* sharding, const std::string* sdy) {
    if (n < 0 || !sharding || sharding->kind == ShardingKind::Unknown) return;
    Node& node = g_.nodes[n];
    if (std::optional<Spec> spec = g_.mesh.Read(sharding, node.shape)) node.spec = *std::move(spec);
    node.stated = true;
    node.open = OpenDims(node.shape.rank(), sdy);
    if (sdy) node.priority = Priorities(node.shape.rank(), *sdy);
    if (sdy)
      for (uint8_t axis : ReplicatedAxes(*sdy)) node.replicated.push_back(axis);
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

  // {"x"}p1 of Shardy's text.
  static std::vector<int> Priorities(int64_t rank, const std::string& sdy) {
    std::vector<int> out(rank, 0);
    size_t at = sdy.find(", [");
    for (int64_t d = 0; d < rank && at != std::string::npos; ++d) {
      at = sdy.find('}', at);
      if (at == std::string::npos) break;
      ++at;
      if (at < sdy.size() && sdy[at] == 'p') out[d] = std::atoi(sdy.c_str() + at + 1);
    }
    return out;
  }

  // <@mesh, [..], replicated={"y"}>; of an axis that is named in part the whole.
  Axes ReplicatedAxes(const std::string& sdy) const {
    Axes out;
    const size_t list = sdy.find("replicated={"), mesh = sdy.find("<@");
    if (list == std::string::npos || mesh == std::string::npos) return out;
    const std::string_view name = std::string_view(sdy).substr(mesh + 2, sdy.find(',', mesh) - mesh - 2);
    const size_t end = sdy.find('}', list);
    for (size_t at = sdy.find('"', list); at < end; at = sdy.find('"', at + 1)) {
      const size_t close = sdy.find('"', at + 1);
      if (close == std::string::npos) break;
      for (uint8_t axis : g_.mesh.Named(name, std::string_view(sdy).substr(at + 1, close - at - 1)))
        out.push_back(axis);
      at = close;
    }
    return out;
  }

  static const std::string* SdyText(const Instruction& i) {
    const auto found = i.frontend_attributes().find("xla.sdy.sharding");
    return found == i.frontend_attributes().end() ? nullptr : &found->second;
  }

  void StateFrom(const Instruction& i, const std::vector<int>& nodes) {
    if (!i.sharding()) return;
    for (size_t k = 0; k < nodes.size(); ++k)
      State(nodes[k], LeafSharding(i.sharding(), static_cast<int64_t>(k)), nodes.size() == 1 ? SdyText(i) : nullptr);
  }

  // ---- collecting
  void CollectEntry() {
    Computation* entry = g_.module.entry();
    for (const Instruction* p : entry->parameters()) {
      std::vector<int> nodes = FreshNodes(*p);
      const bool allowed =
          Allows(g_.module.config().allow_spmd_sharding_propagation_to_parameters, p->parameter_number());
      StateFrom(*p, nodes);
      for (int n : nodes)
        if (n >= 0 && !g_.nodes[n].stated && !allowed) g_.Close(n);
      g_.of[p] = std::move(nodes);
    }
    Collect(*entry);
    // Results are values of their own: a parameter that is returned keeps its sharding.
    const Instruction* root = entry->root();
    const std::vector<Shape> leaves = root->shape().Leaves();
    for (size_t k = 0; k < leaves.size(); ++k) {
      const int n = NewNode(*root, static_cast<int64_t>(k), leaves[k]);
      g_.results.push_back(n);
      if (n < 0) continue;
      State(n, LeafSharding(root->sharding(), static_cast<int64_t>(k)), nullptr);
      if (!g_.nodes[n].stated && !g_.DecidesResult(static_cast<int64_t>(k))) g_.Close(n);
      AddIdentity(*root, {g_.NodesOf(*root)[k]}, n).always = true;
    }
  }

  std::vector<int> FreshNodes(const Instruction& i) {
    std::vector<int> nodes;
    const std::vector<Shape> leaves = i.shape().Leaves();
    for (size_t k = 0; k < leaves.size(); ++k) nodes.push_back(NewNode(i, static_cast<int64_t>(k), leaves[k]));
    return nodes;
  }

  Edge& AddIdentity(const Instruction& at, std::vector<int> operands, int result) {
    Edge e;
    e.at = &at;
    e.rule = IdentityRule(g_.nodes[result].shape, static_cast<int64_t>(operands.size()));
    e.operands = std::move(operands);
    e.results = {result};
    e.passes_through = e.elementwise = true;
    g_.edges.push_back(std::move(e));
    return g_.edges.back();
  }

  void Collect(const Computation& computation) {
    for (const Instruction* i : computation.PostOrder())
      if (!i->IsParameter()) g_.of[i] = Visit(*i);
  }

  std::vector<int> Visit(const Instruction& i) {
    if (g_.manual.Has(i)) {
      // The region's shapes say that it is cut no further.
      for (int64_t k = 0; k < i.operand_count() && IsWayIn(i); ++k)
        for (int n : g_.NodesOf(*i.operand(k)))
          if (n >= 0 && g_.nodes[n].stated) g_.Close(n);
      return std::vector<int>(i.shape().num_leaves(), -1);
    }
    switch (i.op()) {
      case Op::Tuple: {
        std::vector<int> all;
        for (int64_t k = 0; k < i.operand_count(); ++k) {
          const std::vector<int>& part = g_.NodesOf(*i.operand(k));
          all.insert(all.end(), part.begin(), part.end());
        }
        return all;
      }
      case Op::GetTupleElement: {
        const Shape& tuple = i.operand(0)->shape();
        int64_t first = 0;
        for (int64_t k = 0; k < i.tuple_index(); ++k) first += tuple.element(k).num_leaves();
        const std::vector<int>& all = g_.NodesOf(*i.operand(0));
        return {all.begin() + first, all.begin() + first + i.shape().num_leaves()};
      }
      case Op::OptimizationBarrier:
      case Op::Domain:
      case Op::AddDependency: return g_.NodesOf(*i.operand(0));
      case Op::While: return Loop(i);
      case Op::Conditional: return Branches(i);
      case Op::CustomCall: return CustomCall(i);
      default: return Ordinary(i);
    }
  }

  std::vector<int> Loop(const Instruction& i) {
    std::vector<int> carry = FreshNodes(i);
    StateFrom(i, carry);
    g_.of[i.body()->parameter(0)] = carry;
    g_.of[i.condition()->parameter(0)] = carry;
    Collect(*i.body());
    Collect(*i.condition());
    for (size_t k = 0; k < carry.size(); ++k)
      if (carry[k] >= 0) AddIdentity(i, {g_.NodesOf(*i.operand(0))[k], g_.NodesOf(*i.body()->root())[k]}, carry[k]);
    return carry;
  }

  std::vector<int> Branches(const Instruction& i) {
    std::vector<int> results = FreshNodes(i);
    StateFrom(i, results);
    for (int64_t k = 0; k < static_cast<int64_t>(i.called().size()); ++k) {
      const Instruction& parameter = *i.called(k)->parameter(0);
      std::vector<int> inside = FreshNodes(parameter);
      for (size_t leaf = 0; leaf < inside.size(); ++leaf)
        if (inside[leaf] >= 0) AddIdentity(i, {g_.NodesOf(*i.operand(k + 1))[leaf]}, inside[leaf]);
      g_.of[&parameter] = std::move(inside);
      Collect(*i.called(k));
    }
    for (size_t leaf = 0; leaf < results.size(); ++leaf) {
      if (results[leaf] < 0) continue;
      std::vector<int> roots;
      for (const Computation* branch : i.called()) roots.push_back(g_.NodesOf(*branch->root())[leaf]);
      AddIdentity(i, std::move(roots), results[leaf]);
    }
    return results;
  }

  std::vector<int> CustomCall(const Instruction& i) {
    const std::string& target = i.attrs<CustomCallAttrs>().target;
    if (IsWayIn(i) || IsWayOut(i)) return Way(i);
    if (target == "xla.sdy.ShardingGroup") {
      const auto group = i.frontend_attributes().find("xla.sdy.sharding_group_id");
      const int n = g_.NodesOf(*i.operand(0)).empty() ? -1 : g_.NodesOf(*i.operand(0))[0];
      if (group != i.frontend_attributes().end() && n >= 0) {
        auto [first, is_new] = groups_.try_emplace(group->second, n);
        if (!is_new) AddIdentity(i, {first->second}, n).always = true;
      }
      return std::vector<int>(i.shape().num_leaves(), -1);
    }
    if (!IsMark(i)) return Call(i);
    const bool says = target == "Sharding" || target == "xla.sdy.FuncResultSharding";
    const bool barrier = target == "xla.sdy.PropagationBarrier";
    if (!i.shape().IsArray() || (!says && !barrier)) return g_.NodesOf(*i.operand(0));
    const int n = NewNode(i, 0, i.shape());
    if (n < 0) return {n};
    if (says) State(n, i.sharding(), SdyText(i));
    if (says) OpenUnspecified(i, n);
    Edge& e = AddIdentity(i, {g_.NodesOf(*i.operand(0))[0]}, n);
    e.shared_operand = IsSharedOperand(i);
    if (barrier) e.allowed = BarrierDirection(i);
    return {n};
  }

  std::vector<int> Way(const Instruction& i) {
    std::vector<int> nodes = FreshNodes(i);
    if (IsWayOut(i)) StateFrom(i, nodes);
    for (int n : nodes)
      if (n >= 0 && !g_.nodes[n].stated) g_.Close(n);
    const std::optional<Axes> manual = AxesOfWay(i, g_.mesh);
    if (!g_.manual.LeavesAxes(i) || static_cast<int64_t>(nodes.size()) != i.operand_count()) return nodes;
    const std::vector<Shape> leaves = i.shape().Leaves();
    for (size_t k = 0; k < nodes.size(); ++k) {
      const Instruction& operand = *i.operand(static_cast<int64_t>(k));
      const std::vector<int>& given = g_.NodesOf(operand);
      const Shape& whole = IsWayIn(i) ? operand.shape() : leaves[k];
      const std::optional<Spec> spec = g_.mesh.Read(LeafSharding(i.sharding(), static_cast<int64_t>(k)), whole);
      if (nodes[k] < 0 || given.size() != 1 || !spec) continue;
      Node& node = g_.nodes[nodes[k]];
      node.open.assign(node.shape.rank(), true);
      for (uint8_t axis : *manual)
        if (!Contains(node.replicated, axis) && !node.spec.Uses(axis)) node.replicated.push_back(axis);
      Edge e;
      e.at = &i;
      e.is_way_in = IsWayIn(i);
      e.is_way_out = !e.is_way_in;
      e.operands = given;
      e.results = {nodes[k]};
      e.manual = spec->dims;
      g_.edges.push_back(std::move(e));
    }
    return nodes;
  }

  // backend_config="unspecified_dims=[1]" of GSPMD's constraint.
  void OpenUnspecified(const Instruction& i, int n) {
    const std::string& opaque = i.attrs<CustomCallAttrs>().opaque;
    size_t at = opaque.find("unspecified_dims=[");
    if (at == std::string::npos) return;
    for (at = opaque.find('[', at) + 1; at < opaque.size() && opaque[at] != ']'; ++at) {
      const int64_t d = opaque[at] - '0';
      if (d >= 0 && d < g_.nodes[n].shape.rank()) g_.nodes[n].open[d] = true;
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
    if (Rule rule = RuleOfCall(i, g_.owners); !rule.empty()) return OfRule(i, std::move(rule));
    if (!g_.owners || g_.module.config().use_shardy_partitioner || !g_.owners->Cuts(i.attrs<CustomCallAttrs>().target))
      return Others(i);
    Edge e;
    e.at = &i;
    e.asks_owner = true;
    for (const Instruction* operand : i.operands())
      e.operands.push_back(g_.NodesOf(*operand).size() == 1 ? g_.NodesOf(*operand)[0] : -1);
    e.results = FreshNodes(i);
    StateFrom(i, e.results);
    g_.edges.push_back(e);
    return e.results;
  }

  // Values of which nothing is known: whole, unless the program says otherwise.
  std::vector<int> Others(const Instruction& i) {
    std::vector<int> nodes = FreshNodes(i);
    StateFrom(i, nodes);
    for (int n : nodes)
      if (n >= 0 && !g_.nodes[n].stated) g_.Close(n);
    return nodes;
  }

  std::vector<int> Ordinary(const Instruction& i) {
    std::vector<int> nodes = OfItsRule(i);
    // What goes around lies as it did.
    if (const std::optional<Rotation> rotation = RotationOf(i); rotation && nodes[0] >= 0)
      if (const int n = g_.NodesOf(*rotation->of)[0]; n >= 0) AddIdentity(i, {n}, nodes[0]).elementwise = false;
    return nodes;
  }

  std::vector<int> OfItsRule(const Instruction& i) {
    const bool stated = i.sharding() && i.sharding()->kind != ShardingKind::Unknown && i.op() != Op::Constant;
    if (IsFree(i) && !stated && !IsGrouped(i)) return {-1};
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
      const std::vector<int>& operand = g_.NodesOf(*i.operand(k));
      e.operands.push_back(operand.size() == 1 ? operand[0] : -1);
    }
    e.results = nodes;
    e.elementwise = IsElementwise(i.op()) || i.op() == Op::Copy || i.op() == Op::Map;
    e.forward_only = i.op() == Op::DynamicSlice || i.op() == Op::DynamicUpdateSlice;
    e.passes_through = e.elementwise || e.forward_only || i.op() == Op::Reshape || i.op() == Op::Transpose;
    e.broadcast = i.op() == Op::Broadcast;
    e.shared_operand = IsSharedOperand(i);
    g_.edges.push_back(std::move(e));
    return nodes;
  }

  PropagationGraph& g_;
  std::map<std::string, int> groups_;
};

}  // namespace

std::vector<std::pair<const Instruction*, std::vector<int>>> PropagationGraph::Sorted() const {
  std::vector<std::pair<const Instruction*, std::vector<int>>> out(of.begin(), of.end());
  std::sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.first->id() < b.first->id(); });
  return out;
}

bool PropagationGraph::DecidesResult(int64_t k) const {
  return Allows(module.config().allow_spmd_sharding_propagation_to_output, k);
}

const Sharding* LeafSharding(const Sharding* sharding, int64_t leaf) {
  if (!sharding || sharding->kind != ShardingKind::Tuple) return sharding;
  return leaf < static_cast<int64_t>(sharding->elements.size()) ? &sharding->elements[leaf] : nullptr;
}

void CollectGraph(PropagationGraph& graph) { Collector(graph).Run(); }

}  // namespace strop::spmd
