// InProcessCollectives: devices meet, then each computes its own share straight from the others' memory.
//
// A meeting is known by (op, group). The last rank to arrive takes it off the list, so that the same operation in the
// next trip of a loop starts a new one, and wakes the others; all work at the same time; nobody leaves before all are
// done. All-reduce gives rank r the r-th part of the elements: it reduces that part of all inputs and stores it to all
// outputs, which also works in place, because nobody else touches that part.
#include "strop/runtime/collectives.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "strop/runtime/launch_queue.h"

namespace strop {
namespace {

class InProcessCollectives : public Collectives {
 public:
  Status AllReduce(const CollectiveCall& call, ElementType type, ReductionKind kind, int64_t count, const void* in,
                   void* out) override {
    return Meet(call, {"all-reduce", static_cast<int>(type), static_cast<int>(kind), count}, in, out,
                [&](const Meeting& m) -> Status {
                  int64_t begin = count * call.rank / call.size, end = count * (call.rank + 1) / call.size;
                  alignas(64) char sum[kPieceBytes];
                  const int64_t width = Bytes(type), piece = kPieceBytes / width;
                  for (int64_t at = begin; at < end; at += piece) {
                    int64_t n = std::min(piece, end - at);
                    std::memcpy(sum, m.places[0].in + at * width, n * width);
                    for (int r = 1; r < call.size; ++r)
                      STROP_TRY(Accumulate(type, kind, n, sum, m.places[r].in + at * width));
                    for (const Place& place : m.places) std::memcpy(place.out + at * width, sum, n * width);
                  }
                  return OkStatus();
                });
  }

  Status AllGather(const CollectiveCall& call, int64_t outer, int64_t block_bytes, const void* in, void* out) override {
    return Meet(call, {"all-gather", 0, outer, block_bytes}, in, out, [&](const Meeting& m) -> Status {
      char* to = static_cast<char*>(out);
      for (int64_t o = 0; o < outer; ++o) {
        for (int r = 0; r < call.size; ++r, to += block_bytes) {
          std::memcpy(to, m.places[r].in + o * block_bytes, block_bytes);
        }
      }
      return OkStatus();
    });
  }

  Status ReduceScatter(const CollectiveCall& call, ElementType type, ReductionKind kind, int64_t outer, int64_t block,
                       const void* in, void* out) override {
    return Meet(call, {"reduce-scatter", static_cast<int>(type), outer, block}, in, out,
                [&](const Meeting& m) -> Status {
                  const int64_t bytes = block * Bytes(type);
                  for (int64_t o = 0; o < outer; ++o) {
                    char* to = static_cast<char*>(out) + o * bytes;
                    int64_t from = (o * call.size + call.rank) * bytes;
                    std::memcpy(to, m.places[0].in + from, bytes);
                    for (int r = 1; r < call.size; ++r)
                      STROP_TRY(Accumulate(type, kind, block, to, m.places[r].in + from));
                  }
                  return OkStatus();
                });
  }

  Status AllToAll(const CollectiveCall& call, int64_t outer, int64_t block_bytes, const void* in, void* out) override {
    return Meet(call, {"all-to-all", 0, outer, block_bytes}, in, out, [&](const Meeting& m) -> Status {
      char* to = static_cast<char*>(out);
      for (int64_t o = 0; o < outer; ++o) {
        for (int r = 0; r < call.size; ++r, to += block_bytes) {
          std::memcpy(to, m.places[r].in + (o * call.size + call.rank) * block_bytes, block_bytes);
        }
      }
      return OkStatus();
    });
  }

  Status Permute(const CollectiveCall& call, int32_t source, int64_t bytes, const void* in, void* out) override {
    if (source >= call.size)
      return InvalidArgument("collective-permute: source ", source, " of ", call.size, " devices");
    return Meet(call, {"collective-permute", 0, 1, bytes}, in, out, [&](const Meeting& m) -> Status {
      if (source < 0)
        std::memset(out, 0, bytes);
      else
        std::memcpy(out, m.places[source].in, bytes);
      return OkStatus();
    });
  }

  Status Broadcast(const CollectiveCall& call, int32_t root, int64_t bytes, const void* in, void* out) override {
    if (root < 0 || root >= call.size) return InvalidArgument("collective-broadcast: root ", root, " of ", call.size);
    return Meet(call, {"collective-broadcast", 0, 1, bytes}, in, out, [&](const Meeting& m) -> Status {
      std::memcpy(out, m.places[root].in, bytes);
      return OkStatus();
    });
  }

  void Abort(Status status) override {
    std::lock_guard<std::mutex> lock(mutex_);
    if (aborted_.ok()) aborted_ = std::move(status);
    changed_.notify_all();
  }

 private:
  static constexpr int64_t kPieceBytes = 16 << 10;

  // What all ranks of a meeting must have in mind alike, because they read and write each other's memory. Devices may
  // run programs of their own, so that this is the user's mistake.
  struct Exchange {
    std::string_view op;
    int32_t type = 0;
    int64_t outer = 0, block = 0;
    bool operator==(const Exchange&) const = default;
  };
  struct Place {
    const char* in = nullptr;
    char* out = nullptr;
    bool taken = false;
  };
  struct Meeting {
    Exchange exchange;
    std::vector<Place> places;
    int32_t arrived = 0;
    int32_t done = 0;
  };

  static std::string ToString(const Exchange& exchange) {
    return StrCat(exchange.op, " of ", exchange.outer, " x ", exchange.block);
  }

  // Joins the meeting, runs work(meeting) when all have come, and returns when all are done.
  template <class Work>
  Status Meet(const CollectiveCall& call, const Exchange& exchange, const void* in, void* out, Work work) {
    if (call.rank < 0 || call.rank >= call.size) return InvalidArgument("rank ", call.rank, " of ", call.size);
    LaunchQueue::BlockingScope blocking;
    std::unique_lock<std::mutex> lock(mutex_);
    if (!aborted_.ok()) return aborted_;
    std::shared_ptr<Meeting>& listed = meetings_[{call.op, call.group}];
    if (!listed) {
      listed = std::make_shared<Meeting>();
      listed->exchange = exchange;
      listed->places.resize(call.size);
    }
    std::shared_ptr<Meeting> meeting = listed;
    if (static_cast<int32_t>(meeting->places.size()) != call.size || meeting->places[call.rank].taken) {
      return InvalidArgument("collective ", call.op, ": rank ", call.rank, " of ", call.size,
                             " does not fit a group of ", meeting->places.size(), " that is meeting");
    }
    if (!(meeting->exchange == exchange))
      return InvalidArgument("collective ", call.op, ": rank ", call.rank, " comes with ", ToString(exchange),
                             ", others with ", ToString(meeting->exchange));
    meeting->places[call.rank] = {static_cast<const char*>(in), static_cast<char*>(out), true};
    if (++meeting->arrived == call.size) {
      meetings_.erase({call.op, call.group});
      changed_.notify_all();
    }
    changed_.wait(lock, [&] { return meeting->arrived == call.size || !aborted_.ok(); });
    if (meeting->arrived != call.size) return aborted_;
    lock.unlock();
    Status status = work(*meeting);
    lock.lock();
    if (++meeting->done == call.size) changed_.notify_all();
    changed_.wait(lock, [&] { return meeting->done == call.size; });
    return status;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int64_t, int64_t>, std::shared_ptr<Meeting>> meetings_;  // those still gathering
  Status aborted_;
};

}  // namespace

std::shared_ptr<Collectives> MakeInProcessCollectives() { return std::make_shared<InProcessCollectives>(); }

}  // namespace strop
