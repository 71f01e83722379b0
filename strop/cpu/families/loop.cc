// Loops: every result element is computed from its position (codegen/elemental.h). Results of one kernel that differ in
// their number of elements are walked one after the other.
#include <algorithm>

#include "strop/codegen/block_space.h"
#include "strop/codegen/kernel_frame.h"
#include "strop/codegen/row_order.h"
#include "strop/codegen/rows_at_a_time.h"
#include "strop/codegen/splits.h"
#include "strop/codegen/staged_space.h"
#include "strop/cpu/kernel_family.h"
#include "strop/plan/band.h"

namespace strop::cpu {
namespace {

bool IsCustom(const Instruction& kernel) {
  return kernel.op() == Op::Fusion && kernel.attrs<FusionAttrs>().kind == FusionKind::Custom;
}

Decision Matches(const Instruction& kernel) {
  if (IsCustom(kernel) && Band::Of(kernel)) return Decision::No(kOtherOp);
  if (Decision d = ComputesFromArrays(kernel); !d) return d;
  return CanEmitElement(kernel);
}

std::string TilesOf(const LoopSpace& space, const KernelFrame::Cut& cut) {
  std::string out = StrCat(space.rows, space.rows == 1 ? " row of " : " rows of ", space.row_size);
  if (space.interleaved > 1) StrAppend(out, " x ", space.interleaved, " interleaved");
  if (space.step > 1)
    StrAppend(out, " x ", space.step, space.rest > 0 ? StrCat(" + ", space.rest) : "", " interleaved");
  if (cut.pieces > 1) StrAppend(out, " in pieces of ", cut.piece_size);
  if (space.together > 1) StrAppend(out, ", ", space.together, " at a time");
  if (space.period > space.lanes) StrAppend(out, ", periods of ", space.period);
  StrAppend(out, space.uniform ? ", one at a time" : StrCat(", vectors of ", space.width()));
  return out;
}

Result<EmittedKernel> EmitCut(KernelFrame& frame, const LoopSpace& space, const KernelFrame::Cut& cut,
                              const KernelFrame::PointFn& point) {
  EmittedKernel emitted;
  frame.KeepRows(ChooseKeptRows(frame.body(), space, &emitted.scratch_bytes));
  emitted.num_tasks = cut.num_tasks;
  emitted.tiles = TilesOf(space, cut);
  if (frame.streams()) emitted.tiles += ", stored past the caches";
  STROP_TRY(frame.Walk(space, cut, point));
  return emitted;
}

// Less code for the same tasks.
void MakeQuick(const KernelFrame& frame, int vector_bytes, LoopSpace& space, KernelFrame::Cut& cut) {
  WalkVectorByVector(frame.body(), vector_bytes, space);
  const bool even =
      cut.pieces == 1 || (space.rows == 1 && space.short_row > 0 && cut.piece_size % space.short_row == 0);
  if (!even || !frame.masked_memory()) return;
  const int64_t of_piece = cut.pieces == 1 || space.short_row == 0 ? 0 : cut.piece_size / space.short_row;
  const int64_t of_row = WalkShortRows(space);
  if (of_row == 0) return;
  cut.units_per_task *= of_piece > 0 ? of_piece : of_row;
  cut.pieces = 1;
  cut.piece_size = space.row_size;
}

// Three elements at known places are scalars, if they are a little plain arithmetic: in a loop of small steps, vectors
// would be put together and taken apart again, and are not full. (Two by two lanes are as fast.)
bool IsScalars(KernelFrame& frame, const LoopSpace& space) {
  constexpr int64_t kElements = 3, kLittleCode = 32;  // of more code (random bits), half the instructions count
  if (space.uniform || space.num_elements() != kElements || frame.scopes().copies() < kElements) return false;
  if (CodeOf(frame.body()) > kLittleCode) return false;
  const std::vector<const Instruction*> computed = frame.body().Computed();
  return std::all_of(computed.begin(), computed.end(), [](const Instruction* i) {
    return (IsElementwise(i->op()) && !Is(i->op(), kFloatMath)) || Is(i->op(), kDataMovement) ||
           i->op() == Op::Constant || i->op() == Op::Iota || i->op() == Op::Broadcast;
  });
}

// Does each operand come one vector after the other?
bool ReadsInOrder(const KernelFrame& frame) {
  const std::vector<const Instruction*> computed = frame.body().Computed();
  return std::all_of(computed.begin(), computed.end(), [](const Instruction* i) {
    return IsElementwise(i->op()) || i->op() == Op::Constant || i->op() == Op::Broadcast || i->op() == Op::Iota ||
           i->op() == Op::Reshape || i->op() == Op::Bitcast || i->op() == Op::Reduce;
  });
}

constexpr int kPickedLanes = 8;

// How a part of a band is walked, in tasks of so many elements: those of few rows one by one.
struct SpaceCutEvery {
  LoopSpace space;
  KernelFrame::Cut cut;
};
std::optional<SpaceCutEvery> CutEvery(const KernelBody& body, int vector_bytes, bool alone, int64_t elements) {
  LoopSpace space = ChooseLoopSpace(body, vector_bytes, alone);
  std::optional<KernelFrame::Cut> cut = KernelFrame::CutEvery(space, elements);
  constexpr int64_t kFewElements = 64;
  if (!cut && elements <= std::max<int64_t>(kFewElements, space.width()) && space.period == 0) {
    space.lanes = space.strips = 1;
    cut = KernelFrame::CutEvery(space, elements);
  }
  if (!cut) return std::nullopt;
  return SpaceCutEvery{space, *cut};
}

// Results of one size.
Result<EmittedKernel> EmitTogether(const KernelSpec& spec, KernelFrame& frame) {
  const KernelBody& body = frame.body();
  EmittedKernel emitted;
  const int vector_bytes = frame.b().target().vector_bytes;
  const KernelCost cost = CostOf(body);
  LoopSpace space;
  RowOrder order;
  const auto point = [&](ElementalEmitter& e, const ArrayIndex& at) {
    return EmitRoots(e, frame, body, space, InResult(order, at));
  };
  if (spec.task_elements > 0) {
    const std::optional<SpaceCutEvery> every = CutEvery(body, vector_bytes, !frame.whole(), spec.task_elements);
    if (!every) return Internal("%", spec.name(), " is not cut every ", spec.task_elements, " elements");
    space = every->space;
    ChooseSplits(frame.b(), body, spec.in_place, every->cut, space);
    if (spec.streams) frame.StreamResults(spec.in_place);
    if (spec.fetches && ReadsInOrder(frame)) frame.FetchInputs(cost);
    return EmitCut(frame, space, every->cut, point);
  }
  if (!frame.whole()) {
    const StagedSpace staged = ChooseStagedSpace(body, spec.in_place, frame.b().target());
    if (staged.way != StagedSpace::Way::kNone) {
      if (staged.streams) frame.StreamResults(spec.in_place);
      STROP_TRY(WalkStaged(frame, staged, cost, point, &emitted.num_tasks));
      emitted.tiles = Describe(staged);
      emitted.scratch_bytes = staged.scratch_bytes;
      return emitted;
    }
  }
  const BlockSpace blocks = ChooseBlockSpace(body, spec.in_place, vector_bytes);
  if (blocks.lanes > 0) {
    if (blocks.streams) frame.StreamResults(spec.in_place);
    STROP_TRY(WalkBlocks(frame, blocks, cost, point, &emitted.num_tasks));
    emitted.tiles = StrCat("tiles of ", blocks.tile_across, "x", blocks.tile_along, ", turned in blocks of ",
                           blocks.lanes, "x", blocks.lanes);
    return emitted;
  }
  if (std::all_of(spec.in_place.begin(), spec.in_place.end(), [](int operand) { return operand < 0; }))
    frame.RepeatElements();
  space = ChooseLoopSpace(body, vector_bytes, !frame.whole());
  if (IsScalars(frame, space)) space.lanes = 1;
  order = OrderRows(body, cost, space);
  // Rows that are computed before any of them is written (a softmax) leave the caches beside the next ones' work.
  const bool early = space.backwards || (!space.whole_rows && KernelFrame::WritesLargeResult(*spec.instruction));
  const VectorTarget& target = frame.b().target();
  if (KernelFrame::PaysToStream(cost, early) || (!order.empty() && !target.fast_last_cache))
    frame.StreamResults(spec.in_place);
  if (ReadsInOrder(frame)) frame.FetchInputs(cost);
  if (order.empty()) {
    if (!frame.b().quick()) space.together = RowsAtATime(body, space);
    const bool one_by_one = !frame.b().quick() && !target.fast_gather;
    space.picks = one_by_one && (space.together > 1 || space.interleaved > 1) && SharesIndices(body, space);
    // As many numbers as there are registers for, beside the places of the rows.
    if (space.picks) space.lanes = std::min(space.lanes, kPickedLanes);
    KernelFrame::Cut cut = KernelFrame::CutIntoTasks(space, cost);
    if (!ChooseSplits(frame.b(), body, spec.in_place, cut, space) && space.period > 0) {
      space = ChooseLoopSpace(body, vector_bytes, false);  // with conditions, whose lanes differ, periods gain nothing
      cut = KernelFrame::CutIntoTasks(space, cost);
      ChooseSplits(frame.b(), body, spec.in_place, cut, space);
    }
    const std::string in_words = StrCat(space.rows, "x", space.row_size, "x", space.interleaved * space.step, " by ",
                                        cut.pieces, " of ", cut.piece_size, ", ", cut.units_per_task);
    if (frame.b().quick()) MakeQuick(frame, vector_bytes, space, cut);
    STROP_ASSIGN(emitted, EmitCut(frame, space, cut, point));
    emitted.cut = in_words;
    return emitted;
  }
  const KernelFrame::Cut cut = CutOrderedRows(space, cost);
  ChooseSplits(frame.b(), body, spec.in_place, cut, space);
  emitted.num_tasks = cut.num_tasks;
  emitted.tiles = StrCat(TilesOf(space, cut), ", in the order of the operand");
  STROP_TRY(frame.Walk(space, cut, point));
  return emitted;
}

Result<EmittedKernel> Emit(const KernelSpec& spec, KernelFrame& frame) {
  const std::vector<ResultsOfOneSize> parts = ResultsBySize(frame.body());
  if (parts.size() == 1 && parts[0].elements > 0) return EmitTogether(spec, frame);
  if (spec.task_elements > 0) return Internal("%", spec.name(), " has results of several sizes");
  // One task: each walk is a whole.
  for (const ResultsOfOneSize& part : parts) {
    if (part.elements == 0) continue;
    const LoopSpace space = ChooseLoopSpace(part.body, frame.b().target().vector_bytes, !frame.whole());
    KernelFrame::Cut cut{.num_tasks = 1, .pieces = 1, .piece_size = space.row_size, .units_per_task = space.rows};
    STROP_TRY(frame.Walk(space, cut, [&](ElementalEmitter& e, const ArrayIndex& at) {
      return EmitRoots(e, frame, part.body, space, at, part.outputs);
    }));
  }
  return EmittedKernel{};
}

}  // namespace

Decision LoopIsCutEvery(const Instruction& kernel, int64_t elements, int vector_bytes) {
  if (FindFamily(kernel) != &kLoopFamily) return Decision::No("it is no loop");
  const KernelBody body = KernelBody::Of(kernel);
  if (body.roots.size() != 1) return Decision::No("it has ", body.roots.size(), " results");
  if (ChooseBlockSpace(body, {}, vector_bytes).lanes > 0) return Decision::No("it is walked in blocks");
  if (elements > 0 && !CutEvery(body, vector_bytes, true, elements))
    return Decision::No("its rows are not cut every ", elements, " elements");
  return Decision::Yes();
}

const KernelFamily kLoopFamily = {"loop", &Matches, &Emit};

}  // namespace strop::cpu
