// Collectives: how the devices of one execution exchange data. InProcessCollectives joins devices of this process (N
// virtual CPU devices), ProcessCollectives (process_group.h) those of several processes.
//
// One object serves one execution on many devices: whoever starts it makes the object and hands it to every launch.
// Calls with the same (op, group) meet; each blocks until all `size` ranks of its group have come and are done, so
// inputs may be overwritten after the return. Reductions are done in rank order: the same bits on every run and every
// rank.
#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>

#include "strop/base/status.h"
#include "strop/types/element_type.h"

namespace strop {

enum class ReductionKind : uint8_t { kSum, kProduct, kMin, kMax, kAnd, kOr };

// Who calls: rank `rank` of `size` in group number `group` of the operation `op` (the same number on all devices).
struct CollectiveCall {
  int64_t op = 0;
  int64_t group = 0;
  int32_t rank = 0;
  int32_t size = 1;
  std::span<const int32_t> members = {};  // logical ids of the group by rank; empty: they are the ranks
};

class Collectives {
 public:
  virtual ~Collectives() = default;

  // out[i] = in_0[i] op in_1[i] op ... ; out may be in.
  virtual Status AllReduce(const CollectiveCall& call, ElementType type, ReductionKind kind, int64_t count,
                           const void* in, void* out) = 0;
  // Blocks of `block` elements around the gathered dimension, `outer` of them: out[o][rank][block] = in_rank[o][block].
  virtual Status AllGather(const CollectiveCall& call, int64_t outer, int64_t block_bytes, const void* in,
                           void* out) = 0;
  // out[o][block] = reduction over r of in_r[o][rank][block]
  virtual Status ReduceScatter(const CollectiveCall& call, ElementType type, ReductionKind kind, int64_t outer,
                               int64_t block, const void* in, void* out) = 0;
  // out[o][r][block] = in_r[o][rank][block]
  virtual Status AllToAll(const CollectiveCall& call, int64_t outer, int64_t block_bytes, const void* in,
                          void* out) = 0;
  // out = in of rank sources[rank], zeros if that is negative. Every rank of the group calls, senders and receivers or
  // not, with the sources of all.
  virtual Status Permute(const CollectiveCall& call, std::span<const int32_t> sources, int64_t bytes, const void* in,
                         void* out) = 0;
  // out = in of rank `root`
  virtual Status Broadcast(const CollectiveCall& call, int32_t root, int64_t bytes, const void* in, void* out) = 0;

  // One device failed: every call, waiting or to come, returns `status`.
  virtual void Abort(Status status) = 0;
};

// What the option collectives-timeout says by itself.
inline constexpr std::chrono::seconds kCollectivesTimeout{1800};

// Who has waited for `timeout` gives up, with the names of those who did not come.
std::shared_ptr<Collectives> MakeInProcessCollectives(std::chrono::milliseconds timeout = kCollectivesTimeout);

// InvalidArgument: not one source for each rank, or none that exists.
Status CheckSources(const CollectiveCall& call, std::span<const int32_t> sources);

// accumulator[i] = accumulator[i] op value[i]. Unimplemented for types or combinations that have no such reduction.
Status Accumulate(ElementType type, ReductionKind kind, int64_t count, void* accumulator, const void* value);

}  // namespace strop
