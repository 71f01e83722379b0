// include/strop/model.h: artifacts that are linked into a program.
#include "include/strop/model.h"

#include <cstring>
#include <memory>
#include <string>

#include "strop/base/thread_pool.h"
#include "strop/cpu/load/model_sections.h"
#include "strop/cpu/load/processor.h"
#include "strop/cpu/load/step_maker.h"
#include "strop/runtime/bind_custom_call.h"
#include "strop/runtime/device.h"
#include "strop/runtime/spec_bytes.h"

struct StropModel {
  std::unique_ptr<strop::ThreadPool> pool;
  std::unique_ptr<strop::DeviceSet> devices;
  std::shared_ptr<const strop::Executable> executable;
};

namespace strop::cpu {
namespace {

const char* Tell(const Status& status) {
  static thread_local std::string text;
  if (status.ok()) return nullptr;
  text = status.ToString();
  return text.c_str();
}

Result<std::unique_ptr<StropModel>> Create(const StropModelData& data, int threads) {
  // The bytes stay as long as the program: nobody has to keep them.
  STROP_ASSIGN(const Artifact artifact, Artifact::Open({static_cast<const char*>(data.bytes), data.size}, nullptr));
  STROP_ASSIGN(const std::string_view features, artifact.Section(kFeaturesSection));
  if (const std::string missing = MissingFeatures(features); !missing.empty())
    return FailedPrecondition("the model was compiled for a processor with ", missing, ", which this one lacks");
  const std::span kinds(reinterpret_cast<const RecipeKind* const*>(data.kinds), data.num_kinds);
  static const CustomCallRegistry* const kNone = new CustomCallRegistry;
  SpecMakers makers;
  makers.open_code = [&](std::span<const std::string_view> objects) { return OpenRecipes(objects, kinds); };
  makers.interpret = [](std::string_view) -> Result<StepBody> {
    return Unimplemented("a step that is interpreted, in a program without the evaluator");
  };
  makers.bind = [](const CustomCallSite& site) { return BindCustomCall(site, *kNone, ""); };
  STROP_ASSIGN(ExecutableSpec spec, ReadSpec(artifact, makers));
  auto model = std::make_unique<StropModel>();
  STROP_ASSIGN(model->executable, Executable::Create(std::move(spec)));
  if (threads > 0) model->pool = std::make_unique<ThreadPool>(threads);
  model->devices = std::make_unique<DeviceSet>(1, model->pool ? *model->pool : ThreadPool::Default());
  return model;
}

// Results that no step writes: where an argument, a constant or another result is one.
void CopyForwarded(const ExecutableSpec& spec, const void* const* arguments, void* const* results) {
  for (size_t n = 0; n < spec.outputs.size(); ++n) {
    const OutputSpec& output = spec.outputs[n];
    const void* from = nullptr;
    switch (output.source) {
      case OutputSource::kFresh:
      case OutputSource::kAliasParameter: continue;
      case OutputSource::kForwardParameter: from = arguments[output.index]; break;
      case OutputSource::kForwardConstant: from = spec.constants[output.index].data; break;
      case OutputSource::kForwardOutput: from = results[output.index]; break;
    }
    const int64_t bytes = output.shape.IsArray() ? output.shape.byte_size() : 0;
    if (bytes > 0) std::memcpy(results[n], from, static_cast<size_t>(bytes));
  }
}

Status Run(const StropModel& model, const void* const* arguments, void* const* results) {
  const Executable& executable = *model.executable;
  RunArgs args;
  args.inputs = {const_cast<void* const*>(arguments), static_cast<size_t>(executable.num_parameters())};
  args.outputs = {results, static_cast<size_t>(executable.num_outputs())};
  args.device = &model.devices->device(0);
  args.pool = &model.devices->pool();
  STROP_TRY(executable.Run(args));
  CopyForwarded(executable.spec(), arguments, results);
  return OkStatus();
}

}  // namespace
}  // namespace strop::cpu

extern "C" {

const char* strop_model_create(const StropModelData* data, int threads, StropModel** model) {
  *model = nullptr;
  strop::Result<std::unique_ptr<StropModel>> made = strop::cpu::Create(*data, threads);
  if (made.ok()) *model = made->release();
  return strop::cpu::Tell(made.status());
}

const char* strop_model_run(const StropModel* model, const void* const* arguments, void* const* results) {
  return strop::cpu::Tell(strop::cpu::Run(*model, arguments, results));
}

void strop_model_destroy(StropModel* model) { delete model; }
}
