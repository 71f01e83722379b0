// Module -> HloModuleProto, as XLA writes it: computations callees first, instructions in post order, ids that hold the
// computation's number in their upper half.
#include <set>

#include "strop/proto/codecs.h"
#include "strop/proto/module_proto.h"

namespace strop {
namespace {

using proto::HloComputationProto;
using proto::HloInstructionProto;
using proto::HloModuleProto;

class ModuleWriter {
 public:
  ModuleWriter(const Module& module, HloModuleProto* out) : module_(module), out_(out) {}

  Status Write() {
    if (!module_.entry()) return InvalidArgument("module ", module_.name(), " has no entry computation");
    ids_.assign(module_.id_bound(), -1);
    for (const Computation* c : module_.computations())
      for (const Instruction* i : c->instructions())
        if (i->op() == Op::Fusion && !i->called().empty()) fused_.insert(i->called(0));
    out_->set_name(module_.name());
    out_->set_entry_computation_name(module_.entry()->name());
    out_->set_entry_computation_id(module_.entry()->id());
    for (const Computation* c : module_.PostOrder()) STROP_TRY(WriteComputation(*c));
    WriteConfig();
    if (module_.config().is_scheduled) WriteSchedule();
    return OkStatus();
  }

 private:
  int64_t IdOf(const Instruction& instruction) const { return ids_[instruction.id()]; }

  // Layouts are written where XLA insists on them: on constants, whose literals have one, and everywhere once the
  // module is laid out.
  Shape WireShape(const Shape& shape, Op op) const {
    return module_.stage() >= Stage::LaidOut || op == Op::Constant ? shape.WithDefaultLayout() : shape;
  }

  Status WriteComputation(const Computation& computation) {
    HloComputationProto* out = out_->add_computations();
    out->set_name(computation.name());
    out->set_id(computation.id());
    out->set_execution_thread(computation.execution_thread().empty() ? "main" : computation.execution_thread());
    out->set_is_fusion_computation(fused_.count(&computation) > 0);
    if (!computation.root()) return InvalidArgument("computation ", computation.name(), " has no root");
    int64_t local = 0;
    for (const Instruction* i : computation.PostOrder()) {
      ids_[i->id()] = (computation.id() << 32) | local++;
      STROP_TRY(WriteInstruction(*i, out->add_instructions()));
    }
    out->set_root_id(IdOf(*computation.root()));
    auto* shape = out->mutable_program_shape();
    for (const Instruction* p : computation.parameters()) {
      codec::Encode(WireShape(p->shape(), p->op()), shape->add_parameters());
      shape->add_parameter_names(p->name());
    }
    codec::Encode(WireShape(computation.root()->shape(), computation.root()->op()), shape->mutable_result());
    return OkStatus();
  }

  Status WriteInstruction(const Instruction& instruction, HloInstructionProto* out) {
    out->set_name(instruction.name());
    out->set_opcode(std::string(Name(instruction.op())));
    out->set_id(IdOf(instruction));
    codec::Encode(WireShape(instruction.shape(), instruction.op()), out->mutable_shape());
    for (int64_t i = 0; i < instruction.operand_count(); ++i) out->add_operand_ids(IdOf(*instruction.operand(i)));
    for (const Instruction* p : instruction.control_predecessors()) out->add_control_predecessor_ids(IdOf(*p));
    for (const Computation* c : instruction.called()) out->add_called_computation_ids(c->id());
    if (instruction.op() == Op::While) out->mutable_called_computation_ids()->SwapElements(0, 1);  // body first
    STROP_TRY(codec::EncodeAttributes(instruction, out));
    auto* metadata = out->mutable_metadata();
    if (instruction.has_metadata()) codec::Encode(instruction.metadata(), metadata);
    if (instruction.sharding()) STROP_TRY(codec::Encode(*instruction.sharding(), out->mutable_sharding()));
    codec::Encode(instruction.frontend_attributes(), out->mutable_frontend_attributes());
    if (instruction.op() != Op::CustomCall) out->set_backend_config(instruction.backend_config());
    return OkStatus();
  }

  void WriteConfig() {
    const ModuleConfig& config = module_.config();
    EntryLayout layout = module_.EffectiveEntryLayout();
    auto* shape = out_->mutable_host_program_shape();
    for (const Shape& parameter : layout.parameters) codec::Encode(parameter, shape->add_parameters());
    codec::Encode(layout.result, shape->mutable_result());
    for (const Instruction* p : module_.entry()->parameters()) shape->add_parameter_names(p->name());
    auto* aliases = out_->mutable_input_output_alias();
    for (const InputOutputAlias& alias : config.input_output_alias) {
      auto* entry = aliases->add_entries();
      codec::FromDims(alias.output_index, entry->mutable_output_shape_index());
      entry->set_parameter_number(alias.parameter);
      codec::FromDims(alias.parameter_index, entry->mutable_parameter_shape_index());
      entry->set_kind(alias.must_alias ? 2 : 1);
    }
    auto* donors = out_->mutable_buffer_donor();
    for (const BufferDonor& donor : config.buffer_donors) {
      auto* entry = donors->add_entries();
      entry->set_parameter_number(donor.parameter);
      codec::FromDims(donor.parameter_index, entry->mutable_parameter_shape_index());
    }
    codec::Encode(config.frontend_attributes, out_->mutable_frontend_attributes());
    WriteStackFrames(config.stack_frames);
  }

