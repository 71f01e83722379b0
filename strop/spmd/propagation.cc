#include "strop/spmd/propagation.h"

#include <algorithm>

#include "strop/spmd/forms.h"
#include "strop/spmd/propagation_graph.h"

namespace strop::spmd {
namespace {

// Puts what nodes say onto instructions.
class Writer {
 public:
  explicit Writer(PropagationGraph& graph) : g_(graph) {}

  int64_t Run(const Reason& reason) {
    int64_t count = 0;
    for (Computation* c : g_.module.computations()) {
      for (Instruction* i : c->instructions()) {
        const auto found = g_.of.find(i);
        if (found == g_.of.end() || (i->IsParameter() && c != g_.module.entry())) continue;
        // Not of what only hands on other values.
        const bool own = std::any_of(found->second.begin(), found->second.end(),
                                     [&](int n) { return n >= 0 && g_.nodes[n].at == i; });
        if (own) count += WriteValue(*i, found->second, reason);
      }
    }
    WriteResults();
    return count;
  }

 private:
  // The spec with as many axes of each dimension as cut it into even pieces: callers take no others.
  Spec Even(const Node& node) const {
    Spec spec = node.spec;
    for (int64_t d = 0; d < node.shape.rank(); ++d)
      while (node.shape.dim(d) % g_.mesh.SizeOf(spec.dims[d]) != 0) spec.dims[d].pop_back();
    return spec;
  }

  // A way into or out of a manual region says how its value lies outside.
  Spec SpecToWrite(const Node& node, const Instruction& i, const Sharding* given) const {
    if (!(IsWayIn(i) || IsWayOut(i)) || !g_.manual.LeavesAxes(i)) return node.spec;
    if (IsWayOut(i)) return Even(node);
    const Spec inside = Even(node);
    std::optional<Spec> spec = g_.mesh.Read(given, i.operand(node.leaf)->shape());
    if (!spec) return inside;
    for (size_t d = 0; d < inside.dims.size(); ++d)
      for (uint8_t axis : inside.dims[d]) spec->dims[d].push_back(axis);
    return *std::move(spec);
  }

  int64_t WriteValue(Instruction& i, const std::vector<int>& nodes, const Reason& reason) {
    bool any = false;
    for (int n : nodes) any = any || (n >= 0 && !g_.nodes[n].spec.whole() && g_.nodes[n].source);
    if (!any) return 0;
    Sharding all;
    all.kind = ShardingKind::Tuple;
    for (size_t k = 0; k < nodes.size(); ++k) {
      const Node* node = nodes[k] < 0 ? nullptr : &g_.nodes[nodes[k]];
      const Sharding* given = LeafSharding(i.sharding(), static_cast<int64_t>(k));
      const bool keep = !node || (node->stated && !node->source);
      all.elements.push_back(!keep ? g_.mesh.Write(SpecToWrite(*node, i, given)) : given ? *given : Sharding{});
      if (node && node->source)
        reason(i,
               StrCat(g_.mesh.Text(node->spec), node->source == &i ? std::string(", from its operands")
                                                                   : StrCat(", from ", Name(node->source->op()), " %",
                                                                            node->source->name(), " that uses it")));
    }
    i.set_sharding(i.shape().IsTuple() ? std::move(all) : std::move(all.elements[0]));
    return 1;
  }

  void WriteResults() {
    Computation* entry = g_.module.entry();
    Instruction* root = entry->root();
    Sharding all;
    all.kind = ShardingKind::Tuple;
    for (size_t k = 0; k < g_.results.size(); ++k) {
      const Node* node = g_.results[k] < 0 ? nullptr : &g_.nodes[g_.results[k]];
      const Sharding* given = LeafSharding(root->sharding(), static_cast<int64_t>(k));
      const bool allowed = g_.DecidesResult(static_cast<int64_t>(k));
      if (node && (!node->stated || node->source || (allowed && Even(*node) != node->spec))) {
        all.elements.push_back(g_.mesh.Write(g_.mesh.OfNamedAxes(Even(*node))));
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

  PropagationGraph& g_;
};

}  // namespace

bool IsFree(const Instruction& i) {
  if (i.op() == Op::Broadcast) return i.operand(0)->shape().rank() == 0;
  return i.op() == Op::Constant || i.op() == Op::Iota;
}

Result<int64_t> PropagateShardings(Module& module, const Reason& reason, const CallOwners* owners) {
  if (module.config().num_partitions <= 1 || !StatesShardings(module)) return 0;
  GiveForms(module);
  PropagationGraph graph(module, owners);
  CollectGraph(graph);
  ApplyConstraints(graph);
  STROP_TRY(SpreadShardings(graph));
  return Writer(graph).Run(reason);
}

}  // namespace strop::spmd
