// Carries of loops of steps that change places with the memory of their next values instead of being copied, as
// rotation.cc does it for the loops of regions:
//
//   while: body 2                                   while: body 2  rotates [0+4096] [4096+4096]
//     2: [4096+4096] = fusion %relax <- [0+4096]  ->  2: [4096+4096] = fusion %relax <- [0+4096]
//     2: [0+4096] = copy %while <- [4096+4096]
//
// The memory of the next value is then the loop's from its beginning to its end.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "strop/plan/values.h"

namespace strop::plan_internal {
namespace {

constexpr int64_t kLeastRingBytes = 1 << 12;  // less is copied as soon as addresses are exchanged

class RingFinder {
 public:
  explicit RingFinder(Graph& graph)
      : g_(graph), steps_of_(graph.programs.size()), gone_(graph.steps.size()), viewed_(graph.groups.size()) {
    for (size_t s = 0; s < g_.steps.size(); ++s) steps_of_[g_.steps[s].program].push_back(s);
    for (const Group& group : g_.groups)
      if (group.lies_in_another() && !group.values.empty()) viewed_[GroupOf(group.index)] = true;
  }

  void Run() {
    for (ProtoStep& step : g_.steps)
      if (const auto* loop = std::get_if<WhileStep>(&step.body)) Form(step, loop->body);
    size_t kept = 0;
    for (size_t s = 0; s < g_.steps.size(); ++s) {
      if (gone_[s]) continue;
      if (kept != s) g_.steps[kept] = std::move(g_.steps[s]);
      ++kept;
    }
    g_.steps.resize(kept);
  }

 private:
  // A copy at the end of a trip.
  struct Move {
    size_t step;
    int64_t position;
    int32_t from, to;  // groups
  };

  int32_t GroupOf(int32_t value) const { return g_.values[value].group; }

  void Form(ProtoStep& loop, int32_t body) {
    std::vector<Move> moves;
    for (size_t s : steps_of_[body]) {
      const ProtoStep& step = g_.steps[s];
      const bool at_end = step.copy_for == CopyFor::kLoopNext || step.copy_for == CopyFor::kLoopSwap;
      if (at_end && step.instruction == loop.instruction && !CopiesNothing(g_, step))
        moves.push_back({s, step.position, GroupOf(step.args[0].first), GroupOf(step.args[1].first)});
    }
    std::stable_sort(moves.begin(), moves.end(), [](const Move& a, const Move& b) { return a.position < b.position; });
    while (std::optional<std::vector<Move>> chain = Chain(loop, body, moves)) {
      // Each is copied to the one before it; the last of all is free when a trip begins.
      std::vector<int32_t> ring;
      for (const Move& move : *chain) {
        ring.push_back(g_.steps[move.step].args[1].first);
        gone_[move.step] = true;
        std::erase_if(moves, [&](const Move& m) { return m.step == move.step; });
      }
      ring.push_back(g_.steps[chain->back().step].args[0].first);
      for (int32_t v : g_.groups[chain->back().from].values) {
        g_.values[v].begin = std::min(g_.values[v].begin, loop.first_position);
        g_.values[v].end = std::max(g_.values[v].end, loop.position);
      }
      loop.rings.push_back(std::move(ring));
    }
  }

  std::optional<std::vector<Move>> Chain(const ProtoStep& loop, int32_t body, const std::vector<Move>& moves) const {
    for (size_t last = moves.size(); last-- > 0;) {
      if (!IsSpare(loop, moves[last].from) || !MayMove(moves[last].to)) continue;
      std::vector<Move> chain{moves[last]};
      for (size_t k = last; k-- > 0 && chain.size() + 1 < WhileStep::kMostInRing;)
        if (moves[k].from == chain.front().to && MayMove(moves[k].to)) chain.insert(chain.begin(), moves[k]);
      if (!MeetsAnother(loop, chain) && MovesTogether(chain, body)) return chain;
    }
    return std::nullopt;
  }

  bool MayMove(int32_t group) const {
    const Group& g = g_.groups[group];
    return (g.base == Base::None || g.base == Base::Output) && !g.in_region && !viewed_[group] &&
           g.size >= kLeastRingBytes;
  }

  // Nothing in this memory is older than a trip, or outlives it.
  bool IsSpare(const ProtoStep& loop, int32_t group) const {
    const Group& g = g_.groups[group];
    return MayMove(group) && g.base == Base::None && std::all_of(g.values.begin(), g.values.end(), [&](int32_t v) {
             return g_.values[v].begin >= loop.first_position && g_.values[v].end < loop.position;
           });
  }

  bool MeetsAnother(const ProtoStep& loop, const std::vector<Move>& chain) const {
    std::set<int32_t> taken;
    for (const std::vector<int32_t>& ring : loop.rings)
      for (int32_t v : ring) taken.insert(GroupOf(v));
    return std::any_of(chain.begin(), chain.end(),
                       [&](const Move& move) { return taken.contains(move.from) || taken.contains(move.to); });
  }

  // All of a size, and each once; and from a move on nothing else is done in the body with what it moves.
  bool MovesTogether(const std::vector<Move>& chain, int32_t body) const {
    std::set<int32_t> seen{chain.back().from};
    for (const Move& move : chain)
      if (g_.groups[move.to].size != g_.groups[move.from].size || !seen.insert(move.to).second) return false;
    const auto is_of_chain = [&](size_t step) {
      return std::any_of(chain.begin(), chain.end(), [&](const Move& move) { return move.step == step; });
    };
    for (size_t s : steps_of_[body]) {
      const ProtoStep& step = g_.steps[s];
      if (gone_[s] || is_of_chain(s) || CopiesNothing(g_, step)) continue;
      for (const auto& [value, access] : step.args) {
        for (const Move& move : chain) {
          if (step.position < move.position) continue;
          const bool rewrites = GroupOf(value) == move.from && access != Access::kRead;
          if (rewrites || GroupOf(value) == move.to) return false;
        }
      }
    }
    // What a carry becomes is taken from it before it changes itself.
    return std::is_sorted(chain.begin(), chain.end(),
                          [](const Move& a, const Move& b) { return a.position < b.position; });
  }

  Graph& g_;
  std::vector<std::vector<size_t>> steps_of_;  // by program
  std::vector<bool> gone_;                     // by step
  std::vector<bool> viewed_;                   // by group: others lie in it
};

}  // namespace

void FormRings(Graph& graph) { RingFinder(graph).Run(); }

std::vector<size_t> HandedOn(std::span<const int32_t> carry, std::span<const int32_t> next) {
  std::unordered_map<int32_t, size_t> place;
  for (size_t k = 0; k < carry.size(); ++k) place.emplace(carry[k], k);
  std::vector<size_t> order;
  std::vector<int> readers(carry.size());  // of what a carry was, that have no place in the order yet
  const auto is_read_no_more = [&](size_t k) { return place.contains(next[k]) && readers[k] == 0; };
  for (int32_t value : next)
    if (const auto from = place.find(value); from != place.end()) ++readers[from->second];
  for (size_t k = 0; k < next.size(); ++k)
    if (is_read_no_more(k)) order.push_back(k);
  for (size_t done = 0; done < order.size(); ++done) {
    const size_t from = place.at(next[order[done]]);
    if (--readers[from] == 0 && is_read_no_more(from)) order.push_back(from);
  }
  for (size_t k = 0; k < next.size(); ++k)
    if (place.contains(next[k]) && readers[k] > 0) order.push_back(k);
  return order;
}

}  // namespace strop::plan_internal
