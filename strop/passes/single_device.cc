// Programs for one device (one replica, one partition): marks of the partitioner become their operand, collectives what
// they are among one participant.
//
//   %s = f32[8] custom-call(%x), custom_call_target="Sharding"          uses of %s use %x
//   %r = f32[8] all-reduce(%x), to_apply=add                            uses of %r use %x
//   %p = u32[] partition-id()                                           u32[] constant(0)
//   %c = f32[8] collective-permute(%x), source_target_pairs={}          broadcast(0): nobody sends
#include <algorithm>
#include <array>
#include <string_view>

#include "strop/passes/layouts_of_uses.h"
#include "strop/passes/pass.h"
#include "strop/spmd/partitioner.h"

namespace strop {
namespace {

// The ways into and out of a manual region.
constexpr std::array<std::string_view, 4> kBorders = {"SPMDFullToShardShape", "SPMDShardToFullShape",
                                                      "xla.sdy.GlobalToLocalShape", "xla.sdy.LocalToGlobalShape"};

Instruction* Zeros(Instruction& like) {
  Computation* c = like.parent();
  const Shape& shape = like.shape();
  Instruction* zero = c->AddConstant(Literal::ScalarOf(shape.type(), 0), &like);
  if (shape.rank() == 0) return zero;
  return c->Add(Op::Broadcast, shape.WithoutLayout(), {zero}, DimensionsAttrs{}, {}, &like);
}

// What the instruction is on one device, or null if that is nothing simpler.
Instruction* OnOneDevice(Instruction& i) {
  switch (i.op()) {
    case Op::PartitionId:
    case Op::ReplicaId: return i.parent()->AddConstant(Literal::ScalarOfInt(i.shape().type(), 0), &i);
    case Op::CustomCall: {
      const std::string& target = i.attrs<CustomCallAttrs>().target;
      const bool border = std::find(kBorders.begin(), kBorders.end(), target) != kBorders.end();
      if (spmd::IsMark(i)) return i.operand(0);
      return border && i.operand_count() == 1 && i.shape().Compatible(i.operand(0)->shape()) ? i.operand(0) : nullptr;
    }
    case Op::AllReduce:
    case Op::AllGather:
    case Op::ReduceScatter:
    case Op::AllToAll:
    case Op::CollectiveBroadcast: {
      if (i.operand_count() == 1 && i.shape().Compatible(i.operand(0)->shape())) return i.operand(0);
      if (!i.shape().IsTuple() || i.shape().tuple_size() != i.operand_count()) return nullptr;
      if (i.op() == Op::AllToAll && i.operand_count() > 1) return nullptr;  // one for each member: they are not here
      for (int64_t k = 0; k < i.operand_count(); ++k)
        if (!i.shape().element(k).Compatible(i.operand(k)->shape())) return nullptr;
      const std::vector<Instruction*> operands = i.operands();
      return i.parent()->Add(Op::Tuple, i.shape().WithoutLayout(), operands, NoAttrs{}, {}, &i);
    }
    case Op::CollectivePermute: {
      if (i.operand_count() != 1 || !i.shape().IsArray()) return nullptr;
      const SourceTargetPairs& pairs = i.attrs<PermuteAttrs>().source_target_pairs;
      const bool to_itself = std::find(pairs.begin(), pairs.end(), std::pair<int64_t, int64_t>(0, 0)) != pairs.end();
      return to_itself ? i.operand(0) : Zeros(i);
    }
    default: return nullptr;
  }
}

struct SingleDevice final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    if (module.config().num_partitions != 1 || module.config().replica_count != 1) return false;
    int64_t replaced = 0;
    for (Computation* c : module.computations()) {
      for (Instruction* i : c->instructions()) {
        Instruction* value = OnOneDevice(*i);
        if (!value) continue;
        ReplaceAllUsesKeepingLayout(i, value);
        if (!i->HasControlEdges()) c->Remove(i);
        ++replaced;
      }
    }
    context.Count("single-device.replaced", replaced);
    return replaced > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeSingleDevice() { return std::make_unique<SingleDevice>(); }

}  // namespace strop
