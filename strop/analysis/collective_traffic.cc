#include "strop/analysis/collective_traffic.h"

#include <algorithm>
#include <unordered_map>

#include "strop/analysis/cost.h"
#include "strop/analysis/trip_count.h"

namespace strop {
namespace {

int64_t BytesOfLeaves(const Shape& shape) {
  int64_t bytes = 0;
  for (const Shape& leaf : shape.Leaves()) bytes += leaf.IsArray() ? leaf.byte_size() : 0;
  return bytes;
}

int64_t BytesOfOperands(const Instruction& i) {
  int64_t bytes = 0;
  for (const Instruction* operand : i.operands()) bytes += BytesOfLeaves(operand->shape());
  return bytes;
}

int64_t GroupSize(const CollectiveAttrs& attrs, const ModuleConfig& config) {
  const ReplicaGroups& groups = attrs.replica_groups;
  const int64_t partitions = config.num_partitions, replicas = config.replica_count;
  if (groups.empty()) return attrs.channel_id == 0 ? replicas : replicas * partitions;
  if (groups.form == ReplicaGroups::Form::Iota) return groups.group_size;
  const Result<std::vector<std::vector<int64_t>>> lists = groups.Expand();
  return lists.ok() && !lists->empty() ? static_cast<int64_t>(lists->front().size()) : 1;
}

// Copies of a permute that stay where they are cost nothing.
double ShareOfSenders(const PermuteAttrs& attrs, const ModuleConfig& config) {
  const auto senders = std::count_if(attrs.source_target_pairs.begin(), attrs.source_target_pairs.end(),
                                     [](const auto& pair) { return pair.first != pair.second; });
  const int64_t all = attrs.channel_id == 0 ? config.replica_count : config.num_partitions;
  return static_cast<double>(senders) / static_cast<double>(std::max<int64_t>(all, 1));
}

// False: no collective.
bool Fill(const Instruction& i, const ModuleConfig& config, CollectiveTraffic& out) {
  if (i.op() == Op::CollectivePermute || i.op() == Op::CollectivePermuteStart) {
    out.group = 2;
    out.hops = 1;
    out.operand_bytes = static_cast<double>(BytesOfOperands(i));
    out.bytes = ShareOfSenders(i.attrs<PermuteAttrs>(), config) * out.operand_bytes;
    return true;
  }
  switch (i.op()) {
    case Op::AllGather:
    case Op::AllGatherStart:
    case Op::AllReduce:
    case Op::AllReduceStart:
    case Op::AllToAll:
    case Op::RaggedAllToAll:
    case Op::CollectiveBroadcast:
    case Op::ReduceScatter: break;
    default: return false;
  }
  out.group = GroupSize(i.attrs<CollectiveAttrs>(), config);
  const auto n = static_cast<double>(out.group);
  const double of_operands = out.operand_bytes = static_cast<double>(BytesOfOperands(i));
  out.hops = out.group - 1;
  switch (i.op()) {
    case Op::AllGather:
    case Op::AllGatherStart: out.bytes = of_operands * (n - 1); break;
    case Op::AllReduce:
    case Op::AllReduceStart:
      out.bytes = of_operands * 2 * (n - 1) / n;
      out.hops *= 2;
      break;
    default: out.bytes = of_operands * (n - 1) / n;
  }
  return true;
}

int64_t TripsOf(const Instruction& loop) {
  if (const std::optional<int64_t> recorded = RecordedTripCount(loop)) return std::max<int64_t>(*recorded, 0);
  const std::optional<Counter> counter = FindCounter(loop);
  return counter ? counter->trips : 1;
}

}  // namespace

std::vector<CollectiveTraffic> CollectivesOf(const Module& module) {
  std::vector<Computation*> order = module.PostOrder();
  std::reverse(order.begin(), order.end());  // callers first
  std::unordered_map<const Computation*, int64_t> times{{module.entry(), 1}};
  std::vector<CollectiveTraffic> out;
  for (const Computation* c : order) {
    const auto found = times.find(c);
    if (found == times.end()) continue;
    const int64_t here = found->second;
    for (const Instruction* i : c->instructions()) {
      CollectiveTraffic traffic{.at = i, .times = here};
      if (Fill(*i, module.config(), traffic)) {
        if (traffic.group > 1) out.push_back(traffic);
        continue;
      }
      const int64_t trips = i->op() == Op::While ? TripsOf(*i) : 1;
      for (const Computation* called : i->called())
        times[called] = SaturatingAdd(times[called], SaturatingMultiply(here, trips));
    }
  }
  return out;
}

}  // namespace strop
