// What an executable says of itself.
#include "strop/pjrt/executable.h"

#include "strop/pjrt/slots.h"

namespace strop::pjrt {

Status Executable_Destroy(PJRT_Executable_Destroy_Args& args) {
  delete args.executable;
  return OkStatus();
}

Status Executable_Name(PJRT_Executable_Name_Args& args) {
  const std::string& name = args.executable->program->executable().name();
  args.executable_name = name.c_str();
  args.executable_name_size = name.size();
  return OkStatus();
}

Status Executable_NumReplicas(PJRT_Executable_NumReplicas_Args& args) {
  args.num_replicas = static_cast<size_t>(args.executable->program->options.num_replicas);
  return OkStatus();
}

Status Executable_NumPartitions(PJRT_Executable_NumPartitions_Args& args) {
  args.num_partitions = static_cast<size_t>(args.executable->program->options.num_partitions);
  return OkStatus();
}

Status Executable_NumOutputs(PJRT_Executable_NumOutputs_Args& args) {
  args.num_outputs = args.executable->program->outputs.shapes.size();
  return OkStatus();
}

Status Executable_SizeOfGeneratedCodeInBytes(PJRT_Executable_SizeOfGeneratedCodeInBytes_Args& args) {
  args.size_in_bytes = args.executable->program->executable().spec().code_bytes;
  return OkStatus();
}

Status Executable_GetCostAnalysis(PJRT_Executable_GetCostAnalysis_Args& args) {
  args.properties = args.executable->program->cost.data();
  args.num_properties = args.executable->program->cost.size();
  return OkStatus();
}

Status Executable_OutputMemoryKinds(PJRT_Executable_OutputMemoryKinds_Args& args) {
  const Program::Leaves& outputs = args.executable->program->outputs;
  args.num_outputs = outputs.shapes.size();
  args.memory_kinds = outputs.memory_kinds.data();
  args.memory_kind_sizes = outputs.memory_kind_sizes.data();
  return OkStatus();
}

Status Executable_ParameterMemoryKinds(PJRT_Executable_ParameterMemoryKinds_Args& args) {
  const Program::Leaves& parameters = args.executable->program->parameters;
  args.num_parameters = parameters.shapes.size();
  args.memory_kinds = parameters.memory_kinds.data();
  args.memory_kind_sizes = parameters.memory_kind_sizes.data();
  return OkStatus();
}

Status Executable_OutputElementTypes(PJRT_Executable_OutputElementTypes_Args& args) {
  const Program& program = *args.executable->program;
  args.output_types = const_cast<PJRT_Buffer_Type*>(program.output_types.data());  // the interface has no const
  args.num_output_types = program.output_types.size();
  return OkStatus();
}

Status Executable_OutputDimensions(PJRT_Executable_OutputDimensions_Args& args) {
  const Program& program = *args.executable->program;
  args.num_outputs = program.output_dim_counts.size();
  args.dims = program.output_dims.data();
  args.dim_sizes = program.output_dim_counts.data();
  return OkStatus();
}

Status Executable_Fingerprint(PJRT_Executable_Fingerprint_Args& args) {
  args.executable_fingerprint = args.executable->program->fingerprint.c_str();
  args.executable_fingerprint_size = args.executable->program->fingerprint.size();
  return OkStatus();
}

Status Executable_GetCompiledMemoryStats(PJRT_Executable_GetCompiledMemoryStats_Args& args) {
  const Executable& executable = args.executable->program->executable();
  int64_t arguments[2] = {}, outputs[2] = {}, aliased[2] = {};  // on the device, on the host
  auto side = [](MemoryKind memory) { return memory == MemoryKind::kDevice ? 0 : 1; };
  auto bytes = [](const Shape& shape) { return shape.IsArray() ? shape.byte_size() : 0; };
  for (const ParameterSpec& p : executable.spec().parameters) arguments[side(p.memory)] += bytes(p.shape);
  for (const OutputSpec& o : executable.spec().outputs) {
    outputs[side(o.memory)] += bytes(o.shape);
    if (o.source == OutputSource::kAliasParameter || o.source == OutputSource::kForwardParameter)
      aliased[side(o.memory)] += bytes(o.shape);
  }
  const int64_t temp = executable.arena_bytes(ThreadPool::DefaultSize());
  const int64_t peak = arguments[0] + outputs[0] - aliased[0] + temp;
  // Callers of different ages know different fields: none beyond their struct_size may be written.
#define SET(field, value) \
  if (STROP_PJRT_HAS(args, field)) args.field = (value)
  SET(generated_code_size_in_bytes, executable.spec().code_bytes);
  SET(argument_size_in_bytes, arguments[0]);
  SET(output_size_in_bytes, outputs[0]);
  SET(alias_size_in_bytes, aliased[0]);
  SET(temp_size_in_bytes, temp);
  SET(host_generated_code_size_in_bytes, 0);
  SET(host_argument_size_in_bytes, arguments[1]);
  SET(host_output_size_in_bytes, outputs[1]);
  SET(host_alias_size_in_bytes, aliased[1]);
  SET(host_temp_size_in_bytes, 0);
  SET(peak_memory_in_bytes, peak);
  SET(total_size_in_bytes, peak + executable.spec().code_bytes);
  SET(total_allocation_bytes, outputs[0] - aliased[0] + temp);
  SET(indefinite_allocations, 0);
  SET(peak_unpadded_heap_bytes, temp);
#undef SET
  return OkStatus();
}

Status LoadedExecutable_Destroy(PJRT_LoadedExecutable_Destroy_Args& args) {
  delete args.executable;
  return OkStatus();
}

Status LoadedExecutable_GetExecutable(PJRT_LoadedExecutable_GetExecutable_Args& args) {
  args.executable = new PJRT_Executable{args.loaded_executable->program};
  return OkStatus();
}

Status LoadedExecutable_AddressableDevices(PJRT_LoadedExecutable_AddressableDevices_Args& args) {
  args.addressable_devices = args.executable->devices.data();
  args.num_addressable_devices = args.executable->devices.size();
  return OkStatus();
}

Status LoadedExecutable_AddressableDeviceLogicalIds(PJRT_LoadedExecutable_AddressableDeviceLogicalIds_Args& args) {
  args.addressable_device_logical_ids = args.executable->logical_ids.data();
  args.num_addressable_device_logical_ids = args.executable->logical_ids.size();
  return OkStatus();
}

Status LoadedExecutable_Delete(PJRT_LoadedExecutable_Delete_Args& args) {
  args.executable->deleted = true;
  return OkStatus();
}

Status LoadedExecutable_IsDeleted(PJRT_LoadedExecutable_IsDeleted_Args& args) {
  args.is_deleted = args.executable->deleted;
  return OkStatus();
}

Status LoadedExecutable_Fingerprint(PJRT_LoadedExecutable_Fingerprint_Args& args) {
  args.executable_fingerprint = args.executable->program->fingerprint.c_str();
  args.executable_fingerprint_size = args.executable->program->fingerprint.size();
  return OkStatus();
}

}  // namespace strop::pjrt
