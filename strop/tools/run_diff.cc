#include "strop/tools/run_diff.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "strop/tools/command.h"
#include "strop/tools/module_diff.h"

namespace strop::tools {
namespace {

namespace fs = std::filesystem;

struct Step {
  std::string name;  // "after_simplify.before_cse", "scheduled"
  std::string path;
};

// One module's compilation.
struct Compilation {
  std::vector<Step> steps;                   // modules, in the order of the run
  std::map<std::string, std::string> texts;  // plans and code, by name: their paths
};

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

bool IsNumber(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "module_0003.jit_f" of "module_0003.jit_f.0001.compile.after_a.before_b.txt" or of the folder of that name; the
// rest.
std::optional<std::pair<std::string, std::string>> SplitModule(const std::string& name) {
  if (!name.starts_with("module_")) return std::nullopt;
  for (std::string_view middle : {".before_optimizations", "_after_optimizations", ".execution_"}) {
    const size_t at = name.find(middle);
    if (at == name.npos) continue;
    const size_t dot = middle[0] == '.' ? at : name.rfind('.', at);
    return std::pair(name.substr(0, dot), name.substr(dot + 1));
  }
  size_t dot = name.find(".after_");  // .NNNN.pipeline.after_
  for (int n = 0; n < 2 && dot != name.npos && dot > 0; ++n) dot = name.rfind('.', dot - 1);
  if (dot == name.npos || dot == 0) return std::nullopt;
  return std::pair(name.substr(0, dot), name.substr(dot + 1));
}

// A dump's files, by module. Steps are in the order of their numbers, which is not that of all names.
std::map<std::string, Compilation> ReadRun(const std::string& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (auto it = fs::recursive_directory_iterator(folder, error); !error && it != fs::recursive_directory_iterator();
       it.increment(error))
    if (it->is_regular_file(error)) files.push_back(it->path());
  std::sort(files.begin(), files.end());
  std::map<std::string, Compilation> run;
  std::map<std::string, std::optional<Step>> last;  // XLA's name for the end sorts before or after the numbers
  for (const fs::path& file : files) {
    const std::string name = file.filename().string(), parent = file.parent_path().filename().string();
    const bool module = EndsWith(name, ".hlo") || (EndsWith(name, ".txt") && !EndsWith(name, "-plan.txt"));
    if (parent.starts_with("module_") && module && name != "plan.txt") {  // NNN.step.hlo
      const size_t dot = name.find('.');
      if (dot != name.npos && IsNumber(std::string_view(name).substr(0, dot)))
        run[parent].steps.push_back({name.substr(dot + 1, name.size() - dot - 5), file.string()});
    } else if (parent.starts_with("module_")) {
      run[parent].texts[name] = file.string();
    } else if (const auto split = SplitModule(name)) {
      Compilation& compilation = run[split->first];
      const std::string& rest = split->second;
      const Step step = {rest.substr(0, rest.rfind('.')), file.string()};
      if (!module && EndsWith(name, ".txt"))
        compilation.texts[rest] = file.string();
      else if (module && rest.starts_with("before_optimizations"))
        compilation.steps.insert(compilation.steps.begin(), step);
      else if (module && rest.find("after_optimizations") != rest.npos)
        last[split->first] = step;
      else if (module)
        compilation.steps.push_back({step.name.substr(step.name.find('.') + 1), step.path});
    } else if (EndsWith(name, ".ll")) {
      run["code"].texts[name] = file.string();
    }
  }
  for (const auto& [module, step] : last) run[module].steps.push_back(*step);
  return run;
}

// The first line in which two texts differ, with the lines around it.
std::string FirstLines(const std::string& was, const std::string& is, int64_t context) {
  const std::vector<std::string_view> a = Split(was, '\n'), b = Split(is, '\n');
  size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  std::string out = StrCat("   line ", at + 1, "\n");
  for (size_t n = at - std::min<size_t>(at, context); n < at; ++n) StrAppend(out, "   ", a[n], "\n");
  for (size_t n = at; n < std::min(a.size(), at + context + 1); ++n) StrAppend(out, "-  ", a[n], "\n");
  for (size_t n = at; n < std::min(b.size(), at + context + 1); ++n) StrAppend(out, "+  ", b[n], "\n");
  return out;
}

Result<RunDiff> DiffCompilations(const std::string& module, const Compilation& was, const Compilation& is,
                                 int64_t context) {
  const auto found = [&module](std::string text) { return RunDiff{false, StrCat(module, ": ", text)}; };
  for (size_t n = 0; n < std::max(was.steps.size(), is.steps.size()); ++n) {
    const Step* a = n < was.steps.size() ? &was.steps[n] : nullptr;
    const Step* b = n < is.steps.size() ? &is.steps[n] : nullptr;
    if (!a || !b || a->name != b->name)
      return found(StrCat("step ", n, " is ", b ? b->name : "missing", ", was ", a ? a->name : "missing",
                          ": what a step leaves is dumped where it changed something\n"));
    STROP_ASSIGN(const std::unique_ptr<Module> before, ParseFile(a->path));
    STROP_ASSIGN(const std::unique_ptr<Module> now, ParseFile(b->path));
    const ModuleDiff diff = DiffModules(*before, *now);
    if (diff.equal()) continue;
    return found(StrCat("the first difference is at step ", n, ", ", b->name, ": ", DiffSummary(diff), "\n", "-- ",
                        a->path, "\n++ ", b->path, "\n", DiffText(diff, context)));
  }
  for (const auto& [name, path] : was.texts) {
    const auto other = is.texts.find(name);
    if (other == is.texts.end()) return found(StrCat(name, " is missing\n-- ", path, "\n"));
    STROP_ASSIGN(const std::string before, ReadFile(path));
    STROP_ASSIGN(const std::string now, ReadFile(other->second));
    if (before != now)
      return found(StrCat("the modules are the same, ", name, " differs\n-- ", path, "\n++ ", other->second, "\n",
                          FirstLines(before, now, context)));
  }
  for (const auto& [name, path] : is.texts)
    if (!was.texts.count(name)) return found(StrCat(name, " is new\n++ ", path, "\n"));
  return RunDiff{};
}

}  // namespace

Result<RunDiff> DiffRuns(const std::string& was, const std::string& is, int64_t context) {
  const std::map<std::string, Compilation> before = ReadRun(was), now = ReadRun(is);
  for (const auto& [folder, run] : {std::pair(&was, &before), std::pair(&is, &now)})
    if (run->empty())
      return NotFound("no dump in ", *folder, ": expected what STROP_DUMP or --xla_dump_to=", *folder, " writes");
  RunDiff all;
  for (const auto& [module, compilation] : before) {
    const auto other = now.find(module);
    if (other == now.end()) {
      all.equal = false;
      StrAppend(all.text, module, ": missing in ", is, "\n");
      continue;
    }
    STROP_ASSIGN(const RunDiff diff, DiffCompilations(module, compilation, other->second, context));
    all.equal = all.equal && diff.equal;
    all.text += diff.text;
  }
  for (const auto& [module, compilation] : now) {
    if (before.count(module)) continue;
    all.equal = false;
    StrAppend(all.text, module, ": missing in ", was, "\n");
  }
  return all;
}

}  // namespace strop::tools
