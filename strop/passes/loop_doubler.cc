// Doubles the bodies of loops with large carries that become each other, so that none is copied:
//
//   while: 30 trips of { (last, now) = (now, f(last, now)) }   ->   15 trips of { a = f(last, now); b = f(now, a);
//                                                                                 (last, now) = (a, b) }
//
// Two states that are handed on each lie where the other should be at the end of a trip. After two trips each of them
// is where it was, and `a` may be computed in the memory of `last`. The kernels of both halves are the same code, which
// is compiled once. An odd trip comes first. Small carries change places in regions (plan/rotation.cc).
#include "strop/analysis/trip_count.h"
#include "strop/ir/builder.h"
#include "strop/passes/effects.h"
#include "strop/passes/inline.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

constexpr int64_t kLeastTrips = 4;
constexpr int64_t kLeastBytes = 64 << 10;   // of a carry
constexpr int64_t kMostInstructions = 200;  // of a body

// Is a large carry the next value of another, which is computed?
bool HandsOnLargeCarries(const Computation& body) {
  const Instruction *root = body.root(), *state = body.parameter(0);
  for (int64_t k = 0; k < root->operand_count(); ++k) {
    const Instruction* next = root->operand(k);
    if (next->op() != Op::GetTupleElement || next->operand(0) != state || next->tuple_index() == k) continue;
    const Instruction* other = root->operand(next->tuple_index());
    const bool computed = other->op() != Op::GetTupleElement || other->operand(0) != state;
    if (computed && next->shape().IsArray() && next->shape().byte_size() >= kLeastBytes) return true;
  }
  return false;
}

Decision ShouldDouble(const Instruction& loop, const Effects& effects) {
  const Computation& body = *loop.body();
  if (body.root()->op() != Op::Tuple || !HandsOnLargeCarries(body))
    return Decision::No("no large carry becomes another");
  if (body.instruction_count() > kMostInstructions) return Decision::No("its body is long");
  for (const Instruction* i : body.instructions())
    if (effects.Has(*i) || !i->control_predecessors().empty() || i->op() == Op::While)
      return Decision::No("%", i->name(), " in its body is not doubled");
  return Decision::Yes();
}

// The body, once and once more.
Computation* Doubled(const Computation& body) {
  Computation* both = body.module()->AddComputation(body.name());
  Instruction* state = both->AddParameter(0, body.parameter(0)->shape());
  Builder b(both);
  Instruction* end = b.Tuple({});
  for (int half = 0; half < 2; ++half) state = CloneBodyBefore(body, {&state, 1}, end);
  both->set_root(state);
  both->Remove(end);
  return both;
}

struct LoopDoubler final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    bool changed = false;
    const Effects effects(module);
    const std::vector<int32_t> callers = CallerCounts(module);
    std::vector<Instruction*> loops;
    for (Computation* c : module.PostOrder())
      for (Instruction* i : c->instructions())
        if (i->op() == Op::While) loops.push_back(i);
    for (Instruction* loop : loops) {
      const std::optional<Counter> counter = FindCounter(*loop);
      if (!counter || counter->trips < kLeastTrips || !HasExplicitState(*loop, callers)) continue;
      if (const Decision d = ShouldDouble(*loop, effects); !d) {
        context.Decide(*loop, "not doubled: ", d.why_not());
        continue;
      }
      if (counter->trips % 2 == 1) {
        Instruction* state = loop->operand(0);
        loop->SetOperand(0, CloneBodyBefore(*loop->body(), {&state, 1}, loop));
      }
      loop->SetCalled(1, Doubled(*loop->body()));
      RecordTripCount(loop, counter->trips / 2);
      context.Count("loop-doubler.loops");
      changed = true;
    }
    if (changed) module.RemoveDeadComputations();
    return changed;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeLoopDoubler() { return std::make_unique<LoopDoubler>(); }

}  // namespace strop
