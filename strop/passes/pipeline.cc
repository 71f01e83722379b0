#include "strop/passes/pipeline.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "strop/base/log.h"
#include "strop/ir/verifier.h"

namespace strop {
namespace {

constexpr PassInfo kPasses[] = {
#define PASS(Struct, name, stage, sentence) {name, Stage::stage, sentence, &Make##Struct},
#include "strop/passes/passes.def"
#undef PASS
};

constexpr PassAlias kAliases[] = {
#define ALIAS(xla_name, names) {xla_name, names},
#include "strop/passes/aliases.def"
#undef ALIAS
};

bool SameName(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char x, char y) { return (x == '_' ? '-' : x) == (y == '_' ? '-' : y); });
}

double MillisecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

const PassInfo& Info(PassId id) { return kPasses[static_cast<size_t>(id)]; }

std::span<const PassInfo> AllPasses() { return kPasses; }
std::span<const PassAlias> PassAliases() { return kAliases; }

Result<std::vector<PassInfo>> FindPasses(std::string_view name, std::span<const PassInfo> others) {
  std::vector<std::string_view> known;
  for (std::span<const PassInfo> passes : {std::span<const PassInfo>(kPasses), others})
    for (const PassInfo& info : passes) {
      if (SameName(info.name, name)) return std::vector<PassInfo>{info};
      known.push_back(info.name);
    }
  for (const PassAlias& alias : kAliases) {
    known.push_back(alias.xla_name);
    if (!SameName(alias.xla_name, name)) continue;
    std::vector<PassInfo> passes;
    for (std::string_view one : Split(alias.names, ',')) {
      STROP_ASSIGN(const std::vector<PassInfo> found, FindPasses(one));
      passes.insert(passes.end(), found.begin(), found.end());
    }
    return passes;
  }
  const std::string_view nearest = Nearest(name, known);
  return NotFound("there is no pass '", CEscape(name), "'",
                  nearest.empty() ? "" : StrCat("; did you mean '", nearest, "'?"),
                  "; strop opt --list-passes lists them");
}

PassPipeline& PassPipeline::Add(PassId pass) { return Add(Info(pass)); }

PassPipeline& PassPipeline::Add(const PassInfo& pass) {
  groups_.push_back({{pass}, 1, name_});
  return *this;
}

PassPipeline& PassPipeline::Add(const PassPipeline& pipeline) {
  const std::vector<Group> groups = pipeline.groups_;  // a copy: it may be this one
  groups_.insert(groups_.end(), groups.begin(), groups.end());
  return *this;
}

PassPipeline& PassPipeline::AddRepeated(std::span<const PassId> passes, int rounds) {
  Group group;
  for (PassId pass : passes) group.passes.push_back(Info(pass));
  group.rounds = rounds;
  group.pipeline = name_;
  groups_.push_back(std::move(group));
  return *this;
}

Result<PassPipeline> PassPipeline::FromNames(std::string_view pipeline_name, std::string_view names,
                                             std::span<const PassInfo> others) {
  PassPipeline pipeline(std::string{pipeline_name});
  for (std::string_view name : Split(names, ',')) {
    if (Trim(name).empty()) continue;
    STROP_ASSIGN(const std::vector<PassInfo> passes, FindPasses(Trim(name), others));
    for (const PassInfo& pass : passes) pipeline.Add(pass);
  }
  return pipeline;
}

std::vector<std::string_view> PassPipeline::names() const {
  std::vector<std::string_view> names;
  for (const Group& group : groups_)
    for (const PassInfo& pass : group.passes) names.push_back(pass.name);
  return names;
}

namespace {

// Passes of libraries are other people's code: what they throw ends here.
Result<bool> RunGuarded(const PassInfo& info, Module& module, PassContext& context) {
  try {
    return info.make()->Run(module, context);
  } catch (const std::exception& e) {
    return Internal("an exception: ", e.what());
  } catch (...) {
    return Internal("an exception that is no std::exception");
  }
}

}  // namespace

Result<bool> PassPipeline::RunOne(const Group& group, const PassInfo& info, Module& module,
                                  PassContext& context) const {
  const std::vector<std::string>& disabled = context.options().disabled_passes;
  if (std::find(disabled.begin(), disabled.end(), info.name) != disabled.end()) return false;
  if (module.stage() < info.earliest)
    return Internal("pass ", info.name, " needs stage ", Name(info.earliest), ", but the module is at ",
                    Name(module.stage()));
  context.current_pass_ = info.name;
  const auto start = std::chrono::steady_clock::now();
  Result<bool> changed = RunGuarded(info, module, context);
  if (!changed.ok())
    return Status(changed.status()).Note(StrCat("in pass ", info.name, " of pipeline ", group.pipeline));
  if (*changed)
    ++context.changes_;
  else
    context.settled_[info.name] = context.changes_;
  context.runs_.push_back({info.name, MillisecondsSince(start), *changed, module.instruction_count()});
  if (*changed) STROP_LOG_AT(2, "pass ", info.name, " changed ", module.name());
  if (observer_) observer_(group.pipeline, info.name, module, *changed);
  if (context.options().verify_each) {
    Status verified = VerifyModule(module);
    if (!verified.ok())
      return Internal("after pass ", info.name, " the module is not legal: ", verified.message(), " [at ",
                      verified.location(), "]")
          .Note(StrCat("in pipeline ", group.pipeline));
  }
  return changed;
}

Result<bool> PassPipeline::Run(Module& module, PassContext& context) const {
  bool any = false;
  for (const Group& group : groups_) {
    bool again = true;
    for (int round = 0; again && round < group.rounds; ++round) {
      again = false;
      for (const PassInfo& pass : group.passes) {
        // It found nothing to do in the very same module.
        const auto settled = context.settled_.find(pass.name);
        if (group.rounds > 1 && settled != context.settled_.end() && settled->second == context.changes_) continue;
        STROP_ASSIGN(bool changed, RunOne(group, pass, module, context));
        again |= changed;
      }
      any |= again;
    }
    if (again && group.rounds > 1) context.Count("pipeline.not-settled");
  }
  return any;
}

}  // namespace strop
