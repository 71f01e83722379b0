#include "strop/runtime/device.h"

#include <algorithm>

#include "strop/base/host_limits.h"

namespace strop {

DeviceSet::DeviceSet(int count, ThreadPool& pool, Allocator::Options memory) : pool_(&pool) {
  count = std::max(1, count);
  if (memory.bytes_limit <= 0) memory.bytes_limit = UsableMemory();
  memory.bytes_limit /= count;
  memory.cache_limit /= count;
  for (int ordinal = 0; ordinal < count; ++ordinal) devices_.push_back(std::make_unique<Device>(ordinal, memory));
}

DeviceSet::~DeviceSet() {
  for (std::unique_ptr<Device>& device : devices_) {
    device->infeed().Close();
    device->outfeed().Close();
  }
  // Callbacks may launch, and launches have callbacks: of those that they bring about, too, the last are done here.
  for (int round = 0; round < 2; ++round) {
    for (std::unique_ptr<Device>& device : devices_) {
      device->queue().Drain();
      device->callback_queue().Drain();
    }
  }
}

}  // namespace strop
