// What propagation works on: the values of a module as nodes, its ops as edges between them.
#pragma once
#include <unordered_map>

#include "strop/spmd/call_owners.h"
#include "strop/spmd/manual.h"
#include "strop/spmd/mesh.h"
#include "strop/spmd/rule.h"

namespace strop::spmd {

enum Direction : uint8_t { kNowhere = 0, kForward = 1, kBackward = 2, kBoth = 3 };
// A value, or one leaf of a tuple.
struct Node {
  const Instruction* at = nullptr;
  int64_t leaf = 0;
  Shape shape;
  Spec spec;
  std::vector<bool> open;  // by dimension: may be cut further
  bool stated = false;
  Axes replicated;            // the program says that nothing is cut along them
  std::vector<int> priority;  // by dimension: later ones hide what they are until others are done; empty: all are first
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
  // No rule: the operand and the result lie outside and inside of a manual region, or inside and outside.
  bool is_way_in = false, is_way_out = false;
  std::vector<Axes> manual;  // of a way: what cuts the dimensions outside, before all else
};

struct PropagationGraph {
  PropagationGraph(Module& of_module, const CallOwners* owners_of_calls)
      : module(of_module), owners(owners_of_calls), mesh(Mesh::Of(of_module)), manual(of_module, mesh) {}

  // Of a value: one a leaf.
  const std::vector<int>& NodesOf(const Instruction& i) { return of[&i]; }
  // Values in the order of their ids.
  std::vector<std::pair<const Instruction*, std::vector<int>>> Sorted() const;
  void Close(int n) { nodes[n].open.assign(nodes[n].shape.rank(), false); }
  // May the compiler say how leaf `k` of the result lies?
  bool DecidesResult(int64_t k) const;

  Module& module;
  const CallOwners* owners;  // may be null
  const Mesh mesh;
  const ManualRegions manual;
  std::vector<Node> nodes;
  std::vector<Edge> edges;
  std::unordered_map<const Instruction*, std::vector<int>> of;
  std::vector<int> results;  // of the program, one a leaf
};

// propagation_graph.cc: nodes with what the program states, and edges.
void CollectGraph(PropagationGraph& graph);
// propagation_constraints.cc: what constraints, ways into manual regions and loops say of values that nothing else
// does.
void ApplyConstraints(PropagationGraph& graph);
// propagation_spread.cc: to the fixpoint. Errors of owners of calls.
Status SpreadShardings(PropagationGraph& graph);

// A call's sharding of leaf k; null: nothing is said.
const Sharding* LeafSharding(const Sharding* sharding, int64_t leaf);

}  // namespace strop::spmd
