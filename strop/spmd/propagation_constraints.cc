#include <algorithm>
#include <map>
#include <set>

#include "strop/spmd/propagation_graph.h"

namespace strop::spmd {
namespace {

// What a loop begins with in parts, and each trip leaves so, is carried in parts. Returns whether a carry became so,
// which one of a loop around it may follow.
bool CarryParts(PropagationGraph& g) {
  bool changed = false;
  for (const auto& [i, carry] : g.Sorted()) {
    if (i->op() != Op::While || g.manual.Has(*i)) continue;
    const std::vector<int>&init = g.NodesOf(*i->operand(0)), &next = g.NodesOf(*i->body()->root());
    for (size_t k = 0; k < carry.size(); ++k) {
      if (carry[k] < 0 || next[k] < 0 || g.nodes[carry[k]].stated) continue;
      Spec& spec = g.nodes[carry[k]].spec;
      for (uint8_t axis : g.nodes[next[k]].spec.unreduced) {
        const bool begins = init[k] < 0 || Contains(g.nodes[init[k]].spec.unreduced, axis);
        if (!begins || spec.Uses(axis)) continue;
        spec.unreduced.push_back(axis);
        g.nodes[carry[k]].source = i;
        changed = true;
      }
    }
  }
  return changed;
}

}  // namespace

// A constraint, or the way into a manual region, says what its operand is, if nothing else does.
void ApplyConstraints(PropagationGraph& g) {
  std::map<int, std::optional<Spec>> wanted;  // nothing where constraints differ
  auto want = [&](int n, const Spec& spec) {
    if (n < 0 || g.nodes[n].stated) return;
    auto [found, is_new] = wanted.try_emplace(n, spec);
    if (!is_new && found->second != spec) found->second.reset();
  };
  std::set<int> grows;  // what a region says of its axes leaves others open
  for (const auto& [i, nodes] : g.Sorted()) {
    if (i->op() != Op::CustomCall) continue;
    if (IsWayIn(*i)) {
      for (int64_t k = 0; k < i->operand_count(); ++k) {
        if (g.manual.Has(*i->operand(k))) continue;
        const std::vector<int>& operand = g.NodesOf(*i->operand(k));
        const Sharding* sharding = i->attrs<CustomCallAttrs>().target == "SPMDFullToShardShape"
                                       ? i->operand(k)->sharding()
                                       : LeafSharding(i->sharding(), k);
        const std::optional<Spec> spec = g.mesh.Read(sharding, i->operand(k)->shape());
        if (!spec || operand.size() != 1) continue;
        want(operand[0], *spec);
        if (operand[0] >= 0 && g.manual.LeavesAxes(*i)) grows.insert(operand[0]);
      }
    } else if (IsMark(*i) && nodes.size() == 1 && nodes[0] >= 0 && g.nodes[nodes[0]].stated) {
      const Node& node = g.nodes[nodes[0]];
      const bool closed = std::find(node.open.begin(), node.open.end(), true) == node.open.end();
      const std::vector<int>& operand = g.NodesOf(*i->operand(0));
      if (closed && operand.size() == 1) want(operand[0], node.spec);
    }
  }
  for (const auto& [n, spec] : wanted) {
    const Instruction* at = g.nodes[n].at;
    if (!spec || at->op() == Op::While || at->op() == Op::Conditional) continue;
    if (std::find(g.nodes[n].open.begin(), g.nodes[n].open.end(), false) != g.nodes[n].open.end()) continue;
    g.nodes[n].spec = *spec;
    if (!grows.contains(n)) g.Close(n);
    g.nodes[n].source = at;
  }
  while (CarryParts(g)) {}
}

}  // namespace strop::spmd
