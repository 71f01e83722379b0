// Communication. With one process every collective is what it does to a group of one; with more, the host that runs the
// processes answers through InterpretOptions::communicate (grid.h has one).
#include "strop/interp/grid.h"
#include "strop/interp/ops.h"

namespace strop::interp {

namespace {

bool Alone(const OpCall& call) {
  const InterpretOptions& o = call.evaluator.options();
  return o.num_replicas == 1 && o.num_partitions == 1;
}

Result<Literal> Ask(OpCall& call, const InterpretOptions::Hook& hook, std::string_view what) {
  if (!hook) return Unimplemented(Name(call.op()), ": the interpreter was given no ", what);
  Literal result;
  STROP_TRY(hook(call.instruction, call.operands, &result));
  return result;
}

Result<Literal> GroupOfOne(OpCall& call) {
  if (call.op() != Op::CollectivePermute && call.op() != Op::CollectivePermuteStart)
    return CollectiveResult(call.evaluator, call.instruction, 0, {{call.operands.begin(), call.operands.end()}});
  // Process 0 gets what it sends to itself, or zeros.
  const std::vector<Literal> own(call.operands.begin(), call.operands.end());
  bool receives = false;
  for (const auto& [source, target] : call.attrs<PermuteAttrs>().source_target_pairs)
    receives = receives || (source == 0 && target == 0);
  return PermuteResult(call.instruction, own, receives ? &own : nullptr);
}

}  // namespace

Result<Literal> EvalReplicaId(OpCall& call) {
  return Literal::ScalarOfInt(ElementType::U32, call.evaluator.options().replica_id);
}
Result<Literal> EvalPartitionId(OpCall& call) {
  return Literal::ScalarOfInt(ElementType::U32, call.evaluator.options().partition_id);
}

Result<Literal> EvalCollective(OpCall& call) {
  const InterpretOptions& options = call.evaluator.options();
  Result<Literal> result = Alone(call) ? GroupOfOne(call) : Ask(call, options.communicate, "way to communicate");
  if (!result.ok() && Alone(call) && options.absent_others) result = Ask(call, options.absent_others, "others");
  STROP_TRY(result);
  const bool starts = call.op() == Op::AllGatherStart || call.op() == Op::CollectivePermuteStart;
  if (!starts || !call.shape.IsTuple()) return result;  // an older form of the text is the result alone
  // (operands, result, context...)
  std::vector<Literal> elements;
  elements.push_back(call.shape.element(0).IsTuple() ? Literal::Tuple({call.operands.begin(), call.operands.end()})
                                                     : call.in(0));
  elements.push_back(*std::move(result));
  for (int64_t i = 2; i < call.shape.tuple_size(); ++i) {
    STROP_ASSIGN(Literal context, Literal::Zeros(call.shape.element(i)));
    elements.push_back(std::move(context));
  }
  return Literal::Tuple(std::move(elements));
}

Result<Literal> EvalInfeed(OpCall& call) { return Ask(call, call.evaluator.options().infeed, "infeed"); }
Result<Literal> EvalOutfeed(OpCall& call) { return Ask(call, call.evaluator.options().outfeed, "outfeed"); }

// send: (data, context, token); recv the same, filled by the host. The -done forms take the parts that count.
Result<Literal> EvalSend(OpCall& call) {
  STROP_TRY(Ask(call, call.evaluator.options().communicate, "way to send"));
  STROP_ASSIGN(Literal context, Literal::Zeros(call.shape.element(1)));
  return Literal::Tuple({call.in(0), std::move(context), Literal::Token()});
}
Result<Literal> EvalRecv(OpCall& call) {
  STROP_ASSIGN(Literal data, Ask(call, call.evaluator.options().communicate, "way to receive"));
  STROP_ASSIGN(Literal context, Literal::Zeros(call.shape.element(1)));
  return Literal::Tuple({std::move(data), std::move(context), Literal::Token()});
}
Result<Literal> EvalSendDone(OpCall&) { return Literal::Token(); }
Result<Literal> EvalRecvDone(OpCall& call) {
  return Literal::Tuple({std::move(call.operands[0].mutable_elements()[0]), Literal::Token()});
}

}  // namespace strop::interp
