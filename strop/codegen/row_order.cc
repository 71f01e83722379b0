#include "strop/codegen/row_order.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "strop/codegen/block_space.h"
#include "strop/codegen/dim_groups.h"

namespace strop {
namespace {

// Less stays in the caches: 2x6 MiB take as long in either order, and 1.4 times as long past the caches.
constexpr int64_t kLeastBytes = int64_t{20} << 20;
constexpr int64_t kLine = 64;
constexpr int64_t kLongRow = 4096;  // bytes, of which any order makes streams
constexpr int64_t kTaskBytes = int64_t{256} << 10;
constexpr int64_t kMaxTasks = 4096;

// Nothing in the kernel needs to know where in the walk it is.
bool OnlyMoves(const KernelBody& body) {
  const std::vector<const Instruction*> computed = body.Computed();
  return std::all_of(computed.begin(), computed.end(), [](const Instruction* i) {
    return IsElementwise(i->op()) || i->op() == Op::Transpose || i->op() == Op::Reshape || i->op() == Op::Copy ||
           i->op() == Op::Broadcast || i->op() == Op::Constant || i->op() == Op::Tuple;
  });
}

// The inputs of a result's size below these instructions, without what is below a transpose that is not one of them.
std::set<const Instruction*> InputsBelow(const KernelBody& body, std::vector<const Instruction*> stack) {
  std::set<const Instruction*> inputs, seen;
  const int64_t elements = stack[0]->shape().num_elements();
  while (!stack.empty()) {
    const Instruction* i = stack.back();
    stack.pop_back();
    if (!seen.insert(i).second || !i->shape().IsArray() || i->shape().num_elements() != elements) continue;
    if (i != body.kernel && std::find(body.inputs.begin(), body.inputs.end(), i) != body.inputs.end()) {
      inputs.insert(i);
      continue;
    }
    for (int64_t k = 0; k < i->operand_count(); ++k)
      if (i->operand(k)->op() != Op::Transpose) stack.push_back(i->operand(k));
  }
  return inputs;
}

}  // namespace

RowOrder OrderRows(const KernelBody& body, const KernelCost& cost, LoopSpace& space) {
  const Shape& shape = body.roots[0]->shape();
  if (cost.bytes < kLeastBytes || space.uniform || space.whole_rows || space.interleaved > 1 || space.step > 1 ||
      space.period > 0 || !shape.IsArray() || body.roots.size() > 1 || !OnlyMoves(body))
    return {};
  const int64_t row_bytes = space.row_size * Bytes(shape.type());
  if (row_bytes % kLine != 0 || row_bytes >= kLongRow) return {};
  const std::vector<const Instruction*> transposes = TransposesAtRoots(body);
  if (transposes.empty()) return {};
  Int64Vector digits = space.row_sizes;
  digits.push_back(space.row_size);
  const Int64Vector strides = StridesInOperand(*transposes[0], digits);
  if (strides.empty() || strides.back() != 1) return {};
  for (const Instruction* t : transposes)
    if (StridesInOperand(*t, digits) != strides) return {};
  std::vector<const Instruction*> sources;
  for (const Instruction* t : transposes) sources.push_back(t->operand(0));
  const size_t moved = InputsBelow(body, sources).size();
  const size_t kept = transposes[0] == body.roots[0] ? 0 : InputsBelow(body, {body.roots[0]}).size();
  if (moved <= kept) return {};

  RowOrder order(space.row_sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return strides[a] > strides[b]; });
  if (std::is_sorted(order.begin(), order.end())) return {};
  for (size_t k = 0; k < order.size(); ++k) space.row_sizes[k] = digits[order[k]];
  return order;
}

ArrayIndex InResult(const RowOrder& order, const ArrayIndex& at) {
  ArrayIndex out = at;
  for (size_t k = 0; k < order.size(); ++k) {
    out.digits[order[k]] = at.digits[k];
    out.sizes[order[k]] = at.sizes[k];
  }
  return out;
}

KernelFrame::Cut CutOrderedRows(const LoopSpace& space, const KernelCost& cost) {
  KernelFrame::Cut cut;
  cut.piece_size = space.row_size;
  const int64_t tasks = std::clamp<int64_t>(cost.bytes / kTaskBytes, 1, std::min(space.rows, kMaxTasks));
  cut.units_per_task = (space.rows + tasks - 1) / tasks;
  cut.num_tasks = (space.rows + cut.units_per_task - 1) / cut.units_per_task;
  return cut;
}

}  // namespace strop
