// Custom calls that the interpreter knows: the markers of XLA and JAX, which mean nothing on one device, and those
// above.
#include "strop/interp/ops.h"

namespace strop::interp {

namespace {

// Shards have other shapes than the whole.
Result<Literal> BetweenShards(OpCall& call) {
  const auto& hook = call.evaluator.options().absent_others;
  if (!hook)
    return Unimplemented("custom call ", call.attrs<CustomCallAttrs>().target, " from ", call.in(0).shape().ToString(),
                         " to ", call.shape.ToString(), " needs more than one device");
  Literal result;
  STROP_TRY(hook(call.instruction, call.operands, &result));
  return result;
}

// All operands, as they are: one value, or a tuple.
Result<Literal> Identity(OpCall& call) {
  if (call.operands.empty()) return call.shape.IsTuple() ? Literal::Tuple({}) : Literal::Token();
  if (!call.shape.IsTuple() || call.in(0).shape().IsTuple()) {
    if (!call.in(0).shape().Compatible(call.shape)) return BetweenShards(call);
    return std::move(call.operands[0]);
  }
  return Literal::Tuple({std::make_move_iterator(call.operands.begin()), std::make_move_iterator(call.operands.end())});
}

Result<Literal> Allocate(OpCall& call) { return call.NewResult(); }

// Results of no elements: the call is there for its operands.
Result<Literal> Sink(OpCall& call) {
  if (!call.shape.IsTuple() || call.shape.tuple_size() > 0)
    return Unimplemented("custom call ", call.attrs<CustomCallAttrs>().target, " with the result ",
                         call.shape.ToString());
  return Literal::Tuple({});
}

struct Target {
  std::string_view name;
  EvalFn fn;
};
constexpr Target kTargets[] = {
    {"Sharding", &Identity},
    {"SPMDFullToShardShape", &Identity},
    {"SPMDShardToFullShape", &Identity},
    {"xla.sdy.FuncResultSharding", &Identity},
    {"xla.sdy.GlobalToLocalShape", &Identity},
    {"xla.sdy.LocalToGlobalShape", &Identity},
    {"xla.sdy.PropagationBarrier", &Identity},
    {"xla.sdy.ShardingGroup", &Identity},
    {"annotate_device_placement", &Identity},
    {"MoveToHost", &Identity},
    {"MoveToDevice", &Identity},
    {"LayoutConstraint", &Identity},
    {"AssumeGatherIndicesInBound", &Identity},
    {"dce_sink", &Sink},
    {"AllocateBuffer", &Allocate},
    {"TopK", &EvalTopK},
    {"check.expect_eq", &EvalCheck},
    {"check.expect_almost_eq", &EvalCheck},
    {"check.expect_close", &EvalCheck},
    {"check.eq", &EvalCheck},
    {"check.expect_serialized_eq", &EvalExpectSerialized},
    {"interpreter.probe", &EvalProbe},
    {"interpreter.print", &EvalPrint},
    {"interpreter.run_parallel", &EvalRunParallel},
    {"stablehlo.uniform_quantize", &EvalQuantize},
    {"stablehlo.uniform_dequantize", &EvalDequantize},
    {"mhlo.uniform_quantize", &EvalQuantize},
    {"mhlo.uniform_dequantize", &EvalDequantize},
};

}  // namespace

EvalFn CustomCallFunction(std::string_view target) {
  for (const Target& t : kTargets)
    if (t.name == target) return t.fn;
  return nullptr;
}

Result<Literal> EvalCustomCall(OpCall& call) {
  const std::string& target = call.attrs<CustomCallAttrs>().target;
  if (EvalFn fn = CustomCallFunction(target)) return fn(call);
  if (const auto& hook = call.evaluator.options().custom_call) {
    Literal result;
    STROP_TRY(hook(call.instruction, call.operands, &result));
    return result;
  }
  return NotFound("custom call target \"", target, "\" is not registered");
}

}  // namespace strop::interp
