// Offsets in the arena: groups in order of their first position take the best fitting gap among the groups that are
// alive. Linear in the number of groups but for the search in the ordered free list.
#include <algorithm>
#include <map>

#include "strop/plan/values.h"

namespace strop::plan_internal {
namespace {

class FreeList {
 public:
  // The smallest gap that fits, else new room at the end (taking a free tail along).
  int64_t Take(int64_t size) {
    auto best = gaps_.end();
    for (auto it = gaps_.begin(); it != gaps_.end(); ++it)
      if (it->second >= size && (best == gaps_.end() || it->second < best->second)) best = it;
    if (best == gaps_.end()) {
      int64_t offset = top_;
      if (!gaps_.empty()) {
        auto last = std::prev(gaps_.end());
        if (last->first + last->second == top_) {
          offset = last->first;
          gaps_.erase(last);
        }
      }
      top_ = offset + size;
      return offset;
    }
    int64_t offset = best->first, rest = best->second - size;
    gaps_.erase(best);
    if (rest > 0) gaps_[offset + size] = rest;
    return offset;
  }

  void Give(int64_t offset, int64_t size) {
    auto next = gaps_.lower_bound(offset);
    if (next != gaps_.end() && offset + size == next->first) {
      size += next->second;
      next = gaps_.erase(next);
    }
    if (next != gaps_.begin()) {
      auto before = std::prev(next);
      if (before->first + before->second == offset) {
        before->second += size;
        return;
      }
    }
    gaps_[offset] = size;
  }

  int64_t top() const { return top_; }

 private:
  std::map<int64_t, int64_t> gaps_;  // offset -> size
  int64_t top_ = 0;
};

}  // namespace

int64_t AssignArena(Graph& g, int64_t alignment) {
  struct Range {
    int64_t begin, end;
    int32_t group;
  };
  std::vector<Range> ranges;
  for (size_t n = 0; n < g.groups.size(); ++n) {
    const Group& group = g.groups[n];
    if (group.base != Base::None || group.in_region || group.values.empty() || group.size == 0) continue;
    Range r{INT64_MAX, INT64_MIN, static_cast<int32_t>(n)};
    for (int32_t v : group.values) {
      r.begin = std::min(r.begin, g.values[v].begin);
      r.end = std::max(r.end, g.values[v].end);
    }
    ranges.push_back(r);
  }
  std::sort(ranges.begin(), ranges.end(), [&](const Range& a, const Range& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    if (g.groups[a.group].size != g.groups[b.group].size) return g.groups[a.group].size > g.groups[b.group].size;
    return a.group < b.group;
  });
  FreeList free;
  std::multimap<int64_t, int32_t> alive;  // by end
  for (const Range& r : ranges) {
    while (!alive.empty() && alive.begin()->first < r.begin) {
      const Group& gone = g.groups[alive.begin()->second];
      free.Give(gone.offset, (gone.size + alignment - 1) / alignment * alignment);
      alive.erase(alive.begin());
    }
    Group& group = g.groups[r.group];
    group.offset = free.Take((group.size + alignment - 1) / alignment * alignment);
    alive.emplace(r.end, r.group);
  }
  return free.top();
}

std::string OriginOf(const Instruction& instruction) {
  return StrCat(Name(instruction.op()), " (", instruction.Where(), ")");
}

// At most three, and none that is small beside the whole.
std::string LargestTemporaries(const Graph& g, int64_t arena_bytes) {
  if (arena_bytes < kLargeBytes) return {};
  std::vector<const Group*> groups;
  for (const Group& group : g.groups)
    if (group.base == Base::None && !group.in_region && !group.values.empty() && group.size >= arena_bytes / 8)
      groups.push_back(&group);
  std::stable_sort(groups.begin(), groups.end(), [](const Group* a, const Group* b) { return a->size > b->size; });
  std::string out;
  for (size_t i = 0; i < std::min<size_t>(groups.size(), 3); ++i) {
    const Instruction* def = g.values[groups[i]->values.front()].def;
    if (!def) continue;
    StrAppend(out, out.empty() ? "" : ", ", groups[i]->size >> 20, " MiB");
    if (def->shape().IsArray()) StrAppend(out, " ", def->shape().WithoutLayout());
    StrAppend(out, " of ", OriginOf(*def));
  }
  return out;
}

}  // namespace strop::plan_internal
