// Module -> text. The order of everything is XLA's: attributes of the op, called computations, sharding, frontend
// attributes, control predecessors, statistics, result accuracy, origin, metadata, backend_config; computations callees
// first; instructions in list order.
//
// Async sugar. `slice-start(x)` stands for an async-start that calls a computation of one instruction:
//   wrapped { p = f32[8] parameter(0)  ROOT s = f32[4] slice(p), slice={[0:4]} }
//   start = ((f32[8]), f32[4], s32[]) async-start(x), calls=wrapped   =>   ... slice-start(x), slice={[0:4]}
// It is used wherever reading it back gives the same module; such computations are not printed on their own.
#include "strop/ir/printer.h"

#include <map>
#include <set>

#include "strop/ir/attr_text.h"

namespace strop {
namespace {

constexpr int64_t kIndexInterval = 5;  // long lists say /*index=5*/ every so often
constexpr int64_t kFewElements = 10;   // constants up to this size are never left out

// ---- async sugar
// ------------------------------------------------------------------------------------------------------

// Ops whose "-start" is an op of its own.
bool HasOwnStart(Op op) {
  return op == Op::AllGather || op == Op::AllReduce || op == Op::CollectivePermute || op == Op::Copy ||
         op == Op::Send || op == Op::Recv;
}

// A custom call keeps its backend_config among its attributes.
const std::string& BackendConfig(const Instruction& instruction) {
  const auto* custom_call = instruction.any_attrs().get_if<CustomCallAttrs>();
  return custom_call && !custom_call->opaque.empty() ? custom_call->opaque : instruction.backend_config();
}

bool SameExtras(const Instruction& a, const Instruction& b) {
  return a.metadata() == b.metadata() && BackendConfig(a) == BackendConfig(b) &&
         a.frontend_attributes() == b.frontend_attributes() && a.origin() == b.origin() && !a.sharding() &&
         a.statistics() == b.statistics() && a.control_predecessors().empty();
}

bool IsPlainParameter(const Instruction* p, const Shape& shape) {
  return p && p->shape() == shape && !p->has_metadata() && !p->sharding() && p->frontend_attributes().empty() &&
         p->backend_config().empty() && p->origin().empty();
}

// The instruction that `start` wraps, or null if sugar would lose something.
const Instruction* WrappedBy(const Instruction& start) {
  if (start.op() != Op::AsyncStart || start.called().size() != 1 || start.called(0) == nullptr) return nullptr;
  const Computation& body = *start.called(0);
  const Instruction* root = body.root();
  const int64_t n = body.parameter_count();
  if (!root || body.instruction_count() != n + 1 || root->operand_count() != n || start.operand_count() != n)
    return nullptr;
  if (root->IsParameter() || Is(root->op(), kAsync) || HasOwnStart(root->op()) || root->IsConstant()) return nullptr;
  if (body.execution_thread() != start.attrs<AsyncAttrs>().async_execution_thread) return nullptr;
  const Shape& shape = start.shape();
  if (!shape.IsTuple() || shape.tuple_size() < 2 || !shape.element(0).IsTuple() || shape.element(0).tuple_size() != n ||
      root->shape() != shape.element(1) || !SameExtras(*root, start))
    return nullptr;
  for (int64_t i = 0; i < n; ++i)
    if (root->operand(i) != body.parameter(i) || !IsPlainParameter(body.parameter(i), shape.element(0).element(i)))
      return nullptr;
  return root;
}

// The async-start at the head of the chain of an async op, or null.
const Instruction* StartOf(const Instruction& async) {
  const Instruction* at = &async;
  int64_t steps = async.parent()->instruction_count();  // a module in the making may hold a cycle
  while (at && (at->op() == Op::AsyncDone || at->op() == Op::AsyncUpdate) && steps-- > 0)
    at = at->operand_count() > 0 ? at->operand(0) : nullptr;
  return at && at->op() == Op::AsyncStart ? at : nullptr;
}

bool IsAsyncOp(Op op) { return op == Op::AsyncStart || op == Op::AsyncUpdate || op == Op::AsyncDone; }

const Instruction* Wrapped(const Instruction& instruction) {
  if (!IsAsyncOp(instruction.op())) return nullptr;
  const Instruction* start = StartOf(instruction);
  return start ? WrappedBy(*start) : nullptr;
}

// ---- the printer
// --------------------------------------------------------------------------------------------------------

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}
  std::string Take() { return std::move(out_); }

