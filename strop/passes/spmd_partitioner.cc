// The program of all partitions becomes the program that each of them runs: see spmd/partitioner.h.
//
// Parameters keep their shardings, for those who read the program; a frontend attribute of the module says that their
// shapes are the shards' already. It survives printing and reading back. Where there is one partition, shardings say
// nothing, and none is left on a value that is computed: passes would take care not to lose it.
#include "strop/passes/pass.h"
#include "strop/spmd/partitioner.h"

namespace strop {
namespace {

// Those of host calls tell which device makes them (passes/single_device.cc).
int64_t ForgetShardings(Module& module) {
  int64_t forgotten = 0;
  for (Computation* computation : module.computations())
    for (Instruction* i : computation->instructions())
      if (i->sharding() && i->op() != Op::CustomCall) {
        i->clear_sharding();
        ++forgotten;
      }
  return forgotten;
}

struct SpmdPartitioner final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    if (module.config().frontend_attributes.contains(spmd::kPartitionedMark)) return false;
    if (module.config().num_partitions <= 1) return ForgetShardings(module) > 0;
    const auto told = [&](const Instruction& i) {
      context.Decide(i, "%", i.name(), ": ", Name(i.op()), " is computed whole on every partition");
      context.Count("spmd-partitioner.whole");
    };
    STROP_ASSIGN(const int64_t changed, spmd::PartitionModule(module, told, context.options().call_owners));
    context.Count("spmd-partitioner.values", changed);
    return changed > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeSpmdPartitioner() { return std::make_unique<SpmdPartitioner>(); }

}  // namespace strop
