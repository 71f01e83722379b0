// all-reduce, all-gather, reduce-scatter, all-to-all, collective-broadcast and collective-permute as CollectiveSteps:
// who meets whom in logical ids (replica * num_partitions + partition), and each operand as [outer][...][block] around
// the dimension that is gathered, scattered or exchanged.
//
//   all-gather(f32[2,3]), dimensions={1}, replica_groups={{0,1}}   ->  outer 2, block 3, groups {0,1}
#include "strop/plan/collective.h"

namespace strop {
namespace {

using Groups = std::vector<std::vector<int32_t>>;

// What the numbers in replica_groups name depends on channel_id and use_global_device_ids: replicas of the same
// partition, replicas with all their partitions, partitions of the same replica, or logical ids.
enum class Members : uint8_t { Replicas, ReplicasWithPartitions, Partitions, LogicalIds };

Members MembersOf(const Instruction& i) {
  const auto& attrs = i.attrs<CollectiveAttrs>();
  if (attrs.channel_id == 0) return Members::Replicas;
  if (attrs.use_global_device_ids) return Members::LogicalIds;
  const bool exchange = i.op() == Op::AllToAll || i.op() == Op::CollectiveBroadcast;
  return exchange ? Members::Partitions : Members::ReplicasWithPartitions;
}

Result<Groups> LogicalGroups(const Instruction& i, int64_t replicas, int64_t partitions) {
  const Members members = MembersOf(i);
  STROP_ASSIGN(std::vector<std::vector<int64_t>> stated, i.attrs<CollectiveAttrs>().replica_groups.Expand());
  const int64_t count = members == Members::LogicalIds   ? replicas * partitions
                        : members == Members::Partitions ? partitions
                                                         : replicas;
  if (stated.empty()) {
    stated.emplace_back();
    for (int64_t k = 0; k < count; ++k) stated.back().push_back(k);
  }
  for (const std::vector<int64_t>& group : stated)
    for (int64_t k : group)
      if (k < 0 || k >= count)
        return InvalidArgument(Name(i.op()), ": replica_groups names ", k, ", there are ", count).At(i.Where());
  // One group a stated group, or as many as there are replicas or partitions that do not mix.
  const int64_t copies = members == Members::Replicas ? partitions : members == Members::Partitions ? replicas : 1;
  Groups groups;
  for (int64_t copy = 0; copy < copies; ++copy) {
    for (const std::vector<int64_t>& group : stated) {
      std::vector<int32_t>& out = groups.emplace_back();
      auto add = [&](int64_t replica, int64_t partition) {
        out.push_back(static_cast<int32_t>(replica * partitions + partition));
      };
      for (int64_t k : group) {
        switch (members) {
          case Members::LogicalIds: out.push_back(static_cast<int32_t>(k)); break;
          case Members::Replicas: add(k, copy); break;
          case Members::Partitions: add(copy, k); break;
          case Members::ReplicasWithPartitions:
            for (int64_t p = 0; p < partitions; ++p) add(k, p);
        }
      }
    }
  }
  return groups;
}

// Without a channel replicas permute, with one partitions do.
void FillPairs(const Instruction& i, int64_t replicas, int64_t partitions, Meeting& out) {
  const auto& attrs = i.attrs<PermuteAttrs>();
  const bool across_partitions = attrs.channel_id != 0;
  for (int64_t copy = 0; copy < (across_partitions ? replicas : partitions); ++copy)
    for (auto [source, target] : attrs.source_target_pairs) {
      auto logical = [&](int64_t k) {
        return static_cast<int32_t>(across_partitions ? copy * partitions + k : k * partitions + copy);
      };
      out.source_target.push_back({logical(source), logical(target)});
    }
}

Result<ReductionKind> ReductionOf(const Instruction& i) {
  const Computation* computation = i.to_apply();
  const Instruction* root = computation ? computation->root() : nullptr;
  const bool of_both = root && root->operand_count() == 2 && root->operand(0) != root->operand(1) &&
                       root->operand(0)->op() == Op::Parameter && root->operand(1)->op() == Op::Parameter;
  if (of_both) {
    switch (root->op()) {
      case Op::Add: return ReductionKind::kSum;
      case Op::Multiply: return ReductionKind::kProduct;
      case Op::Minimum: return ReductionKind::kMin;
      case Op::Maximum: return ReductionKind::kMax;
      case Op::And: return ReductionKind::kAnd;
      case Op::Or: return ReductionKind::kOr;
      default: break;
    }
  }
  return Unimplemented(Name(i.op()), " with the computation %", computation ? computation->name() : "",
                       "; sum, product, minimum, maximum, and, or are")
      .At(i.Where());
}

// [outer][dims from `dimension` on] of a shape.
CollectiveStep::Operand Around(const Shape& shape, int64_t dimension) {
  CollectiveStep::Operand out;
  out.type = shape.type();
  out.block = 1;
  for (int64_t d = 0; d < shape.rank(); ++d) (d < dimension ? out.outer : out.block) *= shape.dim(d);
  return out;
}

Result<CollectiveStep> WithOperands(const Instruction& i, CollectiveStep step) {
  const std::vector<Shape> results = i.shape().Leaves();
  if (static_cast<int64_t>(results.size()) != i.operand_count())
    return Unimplemented(Name(i.op()), " with ", i.operand_count(), " operands and ", results.size(), " results")
        .At(i.Where());
  const auto* attrs = i.op() == Op::CollectivePermute ? nullptr : &i.attrs<CollectiveAttrs>();
  const int64_t dimension = attrs && !attrs->dimensions.empty() ? attrs->dimensions[0] : 0;
  for (int64_t k = 0; k < i.operand_count(); ++k) {
    const Shape& shape = i.operand(k)->shape();
    if (!shape.IsArray() || !shape.IsStatic())
      return Unimplemented(Name(i.op()), " of ", shape.ToString()).At(i.Where());
    switch (step.kind) {
      case CollectiveKind::kAllGather: step.operands.push_back(Around(shape, dimension)); break;
      case CollectiveKind::kReduceScatter: step.operands.push_back(Around(results[k], dimension)); break;
      case CollectiveKind::kAllToAll: {
        CollectiveStep::Operand operand = Around(shape, dimension);
        operand.block /= static_cast<int64_t>(step.groups[0].size());
        step.operands.push_back(operand);
        break;
      }
      default: step.operands.push_back(Around(shape, 0));
    }
  }
  return step;
}

}  // namespace

bool IsCollective(Op op) {
  switch (op) {
    case Op::AllGather:
    case Op::AllReduce:
    case Op::AllToAll:
    case Op::CollectiveBroadcast:
    case Op::CollectivePermute:
    case Op::RaggedAllToAll:
    case Op::ReduceScatter: return true;
    default: return false;
  }
}

Result<Meeting> MeetingOf(const Instruction& i, const ModuleConfig& config) {
  Meeting out;
  if (i.op() == Op::CollectivePermute || i.op() == Op::CollectivePermuteStart) {
    FillPairs(i, config.replica_count, config.num_partitions, out);
    return out;
  }
  STROP_ASSIGN(out.groups, LogicalGroups(i, config.replica_count, config.num_partitions));
  return out;
}

Result<CollectiveStep> MakeCollectiveStep(const Instruction& i, const ModuleConfig& config) {
  CollectiveStep step;
  const bool permute = i.op() == Op::CollectivePermute;
  if (permute) {
    if (!i.attrs<PermuteAttrs>().slice_sizes.empty())
      return Unimplemented("collective-permute of slices, in place").At(i.Where());
    step.kind = CollectiveKind::kPermute;
  } else {
    if (i.op() == Op::RaggedAllToAll) return Unimplemented("ragged-all-to-all on several devices").At(i.Where());
    const auto& attrs = i.attrs<CollectiveAttrs>();
    if (attrs.has_dynamic_root) return Unimplemented(Name(i.op()), " with a dynamic root").At(i.Where());
  }
  STROP_ASSIGN(Meeting meeting, MeetingOf(i, config));
  step.groups = std::move(meeting.groups);
  step.source_target = std::move(meeting.source_target);
  switch (i.op()) {
    case Op::CollectivePermute: break;
    case Op::AllGather: step.kind = CollectiveKind::kAllGather; break;
    case Op::CollectiveBroadcast: step.kind = CollectiveKind::kBroadcast; break;
    case Op::AllToAll:
      if (i.attrs<CollectiveAttrs>().dimensions.empty() && i.operand_count() > 1)
        return Unimplemented("all-to-all of one operand a device").At(i.Where());
      step.kind = CollectiveKind::kAllToAll;
      break;
    case Op::AllReduce:
    case Op::ReduceScatter: {
      STROP_ASSIGN(step.reduction, ReductionOf(i));
      step.kind = i.op() == Op::AllReduce ? CollectiveKind::kAllReduce : CollectiveKind::kReduceScatter;
      break;
    }
    default: return Internal(Name(i.op()), " is no collective");
  }
  return WithOperands(i, std::move(step));
}

}  // namespace strop
