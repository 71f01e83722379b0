// `, name=value` after an instruction. A name is looked up among the attributes that every instruction may have, the
// callee names of the op's row, and the fields() of its attributes struct; nothing here knows an op's fields by name.
#include <algorithm>

#include "strop/text/attr_parse.h"
#include "strop/text/module_parser.h"

namespace strop {
namespace {

constexpr std::string_view kCommon[] = {
    "sharding", "metadata", "backend_config", "frontend_attributes", "control-predecessors", "origin", "statistics"};

// The op whose attributes the text gives: the wrapped one in async sugar.
Op AttributedOp(Op op, Op wrapped) { return wrapped != Op::kEnd && op == Op::AsyncStart ? wrapped : op; }

template <class S>
Result<bool> ParseFieldOf(Cursor& at, S& attrs, std::string_view name) {
  bool found = false;
  Status status;
  auto try_field = [&](const auto& field) {
    if (found || field.name != name) return;
    found = true;
    status = ParseAttr(at, attrs.*(field.member));
  };
  std::apply([&](const auto&... field) { (try_field(field), ...); }, S::fields());
  if (!status.ok()) return status;
  return found;
}

Result<bool> ParseField(Cursor& at, Attrs& attrs, std::string_view name) {
  if (auto* custom_call = attrs.get_if<CustomCallAttrs>(); custom_call && name == "operand_layout_constraints") {
    custom_call->has_layout_constraints = true;
    STROP_TRY(at.Expect('{'));
    if (at.Consume('}')) return true;
    do {
      STROP_ASSIGN(Shape shape, ParseShape(at));
      custom_call->operand_layout_constraints.push_back(shape.WithDefaultLayout());
    } while (at.Consume(','));
    STROP_TRY(at.Expect('}'));
    return true;
  }
  STROP_ASSIGN(bool found, attrs.Visit([&](auto& a) { return ParseFieldOf(at, a, name); }));
  if (auto* collective = attrs.get_if<CollectiveAttrs>(); collective && name == "dimensions")
    collective->has_dimensions = true;
  return found;
}

// fn(name, presence) for each field.
template <class F>
void ForEachField(const Attrs& attrs, F&& fn) {
  attrs.Visit([&]<class S>(const S&) {
    std::apply([&](const auto&... field) { (fn(field.name, field.presence), ...); }, S::fields());
  });
}

std::vector<std::string_view> CalleeNames(Op op) {
  if (op == Op::Conditional) return {"branch_computations", "true_computation", "false_computation"};
  if (op == Op::CustomCall) return {"called_computations", "to_apply"};
  std::string_view names = Info(op).callees;
  if (names.empty()) return {};
  return Split(names, ',');
}

bool NeedsCallees(Op op) {
  return !Info(op).callees.empty() && op != Op::CustomCall && op != Op::TopK && op != Op::AsyncUpdate &&
         op != Op::AsyncDone;
}

}  // namespace

Status ModuleParser::ParseAttributes(Scope& scope, Draft& draft) {
  while (at_.Consume(',')) {
    const std::string_view name = at_.PeekWord();
    const size_t offset = at_.offset();
    if (name.empty()) return at_.Expected("an attribute");
    at_.Word();
    if (!at_.Consume('=')) return at_.Expected(StrCat("'=' after the attribute '", name, "'"));
    if (std::find(draft.seen.begin(), draft.seen.end(), name) != draft.seen.end())
      return at_.ErrorAt(offset, "attribute ", name, " is given twice");
    draft.seen.push_back(name);
    STROP_TRY(ParseAttribute(scope, draft, name, offset));
  }
  return OkStatus();
}

Status ModuleParser::ParseAttribute(Scope& scope, Draft& draft, std::string_view name, size_t offset) {
  STROP_ASSIGN(bool found, ParseCommonAttribute(scope, draft, name));
  if (!found) {
    STROP_ASSIGN(found, ParseCallee(draft, name));
  }
  if (!found && draft.wrapped != Op::kEnd) {
    STROP_ASSIGN(found, ParseFieldOf(at_, draft.async, name));
  }
  if (!found) {
    STROP_ASSIGN(found, ParseField(at_, draft.attrs, name));
  }
  if (!found && name == "parameter_replication") {  // XLA lets any instruction carry it; only parameters mean it
    std::vector<bool> ignored;
    STROP_TRY(ParseAttr(at_, ignored));
    found = true;
  }
  if (!found) return UnknownAttribute(draft, name, offset);
  if (name == "async_execution_thread") {
    std::string& thread = draft.wrapped != Op::kEnd ? draft.async.async_execution_thread
                                                    : draft.attrs.get_if<AsyncAttrs>()->async_execution_thread;
    if (thread == "main") thread.clear();
  }
  return OkStatus();
}

Result<bool> ModuleParser::ParseCommonAttribute(Scope& scope, Draft& draft, std::string_view name) {
  if (name == "metadata") {
    STROP_ASSIGN(OpMetadata metadata, ParseMetadata(at_));
    draft.metadata = std::make_shared<const OpMetadata>(std::move(metadata));
  } else if (name == "sharding") {
    STROP_ASSIGN(draft.sharding, ParseSharding(at_));
  } else if (name == "backend_config") {
    STROP_TRY(ParseStringOrJson(at_, draft.backend_config));
  } else if (name == "frontend_attributes") {
    STROP_TRY(ParseFrontendAttributes(at_, draft.frontend_attributes));
  } else if (name == "origin") {
    STROP_ASSIGN(std::string_view text, at_.Braced());
    draft.origin = std::string(text);
  } else if (name == "statistics") {
    STROP_ASSIGN(std::string_view text, at_.Braced());
    draft.statistics = std::string(text);
  } else if (name == "control-predecessors") {
    STROP_TRY(at_.Expect('{'));
    if (at_.Consume('}')) return true;
    do {
      at_.SkipSpace();
      const size_t offset = at_.offset();
      const std::string_view predecessor = Name();
      if (predecessor.empty()) return at_.Expected("the name of an instruction");
      auto found = scope.names.find(predecessor);
      if (found == scope.names.end())
        return at_.ErrorAt(offset, "there is no instruction '", predecessor, "' before this one in the computation");
      draft.control_predecessors.push_back(found->second.instruction);
    } while (at_.Consume(','));
    STROP_TRY(at_.Expect('}'));
  } else {
    return false;
  }
  return true;
}

// ---- callees
// --------------------------------------------------------------------------------------------------------------------

// %name, or an inline computation { ... }.
Status ModuleParser::ParseCalleeRef(CalleeRef& callee) {
  at_.SkipSpace();
  callee.offset = at_.offset();
  if (at_.Peek() == '{') {
    STROP_ASSIGN(callee.computation, ParseBody("computation"));
    return OkStatus();
  }
  callee.name = Name();
  if (callee.name.empty()) return at_.Expected("the name of a computation");
  auto found = computations_.find(callee.name);
  callee.computation = found == computations_.end() ? nullptr : found->second;
  return OkStatus();
}

Status ModuleParser::ParseCalleeList(Draft& draft) {
  STROP_TRY(at_.Expect('{'));
  if (at_.Consume('}')) return OkStatus();
  do {
    STROP_TRY(ParseCalleeRef(draft.callees.emplace_back()));
  } while (at_.Consume(','));
  return at_.Expect('}');
}

Result<bool> ModuleParser::ParseCallee(Draft& draft, std::string_view name) {
  const Op op = AttributedOp(draft.op, draft.wrapped);
  if (draft.wrapped != Op::kEnd && draft.op != Op::AsyncStart) return false;
  const std::vector<std::string_view> names = CalleeNames(op);
  const auto found = std::find_if(names.begin(), names.end(), [&](std::string_view n) {
    return n == name || (!n.empty() && n.back() == '*' && n.substr(0, n.size() - 1) == name);
  });
  if (found == names.end()) return false;
  if (name == "branch_computations" || name == "called_computations") {
    if (!draft.callees.empty()) return at_.Error(name, " cannot stand beside the other callees of ", strop::Name(op));
    STROP_TRY(ParseCalleeList(draft));
    return true;
  }
  size_t slot = static_cast<size_t>(found - names.begin());
  if (op == Op::Conditional) --slot;  // true_computation is the first
  if (op == Op::CustomCall) {
    slot = 0;
    if (!draft.callees.empty()) return at_.Error("to_apply cannot stand beside called_computations");
  }
  if (draft.callees.size() <= slot) draft.callees.resize(slot + 1);
  STROP_TRY(ParseCalleeRef(draft.callees[slot]));
  return true;
}

// ---- what is missing, what is too much
// --------------------------------------------------------------------------------------------

Status ModuleParser::UnknownAttribute(const Draft& draft, std::string_view name, size_t offset) {
  const Op op = AttributedOp(draft.op, draft.wrapped);
  std::vector<std::string_view> known(std::begin(kCommon), std::end(kCommon));
  for (std::string_view callee : CalleeNames(op))
    known.push_back(callee.substr(0, callee.size() - (!callee.empty() && callee.back() == '*')));
  ForEachField(draft.attrs, [&](std::string_view field, Presence) { known.push_back(field); });
  const std::string_view near = Nearest(name, known);
  return at_.ErrorAt(offset, strop::Name(op), " has no attribute '", name, "'",
                     near.empty() ? "; known are " : "; did you mean ",
                     near.empty() ? Join(known, " ") : std::string(near));
}

Status ModuleParser::CheckRequired(const Draft& draft, size_t offset) {
  const Op op = AttributedOp(draft.op, draft.wrapped);
  auto seen = [&](std::string_view name) {
    return std::find(draft.seen.begin(), draft.seen.end(), name) != draft.seen.end();
  };
  auto missing = [&](std::string_view name) {
    return at_.ErrorAt(offset, strop::Name(op), " needs the attribute ", name, "=");
  };
  if (draft.wrapped != Op::kEnd && draft.op != Op::AsyncStart) return OkStatus();
  Status status;
  ForEachField(draft.attrs, [&](std::string_view field, Presence presence) {
    if (!status.ok() || presence != Presence::kRequired || seen(field)) return;
    // As XLA: a map runs over all dimensions anyhow, and a scalar has none to place.
    const bool scalar = !draft.operands.empty() && draft.operands[0]->shape().IsScalar();
    if (field == "dimensions" && (op == Op::Map || (op == Op::Broadcast && scalar))) return;
    status = missing(field);
  });
  STROP_TRY(status);
  const bool gathers = op == Op::AllGather || op == Op::AllGatherStart || op == Op::ReduceScatter;
  if (gathers && !seen("dimensions")) return missing("dimensions");
  if (!NeedsCallees(op)) return OkStatus();
  const std::vector<std::string_view> names = CalleeNames(op);
  if (op == Op::Conditional) {
    const bool branches = seen("branch_computations");
    if (branches == (seen("true_computation") || seen("false_computation")))
      return at_.ErrorAt(offset,
                         "conditional needs true_computation= and false_computation=, or branch_computations={}");
    if (branches) return OkStatus();
    return !seen("true_computation")    ? missing("true_computation")
           : !seen("false_computation") ? missing("false_computation")
                                        : OkStatus();
  }
  for (std::string_view name : names)
    if (!seen(name)) return missing(name);
  return OkStatus();
}

}  // namespace strop
