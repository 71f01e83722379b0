// Unrolls short loops whose bodies are elementwise, so that their trips become one kernel.
//
//   while: 5 trips of { x = (x + k) ^ rotate(x, r); ... }   ->   the 5 bodies, one behind the other
//
// A loop writes its state to memory in every trip; a body of a few elementwise instructions over a large array is then
// bound by memory, where the unrolled chain stays in registers. (Random numbers are made so: threefry's twenty rounds
// come as five trips of four.) What changes from trip to trip and is small, tables of constants, folds away.
//
// Only bodies whose arrays are computed at one position: with a shifted read of the state (a stencil) a fused chain
// would compute the neighbourhood of a neighbourhood.
#include "strop/analysis/trip_count.h"
#include "strop/passes/inline.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

constexpr int64_t kMaxTrips = 8;
constexpr int64_t kMaxInstructions = 400;  // of all trips, those that compute nothing aside
constexpr int64_t kSmall = 64;             // elements of an array that may be moved about

bool IsSmall(const Shape& shape) { return shape.IsArray() && shape.IsStatic() && shape.num_elements() <= kSmall; }

enum class Kind : uint8_t { kFree, kComputes, kUnfit };

Kind KindOf(const Instruction& i) {
  if (!i.control_predecessors().empty() || !i.control_successors().empty()) return Kind::kUnfit;
  switch (i.op()) {
    case Op::Parameter:
    case Op::Constant:
    case Op::Tuple:
    case Op::GetTupleElement:
    case Op::Broadcast:
    case Op::Reshape:
    case Op::Bitcast: return Kind::kFree;
    case Op::Iota:
    case Op::BitcastConvert: return Kind::kComputes;
    case Op::Slice:
    case Op::DynamicSlice:
    case Op::Concatenate:
    case Op::Reverse:
      for (int64_t k = 0; k < i.operand_count(); ++k)
        if (!IsSmall(i.operand(k)->shape())) return Kind::kUnfit;
      return Kind::kComputes;
    default: return IsElementwise(i.op()) ? Kind::kComputes : Kind::kUnfit;
  }
}

Decision ShouldUnroll(const Instruction& loop, int64_t trips) {
  if (trips < 2 || trips > kMaxTrips) return Decision::No(trips, " trips");
  if (!loop.control_predecessors().empty() || !loop.control_successors().empty())
    return Decision::No("control edges order it");
  int64_t computing = 0;
  bool large = false;
  for (const Instruction* i : loop.body()->instructions()) {
    const Kind kind = KindOf(*i);
    if (kind == Kind::kUnfit) return Decision::No("%", i->name(), " in its body is not elementwise");
    computing += kind == Kind::kComputes;
    large |= kind == Kind::kComputes && !IsSmall(i->shape());
  }
  if (!large) return Decision::No("its state is small");
  if (computing * trips > kMaxInstructions) return Decision::No(trips, " bodies of ", computing, " instructions");
  return Decision::Yes();
}

struct LoopUnroller final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    bool changed = false;
    for (Computation* c : module.PostOrder()) {  // inner loops first
      std::vector<Instruction*> loops;
      for (Instruction* i : c->instructions())
        if (i->op() == Op::While) loops.push_back(i);
      for (Instruction* loop : loops) {
        const std::optional<Counter> counter = FindCounter(*loop);
        if (!counter) continue;
        if (const Decision d = ShouldUnroll(*loop, counter->trips); !d) {
          context.Decide(*loop, "not unrolled: ", d.why_not());
          continue;
        }
        Instruction* state = loop->operand(0);
        for (int64_t trip = 0; trip < counter->trips; ++trip) state = CloneBodyBefore(*loop->body(), {&state, 1}, loop);
        loop->ReplaceAllUsesWith(state);
        c->Remove(loop);
        context.Count("loop-unroller.loops");
        changed = true;
      }
    }
    if (changed) module.RemoveDeadComputations();
    return changed;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeLoopUnroller() { return std::make_unique<LoopUnroller>(); }

}  // namespace strop
