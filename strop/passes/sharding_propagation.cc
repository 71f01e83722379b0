// Gives every value of a program for several partitions a sharding: see spmd/propagation.h. --explain says where each
// came from.
#include "strop/passes/pass.h"
#include "strop/spmd/partitioner.h"
#include "strop/spmd/propagation.h"

namespace strop {
namespace {

struct ShardingPropagation final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    if (module.config().frontend_attributes.contains(spmd::kPartitionedMark)) return false;
    const auto told = [&](const Instruction& i, const std::string& why) {
      context.Decide(i, "%", i.name(), ": ", why);
    };
    STROP_ASSIGN(const int64_t values, spmd::PropagateShardings(module, told, context.options().call_owners));
    context.Count("sharding-propagation.values", values);
    return values > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeShardingPropagation() { return std::make_unique<ShardingPropagation>(); }

}  // namespace strop
