#include "strop/runtime/spec_bytes.h"

#include "strop/base/archive.h"

namespace strop {
namespace {

constexpr uint32_t kSpecSection = SectionName("spec"), kConstantSection = SectionName("cnst"),
                   kObjectSection = SectionName("objs");
constexpr MemoryKind kLastMemoryKind = static_cast<MemoryKind>(kNumMemoryKinds - 1);
constexpr size_t kPartAlignment = kBufferAlignment;  // of constants; objects do not care

size_t AlignUp(size_t n) { return (n + kPartAlignment - 1) / kPartAlignment * kPartAlignment; }

// Constants and objects: one after the other.
void AppendPart(std::string& section, std::string_view part) {
  section.resize(AlignUp(section.size()));
  section += part;
}
Result<std::vector<std::string_view>> Parts(std::string_view section, const std::vector<int64_t>& sizes) {
  std::vector<std::string_view> parts;
  size_t at = 0;
  for (int64_t size : sizes) {
    at = AlignUp(at);
    if (size < 0 || at > section.size() || static_cast<uint64_t>(size) > section.size() - at)
      return InvalidArgument("a serialised executable whose constants or objects lie outside of it");
    parts.push_back(section.substr(at, static_cast<size_t>(size)));
    at += static_cast<size_t>(size);
  }
  return parts;
}

}  // namespace

// ---- fields (base/archive.h). Shapes are their text, which has a parser that expects anything.

template <class Archive>
void ShapeField(Archive& a, Shape& shape) {
  if constexpr (requires { a.Fail(); }) {
    std::string_view text;
    a(text);
    if (a.failed()) return;
    Result<Shape> parsed = ParseShape(text);
    if (parsed.ok())
      shape = *std::move(parsed);
    else
      a.Fail();
  } else {
    a(shape.ToStringWithLayout());
  }
}

template <class Archive>
void Fields(Archive& a, Shape& shape) {
  ShapeField(a, shape);
}
template <class Archive>
void Fields(Archive& a, Slot& s) {
  a.Enum(s.kind, SlotKind::kView);
  a(s.index, s.offset, s.size);
}
template <class Archive>
void Fields(Archive& a, StepArg& s) {
  a(s.slot);
  a.Enum(s.access, Access::kReadWrite);
}
template <class Archive>
void Fields(Archive& a, StepInfo& s) {
  a(s.name, s.op, s.op_name, s.source, s.flops, s.bytes);
}
template <class Archive>
void Fields(Archive& a, ScratchRoom& s) {
  a(s.behind, s.gap_at, s.gap_bytes);
}
template <class Archive>
void Fields(Archive& a, DynamicDim& d) {
  a(d.dim, d.slot);
}
template <class Archive>
void Fields(Archive& a, ParameterSpec& p) {
  a(p.shape);
  a.Enum(p.memory, kLastMemoryKind);
  a(p.dynamic_dims, p.given_away);
}
template <class Archive>
void Fields(Archive& a, OutputSpec& o) {
  a(o.shape);
  a.Enum(o.memory, kLastMemoryKind);
  a.Enum(o.source, OutputSource::kForwardOutput);
  a(o.index, o.must_alias, o.origin, o.dynamic_dims);
}
template <class Archive>
void Fields(Archive& a, WhileStep& s) {
  a(s.condition, s.body, s.trip_count, s.rings);
}
template <class Archive>
void Fields(Archive& a, ConditionalStep& s) {
  a(s.branches, s.by_index);
}
template <class Archive>
void Fields(Archive& a, CallStep& s) {
  a(s.program);
}
template <class Archive>
void Fields(Archive& a, RngStateStep& s) {
  a(s.delta);
}
template <class Archive>
void Fields(Archive& a, DeviceIdStep& s) {
  a(s.partition);
}
template <class Archive>
void Fields(Archive& a, CollectiveStep::Operand& o) {
  a.Enum(o.type, static_cast<ElementType>(kNumElementTypes - 1));
  a(o.outer, o.block);
}
template <class Archive>
void Fields(Archive& a, CollectiveStep& s) {
  a.Enum(s.kind, CollectiveKind::kBroadcast);
  a.Enum(s.reduction, ReductionKind::kOr);
  a(s.op, s.groups, s.source_target, s.operands);
}
template <class Archive>
void Fields(Archive& a, ViewStep::Dim& d) {
  a.Enum(d.type, static_cast<ElementType>(kNumElementTypes - 1));
  a(d.limit, d.stride);
}
template <class Archive>
void Fields(Archive& a, ViewStep& s) {
  a(s.offset, s.dims);
}
template <class Archive>
void Fields(Archive& a, CustomCallSite& s) {
  a(s.target);
  a.Enum(s.api, CustomCallApi::kTypedFfi);
  a(s.opaque, s.operands, s.results, s.tuple_result);
}
template <class Archive>
void Fields(Archive&, CopyStep&) {}
template <class Archive>
void Fields(Archive&, InfeedStep&) {}
template <class Archive>
void Fields(Archive&, OutfeedStep&) {}

namespace {

// The tables without steps.
template <class Archive>
void SpecFields(Archive& a, ExecutableSpec& s) {
  a(s.name, s.parameters, s.outputs, s.slots, s.entry, s.temp_bytes, s.temp_origin, s.run_inline, s.rng_seed[0],
    s.rng_seed[1]);
}

constexpr bool HasRecipe(StepKind kind) {
  return kind == StepKind::kKernel || kind == StepKind::kRegion || kind == StepKind::kHost;
}

Status WriteBody(const Step& step, ByteWriter& out) {
  const auto refuse = [&] {
    return Unimplemented("step ", step.info.name, " (", step.info.op,
                         ") cannot be written down: it does not say how it was made");
  };
  if (HasRecipe(step.kind())) {
    const auto* host = std::get_if<HostStep>(&step.body);
    if (step.recipe.empty()) return refuse();
    out(host && host->interpreted, step.recipe);
    return OkStatus();
  }
  if (const auto* call = std::get_if<CustomCallStep>(&step.body)) {
    if (!call->site) return refuse();
    out(call->num_operands, *call->site);
    return OkStatus();
  }
  std::visit(
      [&](const auto& body) {
        using Body = std::remove_cvref_t<decltype(body)>;
        if constexpr (!std::is_same_v<Body, KernelStep> && !std::is_same_v<Body, HostStep> &&
                      !std::is_same_v<Body, RegionStep> && !std::is_same_v<Body, CustomCallStep>)
          out(body);
      },
      step.body);
  return OkStatus();
}

template <class Body>
Result<StepBody> ReadPlain(ByteReader& in) {
  Body body;
  in(body);
  return StepBody(std::move(body));
}

Result<StepBody> ReadCustomCall(ByteReader& in, const SpecMakers& makers) {
  CustomCallStep step;
  auto site = std::make_shared<CustomCallSite>();
  in(step.num_operands, *site);
  if (in.failed()) return StepBody(CopyStep());  // which nobody sees
  STROP_ASSIGN(step.call, makers.bind(*site));
  step.site = std::move(site);
  return StepBody(std::move(step));
}

Result<StepBody> ReadBody(StepKind kind, ByteReader& in, const SpecMakers& makers, const StepMaker& code,
                          std::string& recipe) {
  switch (kind) {
    case StepKind::kKernel:
    case StepKind::kRegion:
    case StepKind::kHost: {
      bool interpreted = false;
      in(interpreted, recipe);
      if (in.failed()) return StepBody(CopyStep());  // which nobody sees
      return interpreted ? makers.interpret(recipe) : code.Make(recipe);
    }
    case StepKind::kCopy: return ReadPlain<CopyStep>(in);
    case StepKind::kWhile: return ReadPlain<WhileStep>(in);
    case StepKind::kConditional: return ReadPlain<ConditionalStep>(in);
    case StepKind::kCall: return ReadPlain<CallStep>(in);
    case StepKind::kCustomCall: return ReadCustomCall(in, makers);
    case StepKind::kRngState: return ReadPlain<RngStateStep>(in);
    case StepKind::kDeviceId: return ReadPlain<DeviceIdStep>(in);
    case StepKind::kInfeed: return ReadPlain<InfeedStep>(in);
    case StepKind::kOutfeed: return ReadPlain<OutfeedStep>(in);
    case StepKind::kCollective: return ReadPlain<CollectiveStep>(in);
    case StepKind::kView: return ReadPlain<ViewStep>(in);
  }
  return Internal("unknown kind of step");
}

Status ReadPrograms(ByteReader& in, const SpecMakers& makers, const StepMaker& code, std::vector<Program>& programs) {
  uint32_t num_programs = 0;
  in(num_programs);
  for (uint32_t p = 0; p < num_programs && !in.failed(); ++p) {
    Program program;
    uint32_t num_steps = 0;
    in(program.name, num_steps);
    for (uint32_t s = 0; s < num_steps && !in.failed(); ++s) {
      Step step;
      StepKind kind = StepKind::kKernel;
      in.Enum(kind, StepKind::kView);
      in(step.args, step.info, step.scratch);
      if (in.failed()) break;
      Result<StepBody> body = ReadBody(kind, in, makers, code, step.recipe);
      if (!body.ok()) return std::move(body).status().Note(StrCat("step ", step.info.name));
      step.body = *std::move(body);
      if (!in.failed() && step.kind() != kind && !HasRecipe(kind)) in.Fail();
      program.steps.push_back(std::move(step));
    }
    programs.push_back(std::move(program));
  }
  return OkStatus();
}

}  // namespace

Status WriteSpec(const ExecutableSpec& spec, ArtifactWriter& out) {
  ByteWriter tables;
  SpecFields(tables, const_cast<ExecutableSpec&>(spec));  // which only reads it
  std::string constants, objects;
  std::vector<int64_t> constant_sizes, object_sizes;
  for (const ConstantData& c : spec.constants) {
    AppendPart(constants, {static_cast<const char*>(c.data), static_cast<size_t>(c.size)});
    constant_sizes.push_back(c.size);
  }
  for (const auto& object : spec.objects) {
    const std::shared_ptr<const std::string> bytes = object->Final();
    AppendPart(objects, *bytes);
    object_sizes.push_back(static_cast<int64_t>(bytes->size()));
  }
  tables(constant_sizes, object_sizes, static_cast<uint32_t>(spec.programs.size()));
  for (const Program& program : spec.programs) {
    tables(program.name, static_cast<uint32_t>(program.steps.size()));
    for (const Step& step : program.steps) {
      tables.Enum(step.kind(), StepKind::kView);
      tables(step.args, step.info, const_cast<ScratchRoom&>(step.scratch));
      STROP_TRY(WriteBody(step, tables));
    }
  }
  out.Add(kSpecSection, tables.Take());
  out.Add(kConstantSection, std::move(constants));
  out.Add(kObjectSection, std::move(objects));
  return OkStatus();
}

bool HasSpec(const Artifact& artifact) { return artifact.Has(kSpecSection); }

Result<ExecutableSpec> ReadSpec(const Artifact& artifact, const SpecMakers& makers) {
  STROP_ASSIGN(const std::string_view tables, artifact.Section(kSpecSection));
  STROP_ASSIGN(const std::string_view constant_bytes, artifact.Section(kConstantSection));
  STROP_ASSIGN(const std::string_view object_bytes, artifact.Section(kObjectSection));
  ByteReader in(tables);
  ExecutableSpec spec;
  SpecFields(in, spec);
  std::vector<int64_t> constant_sizes, object_sizes;
  in(constant_sizes, object_sizes);
  if (in.failed()) return in.Finish("a program");
  STROP_ASSIGN(const std::vector<std::string_view> constants, Parts(constant_bytes, constant_sizes));
  for (std::string_view bytes : constants)
    spec.constants.push_back({bytes.data(), static_cast<int64_t>(bytes.size()), artifact.owner()});
  STROP_ASSIGN(const std::vector<std::string_view> objects, Parts(object_bytes, object_sizes));
  for (std::string_view bytes : objects) spec.objects.push_back(std::make_shared<FinalObject>(std::string(bytes)));
  STROP_ASSIGN(const std::unique_ptr<StepMaker> code, makers.open_code(objects));
  STROP_TRY(ReadPrograms(in, makers, *code, spec.programs));
  STROP_TRY(in.Finish("a program"));
  spec.code = code->code();
  spec.code_bytes = code->code_bytes();
  return spec;
}

}  // namespace strop
