// The program of all partitions becomes the program that each of them runs: see spmd/partitioner.h.
//
// Parameters keep their shardings, which the caller asks for; a frontend attribute of the module says that their shapes
// are the shards' already. It survives printing and reading back.
#include "strop/passes/pass.h"
#include "strop/spmd/partitioner.h"

namespace strop {
namespace {

constexpr const char* kMark = "strop.partitioned";

struct SpmdPartitioner final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    std::map<std::string, std::string>& attributes = module.config().frontend_attributes;
    if (attributes.contains(kMark)) return false;
    STROP_ASSIGN(int64_t changed, spmd::PartitionModule(module));
    context.Count("spmd-partitioner.values", changed);
    if (changed > 0) attributes[kMark] = "true";
    return changed > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeSpmdPartitioner() { return std::make_unique<SpmdPartitioner>(); }

}  // namespace strop
