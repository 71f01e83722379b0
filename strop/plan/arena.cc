// Offsets in the arena: groups in order of their first position take the best fitting gap among the groups that are
// alive. Linear in the number of groups but for the search in the ordered free list. Where that leaves gaps, and there
// are not too many groups, they are also placed by size, and the smaller arena is taken.
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

struct Range {
  int64_t begin, end;
  int64_t size;  // a multiple of the alignment
  int32_t group;
  int64_t offset = 0;
};

// In the order in which they begin, each in the best fitting gap.
int64_t PlaceInTime(std::vector<Range>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    return a.size != b.size ? a.size > b.size : a.group < b.group;
  });
  FreeList free;
  std::multimap<int64_t, const Range*> alive;  // by end
  for (Range& r : ranges) {
    while (!alive.empty() && alive.begin()->first < r.begin) {
      free.Give(alive.begin()->second->offset, alive.begin()->second->size);
      alive.erase(alive.begin());
    }
    r.offset = free.Take(r.size);
    alive.emplace(r.end, &r);
  }
  return free.top();
}

// The largest first, each at the lowest offset at which nothing that is alive with it lies. In time quadratic.
int64_t PlaceBySize(std::vector<Range>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    if (a.size != b.size) return a.size > b.size;
    return a.begin != b.begin ? a.begin < b.begin : a.group < b.group;
  });
  int64_t top = 0;
  std::vector<const Range*> beside;  // what is placed and alive with it, by offset
  for (size_t n = 0; n < ranges.size(); ++n) {
    Range& r = ranges[n];
    beside.clear();
    for (size_t k = 0; k < n; ++k)
      if (ranges[k].begin <= r.end && r.begin <= ranges[k].end) beside.push_back(&ranges[k]);
    std::sort(beside.begin(), beside.end(), [](const Range* a, const Range* b) { return a->offset < b->offset; });
    int64_t offset = 0;
    for (const Range* other : beside) {
      if (other->offset >= offset + r.size) break;
      offset = std::max(offset, other->offset + other->size);
    }
    r.offset = offset;
    top = std::max(top, offset + r.size);
  }
  return top;
}

int64_t PeakOf(const std::vector<Range>& ranges) {
  std::vector<std::pair<int64_t, int64_t>> changes;
  for (const Range& r : ranges) {
    changes.push_back({r.begin, r.size});
    changes.push_back({r.end + 1, -r.size});
  }
  std::sort(changes.begin(), changes.end());
  int64_t live = 0, peak = 0;
  for (auto [position, bytes] : changes) peak = std::max(peak, live += bytes);
  return peak;
}

}  // namespace

int64_t AssignArena(Graph& g, int64_t alignment) {
  constexpr size_t kFew = 4096;  // groups, for what takes quadratic time
  std::vector<Range> ranges;
  for (size_t n = 0; n < g.groups.size(); ++n) {
    const Group& group = g.groups[n];
    if (group.base != Base::None || group.in_region || group.values.empty() || group.size == 0) continue;
    Range r{INT64_MAX, INT64_MIN, (group.size + alignment - 1) / alignment * alignment, static_cast<int32_t>(n)};
    for (int32_t v : group.values) {
      r.begin = std::min(r.begin, g.values[v].begin);
      r.end = std::max(r.end, g.values[v].end);
    }
    ranges.push_back(r);
  }
  int64_t bytes = PlaceInTime(ranges);
  if (ranges.size() <= kFew && bytes > PeakOf(ranges)) {
    std::vector<Range> others = ranges;
    if (const int64_t less = PlaceBySize(others); less < bytes) {
      bytes = less;
      ranges = std::move(others);
    }
  }
  for (const Range& r : ranges) g.groups[r.group].offset = r.offset;
  return bytes;
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
