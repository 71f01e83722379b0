#include "strop/driver/artifact.h"

#include "strop/base/archive.h"
#include "strop/base/version.h"
#include "strop/proto/module_proto.h"
#include "strop/runtime/bind_custom_call.h"
#include "strop/runtime/spec_bytes.h"

namespace strop {
namespace {

constexpr uint32_t kFactsSection = SectionName("fact"), kModuleSection = SectionName("modl");

// What is asked of a program besides running it, and who compiled it for what.
struct Facts {
  std::string version, backend, code_key;
  ModuleCost cost;
  std::vector<std::string> interpreted, parameters;
  std::string result;
};
template <class Archive>
void Fields(Archive& a, Facts& f) {
  a(f.version, f.backend, f.code_key, f.cost.flops, f.cost.transcendentals, f.cost.bytes_accessed, f.interpreted,
    f.parameters, f.result);
}

Status CheckFits(const Facts& facts, const Backend& backend) {
  if (facts.version != kVersion)
    return FailedPrecondition("the executable was serialised by Strop ", CEscape(facts.version), ", this is ", kVersion,
                              ": compile it again");
  if (facts.backend != backend.name())
    return FailedPrecondition("the executable was compiled for backend ", CEscape(facts.backend), ", this is ",
                              backend.name());
  if (const Decision runs = backend.RunsCode(facts.code_key); !runs)
    return FailedPrecondition("the executable was compiled for another processor (", CEscape(facts.code_key),
                              "): ", runs.why_not(), "; compile it again here");
  return OkStatus();
}

// The leaves of arguments and result are what the executable takes and gives.
Status CheckEntry(const EntryLayout& entry, const ExecutableSpec& spec) {
  int64_t parameters = 0;
  for (const Shape& shape : entry.parameters) parameters += shape.num_leaves();
  if (parameters != static_cast<int64_t>(spec.parameters.size()) ||
      entry.result.num_leaves() != static_cast<int64_t>(spec.outputs.size()))
    return InvalidArgument("a serialised executable with shapes of other values");
  return OkStatus();
}

}  // namespace

Result<std::shared_ptr<const Module>> ProgramModule::Get() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!module_) {
    STROP_ASSIGN(module_, ParseModuleProtoWithConfig(proto_));
  }
  return module_;
}

Result<std::string> ProgramModule::Proto() const {
  if (!proto_.empty()) return std::string(proto_);
  STROP_ASSIGN(const std::shared_ptr<const Module> module, Get());
  return SerializeModuleProtoWithConfig(*module);
}

Status WriteProgram(const CompiledProgram& program, const Backend& backend, ArtifactWriter& out) {
  Facts facts{std::string(kVersion),
              std::string(backend.name()),
              backend.CodeKey(),
              program.cost,
              program.explanation.interpreted,
              {},
              program.entry.result.ToStringWithLayout()};
  for (const Shape& shape : program.entry.parameters) facts.parameters.push_back(shape.ToStringWithLayout());
  STROP_ASSIGN(std::string module, program.module->Proto());
  STROP_TRY(WriteSpec(program.executable->spec(), out));
  ByteWriter bytes;
  bytes(facts);
  out.Add(kFactsSection, bytes.Take());
  out.Add(kModuleSection, std::move(module));
  return OkStatus();
}

bool HasProgram(const Artifact& artifact) { return HasSpec(artifact); }

Result<std::shared_ptr<const CompiledProgram>> ReadProgram(const Artifact& artifact, const Backend& backend,
                                                           const CompileSettings& options) {
  STROP_ASSIGN(const std::string_view bytes, artifact.Section(kFactsSection));
  Facts facts;
  ByteReader in(bytes);
  in(facts);
  STROP_TRY(in.Finish("what is known of a program"));
  STROP_TRY(CheckFits(facts, backend));
  STROP_ASSIGN(const std::string_view module, artifact.Section(kModuleSection));
  auto program = std::make_shared<CompiledProgram>();
  program->module = std::make_unique<ProgramModule>(module, artifact.owner());
  program->cost = facts.cost;
  program->explanation.interpreted = std::move(facts.interpreted);

  static const CustomCallRegistry* const kEmpty = new CustomCallRegistry;
  const CustomCallRegistry& registry = options.custom_calls ? *options.custom_calls : *kEmpty;
  SpecMakers makers;
  makers.open_code = [&](std::span<const std::string_view> objects) { return backend.OpenCode(objects); };
  makers.interpret = [&](std::string_view recipe) -> Result<StepBody> {
    STROP_ASSIGN(const std::shared_ptr<const Module> parsed, program->module->Get());
    return InterpretRecipe(recipe, *parsed);
  };
  makers.bind = [&](const CustomCallSite& site) { return BindCustomCall(site, registry, options.lapack_library); };
  STROP_ASSIGN(ExecutableSpec spec, ReadSpec(artifact, makers));
  STROP_ASSIGN(program->executable, Executable::Create(std::move(spec)));
  STROP_ASSIGN(program->entry.result, ParseShape(facts.result));
  for (const std::string& text : facts.parameters) {
    STROP_ASSIGN(Shape shape, ParseShape(text));
    program->entry.parameters.push_back(std::move(shape));
  }
  STROP_TRY(CheckEntry(program->entry, program->executable->spec()));
  return std::shared_ptr<const CompiledProgram>(std::move(program));
}

}  // namespace strop
