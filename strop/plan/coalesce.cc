// Which values share memory. Merging is greedy in the order of what it saves: donated inputs with outputs, loop carries
// with what the body computes, branch results, then operands that a step may overwrite.
#include <algorithm>
#include <unordered_map>

#include "strop/plan/values.h"

namespace strop::plan_internal {

int32_t Graph::NewValue(int64_t size, const Instruction* def, int64_t begin, int32_t loop) {
  Value v;
  v.size = size;
  v.def = def;
  v.begin = v.end = begin;
  v.loop = loop;
  v.branch = open_branch;
  v.group = static_cast<int32_t>(groups.size());
  const int32_t n = static_cast<int32_t>(values.size());
  values.push_back(v);
  Group g;
  g.values = {n};
  g.size = size;
  groups.push_back(std::move(g));
  return n;
}

bool Graph::Contains(int32_t outer, int32_t inner) const {
  while (inner != outer && inner >= 0) inner = branches[inner].parent;
  return inner == outer;
}

bool Graph::Exclude(int32_t a, int32_t b) const {
  for (; a >= 0; a = branches[a].parent)
    for (int32_t other = b; other >= 0; other = branches[other].parent)
      if (branches[a].conditional == branches[other].conditional) return a != other;
  return false;
}

int64_t Graph::EndIn(const Value& value, int32_t in) const {
  if (value.branch_reads.empty() || in < 0) return value.end;
  int64_t end = value.end_outside;
  for (auto [branch, position] : value.branch_reads)
    if (!Exclude(branch, in)) end = std::max(end, position);
  return end;
}

bool Graph::Interfere(const Value& a, int32_t na, const Value& b, int32_t nb) const {
  if (a.begin > b.begin) return Interfere(b, nb, a, na);
  // a begins first (or together).
  if (a.end < b.begin) return false;
  const int64_t end = EndIn(a, b.branch);
  if (end < b.begin) return false;
  if (end == b.begin && handovers.count({na, nb})) return false;
  return true;
}

bool Graph::Merge(int32_t a, int32_t b) {
  int32_t ga = values[a].group, gb = values[b].group;
  if (ga == gb) return true;
  Group& x = groups[ga];
  Group& y = groups[gb];
  if (x.size != y.size) return false;
  if (x.base != Base::None && y.base != Base::None) return false;
  // Memory of the caller is only written where donation allows it (see MergeDonation).
  const auto is_others = [](const Group& group) {
    return group.base == Base::Parameter || group.base == Base::Constant || group.lies_in_another();
  };
  if (is_others(x) || is_others(y)) return false;
  constexpr size_t kMaxPairs = 1 << 14;
  if (x.values.size() * y.values.size() > kMaxPairs) return false;
  for (int32_t u : x.values)
    for (int32_t v : y.values)
      if (Interfere(values[u], u, values[v], v)) return false;
  if (x.values.size() < y.values.size()) std::swap(ga, gb);
  Group& into = groups[ga];
  Group& from = groups[gb];
  if (into.base == Base::None) {
    into.base = from.base;
    into.index = from.index;
  }
  for (int32_t v : from.values) values[v].group = ga;
  into.values.insert(into.values.end(), from.values.begin(), from.values.end());
  from.values.clear();
  return true;
}

namespace {

// A step that must write over an operand which is still needed, or which is the caller's: work on a copy.
void CopyBeforeOverwriting(Graph& g, const Graph::MustShare& m) {
  const int32_t operand = g.steps[m.step].args[m.operand_arg].first;
  const int32_t result = g.steps[m.step].args[m.result_arg].first;
  const int64_t at = g.steps[m.step].position;
  const Value operand_value = g.values[operand];
  const Value result_value = g.values[result];
  g.open_branch = result_value.branch;
  const Instruction* i = g.steps[m.step].instruction;
  auto copy_step = [&](int32_t from, int32_t to, int64_t position, CopyFor copy_for) {
    ProtoStep copy;
    copy.program = g.steps[m.step].program;
    copy.position = position;
    copy.instruction = i;
    copy.body = CopyStep{};
    copy.copy_for = copy_for;
    copy.args = {{from, Access::kRead}, {to, Access::kWrite}};
    copy.num_operands = 1;
    return copy;
  };
  int32_t work = g.NewValue(operand_value.size, operand_value.def, at - 2, result_value.loop);
  g.values[work].end = at;
  g.handovers.insert({work, result});
  ProtoStep before = copy_step(operand, work, at - 2, CopyFor::kUpdate);
  g.steps[m.step].args[m.operand_arg].first = work;
  if (!g.Merge(work, result)) {
    // The result's memory is in use at this time: compute next to it, then copy there.
    int32_t computed = g.NewValue(result_value.size, i, at, result_value.loop);
    g.values[computed].end = at + 1;
    g.handovers.insert({work, computed});
    STROP_CHECK(g.Merge(work, computed));
    g.steps[m.step].args[m.result_arg].first = computed;
    g.values[result].begin = at + 1;
    g.steps.push_back(copy_step(computed, result, at + 1, CopyFor::kUpdated));
  }
  g.steps.push_back(std::move(before));
}

// A donated parameter is memory that may be written, as long as that is the output's memory: it joins the output's
// group, or stays what it was.
void MergeDonation(Graph& g, const Graph::Donation& d) {
  Group& group = g.groups[g.values[d.parameter_value].group];
  if (group.base != Base::Parameter) return;
  group.base = Base::None;
  if (!g.Merge(d.parameter_value, d.output_value)) g.groups[g.values[d.parameter_value].group].base = Base::Parameter;
}

// A value that is made over another one, which is computed while the carry is still read, cannot be made in the carry's
// memory without a copy in front of it. It stays where it is made, and changes places with the carry (loop_rings.cc).
void KeepUpdatesWhereTheyAre(Graph& g) {
  std::unordered_map<int32_t, int32_t> made_over;  // operands, by result
  for (const Graph::MustShare& m : g.must_share)
    made_over[g.steps[m.step].args[m.result_arg].first] = g.steps[m.step].args[m.operand_arg].first;
  const auto keep = [&](int32_t next, int32_t carry) {
    std::vector<int32_t> chain{next};
    for (auto at = made_over.find(next); at != made_over.end(); at = made_over.find(at->second))
      chain.push_back(at->second);
    const int32_t first = chain.back();
    const auto meets = [&](int32_t v) { return g.Interfere(g.values[first], first, g.values[v], v); };
    if (first == next || std::ranges::none_of(g.groups[g.values[carry].group].values, meets)) return;
    for (size_t k = chain.size() - 1; k > 0; --k) g.Merge(chain[k], chain[k - 1]);
  };
  for (const Graph::Wish& w : g.loop_wishes) keep(w.a, w.b), keep(w.b, w.a);
}

}  // namespace

void Coalesce(Graph& g) {
  for (const Graph::Donation& d : g.donations) MergeDonation(g, d);
  KeepUpdatesWhereTheyAre(g);
  for (const Graph::Wish& w : g.loop_wishes) g.Merge(w.a, w.b);
  for (const Graph::Wish& w : g.branch_wishes) g.Merge(w.a, w.b);
  for (const Graph::MustShare& m : g.must_share) {
    const ProtoStep& step = g.steps[m.step];
    if (!g.Merge(step.args[m.operand_arg].first, step.args[m.result_arg].first)) CopyBeforeOverwriting(g, m);
  }
  for (const Graph::Wish& w : g.reuse_wishes) g.Merge(w.a, w.b);
}

}  // namespace strop::plan_internal
