// Device: one (virtual) CPU device: its memory, its launch queue, its infeed and outfeed. DeviceSet: the devices of a
// process, sharing one thread pool. Knows nothing of clients, frameworks or compilers.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "strop/base/thread_pool.h"
#include "strop/runtime/allocator.h"
#include "strop/runtime/buffer.h"
#include "strop/runtime/launch_queue.h"
#include "strop/runtime/transfer_queue.h"

namespace strop {

class Device {
 public:
  Device(int ordinal, Allocator::Options memory) : ordinal_(ordinal), allocator_(memory) {}

  int ordinal() const { return ordinal_; }
  const std::string& kind() const { return kind_; }
  // All kinds are host memory here and come from one allocator.
  Allocator& allocator() { return allocator_; }
  LaunchQueue& queue() { return queue_; }
  // Runs callbacks that wait for early results, beside the execution that goes on.
  LaunchQueue& callback_queue() { return callback_queue_; }
  TransferQueue& infeed() { return infeed_; }
  TransferQueue& outfeed() { return outfeed_; }
  AllocatorStats memory_stats() const { return allocator_.stats(); }

 private:
  int ordinal_;
  std::string kind_ = "cpu";
  Allocator allocator_;
  TransferQueue infeed_, outfeed_;
  LaunchQueue callback_queue_;
  LaunchQueue queue_;  // last: it is drained while the rest is alive
};

class DeviceSet {
 public:
  // `count` >= 1 devices. The pool must outlive the set; the memory limit is shared out evenly.
  DeviceSet(int count, ThreadPool& pool, Allocator::Options memory = {});
  ~DeviceSet();  // waits for all launches

  int size() const { return static_cast<int>(devices_.size()); }
  Device& device(int ordinal) { return *devices_[ordinal]; }
  ThreadPool& pool() { return *pool_; }

 private:
  ThreadPool* pool_;
  std::vector<std::unique_ptr<Device>> devices_;
};

// Which device runs which (replica, partition) of an execution.
struct DeviceAssignment {
  int32_t num_replicas = 1;
  int32_t num_partitions = 1;
  std::vector<int32_t> devices;  // ordinal of [replica][partition]; size num_replicas * num_partitions

  int32_t logical_id(int32_t replica, int32_t partition) const { return replica * num_partitions + partition; }
};

}  // namespace strop
