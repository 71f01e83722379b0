// FrontendCompileOptions: what a framework sends beside a program (CompileOptionsProto), as a plain struct. Not to be
// taken for the CompileOptions of driver/, which the PJRT plugin fills from it.
#pragma once
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "strop/types/shape.h"

namespace strop {

// Which device runs which (replica, partition); devices[replica * num_partitions + partition] is a global device id.
struct CompileDeviceAssignment {
  int64_t num_replicas = 0;
  int64_t num_partitions = 0;
  std::vector<int64_t> devices;
  bool operator==(const CompileDeviceAssignment&) const = default;
};

// XLA's dump flags, as far as Strop reads them.
struct DumpOptions {
  std::string to, module_re, pass_re;
  bool as_text = false, as_proto = false, as_dot = false, as_html = false, as_long_text = false;
  bool operator==(const DumpOptions&) const = default;
};

struct FrontendCompileOptions {
  using Override = std::variant<std::string, bool, int64_t, double>;

  std::vector<Shape> argument_layouts;
  bool parameter_is_tupled = false;
  std::optional<Shape> result_layout;
  int64_t device_ordinal = -1;
  int64_t num_replicas = 1;
  int64_t num_partitions = 1;
  std::optional<CompileDeviceAssignment> device_assignment;
  bool use_spmd_partitioning = false;
  bool use_auto_spmd_partitioning = false;
  bool use_shardy_partitioner = false;
  std::vector<bool> propagate_to_parameters;  // allow_spmd_sharding_propagation_to_parameters
  std::vector<bool> propagate_to_output;
  bool alias_passthrough_params = false;
  bool deduplicate_hlo = false;
  bool compile_portable_executable = false;
  int64_t profile_version = 0;
  int64_t process_index = 0, process_count = 0;
  int64_t optimization_level = 0, memory_fitting_level = 0;
  int64_t backend_optimization_level = -1;  // -1: not given
  bool allow_excess_precision = true;       // of an override; products may stay unrounded where they are widened
  bool fast_math = false;
  DumpOptions dump;
  // jax.jit(compiler_options={...}) arrives here, unknown keys included.
  std::map<std::string, Override> overrides;
  bool operator==(const FrontendCompileOptions&) const = default;
};

// InvalidArgument that says "CompileOptionsProto" if the bytes are none, or if counts and assignment contradict.
Result<FrontendCompileOptions> ParseCompileOptions(std::string_view bytes);
// A CompileOptionsProto with these fields (fields that FrontendCompileOptions lacks are gone).
std::string SerializeCompileOptions(const FrontendCompileOptions& options);

std::string SerializeDeviceAssignment(const CompileDeviceAssignment& assignment);
Result<CompileDeviceAssignment> ParseDeviceAssignment(std::string_view bytes);

}  // namespace strop
