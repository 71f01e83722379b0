// The program of all partitions becomes the program that each of them runs: see spmd/partitioner.h.
#include "strop/passes/pass.h"
#include "strop/spmd/partitioner.h"

namespace strop {
namespace {

struct SpmdPartitioner final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    STROP_ASSIGN(int64_t changed, spmd::PartitionModule(module));
    context.Count("spmd-partitioner.values", changed);
    return changed > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeSpmdPartitioner() { return std::make_unique<SpmdPartitioner>(); }

}  // namespace strop
