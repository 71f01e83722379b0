#include "strop/proto/compile_options.h"

#include <algorithm>

#include "strop/proto/codecs.h"
#include "strop/proto/compile_options.pb.h"

namespace strop {
namespace {

constexpr int64_t kMaxDevices = 1 << 20;

Status CheckCounts(int64_t replicas, int64_t partitions) {
  if (replicas < 1 || partitions < 1 || replicas > kMaxDevices || partitions > kMaxDevices ||
      replicas * partitions > kMaxDevices)
    return InvalidArgument("CompileOptionsProto asks for ", replicas, " replicas and ", partitions, " partitions");
  return OkStatus();
}

Result<CompileDeviceAssignment> Decode(const proto::DeviceAssignmentProto& in) {
  CompileDeviceAssignment out;
  out.num_replicas = in.replica_count();
  out.num_partitions = in.computation_count();
  STROP_TRY(CheckCounts(out.num_replicas, out.num_partitions));
  if (in.computation_devices_size() != out.num_partitions)
    return InvalidArgument("device assignment of ", out.num_partitions, " partitions lists ",
                           in.computation_devices_size());
  for (const auto& computation : in.computation_devices())
    if (computation.replica_device_ids_size() != out.num_replicas)
      return InvalidArgument("device assignment of ", out.num_replicas, " replicas lists ",
                             computation.replica_device_ids_size());
  for (int r = 0; r < out.num_replicas; ++r)
    for (int p = 0; p < out.num_partitions; ++p) out.devices.push_back(in.computation_devices(p).replica_device_ids(r));
  return out;
}

void Encode(const CompileDeviceAssignment& assignment, proto::DeviceAssignmentProto* out) {
  out->set_replica_count(static_cast<int32_t>(assignment.num_replicas));
  out->set_computation_count(static_cast<int32_t>(assignment.num_partitions));
  for (int64_t p = 0; p < assignment.num_partitions; ++p) {
    auto* computation = out->add_computation_devices();
    for (int64_t r = 0; r < assignment.num_replicas; ++r)
      computation->add_replica_device_ids(assignment.devices[r * assignment.num_partitions + p]);
  }
}

std::vector<bool> ToBools(const google::protobuf::RepeatedField<bool>& in) { return {in.begin(), in.end()}; }

Status DecodeBuildOptions(const proto::ExecutableBuildOptionsProto& in, FrontendCompileOptions& out) {
  out.device_ordinal = in.device_ordinal();
  // 0 stands for "not set" in proto3.
  out.num_replicas = in.num_replicas() == 0 ? 1 : in.num_replicas();
  out.num_partitions = in.num_partitions() == 0 ? 1 : in.num_partitions();
  STROP_TRY(CheckCounts(out.num_replicas, out.num_partitions));
  if (in.has_result_layout()) {
    STROP_ASSIGN(Shape layout, codec::Decode(in.result_layout()));
    out.result_layout = std::move(layout);
  }
  if (in.has_device_assignment()) {
    STROP_ASSIGN(CompileDeviceAssignment assignment, Decode(in.device_assignment()));
    if (assignment.num_replicas != out.num_replicas || assignment.num_partitions != out.num_partitions)
      return InvalidArgument("CompileOptionsProto has ", out.num_replicas, " replicas and ", out.num_partitions,
                             " partitions, its device assignment ", assignment.num_replicas, " and ",
                             assignment.num_partitions);
    out.device_assignment = std::move(assignment);
  }
  out.use_spmd_partitioning = in.use_spmd_partitioning();
  out.use_auto_spmd_partitioning = in.use_auto_spmd_partitioning();
  out.use_shardy_partitioner = in.use_shardy_partitioner();
  out.propagate_to_parameters = ToBools(in.allow_spmd_sharding_propagation_to_parameters());
  out.propagate_to_output = ToBools(in.allow_spmd_sharding_propagation_to_output());
  out.alias_passthrough_params = in.alias_passthrough_params();
  out.deduplicate_hlo = in.deduplicate_hlo();
  out.process_index = in.process_index();
  out.process_count = in.process_count();
  out.optimization_level = in.optimization_level();
  out.memory_fitting_level = in.memory_fitting_level();
  if (!in.has_debug_options()) return OkStatus();
  const auto& debug = in.debug_options();
  out.backend_optimization_level = std::max(debug.xla_backend_optimization_level(), 0);  // below 0 it is not given
  out.fast_math = debug.xla_cpu_enable_fast_math();
  out.dump = {debug.xla_dump_to(),          debug.xla_dump_hlo_module_re(),   debug.xla_dump_hlo_pass_re(),
              debug.xla_dump_hlo_as_text(), debug.xla_dump_hlo_as_proto(),    debug.xla_dump_hlo_as_dot(),
              debug.xla_dump_hlo_as_html(), debug.xla_dump_hlo_as_long_text()};
  return OkStatus();
}

void EncodeBuildOptions(const FrontendCompileOptions& in, proto::ExecutableBuildOptionsProto* out) {
  out->set_device_ordinal(in.device_ordinal);
  out->set_num_replicas(in.num_replicas);
  out->set_num_partitions(in.num_partitions);
  if (in.result_layout) codec::Encode(*in.result_layout, out->mutable_result_layout());
  if (in.device_assignment) Encode(*in.device_assignment, out->mutable_device_assignment());
  out->set_use_spmd_partitioning(in.use_spmd_partitioning);
  out->set_use_auto_spmd_partitioning(in.use_auto_spmd_partitioning);
  out->set_use_shardy_partitioner(in.use_shardy_partitioner);
  for (bool b : in.propagate_to_parameters) out->add_allow_spmd_sharding_propagation_to_parameters(b);
  for (bool b : in.propagate_to_output) out->add_allow_spmd_sharding_propagation_to_output(b);
  out->set_alias_passthrough_params(in.alias_passthrough_params);
  out->set_deduplicate_hlo(in.deduplicate_hlo);
  out->set_process_index(in.process_index);
  out->set_process_count(in.process_count);
  out->set_optimization_level(static_cast<int>(in.optimization_level));
  out->set_memory_fitting_level(static_cast<int>(in.memory_fitting_level));
  if (in.backend_optimization_level < 0) return;
  auto* debug = out->mutable_debug_options();
  debug->set_xla_backend_optimization_level(static_cast<int>(in.backend_optimization_level));
  debug->set_xla_cpu_enable_fast_math(in.fast_math);
  debug->set_xla_dump_to(in.dump.to);
  debug->set_xla_dump_hlo_module_re(in.dump.module_re);
  debug->set_xla_dump_hlo_pass_re(in.dump.pass_re);
  debug->set_xla_dump_hlo_as_text(in.dump.as_text);
  debug->set_xla_dump_hlo_as_proto(in.dump.as_proto);
  debug->set_xla_dump_hlo_as_dot(in.dump.as_dot);
  debug->set_xla_dump_hlo_as_html(in.dump.as_html);
  debug->set_xla_dump_hlo_as_long_text(in.dump.as_long_text);
}

}  // namespace

Result<FrontendCompileOptions> ParseCompileOptions(std::string_view bytes) {
  proto::CompileOptionsProto in;
  if (bytes.size() > INT32_MAX || !in.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return InvalidArgument("the compile options (", bytes.size(), " bytes) are no valid CompileOptionsProto");
  FrontendCompileOptions out;
  for (const auto& layout : in.argument_layouts()) {
    STROP_ASSIGN(Shape shape, codec::Decode(layout));
    out.argument_layouts.push_back(std::move(shape));
  }
  out.parameter_is_tupled = in.parameter_is_tupled_arguments();
  out.compile_portable_executable = in.compile_portable_executable();
  out.profile_version = in.profile_version();
  if (in.has_executable_build_options()) STROP_TRY(DecodeBuildOptions(in.executable_build_options(), out));
  for (const auto& [key, value] : in.env_option_overrides()) {
    FrontendCompileOptions::Override& override = out.overrides[key];
    switch (value.value_case()) {
      case proto::OptionOverrideProto::kBoolField: override = value.bool_field(); break;
      case proto::OptionOverrideProto::kIntField: override = static_cast<int64_t>(value.int_field()); break;
      case proto::OptionOverrideProto::kDoubleField: override = value.double_field(); break;
      default: override = value.string_field(); break;
    }
  }
  return out;
}

std::string SerializeCompileOptions(const FrontendCompileOptions& options) {
  proto::CompileOptionsProto out;
  for (const Shape& shape : options.argument_layouts) codec::Encode(shape, out.add_argument_layouts());
  out.set_parameter_is_tupled_arguments(options.parameter_is_tupled);
  out.set_compile_portable_executable(options.compile_portable_executable);
  out.set_profile_version(options.profile_version);
  EncodeBuildOptions(options, out.mutable_executable_build_options());
  for (const auto& [key, value] : options.overrides) {
    auto& field = (*out.mutable_env_option_overrides())[key];
    if (const std::string* text = std::get_if<std::string>(&value))
      field.set_string_field(*text);
    else if (const bool* flag = std::get_if<bool>(&value))
      field.set_bool_field(*flag);
    else if (const int64_t* number = std::get_if<int64_t>(&value))
      field.set_int_field(*number);
    else
      field.set_double_field(std::get<double>(value));
  }
  return codec::Serialize(out);
}

std::string SerializeDeviceAssignment(const CompileDeviceAssignment& assignment) {
  proto::DeviceAssignmentProto out;
  Encode(assignment, &out);
  return codec::Serialize(out);
}

Result<CompileDeviceAssignment> ParseDeviceAssignment(std::string_view bytes) {
  proto::DeviceAssignmentProto in;
  if (bytes.size() > INT32_MAX || !in.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return InvalidArgument("these ", bytes.size(), " bytes are no DeviceAssignmentProto");
  return Decode(in);
}

}  // namespace strop
