#include "strop/passes/pipeline.h"

#include <algorithm>
#include <chrono>

#include "strop/base/log.h"
#include "strop/ir/verifier.h"

namespace strop {
namespace {

constexpr PassInfo kPasses[] = {
#define PASS(Struct, name, stage, sentence) {name, Stage::stage, sentence, &Make##Struct},
#include "strop/passes/passes.def"
#undef PASS
};

double MillisecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

const PassInfo& Info(PassId id) { return kPasses[static_cast<size_t>(id)]; }

Result<PassId> FindPass(std::string_view name) {
  std::vector<std::string_view> known;
  for (const PassInfo& info : kPasses) {
    if (info.name == name) return static_cast<PassId>(&info - kPasses);
    known.push_back(info.name);
  }
  const std::string_view nearest = Nearest(name, known);
  return NotFound("there is no pass '", name, "'", nearest.empty() ? "" : StrCat("; did you mean '", nearest, "'?"));
}

PassPipeline& PassPipeline::Add(PassId pass) { return Add(Info(pass)); }

PassPipeline& PassPipeline::Add(const PassInfo& pass) {
  groups_.push_back({{pass}, 1});
  return *this;
}

PassPipeline& PassPipeline::AddRepeated(std::span<const PassId> passes, int rounds) {
  Group group;
  for (PassId pass : passes) group.passes.push_back(Info(pass));
  group.rounds = rounds;
  groups_.push_back(std::move(group));
  return *this;
}

Result<PassPipeline> PassPipeline::FromNames(std::string_view names) {
  PassPipeline pipeline(std::string{names});
  for (std::string_view name : Split(names, ',')) {
    if (Trim(name).empty()) continue;
    STROP_ASSIGN(PassId pass, FindPass(Trim(name)));
    pipeline.Add(pass);
  }
  return pipeline;
}

std::vector<std::string_view> PassPipeline::names() const {
  std::vector<std::string_view> names;
  for (const Group& group : groups_)
    for (const PassInfo& pass : group.passes) names.push_back(pass.name);
  return names;
}

Result<bool> PassPipeline::RunOne(const PassInfo& info, Module& module, PassContext& context) const {
  const std::vector<std::string>& disabled = context.options().disabled_passes;
  if (std::find(disabled.begin(), disabled.end(), info.name) != disabled.end()) return false;
  if (module.stage() < info.earliest)
    return Internal("pass ", info.name, " needs stage ", Name(info.earliest), ", but the module is at ",
                    Name(module.stage()));
  context.current_pass_ = info.name;
  const auto start = std::chrono::steady_clock::now();
  Result<bool> changed = info.make()->Run(module, context);
  if (!changed.ok()) return Status(changed.status()).Note(StrCat("in pass ", info.name, " of pipeline ", name_));
  context.runs_.push_back({info.name, MillisecondsSince(start), *changed, module.instruction_count()});
  if (*changed) STROP_LOG_AT(2, "pass ", info.name, " changed ", module.name());
  if (observer_) observer_(info.name, module, *changed);
  if (context.options().verify_each && *changed) {
    Status verified = VerifyModule(module);
    if (!verified.ok())
      return Internal("after pass ", info.name, " the module is not legal: ", verified.message(), " [at ",
                      verified.location(), "]")
          .Note(StrCat("in pipeline ", name_));
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
        STROP_ASSIGN(bool changed, RunOne(pass, module, context));
        again |= changed;
      }
      any |= again;
    }
    if (again && group.rounds > 1) context.Count("pipeline.not-settled");
  }
  return any;
}

}  // namespace strop