  void AppendModule(const Module& module);
  void AppendComputation(const Computation& computation, bool is_entry);
  void AppendInstruction(const Instruction& instruction);

 private:
  template <class... Args>
  void Append(const Args&... args) {
    StrAppend(out_, args...);
  }
  void AppendHeader(const Module& module);
  void AppendStackFrames(const StackFrames& frames);
  void AppendSignature(const Computation& computation);
  void AppendOperands(const Instruction& instruction);
  void AppendConstant(const ConstantAttrs& constant);
  void AppendOpAttributes(const Instruction& instruction);
  template <class S>
  void AppendFields(Op op, const S& attrs);
  void AppendFields(Op op, const Attrs& attrs) {
    attrs.Visit([&](const auto& a) { AppendFields(op, a); });
  }
  template <class F, class S>
  void AppendField(const F& field, const S& attrs);
  void AppendCallees(const Instruction& instruction);
  void AppendExtras(const Instruction& instruction);
  void AppendName(const Instruction& instruction);
  void AppendName(const Computation& computation);
  std::string ShapeText(const Shape& shape) const { return shape.ToString(options_.layouts); }

  const PrintOptions& options_;
  std::string out_;
  // Canonical names: numbers in order of printing.
  std::map<const Instruction*, int64_t> instruction_number_;
  std::map<const Computation*, int64_t> computation_number_;
};

void Printer::AppendName(const Instruction& instruction) {
  if (options_.sigils) out_ += '%';
  if (!options_.canonical_names) return Append(instruction.name());
  Append("v", instruction_number_.emplace(&instruction, instruction_number_.size()).first->second);
}

void Printer::AppendName(const Computation& computation) {
  if (options_.sigils) out_ += '%';
  if (!options_.canonical_names) return Append(computation.name());
  Append("c", computation_number_.emplace(&computation, computation_number_.size()).first->second);
}

// ---- attributes
// -----------------------------------------------------------------------------------------------------------

template <class F, class S>
void Printer::AppendField(const F& field, const S& attrs) {
  const auto& value = attrs.*(field.member);
  static const S kDefault{};
  if (field.presence == Presence::kOptional && value == kDefault.*(field.member)) return;
  Append(", ", field.name, "=", AttrText(value));
}

template <class S>
void Printer::AppendFields(Op op, const S& attrs) {
  auto each = [&](auto&& fn) { std::apply([&](const auto&... field) { (fn(field), ...); }, S::fields()); };
  if constexpr (std::is_same_v<S, CustomCallAttrs>) {
    each([&](const auto& field) {
      AppendField(field, attrs);
      if (field.name != "custom_call_target" || !attrs.has_layout_constraints) return;
      out_ += ", operand_layout_constraints={";
      for (size_t i = 0; i < attrs.operand_layout_constraints.size(); ++i)
        Append(i ? ", " : "", attrs.operand_layout_constraints[i].ToStringWithLayout());
      out_ += '}';
    });
  } else if constexpr (std::is_same_v<S, CollectiveAttrs>) {
    // all-gather names its dimension before use_global_device_ids, reduce-scatter after.
    const bool early = op == Op::AllGather || op == Op::AllGatherStart;
    each([&](const auto& field) {
      if (field.name == "dimensions" && early) return;
      AppendField(field, attrs);
      if (field.name == "constrain_layout" && early) Append(", dimensions=", AttrText(attrs.dimensions));
    });
  } else {
    each([&](const auto& field) { AppendField(field, attrs); });
  }
}

void Printer::AppendOpAttributes(const Instruction& instruction) {
  const Op op = instruction.op();
  const bool after_callees = op == Op::Call;
  const bool late = instruction.any_attrs().is<AccuracyAttrs>();  // among the extras
  if (!after_callees && !late) AppendFields(op, instruction.any_attrs());
  AppendCallees(instruction);
  if (after_callees) AppendFields(op, instruction.any_attrs());
}

