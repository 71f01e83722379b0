// HloModuleProto -> Module. Computations come callees first and instructions operands first, so one pass builds all;
// ids are resolved through a map per computation, and whatever is not there yet is an error. Writers differ in the
// upper half of ids (nothing, or the computation's number, on instructions and not always on references), so the lower
// half counts.
#include <unordered_map>

#include "strop/base/cursor.h"
#include "strop/proto/codecs.h"
#include "strop/proto/module_proto.h"

namespace strop {
namespace {

using proto::HloComputationProto;
using proto::HloInstructionProto;
using proto::HloModuleProto;

// How many computations an op calls: {at least, at most}.
std::pair<int, int> CalleeRange(Op op) {
  std::string_view callees = Info(op).callees;
  if (callees.empty()) return {0, 0};
  if (callees.back() == '*') return {0, INT32_MAX};
  const int count = 1 + static_cast<int>(std::count(callees.begin(), callees.end(), ','));
  // The comparator of topk and the computation of async-update and -done are implied by others.
  const bool optional = op == Op::TopK || op == Op::AsyncUpdate || op == Op::AsyncDone;
  return {optional ? 0 : count, count};
}

int64_t LocalId(int64_t id) { return id & 0xffffffff; }

class ModuleReader {
 public:
  explicit ModuleReader(const HloModuleProto& in) : in_(in) {}

  Result<std::unique_ptr<Module>> Read() {
    module_ = std::make_unique<Module>(AsWord(in_.name()));
    for (const HloComputationProto& computation : in_.computations()) {
      Status status = ReadComputation(computation);
      if (!status.ok()) return std::move(status).Note(StrCat("in computation ", computation.name()));
    }
    auto entry = computations_.find(in_.entry_computation_id());
    if (entry == computations_.end())
      return InvalidArgument("module ", in_.name(), " has no entry computation with id ", in_.entry_computation_id());
    module_->set_entry(entry->second.computation);
    STROP_TRY(ReadConfig());
    STROP_TRY(ReadSchedule());
    return std::move(module_);
  }

 private:
  struct Known {
    Computation* computation = nullptr;
    std::unordered_map<int64_t, Instruction*> instructions;  // by LocalId
  };

  Status ReadComputation(const HloComputationProto& in) {
    Known known;
    known.computation = module_->AddComputation(in.name());
    if (in.execution_thread() != "main") known.computation->set_execution_thread(in.execution_thread());
    for (const HloInstructionProto& instruction : in.instructions()) {
      Status status = ReadInstruction(instruction, in.instructions_size(), known);
      if (!status.ok()) {
        std::string where =
            instruction.metadata().source_file().empty()
                ? std::string()
                : StrCat(instruction.metadata().source_file(), ":", instruction.metadata().source_line());
        Status noted = std::move(status).Note(StrCat("in instruction ", instruction.name()));
        return where.empty() ? noted : std::move(noted).At(std::move(where));
      }
    }
    auto root = known.instructions.find(LocalId(in.root_id()));
    if (root == known.instructions.end()) return InvalidArgument("there is no root instruction with id ", in.root_id());
    known.computation->set_root(root->second);
    for (int64_t i = 0; i < known.computation->parameter_count(); ++i)
      if (!known.computation->parameter(i)) return InvalidArgument("parameter ", i, " is missing");
    if (!computations_.emplace(in.id(), std::move(known)).second)
      return InvalidArgument("two computations have the id ", in.id());
    return OkStatus();
  }

  Status ReadInstruction(const HloInstructionProto& in, int64_t limit, Known& known) {
    std::optional<Op> op = ParseOp(in.opcode());
    if (!op) return InvalidArgument("unknown opcode '", in.opcode(), "'");
    if (!in.has_shape()) return InvalidArgument("the shape is missing");
    STROP_ASSIGN(Shape shape, codec::Decode(in.shape()));
    std::vector<Instruction*> operands;
    for (int64_t id : in.operand_ids()) {
      auto found = known.instructions.find(LocalId(id));
      if (found == known.instructions.end())
        return InvalidArgument("operand ", id, " is not an earlier instruction of the computation");
      operands.push_back(found->second);
    }
    const int arity = Info(*op).arity;
    if (arity != kVariadic && arity != static_cast<int>(operands.size()))
      return InvalidArgument(in.opcode(), " takes ", arity, " operands, got ", operands.size());
    STROP_ASSIGN(Attrs attrs, codec::DecodeAttributes(
                                  *op, in, operands.empty() ? ElementType::Invalid : operands[0]->shape().type()));
    if (*op == Op::Parameter) STROP_TRY(CheckParameter(attrs.get<ParameterAttrs>().number, limit, known));
    Instruction* made = known.computation->Add(*op, std::move(shape), operands, std::move(attrs), in.name());
    if (!known.instructions.emplace(LocalId(in.id()), made).second)
      return InvalidArgument("two instructions have the id ", in.id());
    STROP_TRY(ReadCallees(in, *op, made));
    for (int64_t id : in.control_predecessor_ids()) {
      auto found = known.instructions.find(LocalId(id));
      if (found == known.instructions.end() || found->second == made)
        return InvalidArgument("control predecessor ", id, " is not an earlier instruction of the computation");
      made->AddControlPredecessor(found->second);
    }
    return ReadExtras(in, made);
  }

