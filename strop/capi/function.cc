#include "strop/capi/function.h"

#include <cstring>
#include <vector>

#include "strop/base/options.h"
#include "strop/driver/compile.h"
#include "strop/driver/load.h"
#include "strop/driver/program_cache.h"
#include "strop/runtime/launch.h"

namespace strop {

struct Function::State {
  std::vector<Shape> parameters;
  Shape result;
  std::unique_ptr<DeviceSet> devices;
  std::shared_ptr<const CompiledProgram> program;
};

namespace {

// Appends the leaves of a literal as buffers of the device's memory.
Status AppendBuffers(const Literal& literal, Device& device, std::vector<Buffer>& buffers) {
  if (literal.shape().IsTuple()) {
    for (const Literal& element : literal.elements()) STROP_TRY(AppendBuffers(element, device, buffers));
    return OkStatus();
  }
  std::span<const uint8_t> bytes = literal.bytes();
  STROP_ASSIGN(Ref<Storage> storage, Storage::Allocate(device.allocator(), static_cast<int64_t>(bytes.size())));
  if (!bytes.empty()) std::memcpy(storage->data(), bytes.data(), bytes.size());
  buffers.emplace_back(std::move(storage), literal.shape(), device.ordinal(), MemoryKind::kDevice, Event::Ready());
  return OkStatus();
}

// The literal of `shape` from the leaves that begin at `next`, which moves on.
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
  if (shape.IsToken()) return Literal::Token();
  STROP_ASSIGN(Ref<Storage> storage, leaf.Acquire());
  size_t size = static_cast<size_t>(shape.byte_size());
  return Literal::FromBytes(shape, {static_cast<const uint8_t*>(storage->data()), size});
}

}  // namespace

Result<Function> Function::Compile(std::string_view program, std::string_view backend_name) {
  STROP_ASSIGN(Options options, OptionsFromEnvironment());
  STROP_ASSIGN(const Backend* backend, FindBackend(backend_name));
  auto state = std::make_shared<State>();
  STROP_ASSIGN(state->devices, backend->OpenDevices(1, ThreadPool::OfSize(static_cast<int>(options.num_threads))));
  STROP_ASSIGN(CompileSettings settings, SettingsFrom(options, Tier::kAuto));
  settings.pool = &state->devices->pool();
  settings.reload = [program] { return LoadProgram(program, "program"); };
  STROP_ASSIGN(state->program, CompileOrFind(program, *backend, settings, [&]() -> Result<std::unique_ptr<Module>> {
                 STROP_ASSIGN(std::unique_ptr<Module> module, LoadProgram(program, "program"));
                 STROP_TRY(VerifyLoaded(*module, program, "program"));
                 module->config().has_entry_layout = false;  // literals are row-major: no layout is asked for
                 return module;
               }));
  const EntryLayout& entry = state->program->entry;
  for (const Shape& shape : entry.parameters) state->parameters.push_back(shape.WithoutLayout());
  state->result = entry.result.WithoutLayout();
  return Function(std::move(state));
}

int Function::num_parameters() const { return static_cast<int>(state_->parameters.size()); }
const Shape& Function::parameter_shape(int parameter) const { return state_->parameters[parameter]; }
const Shape& Function::result_shape() const { return state_->result; }
std::string Function::ToString() const {
  const Result<std::shared_ptr<const Module>> module = state_->program->module->Get();
  return module.ok() ? (*module)->ToString() : module.status().ToString();
}
int64_t Function::interpreted_instructions() const { return state_->program->executable->num_interpreted(); }

Result<Literal> Function::Run(std::span<const Literal> arguments) const {
  if (arguments.size() != state_->parameters.size())
    return InvalidArgument("the program takes ", state_->parameters.size(), " arguments, ", arguments.size(),
                           " were given");
  Device& device = state_->devices->device(0);
  std::vector<Buffer> buffers;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].shape().Compatible(state_->parameters[i]))
      return InvalidArgument("argument ", i, " has shape ", arguments[i].shape(), ", the program takes ",
                             state_->parameters[i]);
    STROP_TRY(AppendBuffers(arguments[i], device, buffers));
  }
  std::vector<Buffer*> inputs;
  for (Buffer& buffer : buffers) inputs.push_back(&buffer);
  STROP_ASSIGN(Launched launched, Launch(state_->program->executable,
                                         {.inputs = inputs, .devices = state_->devices.get(), .device = &device}));
  STROP_TRY(launched.done->Await());
  size_t next = 0;
  return TakeLiteral(state_->result, launched.outputs, next);
}

}  // namespace strop