// Under the names of the op's row; "name*" is a list. A conditional on a pred names its two branches.
void Printer::AppendCallees(const Instruction& instruction) {
  const SmallVector<Computation*, 2>& called = instruction.called();
  const Op op = instruction.op();
  if (called.empty()) return;
  if ((op == Op::AsyncUpdate || op == Op::AsyncDone) && StartOf(instruction)) return;  // the start says it
  auto one = [&](std::string_view name, const Computation* c) {
    Append(", ", name, "=");
    if (c) AppendName(*c);
  };
  if (op == Op::Conditional && called.size() == 2 && instruction.operand_count() > 0 &&
      instruction.operand(0)->shape().type() == ElementType::Pred) {
    one("true_computation", called[0]);
    one("false_computation", called[1]);
    return;
  }
  std::string_view names = Info(op).callees;
  if (!names.empty() && names.back() == '*') {
    Append(", ", names.substr(0, names.size() - 1), "={");
    for (size_t i = 0; i < called.size(); ++i) {
      if (i) out_ += ", ";
      if (called[i]) AppendName(*called[i]);
    }
    out_ += '}';
    return;
  }
  const std::vector<std::string_view> parts = Split(names, ',');
  for (size_t i = 0; i < called.size() && i < parts.size(); ++i) one(parts[i], called[i]);
}

void Printer::AppendExtras(const Instruction& instruction) {
  if (options_.sharding && instruction.sharding())
    Append(", sharding=", instruction.sharding()->ToString(options_.metadata));
  if (!instruction.frontend_attributes().empty())
    Append(", frontend_attributes=", FrontendAttributesText(instruction.frontend_attributes()));
  if (options_.control_predecessors && !instruction.control_predecessors().empty()) {
    out_ += ", control-predecessors={";
    bool first = true;
    for (const Instruction* p : instruction.control_predecessors()) {
      if (!first) out_ += ", ";
      first = false;
      AppendName(*p);
    }
    out_ += '}';
  }
  if (!instruction.statistics().empty()) Append(", statistics=", instruction.statistics());
  if (const auto* accuracy = instruction.any_attrs().get_if<AccuracyAttrs>()) AppendFields(instruction.op(), *accuracy);
  if (options_.metadata && !instruction.origin().empty()) Append(", origin=", instruction.origin());
  if (options_.metadata && instruction.has_metadata()) {
    const std::string text = MetadataText(instruction.metadata());
    if (!text.empty()) Append(", metadata={", text, "}");
  }
  if (!options_.backend_config) return;
  const std::string& config = BackendConfig(instruction);
  if (config.empty()) return;
  if (ReadsAsJsonObject(config))
    Append(", backend_config=", config);
  else
    Append(", backend_config=\"", CEscape(config), "\"");
}

// ---- instructions
// -----------------------------------------------------------------------------------------------------------

void Printer::AppendConstant(const ConstantAttrs& constant) {
  const Literal& literal = constant.literal;
  const bool few = literal.shape().IsArray() && literal.num_elements() <= kFewElements;
  if (!constant.elided && literal.has_values() && (few || options_.large_constants))
    literal.AppendText(out_);
  else
    out_ += "{...}";
}

void Printer::AppendOperands(const Instruction& instruction) {
  if (const auto* constant = instruction.any_attrs().get_if<ConstantAttrs>()) return AppendConstant(*constant);
  if (const auto* parameter = instruction.any_attrs().get_if<ParameterAttrs>()) return Append(parameter->number);
  for (int64_t i = 0; i < instruction.operand_count(); ++i) {
    if (i) out_ += ", ";
    if (i && options_.sigils && i % kIndexInterval == 0) Append("/*index=", i, "*/");
    const Instruction* operand = instruction.operand(i);
    if (options_.operand_shapes) Append(ShapeText(operand->shape()), " ");
    AppendName(*operand);
  }
}

