// The order in which conflicts are decided: see propagation.h.
#include <algorithm>
#include <deque>
#include <set>

#include "strop/spmd/propagation_graph.h"

namespace strop::spmd {
namespace {

constexpr int kLevels = 5;       // see AtLevel()
constexpr int kOwnersLevel = 3;  // owners of calls are asked with what is certain by then

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

Projection Project(const Node& node, const TensorFactors& dims, const Rule& rule, const Mesh& mesh, int priority) {
  const size_t n = rule.factors.size();
  Projection p{std::vector<Axes>(n), std::vector<bool>(n), std::vector<bool>(n, true), std::vector<bool>(n), {}};
  for (size_t d = 0; d < dims.size(); ++d) {
    const Axes& axes = node.spec.dims[d];
    size_t at = 0;
    const bool hidden = d < node.priority.size() && node.priority[d] > priority;
    bool full = !hidden;  // all factors so far are cut to the end
    for (size_t k = 0; k < dims[d].size(); ++k) {
      const int16_t f = dims[d][k];
      p.has[f] = true;
      p.closed[f] = hidden || !node.open[d];
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
  for (uint8_t axis : node.replicated) p.overflow.push_back(axis);
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

class Spreading {
 public:
  explicit Spreading(PropagationGraph& graph) : g_(graph), users_(graph.nodes.size()) {
    for (size_t e = 0; e < g_.edges.size(); ++e) {
      for (int node : g_.edges[e].operands)
        if (node >= 0) users_[node].push_back(static_cast<int>(e));
      for (int node : g_.edges[e].results)
        if (node >= 0) users_[node].push_back(static_cast<int>(e));
    }
  }

  Status Run() {
    std::set<int> priorities = {0};
    for (const Node& node : g_.nodes) priorities.insert(node.priority.begin(), node.priority.end());
    for (int priority : priorities) {
      priority_ = priority;
      for (int level = 0; level < kLevels; ++level) RunLevel(level);
    }
    return std::move(asked_);
  }

 private:
  void RunLevel(int level) {
    std::deque<int> queue;
    std::vector<bool> queued(g_.edges.size(), true);
    for (size_t e = 0; e < g_.edges.size(); ++e) queue.push_back(static_cast<int>(e));
    while (!queue.empty()) {
      const int e = queue.front();
      queue.pop_front();
      queued[e] = false;
      for (int node : Visit(g_.edges[e], level)) {
        for (int user : users_[node]) {
          if (queued[user]) continue;
          queued[user] = true;
          queue.push_back(user);
        }
      }
    }
  }

  // Returns the nodes that changed.
  std::vector<int> Visit(Edge& e, int level) {
    if (e.asks_owner) return Ask(e, level);
    return e.is_way_in || e.is_way_out ? Cross(e) : Spread(e, level);
  }

  // What follows the axes of a manual region outside is what there is inside.
  std::vector<int> Cross(const Edge& e) {
    const int outside = e.is_way_in ? e.operands[0] : e.results[0], inside = e.is_way_in ? e.results[0] : e.operands[0];
    std::vector<int> changed;
    for (size_t d = 0; outside >= 0 && inside >= 0 && d < e.manual.size(); ++d) {
      const Axes out = g_.nodes[outside].spec.dims[d];
      Axes behind, all = e.manual[d];
      for (size_t k = all.size(); IsPrefix(all, out) && k < out.size(); ++k) behind.push_back(out[k]);
      if (Grow(e, inside, d, behind)) changed.push_back(inside);
      for (uint8_t axis : g_.nodes[inside].spec.dims[d]) all.push_back(axis);
      if (Grow(e, outside, d, all)) changed.push_back(outside);
    }
    return changed;
  }

  // As many of the axes as are free, and cut the dimension into even pieces.
  bool Grow(const Edge& e, int n, size_t d, const Axes& axes) {
    Node& node = g_.nodes[n];
    const bool hidden = d < node.priority.size() && node.priority[d] > priority_;
    if (hidden || !node.open[d] || !IsPrefix(node.spec.dims[d], axes)) return false;
    Axes longer = node.spec.dims[d];
    for (size_t k = longer.size(); k < axes.size(); ++k) {
      if (node.spec.Uses(axes[k]) || Contains(node.replicated, axes[k])) break;
      longer.push_back(axes[k]);
      if (node.shape.dim(static_cast<int64_t>(d)) % g_.mesh.SizeOf(longer) == 0) continue;
      longer.pop_back();
      break;
    }
    if (longer == node.spec.dims[d]) return false;
    node.spec.dims[d] = std::move(longer);
    node.source = e.at;
    return true;
  }

  bool Says(const std::vector<int>& nodes) const {
    return std::any_of(nodes.begin(), nodes.end(), [&](int n) { return n >= 0 && !g_.nodes[n].spec.whole(); });
  }

  Sharding Written(int n) const { return n < 0 ? Sharding{} : g_.mesh.Write(g_.mesh.OfNamedAxes(g_.nodes[n].spec)); }

  // What the owner of a call says of its results. Returns the nodes that changed.
  std::vector<int> Ask(Edge& e, int level) {
    const bool stated =
        std::all_of(e.results.begin(), e.results.end(), [&](int n) { return n < 0 || g_.nodes[n].stated; });
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
    Result<std::optional<Sharding>> answer = by_users ? g_.owners->FromUsers(call) : g_.owners->FromOperands(call);
    if (!answer.ok()) asked_ = std::move(answer).status().At(e.at->Where());
    std::vector<int> changed;
    for (size_t k = 0; answer.ok() && *answer && k < e.results.size(); ++k) {
      const int n = e.results[k];
      if (n < 0 || g_.nodes[n].stated) continue;
      std::optional<Spec> spec = g_.mesh.Read(LeafSharding(&**answer, static_cast<int64_t>(k)), g_.nodes[n].shape);
      if (!spec || *spec == g_.nodes[n].spec) continue;
      g_.nodes[n].spec = *std::move(spec);
      g_.nodes[n].source = e.at;
      g_.Close(n);
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
                          : std::optional(Project(g_.nodes[nodes[k]], dims[k], e.rule, g_.mesh, priority_)));
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
      keys[f] = {-size[f], e.elementwise ? -g_.mesh.SizeOf(axes[f]) : 0, index[f], f};
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
        cut *= g_.mesh.axes()[wanted[k]].size;
        if (k < p.axes[f].size()) continue;
        const bool even = e.rule.factors[f].size % cut == 0;
        if ((!even && !p.minor[f]) || IsTaken(p, wanted[k])) break;
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
    Node& node = g_.nodes[n];
    bool differs = false;
    for (size_t d = 0; d < dims.size(); ++d) {
      Axes all;
      for (int16_t f : dims[d]) {
        for (uint8_t axis : p.axes[f]) all.push_back(axis);
        if (g_.mesh.SizeOf(p.axes[f]) < e.rule.factors[f].size) break;
      }
      if (all.size() <= node.spec.dims[d].size()) continue;
      node.spec.dims[d] = std::move(all);
      differs = true;
    }
    if (!differs) return;
    node.source = e.at;
    changed.push_back(n);
  }

  PropagationGraph& g_;
  std::vector<std::vector<int>> users_;  // edges by node
  Status asked_;                         // of owners
  int priority_ = 0;                     // what is later is hidden
};

}  // namespace

Status SpreadShardings(PropagationGraph& graph) { return Spreading(graph).Run(); }

}  // namespace strop::spmd
