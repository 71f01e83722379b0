#include "strop/runtime/run_collective.h"

#include <cstring>

#include "strop/base/small_vector.h"
#include "strop/runtime/launch_queue.h"

namespace strop {
namespace {

// This device's place: group number, rank in it, size. Groups that are not listed: all devices form one.
Result<CollectiveCall> FindPlace(const CollectiveStep& step, int32_t me, int32_t num_devices) {
  if (step.groups.empty()) return CollectiveCall{.op = step.op, .group = 0, .rank = me, .size = num_devices};
  for (size_t g = 0; g < step.groups.size(); ++g) {
    for (size_t rank = 0; rank < step.groups[g].size(); ++rank) {
      if (step.groups[g][rank] != me) continue;
      return CollectiveCall{.op = step.op,
                            .group = static_cast<int64_t>(g),
                            .rank = static_cast<int32_t>(rank),
                            .size = static_cast<int32_t>(step.groups[g].size()),
                            .members = step.groups[g]};
    }
  }
  return InvalidArgument("device ", me, " is in no replica group of a collective that it runs");
}

// The device that sends to `me`, or -1.
int32_t SourceOf(const CollectiveStep& step, int32_t me) {
  for (auto [source, target] : step.source_target) {
    if (target == me) return source;
  }
  return -1;
}

// By rank, which is the logical id: a permutation has one group.
SmallVector<int32_t, 16> SourcesOf(const CollectiveStep& step, int32_t size) {
  SmallVector<int32_t, 16> sources;
  for (int32_t id = 0; id < size; ++id) sources.push_back(-1);
  for (auto [source, target] : step.source_target)
    if (target >= 0 && target < size) sources[target] = source;
  return sources;
}

// A group of one exchanges nothing.
void RunAlone(const CollectiveStep& step, int32_t me, int64_t bytes, const void* in, void* out) {
  if (step.kind == CollectiveKind::kPermute && SourceOf(step, me) != me)
    std::memset(out, 0, bytes);
  else if (in != out)
    std::memcpy(out, in, bytes);
}

}  // namespace

Status RunCollective(const CollectiveStep& step, const RunArgs& run, std::span<void* const> args) {
  int32_t num_devices = run.assignment ? run.assignment->num_replicas * run.assignment->num_partitions : 1;
  int32_t me = run.assignment ? run.assignment->logical_id(run.replica, run.partition) : 0;
  STROP_ASSIGN(CollectiveCall call, FindPlace(step, me, num_devices));
  if (call.size > 1 && !run.collectives) {
    return FailedPrecondition("a collective over ", call.size, " devices needs a launch on all of them");
  }
  LaunchQueue::BlockingScope blocking;
  size_t n = step.operands.size();
  for (size_t i = 0; i < n; ++i) {
    const CollectiveStep::Operand& operand = step.operands[i];
    const void* in = args[i];
    void* out = args[n + i];
    int64_t block_bytes = operand.block * Bytes(operand.type);
    int64_t bytes = operand.outer * block_bytes;
    if (call.size == 1) {
      RunAlone(step, me, bytes, in, out);
      continue;
    }
    Collectives& transport = *run.collectives;
    switch (step.kind) {
      case CollectiveKind::kAllReduce:
        STROP_TRY(transport.AllReduce(call, operand.type, step.reduction, operand.outer * operand.block, in, out));
        break;
      case CollectiveKind::kAllGather: STROP_TRY(transport.AllGather(call, operand.outer, block_bytes, in, out)); break;
      case CollectiveKind::kReduceScatter:
        STROP_TRY(transport.ReduceScatter(call, operand.type, step.reduction, operand.outer, operand.block, in, out));
        break;
      case CollectiveKind::kAllToAll: STROP_TRY(transport.AllToAll(call, operand.outer, block_bytes, in, out)); break;
      case CollectiveKind::kPermute: {
        const SmallVector<int32_t, 16> sources = SourcesOf(step, call.size);
        STROP_TRY(transport.Permute(call, {sources.data(), sources.size()}, bytes, in, out));
        break;
      }
      case CollectiveKind::kBroadcast: STROP_TRY(transport.Broadcast(call, 0, bytes, in, out)); break;
    }
  }
  return OkStatus();
}

}  // namespace strop