void Printer::AppendInstruction(const Instruction& instruction) {
  AppendName(instruction);
  out_ += " = ";
  if (options_.result_shape) Append(ShapeText(instruction.shape()), " ");
  const Instruction* wrapped = Wrapped(instruction);
  if (wrapped) {
    Append(Name(wrapped->op()), Name(instruction.op()).substr(std::string_view("async").size()));
  } else {
    Append(Name(instruction.op()));
  }
  out_ += '(';
  AppendOperands(instruction);
  out_ += ')';
  if (!wrapped) {
    AppendOpAttributes(instruction);
  } else {
    const AsyncAttrs& async = instruction.attrs<AsyncAttrs>();
    if (!async.async_execution_thread.empty() && instruction.op() == Op::AsyncStart)
      Append(", async_execution_thread=", AttrText(async.async_execution_thread));
    if (instruction.op() == Op::AsyncStart) {
      AppendOpAttributes(*wrapped);
      if (const auto* accuracy = wrapped->any_attrs().get_if<AccuracyAttrs>()) AppendFields(wrapped->op(), *accuracy);
    }
    if (!async.output_to_operand_aliasing.empty())
      Append(", output_to_operand_aliasing=", AttrText(async.output_to_operand_aliasing));
  }
  AppendExtras(instruction);
}

// ---- computations
// -------------------------------------------------------------------------------------------------------------

void Printer::AppendSignature(const Computation& computation) {
  out_ += '(';
  bool first = true;
  for (const Instruction* p : computation.parameters()) {
    if (!p) continue;
    if (!first) out_ += ", ";
    first = false;
    if (options_.canonical_names)
      Append("p", p->parameter_number());
    else
      Append(p->name());
    Append(": ", p->shape().ToString());
  }
  out_ += ") -> ";
  if (computation.root()) Append(computation.root()->shape().ToString());
}

void Printer::AppendComputation(const Computation& computation, bool is_entry) {
  instruction_number_.clear();
  if (is_entry) out_ += "ENTRY ";
  AppendName(computation);
  if (options_.sigils) {
    out_ += ' ';
    AppendSignature(computation);
  }
  out_ += " {\n";
  for (const Instruction* i : computation.instructions()) {
    out_ += i == computation.root() ? "  ROOT " : "  ";
    AppendInstruction(*i);
    out_ += '\n';
  }
  out_ += '}';
  const std::string& thread = computation.execution_thread();
  if (!thread.empty() && thread != "main") Append(", execution_thread=\"", CEscape(thread), "\"");
}

// ---- module
// ---------------------------------------------------------------------------------------------------------------------

void AppendIndex(std::string& out, const Dims& index) { StrAppend(out, "{", Join(index, ","), "}"); }

std::string AliasText(const std::vector<InputOutputAlias>& aliases) {
  std::string out;
  for (const InputOutputAlias& a : aliases) {
    if (!out.empty()) out += ", ";
    AppendIndex(out, a.output_index);
    StrAppend(out, ": (", a.parameter, ", ");
    AppendIndex(out, a.parameter_index);
    StrAppend(out, ", ", a.must_alias ? "must-alias" : "may-alias", ")");
  }
  return out;
}

std::string DonorText(const std::vector<BufferDonor>& donors) {
  std::string out;
  for (const BufferDonor& d : donors) {
    StrAppend(out, out.empty() ? "(" : ", (", d.parameter, ", ");
    AppendIndex(out, d.parameter_index);
    out += ')';
  }
  return out;
}

std::string EntryLayoutText(const EntryLayout& layout) {
  std::string out = "(";
  for (size_t i = 0; i < layout.parameters.size(); ++i) {
    if (i) out += ", ";
    if (i && i % kIndexInterval == 0) StrAppend(out, "/*index=", i, "*/");
    out += layout.parameters[i].ToStringWithLayout();
  }
  return StrCat(out, ")->", layout.result.ToStringWithLayout());
}

bool HasCompleteEntry(const Module& module) {
  const Computation* entry = module.entry();
  if (!entry || !entry->root()) return false;
  for (const Instruction* p : entry->parameters())
    if (!p) return false;
  return true;
}

