// Client_Compile and its relatives: bytes in one of three formats and a CompileOptionsProto become a Program on
// devices.
#include <cstdlib>

#include "strop/base/archive.h"
#include "strop/base/cursor.h"
#include "strop/base/log.h"
#include "strop/base/xla_flags.h"
#include "strop/import/import.h"
#include "strop/ir/physical_shape.h"
#include "strop/pjrt/executable.h"
#include "strop/pjrt/slots.h"
#include "strop/proto/module_proto.h"
#include "strop/proto/value_proto.h"
#include "strop/spmd/partitioner.h"

namespace strop::pjrt {
namespace {

constexpr int64_t kMaxDevices = 1 << 16;

Result<std::unique_ptr<Module>> ReadProgram(std::string_view format, std::string_view code) {
  if (format == "mlir") return ImportMlir({reinterpret_cast<const uint8_t*>(code.data()), code.size()});
  if (format == "hlo") return ParseModuleProto(code);
  if (format == "hlo_with_config") return ParseModuleProtoWithConfig(code);
  return InvalidArgument("unknown program format \"", CEscape(format), "\"; there are mlir, hlo and hlo_with_config");
}

// What the options say about the module; counts that both give must agree, 1 standing for unsaid.
Status ApplyOptions(const FrontendCompileOptions& options, Module& module) {
  ModuleConfig& config = module.config();
  auto merge = [](int64_t& mine, int64_t theirs, std::string_view what) {
    if (mine != 1 && theirs != 1 && mine != theirs)
      return InvalidArgument("the program has ", mine, " ", what, ", its compile options ", theirs);
    mine = std::max(mine, theirs);
    return OkStatus();
  };
  STROP_TRY(merge(config.replica_count, options.num_replicas, "replicas"));
  STROP_TRY(merge(config.num_partitions, options.num_partitions, "partitions"));
  config.use_spmd_partitioning |= options.use_spmd_partitioning;
  config.use_shardy_partitioner |= options.use_shardy_partitioner;
  if (!options.propagate_to_parameters.empty())
    config.allow_spmd_sharding_propagation_to_parameters = options.propagate_to_parameters;
  if (!options.propagate_to_output.empty())
    config.allow_spmd_sharding_propagation_to_output = options.propagate_to_output;
  return OkStatus();
}

Result<int64_t> ParseOverride(std::string_view key, std::string_view text) {
  std::optional<int64_t> number = ParseNumber<int64_t>(text);
  if (!number) return InvalidArgument("compile option ", key, " is \"", CEscape(text), "\", expected a number");
  return *number;
}

std::string OverrideText(const FrontendCompileOptions::Override& value) {
  return std::visit([](const auto& v) { return StrCat(v); }, value);
}

// Options of this one compilation. Strop's own, with or without the prefix strop_, and XLA's, of which the few that
// mean something here are taken and the others checked. What belongs to the process as well goes into `settings`.
Status ApplyOverrides(FrontendCompileOptions& options, Options& settings) {
  if (!options.dump.to.empty()) {
    settings.xla_dump_to = options.dump.to;
    settings.xla_dump_hlo_module_re = options.dump.module_re;
    settings.xla_dump_hlo_pass_re = options.dump.pass_re;
    settings.xla_dump_hlo_as_text = options.dump.as_text;
    settings.xla_dump_hlo_as_proto = options.dump.as_proto;
    settings.xla_dump_hlo_as_dot |= options.dump.as_dot;
    settings.xla_dump_hlo_as_html |= options.dump.as_html;
  }
  for (const auto& [key, value] : options.overrides) {
    const std::string text = OverrideText(value);
    const std::string name = key.starts_with("strop_") ? key.substr(6) : key;
    const bool xla = key.starts_with("xla_");
    Status known = xla ? CheckXlaFlag(key, text) : OkStatus();
    if (xla ? known.code() == StatusCode::kNotFound : !HasOption(name)) {
      if (!xla) known = SetOption(settings, name, text, "");
      const std::string_view why = known.message();  // "...; did you mean 'xla_dump_to'?"
      return InvalidArgument("No such compile option: '", CEscape(key), "'",
                             why.substr(std::min(why.find("; "), why.size())));
    }
    if (!known.ok()) return InvalidArgument("compile option ", key, ": ", known.message());
    if (key == "xla_allow_excess_precision") {
      options.allow_excess_precision = *ParseXlaBool(text);  // checked above
    } else if (key == "xla_backend_optimization_level") {
      STROP_ASSIGN(options.backend_optimization_level, ParseOverride(key, text));
    } else if (HasOption(name)) {
      STROP_TRY(SetOption(settings, name, text, StrCat("compile option ", key)));
    }
  }
  return OkStatus();
}

// The layout that a mode asks for: "{0,1}", "default", "auto" or nothing; the last three are row-major.
// InvalidArgument, Unimplemented (tiles).
Result<Layout> LayoutOfMode(const std::vector<std::string>& modes, int64_t leaf, int64_t rank) {
  const std::string& mode = leaf < static_cast<int64_t>(modes.size()) ? modes[leaf] : std::string();
  if (mode.empty() || mode == "default" || mode == "auto") return Layout::RowMajor(rank);
  Cursor at(mode);
  Result<Layout> layout = ParseLayout(at);
  if (!layout.ok()) return InvalidArgument("layout mode ", mode, ": ", layout.status().message());
  if (layout->extra) return Unimplemented("layout mode ", mode, ": the CPU's buffers have no tiles");
  Shape shape = Shape::Array(ElementType::Pred, Int64Vector(rank, 1));
  shape.set_layout(*layout);
  if (!shape.Validate().ok()) return InvalidArgument("layout mode ", mode, " of a value of ", rank, " dimensions");
  return layout;
}

// Where the compiler may choose: a result lies in memory as the program asks for, or, if it is transposed, as it was
// before.
Layout AutoLayout(const Instruction& result) {
  Layout layout = Layout::RowMajor(result.shape().rank());
  if (result.op() == Op::CustomCall && result.attrs<CustomCallAttrs>().target == "LayoutConstraint")
    return result.shape().layout_or_default();
  if (result.op() != Op::Transpose) return layout;
  const Dims major = InversePermutation(result.dimensions());
  for (size_t i = 0; i < major.size(); ++i) layout.minor_to_major[i] = major[major.size() - 1 - i];
  return layout;
}

Status SetLeafLayouts(Shape& shape, const std::vector<std::string>& modes, int64_t& leaf, const Instruction* value) {
  if (shape.IsTuple()) {
    for (int64_t k = 0; k < shape.tuple_size(); ++k)
      STROP_TRY(SetLeafLayouts(shape.mutable_elements()[k], modes, leaf,
                               value && value->op() == Op::Tuple ? value->operand(k) : nullptr));
    return OkStatus();
  }
  if (shape.IsArray()) {
    STROP_ASSIGN(Layout layout, LayoutOfMode(modes, leaf, shape.rank()));
    const bool free = leaf < static_cast<int64_t>(modes.size()) && modes[leaf] == "auto";
    shape.set_layout(free && value ? AutoLayout(*value) : std::move(layout));
  }
  ++leaf;
  return OkStatus();
}

// Parameters and results are row-major, whatever layouts the program's own instructions have, unless a layout mode asks
// for another order.
Status SetEntryLayout(Module& module) {
  ModuleConfig& config = module.config();
  config.entry_layout.parameters.clear();
  int64_t leaf = 0;
  for (const Instruction* parameter : module.entry()->parameters()) {
    Shape shape = parameter->shape().WithoutLayout().WithDefaultLayout();
    STROP_TRY(SetLeafLayouts(shape, config.parameter_layout_modes, leaf, nullptr));
    config.entry_layout.parameters.push_back(std::move(shape));
  }
  leaf = 0;
  const Instruction* root = module.entry()->root();
  config.entry_layout.result = root->shape().WithoutLayout().WithDefaultLayout();
  STROP_TRY(SetLeafLayouts(config.entry_layout.result, config.result_layout_modes, leaf, root));
  config.has_entry_layout = true;
  return OkStatus();
}

Result<CompileSettings> SettingsOf(const FrontendCompileOptions& options, const Options& client) {
  STROP_ASSIGN(CompileSettings settings, SettingsFrom(client, Tier::kAuto));
  settings.custom_calls = &ProcessCustomCalls();
  settings.call_owners = &ProcessCallOwners();
  if (options.backend_optimization_level == 0) settings.optimization_level = 0;
  if (!options.allow_excess_precision)
    for (const char* pass : {"product-widening", "contraction", "constant-division", "unrounded-values"})
      settings.disabled_passes.emplace_back(pass);
  return settings;
}

// One serialised sharding a leaf: of entry parameters, or of the result. Nothing said is replicated.
Status AppendShardings(std::span<const Sharding> leaves, std::vector<std::string>& out) {
  for (const Sharding& leaf : leaves) {
    if (leaf.kind == ShardingKind::Replicated || leaf.kind == ShardingKind::Unknown) {
      out.emplace_back();
      continue;
    }
    Sharding plain = leaf;
    plain.metadata.clear();
    STROP_ASSIGN(std::string bytes, SerializeSharding(plain));
    out.push_back(std::move(bytes));
  }
  return OkStatus();
}

void AddLeaf(const Shape& shape, MemoryKind memory, Program::Leaves& leaves) {
  leaves.shapes.push_back(shape);
  leaves.memory_kinds.push_back(Name(memory).data());  // names are literals
  leaves.memory_kind_sizes.push_back(Name(memory).size());
}

void FinishShardings(Program::Leaves& leaves) {
  leaves.shardings.resize(leaves.shapes.size());
  for (const std::string& sharding : leaves.shardings) {
    leaves.sharding_data.push_back(sharding.data());
    leaves.sharding_sizes.push_back(sharding.size());
  }
}

// Of the leaves of a value, as the program states them.
std::vector<Sharding> StatedShardings(const Instruction& value) {
  std::vector<Sharding> out(value.shape().num_leaves());
  const Sharding* sharding = value.sharding();
  for (size_t i = 0; sharding && i < out.size(); ++i) {
    if (sharding->kind != ShardingKind::Tuple) out[i] = *sharding;
    if (i < sharding->elements.size()) out[i] = sharding->elements[i];
  }
  return out;
}

// What the partitioner made of them.
Status TakeDecided(const Module& compiled, const char* attribute, std::vector<Sharding>& shardings) {
  const FrontendAttributes& attributes = compiled.config().frontend_attributes;
  const auto decided = attributes.find(attribute);
  if (decided == attributes.end()) return OkStatus();
  STROP_ASSIGN(Sharding all, ParseSharding(decided->second));
  shardings = std::move(all.elements);
  return OkStatus();
}

bool Exchanges(const Step& step) {
  const auto* collective = std::get_if<CollectiveStep>(&step.body);
  if (!collective || collective->groups.empty()) return collective;
  return std::any_of(collective->groups.begin(), collective->groups.end(),
                     [](const std::vector<int32_t>& group) { return group.size() > 1; });
}

// The lists that the C API hands out.
void FillLists(Program& program) {
  const ExecutableSpec& spec = program.executable().spec();
  for (const strop::Program& part : spec.programs)
    program.exchanges |= std::any_of(part.steps.begin(), part.steps.end(), Exchanges);
  for (const ParameterSpec& parameter : spec.parameters) AddLeaf(parameter.shape, parameter.memory, program.parameters);
  for (const OutputSpec& output : spec.outputs) {
    AddLeaf(output.shape, output.memory, program.outputs);
    program.output_types.push_back(BufferTypeOf(output.shape.type()));
    program.output_dims.insert(program.output_dims.end(), output.shape.dims().begin(), output.shape.dims().end());
    program.output_dim_counts.push_back(static_cast<size_t>(output.shape.rank()));
  }
  FinishShardings(program.parameters);
  FinishShardings(program.outputs);
  program.parameter_layouts = LayoutsOf(program.parameters.shapes);
  program.output_layouts = LayoutsOf(program.outputs.shapes);
  program.cost.Add("flops", static_cast<float>(program.compiled->cost.flops));
  program.cost.Add("transcendentals", static_cast<float>(program.compiled->cost.transcendentals));
  program.cost.Add("bytes accessed", static_cast<float>(program.compiled->cost.bytes_accessed));
  program.cost.Add("interpreted instructions", static_cast<float>(program.compiled->explanation.interpreted.size()));
}

std::string Fingerprint(const Program& program, const Backend& backend) {
  const std::string context = StrCat(Version(), backend.target().description, program.options_bytes);
  const uint64_t halves[] = {Fingerprint64(StrCat(context, program.code)),
                             Fingerprint64(StrCat(program.code, context))};
  std::string out;
  for (uint64_t half : halves)
    for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[(half >> shift) & 15];
  return out;
}

// (replica, partition) -> device, from the options or 0, 1, 2, ...
Result<std::shared_ptr<const DeviceAssignment>> Assign(const PJRT_Client& client,
                                                       const FrontendCompileOptions& options) {
  auto out = std::make_shared<DeviceAssignment>();
  const int64_t count = options.num_replicas * options.num_partitions;
  if (count > kMaxDevices) return InvalidArgument("a program for ", count, " devices");
  out->num_replicas = static_cast<int32_t>(options.num_replicas);
  out->num_partitions = static_cast<int32_t>(options.num_partitions);
  const auto devices = static_cast<int64_t>(client.devices.size());
  if (!options.device_assignment) {
    int64_t first = 0;
    if (count == 1) {  // of this process's
      const int64_t number = client.DeviceNumber(std::max<int64_t>(0, options.device_ordinal));
      const auto here = static_cast<int64_t>(client.addressable.size());
      if (number >= here) return InvalidArgument("the program needs 1 devices from ", number, " on, there are ", here);
      first = client.addressable[number]->description->id;
    }
    if (first + count > devices)
      return InvalidArgument("the program needs ", count, " devices from ", first, " on, there are ", devices);
    for (int64_t i = 0; i < count; ++i) out->devices.push_back(static_cast<int32_t>(first + i));
    return std::shared_ptr<const DeviceAssignment>(std::move(out));
  }
  std::vector<bool> taken(client.devices.size(), false);
  for (int64_t id : options.device_assignment->devices) {
    if (id < 0 || id >= devices)
      return InvalidArgument("the device assignment names device ", id, ", there are ", devices);
    if (taken[id]) return InvalidArgument("the device assignment names device ", id, " twice");
    taken[id] = true;
    out->devices.push_back(static_cast<int32_t>(id));
  }
  return std::shared_ptr<const DeviceAssignment>(std::move(out));
}

Result<std::string_view> TextOf(const char* data, size_t size, std::string_view what) {
  if (!data && size > 0) return InvalidArgument(what, " is null");
  return std::string_view(data ? data : "", data ? size : 0);
}

Result<std::shared_ptr<const Program>> CompileArgs(const PJRT_Program* program, const char* options,
                                                   size_t options_size, const Backend& backend,
                                                   const Options& settings) {
  if (!program) return InvalidArgument("the program is null");
  if (program->struct_size < kStructSize<PJRT_Program>)
    return InvalidArgument("PJRT_Program.struct_size is ", program->struct_size);
  STROP_ASSIGN(std::string_view format, TextOf(program->format, program->format_size, "the program's format"));
  STROP_ASSIGN(std::string_view code, TextOf(program->code, program->code_size, "the program's code"));
  STROP_ASSIGN(std::string_view options_bytes, TextOf(options, options_size, "the list of compile options"));
  return CompileProgram(format, code, options_bytes, backend, settings);
}

// The program as these options have it.
Result<std::unique_ptr<Module>> ReadFor(const FrontendCompileOptions& options, std::string_view format,
                                        std::string_view code) {
  STROP_ASSIGN(std::unique_ptr<Module> module, ReadProgram(format, code));
  STROP_TRY(ApplyOptions(options, *module));
  STROP_TRY(SetEntryLayout(*module));
  return module;
}

}  // namespace

Result<CompileSettings> ReadOptions(std::string_view options_bytes, const Options& settings,
                                    FrontendCompileOptions& options) {
  STROP_ASSIGN(options, ParseCompileOptions(options_bytes));
  Options compile_settings = settings;
  STROP_TRY(ApplyOverrides(options, compile_settings));
  return SettingsOf(options, compile_settings);
}

void FinishProgram(Program& program) {
  program.fingerprint = Fingerprint(program, *program.backend);
  FillLists(program);
}

namespace {

// Options as we understand them, and in order: a framework writes the same ones in another order in each process.
// Devices are chosen when a program is loaded.
std::string KeyOf(std::string_view format, std::string_view code, const FrontendCompileOptions& options,
                  const Backend& backend, const CompileSettings& settings) {
  FrontendCompileOptions plain = options;
  plain.device_assignment.reset();
  plain.device_ordinal = -1;
  plain.overrides.clear();
  ByteWriter source;
  source(format, SerializeCompileOptions(plain), code);
  for (const auto& [name, value] : options.overrides) source(name, uint64_t{value.index()}, OverrideText(value));
  return ProgramCache::KeyOf(source.bytes(), backend, settings);
}

bool AsksOwners(const Module& module, const spmd::CallOwners& owners) {
  for (const Computation* c : module.computations()) {
    for (const Instruction* i : c->instructions()) {
      if (i->op() != Op::CustomCall) continue;
      const std::string& target = i->attrs<CustomCallAttrs>().target;
      if (target == spmd::kInspectSharding || owners.Cuts(target)) return true;
    }
  }
  return false;
}

Result<std::shared_ptr<Program>> CompileNew(const FrontendCompileOptions& options, std::string_view format,
                                            std::string_view code, const Backend& backend,
                                            const CompileSettings& settings) {
  auto program = std::make_shared<Program>();
  STROP_ASSIGN(std::unique_ptr<Module> module, ReadFor(options, format, code));
  program->asks_owners = AsksOwners(*module, *settings.call_owners);
  std::vector<Sharding> parameters;
  for (const Instruction* parameter : module->entry()->parameters())
    for (Sharding& leaf : StatedShardings(*parameter)) parameters.push_back(std::move(leaf));
  std::vector<Sharding> results = StatedShardings(*module->entry()->root());
  STROP_ASSIGN(program->compiled, Compile(std::move(module), backend, settings));
  STROP_ASSIGN(std::shared_ptr<const Module> compiled, program->compiled->module->Get());
  STROP_TRY(TakeDecided(*compiled, spmd::kParameterShardings, parameters));
  STROP_TRY(TakeDecided(*compiled, spmd::kResultShardings, results));
  STROP_TRY(AppendShardings(parameters, program->parameters.shardings));
  STROP_TRY(AppendShardings(results, program->outputs.shardings));
  return program;
}

}  // namespace

Result<std::shared_ptr<const Program>> CompileProgram(std::string_view format, std::string_view code,
                                                      std::string_view options_bytes, const Backend& backend,
                                                      const Options& settings) {
  FrontendCompileOptions options;
  STROP_ASSIGN(CompileSettings compile, ReadOptions(options_bytes, settings, options));
  STROP_ASSIGN(const std::optional<ProgramCache> cache, ProgramCache::Open(compile));
  const std::string key = cache ? KeyOf(format, code, options, backend, compile) : std::string();
  std::shared_ptr<Program> program;
  if (cache) {
    Result<std::shared_ptr<Program>> found = FindProgram(*cache, key, backend, compile);
    if (found.ok()) program = *std::move(found);
    if (!found.ok() && found.status().code() != StatusCode::kNotFound)
      STROP_LOG_AT(1, "a program that was kept is compiled again: ", found.status().message());
  }
  const bool was_kept = program != nullptr;
  if (!was_kept) {
    compile.reload = [&] { return ReadFor(options, format, code); };
    STROP_ASSIGN(program, CompileNew(options, format, code, backend, compile));
  }
  program->options = std::move(options);
  program->format = format;
  program->code = code;
  program->options_bytes = options_bytes;
  program->backend = &backend;
  FinishProgram(*program);
  if (cache && !was_kept && !program->asks_owners) KeepProgram(*cache, key, *program);
  return std::shared_ptr<const Program>(std::move(program));
}

Result<PJRT_LoadedExecutable*> LoadProgram(PJRT_Client* client, std::shared_ptr<const Program> program,
                                           const FrontendCompileOptions& options) {
  auto loaded = std::make_unique<PJRT_LoadedExecutable>();
  loaded->client = client;
  loaded->device_set = client->device_set;
  loaded->program = std::move(program);
  STROP_ASSIGN(loaded->assignment, Assign(*client, options));
  for (size_t i = 0; i < loaded->assignment->devices.size(); ++i) {
    PJRT_Device* device = client->devices[loaded->assignment->devices[i]];
    if (!device->device) continue;  // another process's
    loaded->devices.push_back(device);
    loaded->logical_ids.push_back({static_cast<int>(i) / loaded->assignment->num_partitions,
                                   static_cast<int>(i) % loaded->assignment->num_partitions});
  }
  return loaded.release();
}

Status Client_Compile(PJRT_Client_Compile_Args& args) {
  STROP_ASSIGN(std::shared_ptr<const Program> program,
               CompileArgs(args.program, args.compile_options, args.compile_options_size, *args.client->backend,
                           args.client->options));
  FrontendCompileOptions options = program->options;
  STROP_ASSIGN(args.executable, LoadProgram(args.client, std::move(program), options));
  return OkStatus();
}

Status Compile(PJRT_Compile_Args& args) {
  Options settings;
  if (args.client) {
    settings = args.client->options;
  } else {
    STROP_ASSIGN(settings, OptionsFromEnvironment());
  }
  STROP_ASSIGN(const Backend* backend, FindBackend(settings.backend));
  STROP_ASSIGN(std::shared_ptr<const Program> program,
               CompileArgs(args.program, args.compile_options, args.compile_options_size, *backend, settings));
  args.executable = new PJRT_Executable{std::move(program)};
  return OkStatus();
}

Status Client_Load(PJRT_Client_Load_Args& args) {
  if (!args.executable) return InvalidArgument("the executable is null");
  FrontendCompileOptions options = args.executable->program->options;
  if (args.compile_options && args.compile_options_size > 0) {
    STROP_ASSIGN(options, ParseCompileOptions({args.compile_options, args.compile_options_size}));
  }
  STROP_ASSIGN(args.loaded_executable, LoadProgram(args.client, args.executable->program, options));
  return OkStatus();
}

Status Executable_DeserializeAndLoad(PJRT_Executable_DeserializeAndLoad_Args& args) {
  STROP_ASSIGN(std::string_view bytes,
               TextOf(args.serialized_executable, args.serialized_executable_size, "the serialised executable"));
  std::string_view override_options;
  if (STROP_PJRT_HAS(args, overridden_serialized_compile_options_size) && args.overridden_serialized_compile_options)
    override_options = {args.overridden_serialized_compile_options, args.overridden_serialized_compile_options_size};
  STROP_ASSIGN(std::shared_ptr<const Program> program,
               DeserializeProgram(bytes, override_options, *args.client->backend, args.client->options));
  FrontendCompileOptions options = program->options;
  STROP_ASSIGN(args.loaded_executable, LoadProgram(args.client, std::move(program), options));
  return OkStatus();
}

}  // namespace strop::pjrt
