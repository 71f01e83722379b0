#include "strop/plan/taken_inlined.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "strop/plan/fusion_cost.h"
#include "strop/plan/plan.h"
#include "strop/plan/values.h"

namespace strop::plan_internal {

bool IsAlias(const Instruction& i) {
  switch (i.op()) {
    case Op::Reshape:
    case Op::Bitcast:
    case Op::Copy:
    case Op::GetTupleElement:
    case Op::Tuple:
    case Op::OptimizationBarrier:
    case Op::AddDependency:
    case Op::AfterAll:
    case Op::Domain: return true;
    default: return false;
  }
}

namespace {

// What a buffer was before it was updated: all in the same memory.
std::vector<const Instruction*> FormsOf(const Instruction* buffer) {
  constexpr size_t kMostUpdates = 16;
  std::vector<const Instruction*> forms = {buffer};
  while ((buffer->op() == Op::DynamicUpdateSlice || buffer->op() == Op::Scatter) && forms.size() < kMostUpdates)
    forms.push_back(buffer = buffer->operand(0));
  return forms;
}

}  // namespace

bool ReadsWindow(const Instruction& reader, const Instruction& root) {
  const bool dynamic = reader.op() == Op::DynamicSlice;
  if ((!dynamic && reader.op() != Op::Slice) || reader.operand(0) != root.operand(0)) return false;
  const Shape& window = root.operand(1)->shape();
  if (!reader.shape().SameDims(window)) return false;
  if (dynamic) {
    for (int64_t d = 1; d < reader.operand_count(); ++d)
      if (reader.operand(d) != root.operand(d + 1)) return false;
    return true;
  }
  if (root.operand_count() != window.rank() + 2) return false;
  for (int64_t d = 0; d < window.rank(); ++d) {
    const Instruction* start = root.operand(d + 2);
    const SliceDim& slice = reader.attrs<SliceAttrs>().slice[static_cast<size_t>(d)];
    if (!start->IsConstant() || slice.stride != 1) return false;
    const int64_t room = root.shape().dim(d) - window.dim(d);
    if (std::clamp<int64_t>(start->literal().GetInt(0), 0, room) != slice.start) return false;
  }
  return true;
}

namespace {

constexpr size_t kMostSearched = 2048;  // instructions, for one that reads a buffer

// Does operand `k` of a dynamic-update-slice, the update or a part of its position, depend on what is in the buffer
// that is updated, at other places than the one that is overwritten, or on what was there before another update? Then
// it has to be known before anything is written: computed inside the kernel, it would make that work on a copy of the
// buffer.
bool DependsOnItsBuffer(const Instruction& root, int64_t k) {
  const Instruction *buffer = root.operand(0), *update = root.operand(1);
  const std::vector<const Instruction*> forms = FormsOf(buffer);
  if (std::ranges::all_of(forms, [](const Instruction* form) { return form->use_count() == 1; })) return false;
  const auto is_window = [&](const Instruction& reader) { return ReadsWindow(reader, root); };
  // Whether all paths to an instruction go element by element: what is read there may be what is overwritten.
  std::unordered_map<const Instruction*, bool> seen;
  std::vector<std::pair<const Instruction*, bool>> stack = {{root.operand(k), k == 1}};
  while (!stack.empty()) {
    const auto [at, aligned] = stack.back();
    stack.pop_back();
    const bool is_form = std::ranges::find(forms, at) != forms.end();
    if (is_form || (is_window(*at) && !aligned) || seen.size() > kMostSearched) return true;
    if (is_window(*at) || (!IsInlinable(*at) && !IsRowReduce(*at))) continue;
    const auto known = seen.find(at);
    if (known != seen.end() && known->second <= aligned) continue;
    seen[at] = aligned;
    const bool passes = aligned && IsElementwise(at->op()) && at->shape().SameDims(update->shape());
    for (int64_t o = 0; o < at->operand_count(); ++o) stack.push_back({at->operand(o), passes});
  }
  return false;
}

// Is this the caller's, who keeps it? Then a result has memory of its own, and an update works on a copy in any case.
bool IsKeptByCaller(const Instruction& buffer) {
  const Module& module = *buffer.parent()->module();
  if (buffer.IsConstant()) return true;
  return buffer.IsParameter() && buffer.parent() == module.entry() && module.config().input_output_alias.empty() &&
         module.config().buffer_donors.empty();
}

// In bytes: what fills half of a vector; what costs less to look up where it is needed than apart, and to read again.
constexpr int64_t kLongRow = 32, kShortRow = 12;

// Does a scatter combine rows of its updates, of so many bytes at least?
bool CombinesRows(const Instruction& scatter, int64_t least_bytes) {
  const Shape& updates = scatter.operand(2)->shape();
  const ScatterAttrs& a = scatter.attrs<ScatterAttrs>();
  const int64_t last = updates.rank() - 1, in_operand = scatter.operand(0)->shape().rank() - 1;
  return last >= 0 && Contains(a.update_window_dims, last) && !Contains(a.inserted_window_dims, in_operand) &&
         !Contains(a.input_batching_dims, in_operand) && updates.dim(last) * Bytes(updates.type()) >= least_bytes;
}

// Is it looked up in an array, and then combined with something at most?
bool IsLookedUp(const Instruction& i, int steps = 1) {
  if (i.op() == Op::Gather) return true;
  if (IsAlias(i)) return IsLookedUp(*i.operand(0), steps);
  if (steps == 0 || !IsElementwise(i.op())) return false;
  return std::ranges::any_of(i.operands(), [&](const Instruction* o) { return IsLookedUp(*o, steps - 1); });
}

// May the updates of a scatter be computed where they are combined? So a sum over the neighbours in a graph writes no
// array of what each edge hands on. They are where each comes as vectors of a row of the window, or is one look-up; and
// where nothing of what is written over can be read for them.
Decision ComputesUpdates(const Instruction& scatter, int64_t k, const TargetInfo& target) {
  if (!target.updates_in_kernels || scatter.operand_count() != 3 || k != 2)
    return Decision::No("scatter reads its operands from memory");
  const Instruction &operand = *scatter.operand(0), &updates = *scatter.operand(2);
  if (IsMadeFromNothing(updates)) return Decision::Yes();
  if (!IsMadeFromNothing(operand)) return Decision::No("what the scatter updates may be read for it");
  if (CombinesRows(scatter, kLongRow) || (CombinesRows(scatter, kShortRow) && IsLookedUp(updates)))
    return Decision::Yes();
  return Decision::No("each is computed by itself in a scatter, and in vectors before it");
}

}  // namespace

Decision TakesInlined(const Instruction& root, int64_t k, const TargetInfo& target) {
  if (root.op() == Op::Dot && target.products_in_kernels) return Decision::Yes();
  switch (root.op()) {
    case Op::Reduce: return Decision::Yes();  // operands and scalar initial values
    case Op::ReduceWindow: return Decision::Yes();
    case Op::Scatter: return ComputesUpdates(root, k, target);
    case Op::DynamicUpdateSlice:
      if (k == 0) return Decision::No("the updated buffer must be in memory");
      if (!IsKeptByCaller(*root.operand(0)) && DependsOnItsBuffer(root, k))
        return Decision::No("it must be known before the buffer that it is made of is written");
      return Decision::Yes();
    case Op::DynamicSlice:  // what is small is computed in regions, not read where it lies (build.cc)
      if (k > 0 && target.joins_region && !target.joins_region(root) && ViewOf(root, target.buffer_alignment))
        return Decision::No("%", root.name(), " is read where it lies, at a start from memory");
      return Decision::Yes();
    default:
      if (IsInlinable(root)) return Decision::Yes();
      return Decision::No(Name(root.op()), " reads its operands from memory");
  }
}

int MostInKernel(const Instruction& root) {
  constexpr int kMaxKernelSize = 512, kMaxOfUpdate = 8;
  return root.op() == Op::Scatter && !CombinesRows(root, kLongRow) ? kMaxOfUpdate : kMaxKernelSize;
}

}  // namespace strop::plan_internal