  static Status CheckParameter(int64_t number, int64_t limit, const Known& known) {
    if (number < 0 || number >= limit)
      return InvalidArgument("parameter number ", number, " in a computation of ", limit, " instructions");
    if (number < known.computation->parameter_count() && known.computation->parameter(number))
      return InvalidArgument("a second parameter ", number);
    return OkStatus();
  }

  Status ReadCallees(const HloInstructionProto& in, Op op, Instruction* made) {
    auto [least, most] = CalleeRange(op);
    const int count = in.called_computation_ids_size();
    if (count < least || count > most)
      return InvalidArgument(in.opcode(), " calls ", count, " computations, expected ", least,
                             least == most ? std::string() : StrCat(" to ", most));
    SmallVector<Computation*, 2> called;
    for (int64_t id : in.called_computation_ids()) {
      auto found = computations_.find(id);
      if (found == computations_.end())
        return InvalidArgument("the called computation ", id, " does not come before its caller");
      called.push_back(found->second.computation);
    }
    if (op == Op::While) std::swap(called[0], called[1]);  // the wire has the body first
    made->set_called(std::move(called));
    return OkStatus();
  }

  Status ReadExtras(const HloInstructionProto& in, Instruction* made) {
    OpMetadata metadata = codec::Decode(in.metadata());
    if (!(metadata == OpMetadata())) made->set_metadata(std::move(metadata));
    if (in.has_sharding()) {
      STROP_ASSIGN(Sharding sharding, codec::Decode(in.sharding()));
      made->set_sharding(std::move(sharding));
    }
    if (in.frontend_attributes().map_size() > 0) made->set_frontend_attributes(codec::Decode(in.frontend_attributes()));
    if (!in.backend_config().empty() && made->op() != Op::CustomCall) made->set_backend_config(in.backend_config());
    return OkStatus();
  }

  Status ReadConfig() {
    ModuleConfig& config = module_->config();
    if (in_.has_host_program_shape()) {
      for (const auto& parameter : in_.host_program_shape().parameters()) {
        STROP_ASSIGN(Shape shape, codec::Decode(parameter));
        config.entry_layout.parameters.push_back(std::move(shape));
      }
      if (!in_.host_program_shape().has_result()) return InvalidArgument("the program shape has no result");
      STROP_ASSIGN(config.entry_layout.result, codec::Decode(in_.host_program_shape().result()));
      config.has_entry_layout = true;
      if (static_cast<int64_t>(config.entry_layout.parameters.size()) != module_->entry()->parameter_count())
        return InvalidArgument("the program shape has ", config.entry_layout.parameters.size(),
                               " parameters, the entry computation ", module_->entry()->parameter_count());
    }
    for (const auto& entry : in_.input_output_alias().entries())
      config.input_output_alias.push_back({codec::ToDims(entry.output_shape_index()), entry.parameter_number(),
                                           codec::ToDims(entry.parameter_shape_index()), entry.kind() == 2});
    for (const auto& entry : in_.buffer_donor().entries())
      config.buffer_donors.push_back({entry.parameter_number(), codec::ToDims(entry.parameter_shape_index())});
    config.frontend_attributes = codec::Decode(in_.frontend_attributes());
    ReadStackFrames(config.stack_frames);
    return OkStatus();
  }

  void ReadStackFrames(StackFrames& frames) {
    const auto& in = in_.stack_frame_index();
    frames.file_names.assign(in.file_names().begin(), in.file_names().end());
    frames.function_names.assign(in.function_names().begin(), in.function_names().end());
    for (const auto& l : in.file_locations())
      frames.file_locations.push_back(
          {l.file_name_id(), l.function_name_id(), l.line(), l.end_line(), l.column(), l.end_column()});
    for (const auto& f : in.stack_frames()) frames.frames.push_back({f.file_location_id(), f.parent_frame_id()});
  }

