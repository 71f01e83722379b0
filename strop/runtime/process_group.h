// ProcessGroup: the processes that run one program together, and the collectives of their launches.
//
// What belongs together follows from order: the k-th launch on a list of devices in one process meets the k-th on that
// list in every other. Each process meets its own devices first; one of them then exchanges messages with the other
// processes for all.
//
// Failure: who waits longer than the timeout, or hears that a process is gone, gives up and leaves word in the store;
// those who wait for him look there every second. So an error in one process is an error in all, with its reason.
#pragma once
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "strop/runtime/collectives.h"
#include "strop/transport/transport.h"

namespace strop {

class ProcessCollectives;
class ProcessGroup;

// The longest message: MPI counts bytes in an int.
inline constexpr int64_t kPieceBytes = int64_t{1} << 30;

// The bits of a word spread over all of it (the last steps of SplitMix64): tags must differ, and differ anywhere.
uint64_t SpreadBits(uint64_t x);

// A buffer on its way: device ids, and a number that both sides give.
struct TransferId {
  int64_t key = 0;
  int32_t from = 0, to = 0;
};

// Memory for a while, not cleared.
class Scratch {
 public:
  Scratch(ProcessGroup* group, std::unique_ptr<char[]> memory, int64_t size)
      : group_(group), memory_(std::move(memory)), size_(size) {}
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch();
  char* data() const { return memory_.get(); }

 private:
  ProcessGroup* group_;
  std::unique_ptr<char[]> memory_;
  int64_t size_;
};

class ProcessGroup : public std::enable_shared_from_this<ProcessGroup> {
 public:
  // `process_of`: by device id. `store` may go with Close(); keys begin with `prefix`.
  ProcessGroup(ProcessPlace place, std::vector<int32_t> process_of, std::unique_ptr<Transport> transport,
               std::shared_ptr<KeyValueStore> store, std::string prefix);
  ~ProcessGroup();

  int32_t rank() const { return place_.rank; }
  int32_t process_of(int32_t device) const { return process_of_[device]; }
  Milliseconds timeout() const { return place_.timeout; }
  Transport& transport() { return *transport_; }

  // True if some of these devices are another process's.
  bool Spans(const std::vector<int32_t>& devices) const;
  // For the next launch on `devices` (ids by logical id), of which all that are this process's take part.
  std::shared_ptr<Collectives> Join(const std::vector<int32_t>& devices);

  // At least `bytes`. The memory of fresh pages costs more than sums over it: what was used is kept for the next.
  Scratch TakeScratch(int64_t bytes);

  // Each waits for the other side. Errors say which device of which process did not come.
  Status SendBuffer(const TransferId& id, const void* data, int64_t bytes);
  Status ReceiveBuffer(const TransferId& id, void* data, int64_t bytes);

  // No more use of the store from here on.
  void Close();

 private:
  friend class ProcessCollectives;
  friend class Scratch;

  // Of collectives: they live between the two calls.
  void Enter(uint64_t launch, ProcessCollectives* collectives);
  void Leave(uint64_t launch);
  // Leaves word that this process gave up the launch.
  void Report(uint64_t launch, const Status& status);

  // Data at `data`, in pieces that every transport can send.
  Status Move(const TransferId& id, char* data, int64_t bytes, bool sends);
  std::string KeyOf(uint64_t launch) const;
  void Watch();
  void LookForReports();

  const ProcessPlace place_;
  const std::vector<int32_t> process_of_;
  const std::unique_ptr<Transport> transport_;
  const std::string prefix_;

  std::mutex store_mutex_;                // held over calls of the store
  std::shared_ptr<KeyValueStore> store_;  // null once closed; guarded by store_mutex_

  std::mutex mutex_;  // of all below
  std::condition_variable changed_;
  std::map<std::vector<int32_t>, uint64_t> launches_;        // so far, by devices
  std::map<uint64_t, ProcessCollectives*> active_;           // by launch
  std::multimap<int64_t, std::unique_ptr<char[]>> scratch_;  // not in use, by size
  int64_t scratch_bytes_ = 0;                                // of it
  bool closed_ = false;
  std::thread watcher_;
};

}  // namespace strop