  void WriteStackFrames(const StackFrames& frames) {
    if (frames.empty()) return;
    auto* out = out_->mutable_stack_frame_index();
    for (const std::string& name : frames.file_names) out->add_file_names(name);
    for (const std::string& name : frames.function_names) out->add_function_names(name);
    for (const StackFrames::FileLocation& location : frames.file_locations) {
      auto* l = out->add_file_locations();
      l->set_file_name_id(static_cast<int32_t>(location.file_name_id));
      l->set_function_name_id(static_cast<int32_t>(location.function_name_id));
      l->set_line(static_cast<int32_t>(location.line));
      l->set_end_line(static_cast<int32_t>(location.end_line));
      l->set_column(static_cast<int32_t>(location.column));
      l->set_end_column(static_cast<int32_t>(location.end_column));
    }
    for (const StackFrames::Frame& frame : frames.frames) {
      auto* f = out->add_stack_frames();
      f->set_file_location_id(static_cast<int32_t>(frame.file_location_id));
      f->set_parent_frame_id(static_cast<int32_t>(frame.parent_frame_id));
    }
  }

  void WriteSchedule() {
    for (const Computation* c : module_.computations()) {
      if (fused_.count(c)) continue;
      auto& sequence = (*out_->mutable_schedule()->mutable_sequences())[c->id()];
      for (const Instruction* i : c->instructions()) sequence.add_instruction_ids(IdOf(*i));
    }
  }

  const Module& module_;
  HloModuleProto* out_;
  std::vector<int64_t> ids_;  // proto id by Instruction::id()
  std::set<const Computation*> fused_;
};

// An empty text is a message without fields: whole values.
Status ReadSharding(const std::string& bytes, proto::OpSharding* out) {
  if (out->ParseFromString(bytes)) return OkStatus();
  return Internal("a sharding of ", bytes.size(), " bytes that are no OpSharding");
}

}  // namespace

Result<std::string> SerializeModuleProto(const Module& module) {
  HloModuleProto out;
  STROP_TRY(ModuleWriter(module, &out).Write());
  return codec::Serialize(out);
}

Result<std::string> SerializeHloProto(const Module& module) {
  proto::HloProto out;
  STROP_TRY(ModuleWriter(module, out.mutable_hlo_module()).Write());
  return codec::Serialize(out);
}

Result<std::string> SerializeModuleProtoWithConfig(const Module& module) {
  proto::HloModuleProtoWithConfig out;
  STROP_TRY(ModuleWriter(module, out.mutable_hlo_module()).Write());
  *out.mutable_config()->mutable_entry_computation_layout() = out.hlo_module().host_program_shape();
  out.mutable_config()->set_replica_count(module.config().replica_count);
  out.mutable_config()->set_num_partitions(module.config().num_partitions);
  out.mutable_config()->set_use_spmd_partitioning(module.config().use_spmd_partitioning);
  return codec::Serialize(out);
}

Result<std::string> AddEntryShardings(std::string_view module_with_config, std::span<const std::string> parameters,
                                      std::span<const std::string> results) {
  proto::HloModuleProtoWithConfig out;
  if (!out.ParseFromArray(module_with_config.data(), static_cast<int>(module_with_config.size())))
    return Internal(module_with_config.size(), " bytes that are no HloModuleProtoWithConfig");
  HloModuleProto* module = out.mutable_hlo_module();
  for (const std::string& parameter : parameters)
    STROP_TRY(ReadSharding(parameter, module->add_spmd_parameters_shardings()));
  proto::OpSharding* result = module->mutable_spmd_output_sharding();
  if (module->host_program_shape().result().element_type() == static_cast<int>(ElementType::Tuple)) {
    result->set_type(proto::OpSharding::TUPLE);
    for (const std::string& element : results) STROP_TRY(ReadSharding(element, result->add_tuple_shardings()));
  } else if (!results.empty()) {
    STROP_TRY(ReadSharding(results[0], result));
  }
  return codec::Serialize(out);
}

Result<std::string> SerializeSnapshot(std::string_view hlo_proto, std::span<const Literal> arguments,
                                      const Literal& result, std::string_view platform) {
  proto::HloSnapshot out;
  if (!out.mutable_hlo()->ParseFromArray(hlo_proto.data(), static_cast<int>(hlo_proto.size())))
    return Internal("a snapshot of ", hlo_proto.size(), " bytes that are no HloProto");
  for (const Literal& argument : arguments) codec::Encode(argument, out.add_arguments());
  codec::Encode(result, out.mutable_result());
  out.set_execution_platform(std::string(platform));
  return codec::Serialize(out);
}

}  // namespace strop
