// LoadedExecutable_Execute: one launch per device. The hot path of every framework: for one device it checks, launches
// and wraps the outputs, and allocates nothing else.
#include <span>
#include <utility>

#include "strop/pjrt/event.h"
#include "strop/pjrt/executable.h"
#include "strop/pjrt/slots.h"
#include "strop/pjrt/snapshot.h"
#include "strop/runtime/ffi.h"
#include "strop/runtime/launch.h"

namespace strop::pjrt {
namespace {

// What of the options matters here, whatever version the caller has.
struct Run {
  std::span<const int64_t> non_donatable;
  std::shared_ptr<void> ffi_context;
  int launch_id = 0;
  bool synchronous = false;
};

Result<Run> RunFrom(const PJRT_ExecuteOptions* options) {
  Run run;
  if (!options) return run;
  if (STROP_PJRT_HAS(*options, num_recv_ops) && (options->num_send_ops > 0 || options->num_recv_ops > 0))
    return Unimplemented("send and recv callbacks of an execution; host callbacks come as custom calls");
  if (STROP_PJRT_HAS(*options, launch_id)) run.launch_id = options->launch_id;
  if (STROP_PJRT_HAS(*options, num_non_donatable_input_indices) && options->num_non_donatable_input_indices > 0) {
    if (!options->non_donatable_input_indices) return InvalidArgument("the list of non-donatable inputs is null");
    run.non_donatable = {options->non_donatable_input_indices, options->num_non_donatable_input_indices};
  }
  if (STROP_PJRT_HAS(*options, context) && options->context)
    run.ffi_context = std::shared_ptr<void>(options->context->self, &options->context->ffi);
  return run;
}

// Buffers must fit the parameters and live where the program runs.
Status CheckArguments(const Program& program, PJRT_Buffer* const* arguments, size_t count, const PJRT_Device* device) {
  const std::vector<ParameterSpec>& parameters = program.executable().spec().parameters;
  if (count != parameters.size())
    return InvalidArgument("Execution supplied ", count, " buffers but compiled program ", program.executable().name(),
                           " expected ", parameters.size(), " buffers");
  if (count > 0 && !arguments) return InvalidArgument("the list of arguments is null");
  for (size_t i = 0; i < count; ++i) {
    const PJRT_Buffer* argument = arguments[i];
    if (!argument) return InvalidArgument("argument ", i, " of ", program.executable().name(), " is null");
    const Shape& expected = parameters[i].shape;
    const Shape& given = argument->shape();
    if (given.dims() != expected.dims() || given.type() != expected.type()) {
      if (expected.IsToken()) continue;
      return InvalidArgument("argument ", i, " of ", program.executable().name(), " is ", given.ToString(),
                             ", expected ", expected.ToString());
    }
    if (given.has_layout() && expected.has_layout() &&
        given.layout().minor_to_major != expected.layout().minor_to_major)
      return InvalidArgument("argument ", i, " of ", program.executable().name(), " is ", given.ToString(true),
                             " in memory, the program was compiled for ", expected.ToString(true));
    if (argument->device() != device)
      return InvalidArgument("argument ", i, " of ", program.executable().name(), " is on device ",
                             argument->device()->description->id, ", the program runs on device ",
                             device->description->id);
  }
  return OkStatus();
}

void Track(PJRT_Device* device, int launch_id, const EventRef& done) {
  if (done->IsReady()) return;
  std::lock_guard<std::mutex> lock(device->mutex);
  std::erase_if(device->in_flight, [](const PJRT_Device::InFlight& launch) { return launch.done->IsReady(); });
  device->in_flight.push_back({launch_id, done});
}

struct Target {
  PJRT_Device* device;
  int32_t replica, partition;
};

Result<Launched> LaunchOn(const PJRT_LoadedExecutable& executable, const Target& target, PJRT_Buffer* const* arguments,
                          size_t count, const Run& run, const std::shared_ptr<Collectives>& collectives,
                          int64_t run_id) {
  const Program& program = *executable.program;
  STROP_TRY(CheckArguments(program, arguments, count, target.device));
  SmallVector<Buffer*, 16> inputs;
  inputs.reserve(count);
  for (size_t i = 0; i < count; ++i) inputs.push_back(&arguments[i]->buffer);
  LaunchArgs launch;
  launch.inputs = {inputs.data(), inputs.size()};
  launch.non_donatable = run.non_donatable;
  launch.devices = executable.device_set.get();
  launch.device = target.device->device;
  launch.assignment = executable.assignment;
  launch.replica = target.replica;
  launch.partition = target.partition;
  launch.collectives = collectives;
  launch.run_id = run_id;
  launch.ffi_context = run.ffi_context;
  if (run.synchronous) launch.mode = LaunchMode::kInline;
  launch.actual_sizes = executable.client->options.synchronous;
  // Interpreted steps read the module, which may be given up before the run ends: all of the program is kept until
  // then.
  std::shared_ptr<const Executable> kept(program.compiled, program.compiled->executable.get());
  // Programs on several devices wait for each other, so that none can be waited for here.
  if (!program.compiled->snapshots || collectives) return Launch(std::move(kept), std::move(launch));
  const Result<std::vector<Literal>> given = ReadBuffers(launch.inputs);
  STROP_ASSIGN(Launched launched, Launch(std::move(kept), std::move(launch)));
  WriteSnapshot(program, given, {launched.outputs.data(), launched.outputs.size()});
  return launched;
}

// Programs on several devices end, for who asks, in the order of their launches on each device: JAX waits for the last
// one only. (While one waits for other devices, the next may already run.)
EventRef InOrder(PJRT_Device* device, const EventRef& done) {
  std::lock_guard<std::mutex> lock(device->mutex);
  EventRef last = std::exchange(device->last_joint, done);
  if (!last || last->IsReady()) return done;
  EventRef joint = device->last_joint = Make<Event>();
  last->OnReady([done, joint](const Status&) { done->OnReady([joint](const Status& own) { joint->Set(own); }); });
  return joint;
}

void HandOut(Launched&& launched, PJRT_Device* device, int launch_id, PJRT_Buffer** outputs, PJRT_Event** done) {
  Track(device, launch_id, launched.done);
  for (size_t i = 0; i < launched.outputs.size(); ++i) {
    const auto kind = static_cast<int>(launched.outputs[i].memory());
    outputs[i] = NewBuffer(std::move(launched.outputs[i]), device->memories[kind]);
  }
  if (done) *done = NewEvent(std::move(launched.done));
}

// The devices of this call: the one that the caller names, or those of the assignment.
Result<SmallVector<Target, 8>> TargetsOf(const PJRT_LoadedExecutable& executable, size_t num_devices,
                                         PJRT_Device* named) {
  SmallVector<Target, 8> targets;
  if (named) {
    if (num_devices != 1) return InvalidArgument(num_devices, " lists of arguments for one execute_device");
    if (!executable.client->Owns(named)) return InvalidArgument("the execute_device belongs to another client");
    STROP_TRY(CheckAddressable(named));
    int32_t logical = 0;  // a program for one device runs on any
    if (executable.assignment->devices.size() > 1) {
      while (logical < static_cast<int32_t>(executable.devices.size()) && executable.devices[logical] != named)
        ++logical;
      if (logical == static_cast<int32_t>(executable.devices.size()))
        return InvalidArgument("device ", named->description->id,
                               " is none of those that the program was compiled for");
    }
    targets.push_back({named, executable.logical_ids[logical].replica, executable.logical_ids[logical].partition});
    return targets;
  }
  if (num_devices != executable.devices.size())
    return InvalidArgument("arguments for ", num_devices, " devices, the program runs on ", executable.devices.size());
  for (size_t i = 0; i < num_devices; ++i)
    targets.push_back({executable.devices[i], executable.logical_ids[i].replica, executable.logical_ids[i].partition});
  return targets;
}

// Where the devices of the program exchange data; null where they have none to exchange.
std::shared_ptr<Collectives> CollectivesOf(const PJRT_LoadedExecutable& executable,
                                           const SmallVector<Target, 8>& targets) {
  PJRT_Client& client = *executable.client;
  const std::vector<int32_t>& devices = executable.assignment->devices;
  const bool exchanges = devices.size() > 1 && executable.program->exchanges;
  const bool spans = exchanges && client.processes && client.processes->Spans(devices);
  auto make = [&]() -> std::shared_ptr<Collectives> {
    if (spans) return client.processes->Join(devices);
    return MakeInProcessCollectives(std::chrono::seconds(client.options.collectives_timeout));
  };
  if (targets.size() == executable.devices.size() && (targets.size() > 1 || spans)) return make();
  if (!exchanges) return nullptr;
  const int32_t place = executable.assignment->logical_id(targets[0].replica, targets[0].partition);
  return client.separate_launches.Join(devices, static_cast<size_t>(place), executable.devices.size(), make);
}

int64_t NextRunId() {
  static std::atomic<int64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

Status LoadedExecutable_Execute(PJRT_LoadedExecutable_Execute_Args& args) {
  PJRT_LoadedExecutable& executable = *args.executable;
  if (executable.deleted) return FailedPrecondition(executable.program->executable().name(), " was deleted");
  STROP_ASSIGN(Run run, RunFrom(args.options));
  // Several devices wait for each other, so that none can be run to its end before the next is started.
  run.synchronous = executable.client->options.synchronous && executable.assignment->devices.size() == 1;
  using Targets = SmallVector<Target, 8>;
  STROP_ASSIGN(Targets targets, TargetsOf(executable, args.num_devices, args.execute_device));
  if (!args.argument_lists || !args.output_lists) return InvalidArgument("the lists of arguments or outputs are null");
  const size_t num_outputs = executable.program->outputs.shapes.size();
  for (size_t i = 0; i < targets.size(); ++i)
    if (num_outputs > 0 && !args.output_lists[i])
      return InvalidArgument("the list of outputs of device ", i, " is null");
  std::shared_ptr<Collectives> collectives = CollectivesOf(executable, targets);
  const int64_t run_id = run.launch_id != 0 ? run.launch_id : NextRunId();
  // All launches are made before anything is handed out: an error leaves the caller with nothing to destroy.
  std::vector<Launched> launches;
  for (size_t i = 0; i < targets.size(); ++i) {
    Result<Launched> launched =
        LaunchOn(executable, targets[i], args.argument_lists[i], args.num_args, run, collectives, run_id);
    if (!launched.ok()) {
      if (collectives) collectives->Abort(launched.status());
      return std::move(launched).status();
    }
    if (run.synchronous) STROP_TRY(launched->done->status());
    if (targets.size() == 1 && !collectives) {
      HandOut(*std::move(launched), targets[0].device, run.launch_id, args.output_lists[0],
              args.device_complete_events);
      return OkStatus();
    }
    launches.push_back(*std::move(launched));
  }
  for (size_t i = 0; i < targets.size(); ++i) launches[i].done = InOrder(targets[i].device, launches[i].done);
  for (size_t i = 0; i < targets.size(); ++i)
    HandOut(std::move(launches[i]), targets[i].device, run.launch_id, args.output_lists[i],
            args.device_complete_events ? &args.device_complete_events[i] : nullptr);
  return OkStatus();
}

Status ExecuteContext_Create(PJRT_ExecuteContext_Create_Args& args) {
  auto context = std::make_shared<PJRT_ExecuteContext>();
  args.context = context.get();
  context->self = std::move(context);
  return OkStatus();
}

Status ExecuteContext_Destroy(PJRT_ExecuteContext_Destroy_Args& args) {
  if (args.context) std::exchange(args.context->self, nullptr);
  return OkStatus();
}

}  // namespace strop::pjrt
