// Unrolls short loops whose bodies are elementwise, so that their trips become one kernel.
//
//   while: 5 trips of { x = (x + k) ^ rotate(x, r); ... }   ->   the 5 bodies, one behind the other
//
// A loop writes its state to memory in every trip; a body of a few elementwise instructions over a large array is then
// bound by memory, where the unrolled chain stays in registers. (Random numbers are made so: threefry's twenty rounds
// come as five trips of four.) What changes from trip to trip and is small, tables of constants, folds away.
//
// So are loops of a few trips that exchange elements of a few, each member of a batch its own (the permutation of the
// pivots of small matrices): at places that are known then, and what is picked is selected.
//
// Otherwise only bodies whose arrays are computed at one position: with a shifted read of the state (a stencil) a fused
// chain would compute the neighbourhood of a neighbourhood.
#include "strop/passes/loop_unroller.h"

#include "strop/analysis/trip_count.h"
#include "strop/passes/inline.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

constexpr int64_t kMaxTrips = 8;
constexpr int64_t kMaxInstructions = 400;  // of all trips, those that compute nothing aside
constexpr int64_t kSmall = 64;             // elements of an array that may be moved about

bool IsSmall(const Shape& shape) { return shape.IsArray() && shape.IsStatic() && shape.num_elements() <= kSmall; }

enum class Kind : uint8_t { kFree, kComputes, kPicks, kUnfit };

constexpr int64_t kFew = 4, kMostPicked = 1 << 14;

// All members' elements at one place of a few, which a counter says (counter-ranges).
bool UpdatesOneOfFew(const Instruction& i) {
  if (i.op() != Op::DynamicUpdateSlice || !i.shape().IsStatic() || i.shape().num_elements() > kMostPicked) return false;
  const Shape& part = i.operand(1)->shape();
  for (int64_t d = 0; d < part.rank(); ++d)
    if (part.dim(d) != i.shape().dim(d) && (part.dim(d) != 1 || i.shape().dim(d) > kFew)) return false;
  return part.num_elements() > kFew;
}

// Elements of a few, for each member of a batch, or of all members those at one place.
bool PicksOneOfFew(const Instruction& i) {
  if (i.op() == Op::DynamicUpdateSlice) return UpdatesOneOfFew(i);
  const Shape& shape = i.operand(0)->shape();
  if (!shape.IsArray() || !shape.IsStatic() || shape.num_elements() > kMostPicked) return false;
  const bool gathers = i.op() == Op::Gather;
  const Dims& picked =
      gathers ? i.attrs<GatherAttrs>().start_index_map : i.attrs<ScatterAttrs>().scatter_dims_to_operand_dims;
  if (picked.size() != 1 || shape.dim(picked[0]) > kFew) return false;
  const Dims& batch =
      gathers ? i.attrs<GatherAttrs>().operand_batching_dims : i.attrs<ScatterAttrs>().input_batching_dims;
  return !batch.empty() || i.operand(1)->shape().num_elements() == 1;
}

Kind KindOf(const Instruction& i) {
  if (i.HasControlEdges()) return Kind::kUnfit;
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
    case Op::Gather:
    case Op::DynamicUpdateSlice:
    case Op::Scatter: return PicksOneOfFew(i) ? Kind::kPicks : Kind::kUnfit;
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

bool PicksElements(const Computation& body) {
  for (const Instruction* i : body.instructions())
    if ((i->op() == Op::Gather || i->op() == Op::Scatter || i->op() == Op::DynamicUpdateSlice) && PicksOneOfFew(*i))
      return true;
  return false;
}

// `small`: even where its arrays are.
Decision ShouldUnroll(const Instruction& loop, int64_t trips, bool small) {
  if (trips < 2 || trips > kMaxTrips) return Decision::No(trips, " trips");
  if (loop.HasControlEdges()) return Decision::No("control edges order it");
  int64_t computing = 0;
  bool large = false;
  const bool picks = PicksElements(*loop.body());
  for (const Instruction* i : loop.body()->instructions()) {
    const Kind kind = picks && (i->op() == Op::Slice || i->op() == Op::DynamicSlice) ? Kind::kComputes : KindOf(*i);
    if (kind == Kind::kUnfit) return Decision::No("%", i->name(), " in its body is not elementwise");
    computing += kind != Kind::kFree;
    large |= kind != Kind::kFree && !IsSmall(i->shape());
  }
  if (!large && !small) return Decision::No("its state is small");
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
        if (const Decision d = ShouldUnroll(*loop, counter->trips, false); !d) {
          context.Decide(*loop, "not unrolled: ", d.why_not());
          continue;
        }
        UnrollLoop(loop, counter->trips);
        context.Count("loop-unroller.loops");
        changed = true;
      }
    }
    if (changed) module.RemoveDeadComputations();
    return changed;
  }
};

}  // namespace

bool IsShortElementwiseLoop(const Instruction& loop, int64_t trips) {
  return !PicksElements(*loop.body()) && ShouldUnroll(loop, trips, true);
}

void UnrollLoop(Instruction* loop, int64_t trips) {
  Instruction* state = loop->operand(0);
  for (int64_t trip = 0; trip < trips; ++trip) state = CloneBodyBefore(*loop->body(), {&state, 1}, loop);
  loop->ReplaceAllUsesWith(state);
  loop->parent()->Remove(loop);
}

std::unique_ptr<Pass> MakeLoopUnroller() { return std::make_unique<LoopUnroller>(); }

}  // namespace strop
