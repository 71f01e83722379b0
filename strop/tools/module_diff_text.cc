// The two forms of a ModuleDiff: for people and for programs.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "strop/ir/printer.h"
#include "strop/tools/module_diff.h"

namespace strop::tools {
namespace {

std::string Line(const Instruction& i) {
  PrintOptions style;
  style.large_constants = false;
  std::string text = PrintInstruction(i, style);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  const size_t begin = text.find_first_not_of(' ');
  return begin == text.npos ? text : text.substr(begin);
}

struct Shown {
  char mark;  // ' ', '-', '+', or '|' for why
  std::string text;
};

// The new order; what was removed stands where its predecessor in the old order stands now.
std::vector<Shown> Lines(const ComputationDiff& c) {
  std::vector<Shown> out;
  if (!c.is) {
    for (const Instruction* i : c.removed) out.push_back({'-', Line(*i)});
    return out;
  }
  std::map<const Instruction*, const ChangedInstruction*> changed;
  std::map<const Instruction*, bool> added;
  std::multimap<const Instruction*, const Instruction*> removed;  // by what they stood behind
  for (size_t n = 0; n < c.removed.size(); ++n) removed.emplace(c.removed_after[n], c.removed[n]);
  const auto append_removed = [&](const Instruction* place) {
    const auto [first, last] = removed.equal_range(place);
    for (auto it = first; it != last; ++it) out.push_back({'-', Line(*it->second)});
  };
  append_removed(nullptr);
  for (const ChangedInstruction& change : c.changed) changed[change.is] = &change;
  for (const Instruction* i : c.added) added[i] = true;
  for (const Instruction* i : c.is->instructions()) {
    const auto change = changed.find(i);
    if (change != changed.end()) {
      out.push_back({'-', Line(*change->second->was)});
      out.push_back({'+', Line(*i)});
      out.push_back({'|', Join(change->second->how, "; ")});
    } else {
      out.push_back({added.count(i) ? '+' : ' ', Line(*i)});
    }
    append_removed(i);
  }
  return out;
}

void AppendHunks(std::string& out, const std::vector<Shown>& lines, int64_t context) {
  std::vector<bool> shown(lines.size(), false);
  for (int64_t n = 0; n < static_cast<int64_t>(lines.size()); ++n) {
    if (lines[n].mark == ' ') continue;
    const int64_t end = std::min<int64_t>(n + context + 1, static_cast<int64_t>(lines.size()));
    for (int64_t k = std::max<int64_t>(n - context, 0); k < end; ++k) shown[k] = true;
  }
  bool gap = false;
  for (size_t n = 0; n < lines.size(); ++n) {
    if (!shown[n]) {
      gap = true;
      continue;
    }
    if (gap && n > 0) out += "   ...\n";
    gap = false;
    if (lines[n].mark == '|')
      StrAppend(out, "     (", lines[n].text, ")\n");
    else
      StrAppend(out, std::string(1, lines[n].mark), "  ", lines[n].text, "\n");
  }
}

std::string Counted(int64_t n, std::string_view what) { return n == 0 ? "" : StrCat(n, " ", what); }

std::string Counts(int64_t removed, int64_t added, int64_t changed) {
  std::vector<std::string> parts;
  for (std::string part : {Counted(removed, "removed"), Counted(added, "added"), Counted(changed, "changed")})
    if (!part.empty()) parts.push_back(std::move(part));
  return Join(parts, ", ");
}

}  // namespace

std::string DiffText(const ModuleDiff& diff, int64_t context) {
  std::string out;
  for (const std::string& line : diff.header) StrAppend(out, "module: ", line, "\n");
  for (const ComputationDiff& c : diff.computations) {
    if (c.equal()) continue;
    const Computation* named = c.is ? c.is : c.was;
    StrAppend(out, out.empty() ? "" : "\n", named->IsEntry() ? "ENTRY %" : "%", named->name());
    if (c.was && c.is && c.was->name() != c.is->name()) StrAppend(out, " (was %", c.was->name(), ")");
    StrAppend(out,
              !c.was  ? ", added"
              : !c.is ? ", removed"
                      : "",
              ": ",
              Counts(static_cast<int64_t>(c.removed.size()), static_cast<int64_t>(c.added.size()),
                     static_cast<int64_t>(c.changed.size())),
              c.was && c.is ? StrCat(", ", c.same, " the same") : "", "\n");
    AppendHunks(out, Lines(c), context);
  }
  return out;
}

std::string DiffSummary(const ModuleDiff& diff) {
  int64_t removed = 0, added = 0, changed = 0, computations = 0;
  for (const ComputationDiff& c : diff.computations) {
    removed += static_cast<int64_t>(c.removed.size());
    added += static_cast<int64_t>(c.added.size());
    changed += static_cast<int64_t>(c.changed.size());
    computations += !c.equal();
  }
  if (computations == 0) return Join(diff.header, "; ");
  return StrCat(Counts(removed, added, changed), " in ", computations,
                computations == 1 ? " computation" : " computations");
}

std::string DiffJson(const ModuleDiff& diff) {
  using Json = nlohmann::json;
  const auto one = [](const Instruction* i) {
    return Json{{"name", i->name()}, {"text", Line(*i)}, {"where", i->metadata().Location()}};
  };
  Json computations = Json::array();
  for (const ComputationDiff& c : diff.computations) {
    if (c.equal()) continue;
    Json removed = Json::array(), added = Json::array(), changed = Json::array();
    for (const Instruction* i : c.removed) removed.push_back(one(i));
    for (const Instruction* i : c.added) added.push_back(one(i));
    for (const ChangedInstruction& change : c.changed)
      changed.push_back({{"was", one(change.was)}, {"is", one(change.is)}, {"how", change.how}});
    computations.push_back({{"was", c.was ? Json(c.was->name()) : Json()},
                            {"is", c.is ? Json(c.is->name()) : Json()},
                            {"removed", std::move(removed)},
                            {"added", std::move(added)},
                            {"changed", std::move(changed)},
                            {"same", c.same}});
  }
  const Json all = {{"equal", diff.equal()}, {"module", diff.header}, {"computations", std::move(computations)}};
  return all.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace strop::tools
