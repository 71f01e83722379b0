// ProcessCollectives: the collectives of one launch on devices of several processes. See process_group.h.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "strop/runtime/meeting.h"
#include "strop/runtime/process_group.h"

namespace strop {

class ProcessCollectives : public Collectives {
 public:
  // `launch`: the same number in all processes, of no other launch. `process_of`: by logical id.
  ProcessCollectives(std::shared_ptr<ProcessGroup> group, uint64_t launch, std::vector<int32_t> process_of);
  ~ProcessCollectives() override;

  Status AllReduce(const CollectiveCall& call, ElementType type, ReductionKind kind, int64_t count, const void* in,
                   void* out) override;
  Status AllGather(const CollectiveCall& call, int64_t outer, int64_t block_bytes, const void* in, void* out) override;
  Status ReduceScatter(const CollectiveCall& call, ElementType type, ReductionKind kind, int64_t outer, int64_t block,
                       const void* in, void* out) override;
  Status AllToAll(const CollectiveCall& call, int64_t outer, int64_t block_bytes, const void* in, void* out) override;
  Status Permute(const CollectiveCall& call, std::span<const int32_t> sources, int64_t bytes, const void* in,
                 void* out) override;
  Status Broadcast(const CollectiveCall& call, int32_t root, int64_t bytes, const void* in, void* out) override;
  void Abort(Status status) override;

  // Another process gave the launch up.
  void AbortFromElsewhere(Status status);
  // Some device has waited for other processes since the last call of this.
  bool StillWaiting();

 private:
  // One message of a collective. Negative peer: none.
  struct Message {
    int32_t peer = 0;
    int32_t from = 0, to = 0;  // ranks, or whatever tells messages between two processes apart
    const void* send = nullptr;
    void* receive = nullptr;
    int64_t bytes = 0;
  };
  // A group with its processes, and its devices of this process together.
  struct Gathering {
    const CollectiveCall* call = nullptr;
    std::vector<int32_t> process_of;  // by rank
    std::vector<int32_t> processes;   // ascending
    std::vector<int32_t> here;        // ranks of this process, ascending; their places are in `places`
    const std::vector<MeetingPlace::Place>* places = nullptr;
    uint64_t tag = 0;
    std::string_view op;

    const char* in(size_t k) const { return (*places)[k].in; }
    char* out(size_t k) const { return (*places)[k].out; }
  };
  using Work = std::function<Status(Gathering&)>;

  int32_t LogicalId(const CollectiveCall& call, int32_t rank) const {
    return call.members.empty() ? rank : call.members[rank];
  }
  bool AllHere(const CollectiveCall& call) const;
  Result<Gathering> GatheringOf(const CollectiveCall& call) const;
  // The devices of this process meet, and one of them works for all.
  Status Together(const CollectiveCall& call, const Exchange& exchange, const void* in, void* out, const Work& work);
  uint64_t NextTag(const CollectiveCall& call, const Exchange& exchange);

  // All messages at once, each in pieces that every transport can send; returns when all have arrived.
  Status Swap(const Gathering& gathering, std::span<const Message> messages);
  Status Start(const Gathering& gathering, const Message& message, int64_t piece, std::unique_ptr<Transfer>& transfer);
  Status Explain(const Gathering& gathering, const Message& message, const Status& status) const;

  static Status SumHere(const Gathering& gathering, ElementType type, ReductionKind kind, int64_t count, char* sum);
  static Status SumParts(ElementType type, ReductionKind kind, int64_t count, const std::vector<char*>& parts);
  Status ReduceWhole(const Gathering& gathering, ElementType type, ReductionKind kind, int64_t count, const char* own);
  Status ReduceByShares(const Gathering& gathering, ElementType type, ReductionKind kind, int64_t count,
                        const char* own);

  const std::shared_ptr<ProcessGroup> group_;
  const uint64_t launch_;
  const std::vector<int32_t> process_of_;
  MeetingPlace place_;
  const std::shared_ptr<Collectives> here_;  // for groups that are all of this process

  std::mutex mutex_;
  std::map<std::pair<int64_t, int64_t>, uint64_t> trips_;  // by op and group; guarded by mutex_
  std::set<Transfer*> transfers_;                          // on their way; guarded by mutex_
  bool waited_before_ = false;                             // guarded by mutex_
};

}  // namespace strop
