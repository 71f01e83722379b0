// Collectives: how the devices of one execution exchange data. InProcessCollectives joins devices of this process (N
// virtual CPU devices); other transports (MPI, Gloo, NCCL) implement the same interface.
//
// One object serves one execution on many devices: whoever starts it makes the object and hands it to every launch.
// Calls with the same (op, group) meet; each blocks until all `size` ranks of its group have come and are done, so
// inputs may be overwritten after the return. Reductions are done in rank order: the same bits on every run and every
// rank.
#pragma once
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
  // out = in of rank `source`, zeros if source < 0. Every rank of the group calls, senders and receivers or not.
  virtual Status Permute(const CollectiveCall& call, int32_t source, int64_t bytes, const void* in, void* out) = 0;
  // out = in of rank `root`
  virtual Status Broadcast(const CollectiveCall& call, int32_t root, int64_t bytes, const void* in, void* out) = 0;

  // One device failed: every call, waiting or to come, returns `status`.
  virtual void Abort(Status status) = 0;
};

std::shared_ptr<Collectives> MakeInProcessCollectives();

// accumulator[i] = accumulator[i] op value[i]. Unimplemented for types or combinations that have no such reduction.
Status Accumulate(ElementType type, ReductionKind kind, int64_t count, void* accumulator, const void* value);

}  // namespace strop
