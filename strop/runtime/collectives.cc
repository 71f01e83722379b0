// InProcessCollectives: devices meet, then each computes its own share straight from the others' memory.
//
// All-reduce gives rank r the r-th part of the elements: it reduces that part of all inputs and stores it to all
// outputs, which also works in place, because nobody else touches that part.
#include "strop/runtime/collectives.h"

#include <algorithm>
#include <cstring>

#include "strop/runtime/meeting.h"

namespace strop {
namespace {

class InProcessCollectives : public Collectives {
 public:
  explicit InProcessCollectives(std::chrono::milliseconds timeout) : place_(timeout) {}

  Status AllReduce(const CollectiveCall& call, ElementType type, ReductionKind kind, int64_t count, const void* in,
                   void* out) override {
    return place_.Meet(call, {"all-reduce", static_cast<int>(type), static_cast<int>(kind), 1, count}, in, out,
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
    return place_.Meet(call, {"all-gather", 0, 0, outer, block_bytes}, in, out, [&](const Meeting& m) -> Status {
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
    return place_.Meet(call, {"reduce-scatter", static_cast<int>(type), static_cast<int>(kind), outer, block}, in, out,
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
    return place_.Meet(call, {"all-to-all", 0, 0, outer, block_bytes}, in, out, [&](const Meeting& m) -> Status {
      char* to = static_cast<char*>(out);
      for (int64_t o = 0; o < outer; ++o) {
        for (int r = 0; r < call.size; ++r, to += block_bytes) {
          std::memcpy(to, m.places[r].in + (o * call.size + call.rank) * block_bytes, block_bytes);
        }
      }
      return OkStatus();
    });
  }

  Status Permute(const CollectiveCall& call, std::span<const int32_t> sources, int64_t bytes, const void* in,
                 void* out) override {
    STROP_TRY(CheckSources(call, sources));
    const int32_t source = sources[call.rank];
    return place_.Meet(call, {"collective-permute", 0, 0, 1, bytes}, in, out, [&](const Meeting& m) -> Status {
      if (source < 0)
        std::memset(out, 0, bytes);
      else
        std::memcpy(out, m.places[source].in, bytes);
      return OkStatus();
    });
  }

  Status Broadcast(const CollectiveCall& call, int32_t root, int64_t bytes, const void* in, void* out) override {
    if (root < 0 || root >= call.size) return InvalidArgument("collective-broadcast: root ", root, " of ", call.size);
    return place_.Meet(call, {"collective-broadcast", 0, 0, 1, bytes}, in, out, [&](const Meeting& m) -> Status {
      if (out != m.places[root].in) std::memcpy(out, m.places[root].in, bytes);  // in place others read it meanwhile
      return OkStatus();
    });
  }

  void Abort(Status status) override { place_.Abort(std::move(status)); }

 private:
  using Meeting = MeetingPlace::Meeting;
  using Place = MeetingPlace::Place;
  static constexpr int64_t kPieceBytes = 16 << 10;

  MeetingPlace place_;
};

}  // namespace

Status CheckSources(const CollectiveCall& call, std::span<const int32_t> sources) {
  if (static_cast<int32_t>(sources.size()) != call.size)
    return InvalidArgument("collective-permute: ", sources.size(), " sources for ", call.size, " devices");
  for (int32_t source : sources)
    if (source >= call.size)
      return InvalidArgument("collective-permute: source ", source, " of ", call.size, " devices");
  return OkStatus();
}

std::shared_ptr<Collectives> MakeInProcessCollectives(std::chrono::milliseconds timeout) {
  return std::make_shared<InProcessCollectives>(timeout);
}

}  // namespace strop
