// Launch: runs an executable on buffers: waits for inputs, donates, allocates outputs, and either runs at once on the
// caller's thread (small executables whose inputs are ready; with a pool of one thread all that need not wait for
// others) or on the device's launch queue.
//
//   STROP_ASSIGN(Launched r, Launch(executable, {.inputs = buffers, .devices = &devices, .device =
//   &devices.device(0)})); r.outputs[0].definition()->Await()
//
// Errors that are known at once (wrong number of inputs, a deleted buffer, no memory) are returned; those of the run,
// and of inputs that carry an error, arrive in r.done and in every output's definition event.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "strop/runtime/executable.h"

namespace strop {

enum class LaunchMode : uint8_t { kAuto, kInline, kAsync };

struct LaunchArgs {
  std::span<Buffer* const> inputs;              // one per parameter
  std::span<const int64_t> non_donatable = {};  // parameters that must stay alive whatever the program says
  DeviceSet* devices = nullptr;                 // required
  Device* device = nullptr;                     // required
  std::shared_ptr<const DeviceAssignment> assignment = nullptr;
  int32_t replica = 0;
  int32_t partition = 0;
  std::shared_ptr<Collectives> collectives = nullptr;  // shared by the launches of one execution; aborted on failure
  int64_t run_id = 0;
  std::shared_ptr<void> ffi_context = nullptr;  // kept until the run has ended
  std::shared_ptr<const std::atomic<bool>> cancelled = nullptr;
  std::shared_ptr<StepObserver> observer = nullptr;
  RunStats* stats = nullptr;  // must live until done
  LaunchMode mode = LaunchMode::kAuto;
  bool actual_sizes = false;  // results of bounded size lie densely at Buffer::dynamic_dims() instead of their bounds
};

struct Launched {
  std::vector<Buffer> outputs;
  EventRef done;  // after the last output is defined; never null
};

Result<Launched> Launch(std::shared_ptr<const Executable> executable, LaunchArgs args);

}  // namespace strop
