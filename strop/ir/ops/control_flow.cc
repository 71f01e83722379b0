// Calls, loops and branches; tuples, tokens and barriers.
#include "strop/ir/ops/infer.h"

namespace strop::infer {
namespace {

// The callee's parameters must be the operands from `first` on.
Status CheckArguments(const Args& args, const Signature& sig, std::string_view name, int64_t first = 0) {
  const int64_t given = args.operand_count() - first;
  if (static_cast<int64_t>(sig.parameters.size()) != given)
    return args.Error("%", name, " takes ", sig.parameters.size(), " parameters, but gets ", given);
  for (int64_t i = 0; i < given; ++i)
    if (!ShapesAgree(*sig.parameters[i], args.operand(first + i)))
      return args.Error("parameter ", i, " of %", name, " is ", *sig.parameters[i], ", but operand ", first + i, " is ",
                        args.operand(first + i));
  return OkStatus();
}

Status CheckAliasing(const Args& args, const OutputOperandAliasing& aliasing) {
  for (const OutputOperandAlias& alias : aliasing)
    if (alias.operand < 0 || alias.operand >= args.operand_count())
      return args.Error("output_to_operand_aliasing names operand ", alias.operand, ", but there are ",
                        args.operand_count());
  return OkStatus();
}

Result<Shape> CallLike(const Args& args) {
  STROP_ASSIGN(Signature sig, SignatureOf(args, 0));
  STROP_TRY(CheckArguments(args, sig, args.called[0]->name()));
  return sig.result->WithoutLayout();
}

}  // namespace

Result<Shape> Call(const Args& args) {
  STROP_TRY(CheckAliasing(args, args.attrs<CallAttrs>().output_to_operand_aliasing));
  return CallLike(args);
}

Result<Shape> Fusion(const Args& args) {
  STROP_TRY(CheckAliasing(args, args.attrs<FusionAttrs>().output_to_operand_aliasing));
  return CallLike(args);
}

Result<Shape> CustomCall(const Args& args) {
  const auto& a = args.attrs<CustomCallAttrs>();
  STROP_TRY(CheckAliasing(args, a.output_to_operand_aliasing));
  if (a.has_layout_constraints && static_cast<int64_t>(a.operand_layout_constraints.size()) != args.operand_count())
    return args.Error("operand_layout_constraints names ", a.operand_layout_constraints.size(),
                      " operands, but there are ", args.operand_count());
  for (size_t i = 0; a.has_layout_constraints && i < a.operand_layout_constraints.size(); ++i)
    if (!ShapesAgree(a.operand_layout_constraints[i], args.operand(static_cast<int64_t>(i))))
      return args.Error("operand_layout_constraints gives operand ", i, " the shape ", a.operand_layout_constraints[i],
                        ", but it is ", args.operand(static_cast<int64_t>(i)));
  return args.Declared();
}

Result<Shape> While(const Args& args) {
  STROP_ASSIGN(Signature condition, SignatureOf(args, 0));
  STROP_ASSIGN(Signature body, SignatureOf(args, 1));
  const Shape& state = args.operand(0);
  auto check_parameter = [&](const Signature& sig, int label, std::string_view what, std::string_view name) -> Status {
    if (sig.parameters.size() == 1 && ShapesAgree(*sig.parameters[0], state)) return OkStatus();
    return args.Violates(
        label, "the ", what, " %", name, " must take the loop's state ", state, ", but takes ",
        sig.parameters.size() == 1 ? sig.parameters[0]->ToString() : StrCat(sig.parameters.size(), " parameters"));
  };
  STROP_TRY(check_parameter(condition, 1, "condition", args.called[0]->name()));
  STROP_TRY(check_parameter(body, 2, "body", args.called[1]->name()));
  if (!condition.result->IsScalar() || !IsPred(condition.result->type()))
    return args.Violates(1, "the condition %", args.called[0]->name(), " must return pred[], but returns ",
                         *condition.result);
  if (!ShapesAgree(*body.result, state))
    return args.Violates(2, "the body %", args.called[1]->name(), " must return the loop's state ", state,
                         ", but returns ", *body.result);
  return state.WithoutLayout();
}

Result<Shape> Conditional(const Args& args) {
  if (args.operand_count() < 1) return args.Error("needs an index and one operand for each branch");
  const Shape& index = args.operand(0);
  const int64_t branches = static_cast<int64_t>(args.called.size());
  const bool is_pred = index.IsScalar() && IsPred(index.type());
  if (!is_pred && !(index.IsScalar() && index.type() == ElementType::S32))
    return args.Error("the index must be a pred or s32 scalar, but is ", index);
  if (is_pred && branches != 2) return args.Error("a pred index needs two branches, but there are ", branches);
  if (args.operand_count() - 1 != branches)
    return args.Error("needs one operand for each of the ", branches, " branches, but got ", args.operand_count() - 1);
  Shape result;
  for (int64_t i = 0; i < branches; ++i) {
    STROP_ASSIGN(Signature sig, SignatureOf(args, i));
    const std::string& name = args.called[i]->name();
    if (sig.parameters.size() != 1)
      return args.Error("branch %", name, " must take one parameter, but takes ", sig.parameters.size());
    if (!ShapesAgree(*sig.parameters[0], args.operand(i + 1)))
      return args.Error("branch %", name, " takes ", *sig.parameters[0], ", but its operand is ", args.operand(i + 1));
    if (i == 0)
      result = sig.result->WithoutLayout();
    else if (!ShapesAgree(*sig.result, result))
      return args.Violates(3, "all branches must return the same shape, but %", args.called[0]->name(), " returns ",
                           result, " and %", name, " ", *sig.result);
  }
  return result;
}

// ---- tuples, tokens, barriers ---------------------------------------------------------------------------------------

Result<Shape> Tuple(const Args& args) {
  std::vector<Shape> elements;
  elements.reserve(args.operands.size());
  for (const Shape* s : args.operands) elements.push_back(s->WithoutLayout());
  return Shape::Tuple(std::move(elements));
}

Result<Shape> GetTupleElement(const Args& args) {
  const int64_t index = args.attrs<GetTupleElementAttrs>().index;
  const Shape& tuple = args.operand(0);
  if (!tuple.IsTuple()) return args.Error("the operand must be a tuple, but is ", tuple);
  if (index < 0 || index >= tuple.tuple_size())
    return args.Violates(1, "index ", index, " is not an element of ", tuple);
  return tuple.element(index).WithoutLayout();
}

// XLA lets a token wait for any value.
Result<Shape> AfterAll(const Args&) { return Shape::Token(); }

Result<Shape> AddDependency(const Args& args) {
  if (!args.operand(1).IsToken()) return args.Error("the second operand must be a token, but is ", args.operand(1));
  return args.operand(0).WithoutLayout();
}

Result<Shape> SameAsOperand(const Args& args) { return args.operand(0).WithoutLayout(); }

}  // namespace strop::infer
