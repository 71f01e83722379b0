// One instruction: `[ROOT] name = [shape] opcode(operands) [, attribute=value ...]`.
//
// Async sugar `X-start(...)` makes the computation that async-start calls: parameters of the operands' shapes and one
// X. `X-update` and `X-done`, and plain async-update and async-done, take the callee from the op at the head of their
// chain.
#include <algorithm>

#include "strop/ir/builder.h"
#include "strop/text/literal_parse.h"
#include "strop/text/module_parser.h"

namespace strop {
namespace {

bool IsAsyncOp(Op op) { return op == Op::AsyncStart || op == Op::AsyncUpdate || op == Op::AsyncDone; }

// These have "-start" and "-done" ops of their own (the table finds them first), and no "-update".
bool HasOwnStart(Op op) {
  return op == Op::AllGather || op == Op::AllReduce || op == Op::CollectivePermute || op == Op::Copy ||
         op == Op::Send || op == Op::Recv;
}

}  // namespace

Status ModuleParser::ParseInstruction(Scope& scope) {
  at_.SkipSpace();
  const size_t root_offset = at_.offset();
  const bool is_root = at_.ConsumeWord("ROOT");
  Draft draft;
  at_.SkipSpace();
  draft.name_offset = at_.offset();
  draft.name = Name();
  if (draft.name.empty()) return at_.Expected("an instruction (name = shape opcode(operands)) or '}'");
  STROP_TRY(at_.Expect('='));
  if (is_root && scope.root.instruction)
    return at_.ErrorAt(root_offset, "a second ROOT; '", scope.root.instruction->name(), "' (",
                       at_.Position(scope.root.offset), ") is one already");
  auto defined = scope.names.find(draft.name);
  if (defined != scope.names.end())
    return at_.ErrorAt(draft.name_offset, "instruction '", draft.name, "' is defined twice, first at ",
                       at_.Position(defined->second.offset));
  STROP_ASSIGN(Instruction * made, ParseRhs(scope, draft, /*with_attributes=*/true));
  scope.names.emplace(draft.name, Defined{made, draft.name_offset});
  scope.last_offset = root_offset;
  if (is_root) scope.root = {made, root_offset};
  return OkStatus();
}

Result<Instruction*> ModuleParser::ParseRhs(Scope& scope, Draft& draft, bool with_attributes) {
  if (depth_ > kMaxParseDepth) return at_.Error("instructions are nested more than ", kMaxParseDepth, " deep");
  ++depth_;
  // A shape is `(`..., `b(`... or an element type and `[`; an opcode is followed by `(`.
  const char first = at_.Peek();
  const std::string_view word = at_.PeekWord();
  if (first == '(' || word == "b" || ParseElementType(word)) {
    STROP_ASSIGN(draft.shape, ParseShape(at_));
  }
  STROP_TRY(ParseOpcode(draft));
  STROP_TRY(ParseParenthesised(scope, draft));
  if (with_attributes) STROP_TRY(ParseAttributes(scope, draft));
  STROP_TRY(CheckRequired(draft, draft.op_offset));
  STROP_ASSIGN(Instruction * made, Create(scope, draft));
  --depth_;
  return made;
}

Status ModuleParser::ParseOpcode(Draft& draft) {
  std::string_view text = at_.PeekWord();
  draft.op_offset = at_.offset();
  if (text.empty()) return at_.Expected(draft.shape ? "an opcode" : "a shape or an opcode");
  at_.Word();
  if (std::optional<Op> op = ParseOp(text)) {
    draft.op = *op;
    draft.attrs = DefaultAttrs(draft.op);
    return OkStatus();
  }
  static constexpr std::pair<std::string_view, Op> kSuffixes[] = {
      {"-start", Op::AsyncStart}, {"-update", Op::AsyncUpdate}, {"-done", Op::AsyncDone}};
  for (const auto& [suffix, async] : kSuffixes) {
    if (text.size() <= suffix.size() || text.substr(text.size() - suffix.size()) != suffix) continue;
    std::optional<Op> wrapped = ParseOp(text.substr(0, text.size() - suffix.size()));
    if (!wrapped || HasOwnStart(*wrapped) || Is(*wrapped, kAsync)) break;
    draft.op = async;
    draft.wrapped = *wrapped;
    draft.attrs = async == Op::AsyncStart ? DefaultAttrs(*wrapped) : Attrs(NoAttrs{});
    return OkStatus();
  }
  std::vector<std::string_view> known;
  for (const OpInfo& info : kOps) known.push_back(info.text);
  const std::string_view near = Nearest(text, known);
  return at_.ErrorAt(draft.op_offset, "there is no op '", text, "'", near.empty() ? "" : "; did you mean ", near);
}

// ---- between the parentheses
// ------------------------------------------------------------------------------------------------

Status ModuleParser::ParseParenthesised(Scope& scope, Draft& draft) {
  if (draft.wrapped != Op::kEnd || (draft.op != Op::Constant && draft.op != Op::Parameter))
    return ParseOperands(scope, draft);
  if (!draft.shape)
    return at_.ErrorAt(draft.op_offset, "expected the shape of the ", strop::Name(draft.op), " before its opcode");
  STROP_TRY(at_.Expect('('));
  if (draft.op == Op::Constant) {
    if ((draft.shape->IsTuple() || draft.shape->rank() > 0) && ConsumeElided(at_)) {
      draft.attrs = ConstantAttrs{ElidedLiteral(*draft.shape, made_up_), /*elided=*/true};
      return at_.Expect(')');
    }
    STROP_ASSIGN(Literal literal, ParseLiteral(at_, *draft.shape, made_up_));
    draft.attrs = ConstantAttrs{literal.shape() == *draft.shape ? std::move(literal) : literal.WithShape(*draft.shape)};
    return at_.Expect(')');
  }
  at_.SkipSpace();
  const size_t offset = at_.offset();
  ParameterAttrs attrs;
  if (!at_.Int(attrs.number)) return at_.Expected("the number of the parameter");
  STROP_TRY(CheckParameterNumber(scope, attrs.number, offset));
  draft.attrs = std::move(attrs);
  return at_.Expect(')');
}

Status ModuleParser::CheckParameterNumber(const Scope& scope, int64_t number, size_t offset) {
  if (number < 0) return at_.ErrorAt(offset, "parameter number ", number, " is negative");
  // Every lower number must stand somewhere in the text, and takes more than this many characters there: a larger one
  // is a slip (and would cost memory).
  constexpr int64_t kShortestParameter = 16;
  if (number > static_cast<int64_t>(at_.text().size()) / kShortestParameter)
    return at_.ErrorAt(offset, "parameter number ", number, " is larger than this computation can have parameters");
  if (number < scope.computation->parameter_count() && scope.computation->parameter(number))
    return at_.ErrorAt(offset, "parameter number ", number, " is taken by '",
                       scope.computation->parameter(number)->name(), "'");
  return OkStatus();
}

Status ModuleParser::ParseOperands(Scope& scope, Draft& draft) {
  at_.SkipSpace();
  draft.operands_offset = at_.offset();
  STROP_TRY(at_.Expect('('));
  if (!at_.Consume(')')) {
    do {
      STROP_ASSIGN(Instruction * operand, ParseOperand(scope));
      if (operand) draft.operands.push_back(operand);
    } while (at_.Consume(','));
    if (!at_.Consume(')')) return at_.Expected("',' or ')' after an operand");
  }
  const Op op = draft.wrapped != Op::kEnd ? Op::kEnd : draft.op;
  if (op == Op::kEnd || Info(op).arity == kVariadic) return OkStatus();
  const size_t expected = static_cast<size_t>(Info(op).arity);
  if (draft.operands.size() == expected) return OkStatus();
  return at_.ErrorAt(draft.operands_offset, strop::Name(op), " takes ", expected,
                     expected == 1 ? " operand" : " operands", ", but has ", draft.operands.size());
}

// [shape] name, [shape] name#1, or a nested instruction. Null for a shape with nothing behind it, which XLA passes over
// (`add(f32[] x, f32[], y)` has two operands).
Result<Instruction*> ModuleParser::ParseOperand(Scope& scope) {
  at_.SkipSpace();
  const size_t start = at_.offset();
  std::optional<Shape> shape;
  const std::string_view word = at_.PeekWord();
  auto follows = [&](char c) {  // is the character behind the next word
    at_.Word();
    const bool yes = at_.Peek() == c;
    at_.set_offset(start);
    return yes;
  };
  const bool is_shape = at_.Peek() == '(' || (word == "b" && follows('(')) || (ParseElementType(word) && follows('['));
  if (is_shape) {
    STROP_ASSIGN(shape, ParseShape(at_));
  }
  at_.SkipSpace();
  const size_t name_offset = at_.offset();
  const std::string_view name = Name();
  if (!name.empty() && at_.Peek() == '(') {
    at_.set_offset(start);
    Draft nested;
    nested.name_offset = start;
    return ParseRhs(scope, nested, /*with_attributes=*/false);
  }
  if (name.empty() && shape && !scope.is_single_instruction && at_.Peek() == ',') return nullptr;
  if (name.empty() && !(shape && scope.is_single_instruction)) return at_.Expected("an operand");
  STROP_ASSIGN(Instruction * operand, NamedOperand(scope, name, name_offset, shape));
  const size_t end = at_.offset();
  while (at_.Consume('#')) {
    STROP_ASSIGN(operand, ElementOperand(scope, operand, name, name_offset));
  }
  if (shape && end == at_.offset() && !shape->Compatible(operand->shape()))
    return at_.ErrorAt(start, "operand '", name, "' is declared as ", shape->ToString(), ", but has shape ",
                       operand->shape().ToString());
  return operand;
}

Result<Instruction*> ModuleParser::NamedOperand(Scope& scope, std::string_view name, size_t offset,
                                                const std::optional<Shape>& shape) {
  auto found = scope.names.find(name);
  if (found != scope.names.end() && !name.empty()) return found->second.instruction;
  if (!scope.is_single_instruction) {
    std::vector<std::string_view> known;
    for (Instruction* i : scope.computation->instructions()) known.push_back(i->name());
    const std::string_view near = known.size() < 5000 ? Nearest(name, known) : std::string_view();
    return at_.ErrorAt(offset, "there is no instruction '", name, "' before this one in the computation",
                       near.empty() ? "" : "; did you mean ", near);
  }
  if (!shape) return at_.ErrorAt(offset, "operand '", name, "' of a single instruction needs a shape before its name");
  const int64_t number = scope.made_parameters++;
  if (name.empty()) name = *made_names_.emplace_back(std::make_unique<std::string>(StrCat("_", number)));
  Instruction* made = scope.computation->AddParameter(number, *shape, std::string(name));
  scope.names.emplace(name, Defined{made, offset});
  return made;
}

// tuple#1 stands for get-tuple-element(tuple), index=1, made once.
Result<Instruction*> ModuleParser::ElementOperand(Scope& scope, Instruction* tuple, std::string_view name,
                                                  size_t offset) {
  int64_t index;
  if (!at_.Int(index)) return at_.Expected("the number of a tuple element");
  if (!tuple->shape().IsTuple() || index < 0 || index >= tuple->shape().tuple_size())
    return at_.ErrorAt(offset, "'", name, "' of shape ", tuple->shape().ToString(), " has no element ", index);
  std::string key = StrCat(tuple->name(), "#", index);
  auto found = scope.names.find(key);
  if (found != scope.names.end()) return found->second.instruction;
  std::string made_name = key;
  std::replace(made_name.begin(), made_name.end(), '#', '_');
  Instruction* made = scope.computation->Add(Op::GetTupleElement, tuple->shape().element(index), {tuple},
                                             GetTupleElementAttrs{index}, made_name);
  scope.names.emplace(*made_names_.emplace_back(std::make_unique<std::string>(std::move(key))), Defined{made, offset});
  return made;
}

// ---- creation
// -----------------------------------------------------------------------------------------------------------------

Result<Instruction*> ModuleParser::Create(Scope& scope, Draft& draft) {
  std::string name = draft.name.empty() ? StrCat(strop::Name(draft.op), ".anon") : std::string(draft.name);
  if (draft.wrapped != Op::kEnd && draft.op == Op::AsyncStart) {
    STROP_ASSIGN(Computation * wrapper, WrapAsync(draft));
    draft.callees.assign(1, CalleeRef{wrapper, {}, 0});
    draft.attrs = draft.async;
  } else if (draft.wrapped != Op::kEnd) {
    draft.attrs = draft.async;
  }
  if (draft.op == Op::AsyncUpdate || draft.op == Op::AsyncDone) STROP_TRY(InheritAsyncCallees(draft));
  const bool all_dimensions = draft.op == Op::Map && !draft.operands.empty() &&
                              std::find(draft.seen.begin(), draft.seen.end(), "dimensions") == draft.seen.end();
  if (all_dimensions) {
    Dims& dimensions = draft.attrs.get_if<DimensionsAttrs>()->dimensions;
    for (int64_t i = 0; i < draft.operands[0]->shape().rank(); ++i) dimensions.push_back(i);
  }
  if (!draft.shape) STROP_TRY(InferMissingShape(draft));
  // An outfeed gives a token; older texts say ().
  if (draft.op == Op::Outfeed && draft.shape->IsTuple() && draft.shape->tuple_size() == 0) draft.shape = Shape::Token();
  if (CustomCallAttrs* custom_call = draft.attrs.get_if<CustomCallAttrs>()) {
    custom_call->opaque = std::move(draft.backend_config);
    draft.backend_config.clear();
  }
  Instruction* made = scope.computation->Add(draft.op, std::move(*draft.shape), draft.operands, std::move(draft.attrs),
                                             std::move(name));
  SetCallees(draft, made);
  SetExtras(draft, made);
  definitions_.emplace_back(made, draft.name.empty() ? draft.op_offset : draft.name_offset);
  return made;
}

void ModuleParser::SetCallees(const Draft& draft, Instruction* made) {
  SmallVector<Computation*, 2> called;
  for (const CalleeRef& callee : draft.callees) {
    if (!callee.computation)
      forward_calls_.push_back({made, static_cast<int64_t>(called.size()), callee.name, callee.offset});
    called.push_back(callee.computation);
  }
  made->set_called(called);
}

void ModuleParser::SetExtras(Draft& draft, Instruction* made) {
  if (draft.sharding) made->set_sharding(std::move(*draft.sharding));
  if (draft.metadata) made->set_metadata(draft.metadata);
  if (!draft.frontend_attributes.empty()) made->set_frontend_attributes(draft.frontend_attributes);
  if (!draft.backend_config.empty()) made->set_backend_config(draft.backend_config);
  if (!draft.origin.empty()) made->set_origin(draft.origin);
  if (!draft.statistics.empty()) made->set_statistics(draft.statistics);
  for (Instruction* p : draft.control_predecessors) made->AddControlPredecessor(p);
}

Status ModuleParser::InferMissingShape(Draft& draft) {
  std::vector<const Shape*> shapes;
  for (const Instruction* o : draft.operands) shapes.push_back(&o->shape());
  std::vector<Computation*> called;
  for (const CalleeRef& callee : draft.callees) {
    if (!callee.computation)
      return at_.ErrorAt(draft.op_offset, "expected the shape of the result: it cannot be inferred because '",
                         callee.name, "' is defined further down");
    called.push_back(callee.computation);
  }
  Result<Shape> shape = InferShape(draft.op, shapes, draft.attrs, called, nullptr);
  if (!shape.ok()) return at_.Locate(std::move(shape).status(), draft.op_offset);
  draft.shape = *std::move(shape);
  return OkStatus();
}

Result<Computation*> ModuleParser::WrapAsync(Draft& draft) {
  if (!draft.shape || !draft.shape->IsTuple() || draft.shape->tuple_size() < 2 || !draft.shape->element(0).IsTuple() ||
      draft.shape->element(0).tuple_size() != static_cast<int64_t>(draft.operands.size()))
    return at_.ErrorAt(draft.op_offset, strop::Name(draft.wrapped),
                       "-start needs the shape ((operand shapes), result shape, ...) before it");
  Computation* wrapper = module_->AddComputation("async_wrapped");
  wrapper->set_execution_thread(draft.async.async_execution_thread);
  std::vector<Instruction*> parameters;
  for (const Shape& shape : draft.shape->element(0).elements())
    parameters.push_back(wrapper->AddParameter(static_cast<int64_t>(parameters.size()), shape, "async_param"));
  Draft inner;
  inner.callees = std::move(draft.callees);
  inner.metadata = draft.metadata;
  inner.frontend_attributes = draft.frontend_attributes;
  inner.backend_config = draft.backend_config;
  inner.origin = draft.origin;
  inner.statistics = draft.statistics;
  if (CustomCallAttrs* custom_call = draft.attrs.get_if<CustomCallAttrs>()) {
    custom_call->opaque = std::move(inner.backend_config);
    inner.backend_config.clear();
  }
  Instruction* root =
      wrapper->Add(draft.wrapped, draft.shape->element(1), parameters, std::move(draft.attrs), "async_op");
  SetCallees(inner, root);
  SetExtras(inner, root);
  wrapper->set_root(root);
  return wrapper;
}

// What the text says of an update or a done must agree with the start, and is otherwise taken from there. The operand
// may be something else (a parameter of a loop body): then there is nothing to inherit.
Status ModuleParser::InheritAsyncCallees(Draft& draft) {
  if (draft.operands.empty()) return at_.ErrorAt(draft.operands_offset, strop::Name(draft.op), " needs an operand");
  const Instruction* previous = draft.operands[0];
  if (!IsAsyncOp(previous->op()) || previous->called().empty()) return OkStatus();
  if (previous->op() == Op::AsyncDone)
    return at_.ErrorAt(draft.operands_offset, "'", previous->name(), "' is done already");
  Computation* callee = previous->called(0);
  if (draft.wrapped != Op::kEnd && callee && callee->root() && callee->root()->op() != draft.wrapped)
    return at_.ErrorAt(draft.op_offset, "'", previous->name(), "' runs ", strop::Name(callee->root()->op()), ", not ",
                       strop::Name(draft.wrapped));
  if (!draft.callees.empty() && callee && draft.callees[0].computation != callee)
    return at_.ErrorAt(draft.op_offset, "'", previous->name(), "' calls '", callee->name(), "'; calls= must agree");
  if (!callee) {  // a forward reference of the start
    for (const ForwardCall& call : forward_calls_)
      if (call.user == previous) draft.callees.assign(1, CalleeRef{nullptr, call.name, call.offset});
    return OkStatus();
  }
  draft.callees.assign(1, CalleeRef{callee, {}, 0});
  return OkStatus();
}

}  // namespace strop
