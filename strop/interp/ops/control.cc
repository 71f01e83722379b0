// Tuples, tokens, calls, loops and branches, and the asynchronous forms: here, what is started is also finished.
#include <algorithm>

#include "strop/interp/ops.h"

namespace strop::interp {

namespace {

std::vector<Literal> TakeAll(std::span<Literal> operands) {
  return {std::make_move_iterator(operands.begin()), std::make_move_iterator(operands.end())};
}

Result<Literal> Element(OpCall& call, size_t index) {
  std::vector<Literal>& elements = call.operands[0].mutable_elements();
  if (index >= elements.size())
    return Internal("interpreter: ", Name(call.op()), " of a tuple with ", elements.size(), " elements");
  return std::move(elements[index]);
}

}  // namespace

Result<Literal> EvalParameter(OpCall&) { return Internal("interpreter: a parameter is given, not evaluated"); }
Result<Literal> EvalTuple(OpCall& call) { return Literal::Tuple(TakeAll(call.operands)); }
Result<Literal> EvalGetTupleElement(OpCall& call) {
  return Element(call, static_cast<size_t>(call.instruction.tuple_index()));
}
Result<Literal> EvalFirstOperand(OpCall& call) { return std::move(call.operands[0]); }
Result<Literal> EvalFirstElement(OpCall& call) { return Element(call, 0); }
Result<Literal> EvalSecondElement(OpCall& call) {
  if (call.in(0).shape().IsArray()) return call.in(0);  // of a start that is the result alone
  return Element(call, 1);
}
Result<Literal> EvalToken(OpCall&) { return Literal::Token(); }

Result<Literal> EvalCall(OpCall& call) {
  return call.evaluator.Run(*call.instruction.called(0), TakeAll(call.operands));
}

Result<Literal> EvalWhile(OpCall& call) {
  const Computation &condition = *call.instruction.condition(), &body = *call.instruction.body();
  const int64_t limit = call.evaluator.options().max_loop_iterations;
  Literal state = std::move(call.operands[0]);
  for (int64_t trip = 0;; ++trip) {
    STROP_ASSIGN(Literal go_on, call.evaluator.Run(condition, {state}));
    if (!go_on.GetInt(0)) return state;
    if (limit >= 0 && trip >= limit) {
      if (call.evaluator.options().leaves_long_loops) return state;
      return InvalidArgument("while loop %", call.instruction.name(), " makes more than ", limit,
                             " iterations, the limit that was set");
    }
    std::vector<Literal> arguments;
    arguments.push_back(std::move(state));
    STROP_ASSIGN(state, call.evaluator.Run(body, std::move(arguments)));
  }
}

// A predicate chooses the first branch when true; an index outside of the branches chooses the last.
Result<Literal> EvalConditional(OpCall& call) {
  const int64_t branches = static_cast<int64_t>(call.instruction.called().size());
  const Literal& selector = call.in(0);
  int64_t branch = selector.GetInt(0);
  if (IsPred(selector.type()))
    branch = branch ? 0 : 1;
  else if (branch < 0 || branch >= branches)
    branch = branches - 1;
  std::vector<Literal> arguments;
  arguments.push_back(std::move(call.operands[static_cast<size_t>(branch + 1)]));
  return call.evaluator.Run(*call.instruction.called(branch), std::move(arguments));
}

// (copy, operand, context...)
Result<Literal> EvalCopyStart(OpCall& call) {
  std::vector<Literal> elements(2, call.in(0));
  for (int64_t i = 2; i < call.shape.tuple_size(); ++i) {
    STROP_ASSIGN(Literal context, Literal::Zeros(call.shape.element(i)));
    elements.push_back(std::move(context));
  }
  return Literal::Tuple(std::move(elements));
}

// ((operands...), result, context...)
Result<Literal> EvalAsyncStart(OpCall& call) {
  std::vector<Literal> operands(call.operands.begin(), call.operands.end());
  STROP_ASSIGN(Literal result, call.evaluator.Run(*call.instruction.called(0), TakeAll(call.operands)));
  std::vector<Literal> elements;
  elements.push_back(Literal::Tuple(std::move(operands)));
  elements.push_back(std::move(result));
  for (int64_t i = 2; i < call.shape.tuple_size(); ++i) {
    STROP_ASSIGN(Literal context, Literal::Zeros(call.shape.element(i)));
    elements.push_back(std::move(context));
  }
  return Literal::Tuple(std::move(elements));
}

}  // namespace strop::interp
