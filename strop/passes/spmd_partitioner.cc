// The program of all partitions becomes the program that each of them runs: see spmd/partitioner.h.
//
// Parameters keep their shardings, which the caller asks for; a frontend attribute of the module says that their shapes
// are the shards' already. It survives printing and reading back.
#include "strop/passes/pass.h"
#include "strop/spmd/partitioner.h"

namespace strop {
namespace {

struct SpmdPartitioner final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    if (module.config().frontend_attributes.contains(spmd::kPartitionedMark)) return false;
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
