// Where kernels have room for what they pack: how much they need is known only when they are compiled, and differs with
// processor and threads, so the plan says what is free while a step runs. That is all behind what is alive at the time,
// and the largest gap before. A sweep over the positions at which groups begin and end, with the gaps by size.
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "strop/plan/values.h"

namespace strop::plan_internal {
namespace {

// What is alive in the arena at a time, and the gaps between.
class Occupied {
 public:
  void Add(int64_t begin, int64_t end) {
    const auto next = alive_.emplace(begin, end).first;
    Change(next, [this](int64_t size, int64_t at) { gaps_.erase({size, at}); }, false);
    Change(next, [this](int64_t size, int64_t at) { gaps_.emplace(size, at); }, true);
  }
  void Remove(int64_t begin) {
    const auto at = alive_.find(begin);
    Change(at, [this](int64_t size, int64_t from) { gaps_.erase({size, from}); }, true);
    Change(at, [this](int64_t size, int64_t from) { gaps_.emplace(size, from); }, false);
    alive_.erase(at);
  }
  int64_t end() const { return alive_.empty() ? 0 : alive_.rbegin()->second; }
  std::pair<int64_t, int64_t> largest_gap() const {  // size, offset
    return gaps_.empty() ? std::pair<int64_t, int64_t>{0, 0} : *gaps_.rbegin();
  }

 private:
  using Alive = std::map<int64_t, int64_t>;  // offset -> end

  // Tells of the gaps around `it`, with it or as if it were not there.
  template <class Tell>
  void Change(Alive::const_iterator it, const Tell& tell, bool with) const {
    const int64_t before = it == alive_.begin() ? 0 : std::prev(it)->second;
    const auto next = std::next(it);
    const auto gap = [&](int64_t from, int64_t to) {
      if (to > from) tell(to - from, from);
    };
    if (with) gap(before, it->first);
    if (next != alive_.end()) gap(with ? it->second : before, next->first);
  }

  Alive alive_;
  std::set<std::pair<int64_t, int64_t>> gaps_;  // (size, offset); none behind the last
};

struct Change {
  int64_t position;
  bool begins;
  int64_t offset, end;
};

std::vector<Change> ChangesOf(const Graph& g) {
  std::vector<Change> changes;
  for (const Group& group : g.groups) {
    if (group.base != Base::None || group.in_region || group.values.empty() || group.size == 0) continue;
    int64_t begin = INT64_MAX, end = INT64_MIN;
    for (int32_t v : group.values) {
      begin = std::min(begin, g.values[v].begin);
      end = std::max(end, g.values[v].end);
    }
    changes.push_back({begin, true, group.offset, group.offset + group.size});
    changes.push_back({end + 1, false, group.offset, 0});
  }
  std::sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
    if (a.position != b.position) return a.position < b.position;
    return a.begins != b.begins ? b.begins : a.offset < b.offset;  // what ends makes room for what begins
  });
  return changes;
}

}  // namespace

void FindScratch(Graph& g) {
  std::vector<ProtoStep*> steps;
  for (ProtoStep& step : g.steps)
    if (step.is_kernel || step.region) steps.push_back(&step);
  std::stable_sort(steps.begin(), steps.end(),
                   [](const ProtoStep* a, const ProtoStep* b) { return a->position < b->position; });
  const std::vector<Change> changes = ChangesOf(g);
  auto change = changes.begin();
  Occupied occupied;
  std::vector<std::pair<int64_t, int64_t>> ends = {{INT64_MIN, 0}};  // from each position on, until the next one
  for (ProtoStep* step : steps) {
    for (; change != changes.end() && change->position <= step->position; ++change) {
      if (change->begins)
        occupied.Add(change->offset, change->end);
      else
        occupied.Remove(change->offset);
      if (ends.back().first != change->position) ends.push_back({change->position, 0});
      ends.back().second = occupied.end();
    }
    ScratchRoom& room = step->scratch;
    room.behind = occupied.end();
    std::tie(room.gap_bytes, room.gap_at) = occupied.largest_gap();
    if (!step->region) continue;
    // What goes on inside belongs to it.
    room.gap_at = room.gap_bytes = 0;
    for (auto at = std::prev(ends.end()); at->first > step->first_position; --at)
      room.behind = std::max(room.behind, std::prev(at)->second);
  }
}

}  // namespace strop::plan_internal
