// Marks what loops start stacks of results as (ir/unwritten.h), where each place of the stack is written before the
// loop ends, and nobody reads it in between:
//
//   %zeros = f32[100,4096] broadcast(0)
//   while: 100 trips of { stack = dynamic-update-slice(stack, f32[1,4096] row, i, 0) }     ->  %zeros is marked
//
// So are the results of each scan of JAX: the array of zeros was as much to write as all results are.
#include "strop/ir/unwritten.h"

#include <optional>
#include <vector>

#include "strop/analysis/loop_position.h"
#include "strop/ir/builder.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

constexpr int64_t kLeastBytes = 1 << 12;  // less is written in no time

// The only instruction that reads this element of the loop's state, or null.
Instruction* OnlyReader(const Instruction& loop, int64_t element) {
  Instruction* reader = nullptr;
  for (const Computation* c : {loop.condition(), loop.body()})
    for (const Use& use : c->parameter(0)->uses()) {
      if (use.user->op() != Op::GetTupleElement) return nullptr;  // the whole state
      if (use.user->tuple_index() != element) continue;
      if (reader || c == loop.condition() || use.user->IsRoot() || use.user->use_count() != 1) return nullptr;
      reader = use.user->uses()[0].user;
    }
  return reader;
}

// Does each trip write a part of the stack that no other one does, so that all of it is written?
bool WritesAll(const Instruction& update, const Instruction& loop, const Counter& counter) {
  const Shape &stack = update.shape(), &part = update.operand(1)->shape();
  bool found = false;
  for (int64_t d = 0; d < stack.rank(); ++d) {
    const Instruction* start = update.operand(2 + d);
    if (!start->shape().IsScalar()) return false;
    if (part.dim(d) == stack.dim(d)) continue;  // whole, wherever it is put
    const auto at = PositionOf(start, *loop.body()->parameter(0), counter);
    if (found || part.dim(d) != 1 || stack.dim(d) != counter.trips || !at || !VisitsAll(*at, counter)) return false;
    found = true;
  }
  return found;
}

bool IsOverwritten(const Instruction& loop, int64_t element, const Counter& counter) {
  const Instruction* root = loop.body()->root();
  if (root->op() != Op::Tuple) return false;
  const Instruction* update = OnlyReader(loop, element);
  if (!update || update->op() != Op::DynamicUpdateSlice || update->HasControlEdges()) return false;
  if (update->use_count() != 1 || root->operand(element) != update) return false;
  const Instruction* stack = update->operand(0);
  if (stack->op() != Op::GetTupleElement || stack->operand(0) != loop.body()->parameter(0)) return false;
  return update->operand_count() == 2 + update->shape().rank() && WritesAll(*update, loop, counter);
}

struct UnwrittenStacks final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t marked = 0;
    for (Computation* c : module.PostOrder())
      for (Instruction* loop : c->instructions())
        if (loop->op() == Op::While) marked += MarkIn(*loop);
    context.Count("unwritten-stacks.marked", marked);
    return marked > 0;
  }

  // Each such element gets a broadcast of its own: others may read the one that it had.
  static int64_t MarkIn(Instruction& loop) {
    Instruction* init = loop.operand(0);
    const std::optional<Counter> counter = FindCounter(loop);
    if (!counter || init->op() != Op::Tuple || init->HasControlEdges()) return 0;
    std::vector<Instruction*> elements = init->operands();
    int64_t marked = 0;
    for (size_t k = 0; k < elements.size(); ++k) {
      const Instruction& was = *elements[k];
      const Shape& shape = was.shape();
      if (was.op() != Op::Broadcast || !shape.IsStatic() || shape.byte_size() < kLeastBytes) continue;
      if (was.frontend_attributes().count(kUnwrittenMark) > 0) continue;
      if (!IsOverwritten(loop, static_cast<int64_t>(k), *counter)) continue;
      elements[k] = loop.parent()->AddClone(was, shape, was.operands(), nullptr, &loop);
      elements[k]->set_frontend_attribute(kUnwrittenMark, "1");
      ++marked;
    }
    if (marked == 0) return 0;
    Builder b(loop.parent());
    b.set_insert_before(&loop);
    loop.SetOperand(0, b.Tuple(elements));
    if (init->use_count() == 0 && !init->IsRoot()) loop.parent()->Remove(init);
    return marked;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeUnwrittenStacks() { return std::make_unique<UnwrittenStacks>(); }

}  // namespace strop