void Printer::AppendHeader(const Module& module) {
  const ModuleConfig& config = module.config();
  Append("HloModule ", options_.canonical_names ? "m" : module.name());
  if (config.is_scheduled) out_ += ", is_scheduled=true";
  if (!config.input_output_alias.empty()) Append(", input_output_alias={ ", AliasText(config.input_output_alias), " }");
  if (!config.buffer_donors.empty()) Append(", buffer_donor={ ", DonorText(config.buffer_donors), " }");
  if (config.has_entry_layout || HasCompleteEntry(module))
    Append(", entry_computation_layout={", EntryLayoutText(module.EffectiveEntryLayout()), "}");
  if (!config.allow_spmd_sharding_propagation_to_parameters.empty())
    Append(", allow_spmd_sharding_propagation_to_parameters=",
           AttrText(config.allow_spmd_sharding_propagation_to_parameters));
  if (!config.allow_spmd_sharding_propagation_to_output.empty())
    Append(", allow_spmd_sharding_propagation_to_output=", AttrText(config.allow_spmd_sharding_propagation_to_output));
  if (config.replica_count != 1) Append(", replica_count=", config.replica_count);
  if (config.num_partitions != 1) Append(", num_partitions=", config.num_partitions);
  if (!config.frontend_attributes.empty())
    Append(", frontend_attributes=", FrontendAttributesText(config.frontend_attributes));
  for (const auto& [name, value] : config.other_attributes) Append(", ", name, "=", value);
  if (options_.metadata && !config.stack_frames.empty()) AppendStackFrames(config.stack_frames);
  out_ += "\n\n";
}

void Printer::AppendStackFrames(const StackFrames& frames) {
  auto names = [&](std::string_view title, const std::vector<std::string>& list) {
    Append("\n", title, "\n");
    for (size_t i = 0; i < list.size(); ++i) Append(i + 1, " \"", CEscape(list[i]), "\"\n");
  };
  out_ += '\n';
  names("FileNames", frames.file_names);
  names("FunctionNames", frames.function_names);
  out_ += "\nFileLocations\n";
  int64_t id = 0;
  for (const StackFrames::FileLocation& l : frames.file_locations)
    Append(++id, " {file_name_id=", l.file_name_id, " function_name_id=", l.function_name_id, " line=", l.line,
           " end_line=", l.end_line, " column=", l.column, " end_column=", l.end_column, "}\n");
  out_ += "\nStackFrames\n";
  id = 0;
  for (const StackFrames::Frame& f : frames.frames)
    Append(++id, " {file_location_id=", f.file_location_id, " parent_frame_id=", f.parent_frame_id + 1, "}\n");
}

// Computations that only sugar refers to.
std::set<const Computation*> HiddenBySugar(const Module& module) {
  std::set<const Computation*> hidden, shown;
  for (const Computation* c : module.computations()) {
    for (const Instruction* i : c->instructions()) {
      if (i->called().empty()) continue;
      const bool sugar = Wrapped(*i) != nullptr;
      for (const Computation* callee : i->called()) (sugar ? hidden : shown).insert(callee);
    }
  }
  for (const Computation* c : shown) hidden.erase(c);
  hidden.erase(module.entry());
  return hidden;
}

void Printer::AppendModule(const Module& module) {
  AppendHeader(module);
  const std::set<const Computation*> hidden = HiddenBySugar(module);
  for (const Computation* c : module.PostOrder()) {
    if (hidden.count(c)) continue;
    AppendComputation(*c, c == module.entry());
    out_ += "\n\n";
  }
}

}  // namespace

PrintOptions PrintOptions::Short() {
  PrintOptions options;
  options.sigils = false;
  return options;
}

PrintOptions PrintOptions::Fingerprint() {
  PrintOptions options;
  options.metadata = false;
  options.canonical_names = true;
  return options;
}

std::string PrintModule(const Module& module, const PrintOptions& options) {
  Printer printer(options);
  printer.AppendModule(module);
  return printer.Take();
}

std::string PrintComputation(const Computation& computation, const PrintOptions& options) {
  Printer printer(options);
  printer.AppendComputation(computation, computation.module() && computation.IsEntry());
  return printer.Take();
}

std::string PrintInstruction(const Instruction& instruction, const PrintOptions& options) {
  Printer printer(options);
  printer.AppendInstruction(instruction);
  return printer.Take();
}

}  // namespace strop
