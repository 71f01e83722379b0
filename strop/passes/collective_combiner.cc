// Collectives of one kind among the same devices that do not wait for each other become one, of several values: devices
// meet once for all of them.
//
//   %a = f32[8] all-reduce(%x), replica_groups={{0,1}}, to_apply=%add
//   %b = f32[4] all-reduce(%y), replica_groups={{0,1}}, to_apply=%add
//   ->  %c = (f32[8], f32[4]) all-reduce(%x, %y), replica_groups={{0,1}}, to_apply=%add, and its elements
//
// What is added of two sums among the same devices is summed once:
//
//   %s = f32[8] add(all-reduce(%x), all-reduce(%y))   ->   all-reduce(add(%x, %y))
//
// Groups are made one after another, since what depended on one member then depends on all. Gathers stay apart:
// together they would hold all that is gathered, the weights of every layer, at once.
#include <algorithm>

#include "strop/analysis/combiner.h"
#include "strop/ir/builder.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

// What waits for the last of its operands keeps the others alive: XLA's bound, too.
constexpr int64_t kMostBytes = int64_t{30} << 20;
constexpr size_t kMostValues = 256;

bool IsCandidate(const Instruction& i) {
  if (i.op() != Op::AllReduce && i.op() != Op::ReduceScatter) return false;
  return i.operand_count() == 1 && i.shape().IsArray() && i.shape().IsStatic() && !i.HasControlEdges();
}

bool SameKind(const Instruction& a, const Instruction& b) {
  if (a.op() != b.op() || a.shape().type() != b.shape().type()) return false;
  const auto &x = a.attrs<CollectiveAttrs>(), &y = b.attrs<CollectiveAttrs>();
  if (x.replica_groups != y.replica_groups || x.use_global_device_ids != y.use_global_device_ids) return false;
  if ((x.channel_id == 0) != (y.channel_id == 0) || x.dimensions != y.dimensions) return false;
  const LaneCombiner p = RecognizeCombiner(*a.to_apply()), q = RecognizeCombiner(*b.to_apply());
  return p.op != Op::kEnd && p.op == q.op;
}

// The leader and those after it that can be one with it: of its kind, and waiting for none of them.
std::vector<Instruction*> GroupOf(const std::vector<Instruction*>& order, const Instruction& leader, int64_t ids) {
  std::vector<Instruction*> group;
  std::vector<bool> waits(ids, false);  // by id: for a member
  int64_t bytes = 0;
  for (Instruction* i : order) {
    bool depends = false;
    for (const Instruction* operand : i->operands()) depends = depends || waits[operand->id()];
    const bool joins = i == &leader || (!group.empty() && !depends && group.size() < kMostValues && IsCandidate(*i) &&
                                        SameKind(leader, *i) && bytes + i->shape().byte_size() <= kMostBytes);
    if (joins) {
      group.push_back(i);
      bytes += i->shape().byte_size();
    }
    waits[i->id()] = depends || joins;
  }
  return group;
}

bool IsSum(const Instruction& i) {
  return i.op() == Op::AllReduce && IsCandidate(i) && i.use_count() == 1 && !i.IsRoot() &&
         RecognizeCombiner(*i.to_apply()).op == Op::Add;
}

// In the order of the list: a sum of several becomes one from its first addition on.
int64_t AddBeforeSumming(Computation& c) {
  int64_t saved = 0;
  for (Instruction* i : c.PostOrder()) {
    if (i->op() != Op::Add || i->operand(0) == i->operand(1)) continue;
    Instruction &a = *i->operand(0), &b = *i->operand(1);
    if (!IsSum(a) || !IsSum(b) || !SameKind(a, b)) continue;
    Builder builder(&c);
    builder.set_insert_before(i);
    builder.set_metadata(i->shared_metadata());
    Instruction* parts = builder.Make(Op::Add, {a.operand(0), b.operand(0)});
    if (!parts) continue;
    Computation* called[] = {a.to_apply()};
    const Shape shape = i->shape().WithoutLayout();
    Instruction* sum = builder.Make(Op::AllReduce, std::span(&parts, 1), a.attrs<CollectiveAttrs>(), called, &shape);
    if (!sum) continue;
    i->ReplaceAllUsesWith(sum);
    if (c.root() == i) c.set_root(sum);
    c.Remove(i);
    c.Remove(&a);
    c.Remove(&b);
    ++saved;
  }
  return saved;
}

struct CollectiveCombiner final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t combined = 0, saved = 0;
    for (Computation* c : module.computations()) {
      saved += AddBeforeSumming(*c);
      combined += RunOn(*c);
    }
    context.Count("collective-combiner.combined", combined);
    context.Count("collective-combiner.added-before", saved);
    return combined + saved > 0;
  }

  static int64_t RunOn(Computation& c) {
    int64_t combined = 0;
    std::vector<Instruction*> order = c.PostOrder(), leaders;
    for (Instruction* i : order)
      if (IsCandidate(*i)) leaders.push_back(i);
    for (size_t k = 0; k < leaders.size(); ++k) {
      const std::vector<Instruction*> group = GroupOf(order, *leaders[k], c.module()->id_bound());
      if (group.size() < 2) continue;
      std::erase_if(leaders, [&](Instruction* i) {
        return i != leaders[k] && std::find(group.begin(), group.end(), i) != group.end();
      });
      Combine(c, group);
      combined += static_cast<int64_t>(group.size());
      order = c.PostOrder();
    }
    return combined;
  }

  static void Combine(Computation& c, const std::vector<Instruction*>& group) {
    std::vector<Instruction*> operands;
    std::vector<Shape> shapes;
    for (Instruction* i : group) {
      operands.push_back(i->operand(0));
      shapes.push_back(i->shape().WithoutLayout());
    }
    Instruction& first = *group[0];
    const Shape all = Shape::Tuple(shapes);
    Builder b(&c);
    b.set_metadata(first.shared_metadata());
    Computation* called[] = {first.to_apply()};
    Instruction* one = b.Make(first.op(), operands, first.attrs<CollectiveAttrs>(), called, &all);
    if (!one) return;
    for (size_t k = 0; k < group.size(); ++k) {
      Instruction* part = c.Add(Op::GetTupleElement, shapes[k], {one}, GetTupleElementAttrs{static_cast<int64_t>(k)});
      group[k]->ReplaceAllUsesWith(part);
      if (c.root() == group[k]) c.set_root(part);
      c.Remove(group[k]);
    }
    c.SortTopologically();
  }
};

}  // namespace

std::unique_ptr<Pass> MakeCollectiveCombiner() { return std::make_unique<CollectiveCombiner>(); }

}  // namespace strop
