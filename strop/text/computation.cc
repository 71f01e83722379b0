// Modules as lists of computations, computations as lists of instructions; calls across them.
#include <algorithm>

#include "strop/text/module_parser.h"
#include "strop/text/parser.h"

namespace strop {

Result<std::unique_ptr<Module>> ParseHloModule(std::string_view text, std::string_view file_name) {
  return ModuleParser(text, file_name).Run();
}

Status LocateInText(const Status& violation, std::string_view text, std::string_view file_name) {
  ModuleParser parser(text, file_name);
  Result<std::unique_ptr<Module>> module = parser.Run();  // lives while its instructions are looked at
  return module.ok() ? parser.Locate(violation) : violation;
}

Status ModuleParser::Locate(const Status& violation) const {
  const auto found = std::find_if(definitions_.begin(), definitions_.end(),
                                  [&](const auto& d) { return d.first->Where() == violation.location(); });
  // Instructions that came from a user's program name their line of that.
  if (found == definitions_.end() || !violation.location().starts_with('%')) return violation;
  Status located = at_.ErrorAt(found->second, violation.message());
  for (const std::string& note : violation.notes()) located = std::move(located).Note(note);
  return located;
}

Result<std::unique_ptr<Module>> ModuleParser::Run() {
  module_ = std::make_unique<Module>("_");
  const bool has_header = at_.ConsumeWord("HloModule");
  if (has_header) STROP_TRY(ParseHeader());
  if (!has_header && StartsWithInstruction()) {
    STROP_TRY(ParseSingleInstruction());
  } else {
    STROP_TRY(ParseComputations());
    if (!has_header) module_->set_name(StrCat("module_", module_->entry()->name()));
  }
  STROP_TRY(ResolveForwardCalls());
  UnwrapResultLayout();
  return std::move(module_);
}

// entry_computation_layout={...->(f32[2]{0})} beside a root of f32[2]: XLA reads it, and means the array.
void ModuleParser::UnwrapResultLayout() {
  ModuleConfig& config = module_->config();
  Shape& result = config.entry_layout.result;
  const Shape& root = module_->entry()->root()->shape();
  if (!config.has_entry_layout || root.IsTuple() || !result.IsTuple() || result.tuple_size() != 1) return;
  Shape element = result.element(0);
  if (element.Compatible(root)) result = std::move(element);
}

bool ModuleParser::IsName() { return at_.Peek() == '%' || IsWordStart(at_.Peek()); }

std::string_view ModuleParser::Name() {
  const size_t start = at_.offset();
  at_.Consume('%');
  const std::string_view name = at_.Word();
  if (name.empty()) at_.set_offset(start);
  return name;
}

// A text without a header: `%x = f32[2] add(...)` or `f32[2] add(...)`, and not `main {` or `ENTRY ...`.
bool ModuleParser::StartsWithInstruction() {
  if (at_.AtEnd()) return false;
  const size_t start = at_.offset();
  bool instruction = at_.Peek() == '(';
  if (!instruction && at_.PeekWord() != "ENTRY" && !Name().empty()) {
    const char next = at_.Peek();
    instruction = next == '=' || next == '[';
  }
  at_.set_offset(start);
  return instruction;
}

// ---- computations
// -----------------------------------------------------------------------------------------------------------

Status ModuleParser::ParseComputations() {
  do {
    at_.SkipSpace();
    const size_t offset = at_.offset();
    const bool is_entry = at_.ConsumeWord("ENTRY");
    STROP_TRY(ParseComputation(is_entry, offset));
  } while (!at_.AtEnd());
  if (module_->entry()) return OkStatus();
  if (IsFullForm() && module_->computations().size() > 1)
    return at_.ErrorAt(0, "no computation is the ENTRY: a module with an entry_computation_layout says which one is");
  module_->set_entry(last_computation_);
  return OkStatus();
}

Status ModuleParser::ParseComputation(bool is_entry, size_t offset) {
  at_.SkipSpace();
  const size_t name_offset = at_.offset();
  const std::string_view name = Name();
  if (name.empty()) return at_.Expected("ENTRY or the name of a computation");
  if (is_entry && module_->entry())
    return at_.ErrorAt(offset, "a second ENTRY; '", module_->entry()->name(), "' is one already");
  if (computations_.count(name)) return at_.ErrorAt(name_offset, "computation '", name, "' is defined twice");
  std::optional<Shape> declared;
  size_t shape_offset = 0;
  if (at_.Peek() == '(') STROP_TRY(ParseSignature(declared, shape_offset));
  STROP_ASSIGN(Computation * computation, ParseBody(name));
  if (declared && !declared->Compatible(computation->root()->shape()))
    return at_.ErrorAt(shape_offset, "computation '", name, "' is declared to return ", declared->ToString(),
                       ", but its root '", computation->root()->name(), "' has shape ",
                       computation->root()->shape().ToString());
  if (at_.Consume(',')) {
    if (!at_.ConsumeWord("execution_thread") || !at_.Consume('=')) return at_.Expected("execution_thread=");
    STROP_ASSIGN(std::string thread, at_.String());
    computation->set_execution_thread(thread == "main" ? "" : thread);
  }
  computations_[name] = computation;
  last_computation_ = computation;
  if (is_entry) module_->set_entry(computation);
  return OkStatus();
}

// (name: shape, ...) -> shape. The parameter list says nothing that the parameters don't; as XLA, it is not compared.
Status ModuleParser::ParseSignature(std::optional<Shape>& result, size_t& result_offset) {
  STROP_TRY(at_.Expect('('));
  if (!at_.Consume(')')) {
    do {
      if (Name().empty()) return at_.Expected("the name of a parameter");
      STROP_TRY(at_.Expect(':'));
      STROP_TRY(ParseShape(at_));
    } while (at_.Consume(','));
    STROP_TRY(at_.Expect(')'));
  }
  if (!at_.Consume("->")) return at_.Expected("'->' and the shape of the result");
  at_.SkipSpace();
  result_offset = at_.offset();
  STROP_ASSIGN(result, ParseShape(at_));
  return OkStatus();
}

Result<Computation*> ModuleParser::ParseBody(std::string_view name) {
  if (depth_ > kMaxParseDepth) return at_.Error("computations are nested more than ", kMaxParseDepth, " deep");
  ++depth_;
  at_.SkipSpace();
  const size_t offset = at_.offset();
  STROP_TRY(at_.Expect('{'));
  Scope scope{.computation = module_->AddComputation(std::string(name)), .names = {}};
  do {
    Status status = ParseInstruction(scope);
    if (!status.ok()) return std::move(status).Note(StrCat("in computation '", name, "'"));
  } while (at_.Peek() != '}' && !at_.AtEnd());
  if (!at_.Consume('}')) return at_.ErrorAt(offset, "the '{' of computation '", name, "' has no matching '}'");
  Computation* computation = scope.computation;
  if (!scope.root.instruction && IsFullForm())
    return at_.ErrorAt(scope.last_offset, "computation '", name, "' has no ROOT: a module with an ",
                       "entry_computation_layout marks the result of each computation; is it '",
                       computation->last()->name(), "'?");
  computation->set_root(scope.root.instruction ? scope.root.instruction : computation->last());
  STROP_TRY(CheckParameters(*computation, offset));
  --depth_;
  return computation;
}

Status ModuleParser::CheckParameters(const Computation& computation, size_t offset) {
  for (int64_t i = 0; i < computation.parameter_count(); ++i)
    if (!computation.parameter(i))
      return at_.ErrorAt(offset, "computation '", computation.name(), "' has a parameter(",
                         computation.parameter_count() - 1, "), but no parameter(", i, ")");
  return OkStatus();
}

Status ModuleParser::ParseSingleInstruction() {
  Scope scope{.computation = module_->AddComputation("entry"), .names = {}, .is_single_instruction = true};
  const bool has_name = IsName() && [&] {
    const size_t start = at_.offset();
    Name();
    const bool assigned = at_.Peek() == '=';
    at_.set_offset(start);
    return assigned;
  }();
  if (has_name) {
    STROP_TRY(ParseInstruction(scope));
  } else {
    Draft draft;
    STROP_TRY(ParseRhs(scope, draft, /*with_attributes=*/true));
  }
  if (!at_.AtEnd())
    return at_.Expected("the end of the text after a single instruction (a module begins with HloModule)");
  scope.computation->set_root(scope.computation->last());
  STROP_TRY(CheckParameters(*scope.computation, 0));
  module_->set_entry(scope.computation);
  return OkStatus();
}

// ---- calls
// --------------------------------------------------------------------------------------------------------------------

Status ModuleParser::ResolveForwardCalls() {
  for (const ForwardCall& call : forward_calls_) {
    auto found = computations_.find(call.name);
    if (found == computations_.end()) {
      std::vector<std::string_view> known;
      for (Computation* c : module_->computations()) known.push_back(c->name());
      const std::string_view near = Nearest(call.name, known);
      return at_.ErrorAt(call.offset, "there is no computation '", call.name, "'",
                         near.empty() ? "" : "; did you mean ", near);
    }
    call.user->SetCalled(call.slot, found->second);
  }
  return forward_calls_.empty() ? OkStatus() : CheckNoCallCycle();
}

// Only a call to what stands further down can close a circle. Depth first, without recursion; a circle runs through the
// open ones.
Status ModuleParser::CheckNoCallCycle() {
  enum : uint8_t { kNew, kOpen, kDone };
  std::unordered_map<const Computation*, uint8_t> state;
  struct Frame {
    const Computation* at;
    std::vector<const Computation*> callees;
    size_t next = 0;
  };
  auto callees_of = [](const Computation* c) {
    std::vector<const Computation*> callees;
    for (const Instruction* i : c->instructions())
      callees.insert(callees.end(), i->called().begin(), i->called().end());
    return callees;
  };
  for (const ForwardCall& call : forward_calls_) {
    const Computation* start = call.user->parent();
    if (state[start] != kNew) continue;
    std::vector<Frame> stack;
    stack.push_back({start, callees_of(start)});
    state[start] = kOpen;
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next == frame.callees.size()) {
        state[frame.at] = kDone;
        stack.pop_back();
        continue;
      }
      const Computation* callee = frame.callees[frame.next++];
      if (state[callee] == kOpen) {
        std::string circle;
        auto from = std::find_if(stack.begin(), stack.end(), [&](const Frame& f) { return f.at == callee; });
        for (; from != stack.end(); ++from) StrAppend(circle, from->at->name(), " -> ");
        return at_.ErrorAt(call.offset, "computations call each other in a circle: ", circle, callee->name());
      }
      if (state[callee] != kNew) continue;
      state[callee] = kOpen;
      stack.push_back({callee, callees_of(callee)});
    }
  }
  return OkStatus();
}

}  // namespace strop
