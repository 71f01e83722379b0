#include "strop/tools/execute.h"

#include <cstring>

#include "strop/driver/artifact.h"
#include "strop/driver/program_cache.h"
#include "strop/runtime/launch.h"

namespace strop::tools {

namespace {

// Appends the leaves of a literal as buffers of the device's memory.
Status AppendBuffers(const Literal& literal, Device& device, std::vector<Buffer>& buffers) {
  if (literal.shape().IsTuple()) {
    for (const Literal& element : literal.elements()) STROP_TRY(AppendBuffers(element, device, buffers));
    return OkStatus();
  }
  const std::span<const uint8_t> bytes = literal.bytes();
  STROP_ASSIGN(Ref<Storage> storage, Storage::Allocate(device.allocator(), static_cast<int64_t>(bytes.size())));
  if (!bytes.empty()) std::memcpy(storage->data(), bytes.data(), bytes.size());
  buffers.emplace_back(std::move(storage), literal.shape(), device.ordinal(), MemoryKind::kDevice, Event::Ready());
  return OkStatus();
}

Result<Literal> TakeLiteral(const Shape& shape, std::span<const Buffer> leaves, size_t& next) {
  if (shape.IsTuple()) {
    std::vector<Literal> elements;
    for (const Shape& element : shape.elements()) {
      STROP_ASSIGN(Literal literal, TakeLiteral(element, leaves, next));
      elements.push_back(std::move(literal));
    }
    return Literal::Tuple(std::move(elements));
  }
  if (next >= leaves.size())
    return Internal("the executable has ", leaves.size(), " results, fewer than its shape says");
  const Buffer& leaf = leaves[next++];
  STROP_TRY(leaf.definition()->Await());
  if (!shape.IsArray()) return Literal::Token();
  STROP_ASSIGN(Ref<Storage> storage, leaf.Acquire());
  return Literal::FromBytes(shape,
                            {static_cast<const uint8_t*>(storage->data()), static_cast<size_t>(shape.byte_size())});
}

ThreadPool& PoolOf(const CompileSettings& settings) { return settings.pool ? *settings.pool : ThreadPool::Default(); }

}  // namespace

void MakeEntryRowMajor(Module& module) {
  EntryLayout layout = module.EffectiveEntryLayout();
  for (Shape& parameter : layout.parameters) parameter = parameter.WithoutLayout().WithDefaultLayout();
  layout.result = module.entry()->root()->shape().WithoutLayout().WithDefaultLayout();
  module.config().entry_layout = std::move(layout);
  module.config().has_entry_layout = true;
}

Result<Program> Program::Compile(std::unique_ptr<Module> module, const Backend& backend, CompileSettings settings) {
  Program out;
  out.result_ = module->entry()->root()->shape().WithoutLayout();
  MakeEntryRowMajor(*module);
  STROP_ASSIGN(out.devices_, backend.OpenDevices(1, PoolOf(settings)));
  settings.pool = &out.devices_->pool();
  STROP_ASSIGN(out.program_, CompileOrFind(std::move(module), backend, settings));
  return out;
}

Result<Program> Program::Load(std::string_view bytes, std::shared_ptr<const void> owner, const Backend& backend,
                              const CompileSettings& settings) {
  Program out;
  STROP_ASSIGN(const Artifact artifact, Artifact::Open(bytes, std::move(owner)));
  if (!HasProgram(artifact)) return InvalidArgument("the executable was serialised as it came, without machine code");
  STROP_ASSIGN(out.program_, ReadProgram(artifact, backend, settings));
  out.result_ = out.program_->entry.result.WithoutLayout();
  STROP_ASSIGN(out.devices_, backend.OpenDevices(1, PoolOf(settings)));
  return out;
}

Result<Literal> Program::Run(std::span<const Literal> arguments, std::shared_ptr<StepObserver> observer) const {
  Device& device = devices_->device(0);
  std::vector<Buffer> buffers;
  for (const Literal& argument : arguments) STROP_TRY(AppendBuffers(argument, device, buffers));
  std::vector<Buffer*> inputs;
  for (Buffer& buffer : buffers) inputs.push_back(&buffer);
  STROP_ASSIGN(
      Launched launched,
      Launch(program_->executable,
             {.inputs = inputs, .devices = devices_.get(), .device = &device, .observer = std::move(observer)}));
  STROP_TRY(launched.done->Await());
  size_t next = 0;
  return TakeLiteral(result_, launched.outputs, next);
}

Result<Literal> RunCustomCall(const Instruction& call, std::span<const Literal> operands,
                              const CompileSettings& settings) {
  if (!call.called().empty())
    return Unimplemented("custom call ", call.attrs<CustomCallAttrs>().target, " of computations, in the evaluator");
  auto module = std::make_unique<Module>(call.name());
  Computation* entry = module->AddComputation("main");
  std::vector<Instruction*> parameters;
  for (size_t k = 0; k < operands.size(); ++k)
    parameters.push_back(entry->AddParameter(static_cast<int64_t>(k), operands[k].shape()));
  entry->set_root(entry->AddClone(call, call.shape(), parameters));
  module->set_entry(entry);
  STROP_ASSIGN(const Backend* backend, FindBackend("null"));
  STROP_ASSIGN(Program program, Program::Compile(std::move(module), *backend, settings));
  return program.Run(operands);
}

}  // namespace strop::tools
