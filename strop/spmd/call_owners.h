// Custom calls that their owner knows how to cut: what the partitioner asks, and the plugin answers with functions of
// the framework (jax.experimental.custom_partitioning, jax.debug.inspect_array_sharding, FFI calls that work on
// batches).
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strop/ir/module.h"

namespace strop::spmd {

// A call on whole values, and how these lie.
struct CallToCut {
  std::string_view target, config;  // config: the bytes of its backend_config
  std::vector<Shape> operands;
  Shape result;
  std::vector<Sharding> operand_shardings;
  Sharding result_sharding;  // of a tuple: a tuple
};

// What each device runs instead.
struct CutCall {
  std::unique_ptr<Module> program;  // verified; its entry works on shards
  std::vector<Sharding> operands;
  Sharding result;
};

class CallOwners {
 public:
  virtual ~CallOwners() = default;
  // Does somebody cut calls of this name?
  virtual bool Cuts(std::string_view target) const = 0;
  // Does the call work on each element of its leading dimensions (frontend attribute num_batch_dims) by itself?
  virtual bool WorksOnBatches(std::string_view target) const = 0;
  virtual Result<CutCall> Cut(const CallToCut& call) const = 0;
  // How the result lies, where operands, or users, say something. Nothing: as it may.
  virtual Result<std::optional<Sharding>> FromOperands(const CallToCut& call) const = 0;
  virtual Result<std::optional<Sharding>> FromUsers(const CallToCut& call) const = 0;
  // Tells the one who asked, by a call InspectSharding with these bytes, how its operand lies.
  virtual Status Inspect(std::string_view config, const Sharding& sharding) const = 0;
};

inline constexpr std::string_view kInspectSharding = "InspectSharding";

}  // namespace strop::spmd
