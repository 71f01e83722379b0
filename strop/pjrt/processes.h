// Several processes under one client: what the framework says of them when it makes the client, and how they meet.
#pragma once
#include <memory>
#include <vector>

#include "strop/base/options.h"
#include "strop/pjrt/c_api.h"
#include "strop/runtime/process_group.h"

namespace strop::pjrt {

struct Processes {
  int rank = 0;
  std::vector<int> devices_of;          // number of devices, by process
  std::shared_ptr<ProcessGroup> group;  // null for one process
};

// Create options node_id and num_nodes, and the callbacks of the framework's key-value store; all processes come here
// at the same time. Nothing to wait for if there is one process.
Result<Processes> JoinProcesses(const PJRT_Client_Create_Args& args, const Options& options, int num_devices);

}  // namespace strop::pjrt