  // The schedule becomes the list order; it must name every instruction of the computation once, operands first.
  Status ReadSchedule() {
    if (!in_.has_schedule() || in_.schedule().sequences().empty()) return OkStatus();
    module_->config().is_scheduled = true;
    for (const auto& [id, sequence] : in_.schedule().sequences()) {
      auto found = computations_.find(id);
      if (found == computations_.end())
        return InvalidArgument("the schedule names computation ", id, ", which does not exist");
      Known& known = found->second;
      std::vector<uint8_t> seen(module_->id_bound(), 0);
      for (int64_t instruction_id : sequence.instruction_ids()) {
        auto at = known.instructions.find(LocalId(instruction_id));
        if (at == known.instructions.end() || seen[at->second->id()])
          return InvalidArgument("the schedule of ", known.computation->name(), " names instruction ", instruction_id,
                                 at == known.instructions.end() ? ", which does not exist" : " twice");
        for (const Instruction* operand : at->second->operands())
          if (!seen[operand->id()])
            return InvalidArgument("the schedule of ", known.computation->name(), " runs ", at->second->name(),
                                   " before its operand ", operand->name());
        seen[at->second->id()] = 1;
        known.computation->MoveBefore(at->second, nullptr);
      }
      if (sequence.instruction_ids_size() != known.computation->instruction_count())
        return InvalidArgument("the schedule of ", known.computation->name(), " names ",
                               sequence.instruction_ids_size(), " of ", known.computation->instruction_count(),
                               " instructions");
    }
    return OkStatus();
  }

  const HloModuleProto& in_;
  std::unique_ptr<Module> module_;
  std::unordered_map<int64_t, Known> computations_;  // by proto id
};

template <class Proto>
Status ParseMessage(std::string_view bytes, std::string_view what, Proto& out) {
  if (bytes.size() > INT32_MAX) return InvalidArgument(what, " of ", bytes.size(), " bytes; at most 2 GB can be read");
  if (!out.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return InvalidArgument("these ", bytes.size(), " bytes are no valid ", what);
  return OkStatus();
}

}  // namespace

Result<std::unique_ptr<Module>> ParseModuleProto(std::string_view bytes) {
  HloModuleProto proto;
  STROP_TRY(ParseMessage(bytes, "HloModuleProto", proto));
  return ModuleReader(proto).Read();
}

Result<std::unique_ptr<Module>> ParseModuleProtoWithConfig(std::string_view bytes) {
  proto::HloModuleProtoWithConfig proto;
  STROP_TRY(ParseMessage(bytes, "HloModuleProtoWithConfig", proto));
  STROP_ASSIGN(std::unique_ptr<Module> module, ModuleReader(proto.hlo_module()).Read());
  ModuleConfig& config = module->config();
  config.replica_count = std::max<int64_t>(proto.config().replica_count(), 1);
  config.num_partitions = std::max<int64_t>(proto.config().num_partitions(), 1);
  config.use_spmd_partitioning = proto.config().use_spmd_partitioning();
  return module;
}

// Field 1 is a name in HloModuleProto, a module in the others; field 3 (computations) decides.
Result<std::unique_ptr<Module>> ParseAnyModuleProto(std::string_view bytes) {
  HloModuleProto module;
  if (ParseMessage(bytes, "HloModuleProto", module).ok() && module.computations_size() > 0)
    return ModuleReader(module).Read();
  proto::HloProto hlo;
  if (ParseMessage(bytes, "HloProto", hlo).ok() && hlo.hlo_module().computations_size() > 0)
    return ModuleReader(hlo.hlo_module()).Read();
  proto::HloSnapshot snapshot;
  if (ParseMessage(bytes, "HloSnapshot", snapshot).ok() && snapshot.hlo().hlo_module().computations_size() > 0)
    return ModuleReader(snapshot.hlo().hlo_module()).Read();
  return InvalidArgument(
      "these ", bytes.size(),
      " bytes are no HloModuleProto, HloProto, HloSnapshot or HloModuleProtoWithConfig with a computation");
}

Result<std::vector<Literal>> ParseSnapshotArguments(std::string_view bytes) {
  std::vector<Literal> arguments;
  proto::HloSnapshot snapshot;
  if (!ParseMessage(bytes, "HloSnapshot", snapshot).ok() || snapshot.hlo().hlo_module().computations_size() == 0)
    return arguments;
  for (const proto::LiteralProto& argument : snapshot.arguments()) {
    STROP_ASSIGN(Literal literal, codec::Decode(argument));
    arguments.push_back(std::move(literal));
  }
  return arguments;
}

}  // namespace strop
