// What is alive when: a sweep over the positions at which groups of values begin and end.
#include <algorithm>

#include "strop/plan/values.h"

namespace strop::plan_internal {
namespace {

struct Life {
  int64_t begin = INT64_MAX, end = INT64_MIN;
  int64_t bytes = 0;
};

// Of the groups in the arena; others are empty.
std::vector<Life> LivesOf(const Graph& g) {
  std::vector<Life> lives(g.groups.size());
  for (size_t n = 0; n < g.groups.size(); ++n) {
    const Group& group = g.groups[n];
    if (group.base != Base::None || group.in_region) continue;
    for (int32_t v : group.values) {
      lives[n].begin = std::min(lives[n].begin, g.values[v].begin);
      lives[n].end = std::max(lives[n].end, g.values[v].end);
    }
    if (!group.values.empty()) lives[n].bytes = group.size;
  }
  return lives;
}

// Bytes alive from each position on, until the next one.
std::vector<std::pair<int64_t, int64_t>> LevelsOf(const std::vector<Life>& lives) {
  std::vector<std::pair<int64_t, int64_t>> changes;
  for (const Life& life : lives) {
    if (life.bytes == 0) continue;
    changes.push_back({life.begin, life.bytes});
    changes.push_back({life.end + 1, -life.bytes});
  }
  std::sort(changes.begin(), changes.end());
  std::vector<std::pair<int64_t, int64_t>> levels = {{INT64_MIN, 0}};
  for (auto [position, bytes] : changes) {
    if (levels.back().first != position) levels.push_back({position, levels.back().second});
    levels.back().second += bytes;
  }
  return levels;
}

// What the group holds at that time.
const Instruction* HolderAt(const Graph& g, const Group& group, int64_t position) {
  const Value* holder = nullptr;
  for (int32_t v : group.values) {
    const Value& value = g.values[v];
    if (value.begin <= position && (!holder || value.begin > holder->begin)) holder = &value;
  }
  return holder ? holder->def : nullptr;
}

void AddWholeRun(const Graph& g, const Plan& plan, MemoryProfile& profile) {
  for (const ParameterSpec& p : plan.spec.parameters) profile.arguments += p.shape.byte_size();
  for (const ConstantData& c : plan.spec.constants) profile.constants += c.size;
  for (const OutputSpec& o : plan.spec.outputs) {
    if (o.source == OutputSource::kFresh) profile.results += o.shape.byte_size();
    if (o.source == OutputSource::kAliasParameter) profile.donated += o.shape.byte_size();
  }
  profile.temporaries = plan.spec.temp_bytes;
  for (const Value& v : g.values)
    if (g.groups[v.group].base == Base::None && !g.groups[v.group].in_region) profile.unshared += v.size;
}

}  // namespace

MemoryProfile ProfileMemory(const Graph& g, const Plan& plan) {
  MemoryProfile profile;
  AddWholeRun(g, plan, profile);
  const std::vector<Life> lives = LivesOf(g);
  const std::vector<std::pair<int64_t, int64_t>> levels = LevelsOf(lives);
  int64_t peak_position = INT64_MIN;
  for (auto [position, bytes] : levels)
    if (bytes > profile.peak) {
      profile.peak = bytes;
      peak_position = position;
    }

  std::vector<const ProtoStep*> steps;
  for (const ProtoStep& step : g.steps)
    if (!CopiesNothing(g, step)) steps.push_back(&step);
  std::stable_sort(steps.begin(), steps.end(),
                   [](const ProtoStep* a, const ProtoStep* b) { return a->position < b->position; });
  const auto level_at = [&](int64_t position) {
    return std::prev(std::upper_bound(levels.begin(), levels.end(), std::pair(position, INT64_MAX)));
  };
  for (const ProtoStep* step : steps) {
    auto level = level_at(step->position);
    int64_t live = level->second;
    if (step->region)  // what goes on inside belongs to it
      for (; level->first > step->first_position; --level) live = std::max(live, std::prev(level)->second);
    profile.timeline.push_back({step->instruction, live});
    if (!profile.peak_step && step->position >= peak_position) profile.peak_step = step->instruction;
  }
  if (profile.peak == 0) profile.peak_step = nullptr;
  for (size_t n = 0; n < lives.size(); ++n)
    if (lives[n].bytes > 0 && lives[n].begin <= peak_position && lives[n].end >= peak_position)
      profile.at_peak.push_back({HolderAt(g, g.groups[n], peak_position), lives[n].bytes});
  std::stable_sort(profile.at_peak.begin(), profile.at_peak.end(),
                   [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  return profile;
}

}  // namespace strop::plan_internal
