// What works on arrays of bounded size becomes one fusion, which only the evaluator runs:
//
//   %a = f32[<=4] set-dimension-size(%x, %n), dimensions={0}
//   %m = f32[] reduce(%a, %c), ...                            ->   %f = (f32[], s32[]) fusion(%x, %n, %c)
//   %k = s32[] get-dimension-size(%a), dimensions={0}
//
// A buffer has its bound's size and does not say how much of it is meant. Inside of one fusion the evaluator holds each
// value at its actual size; between kernels the size would be lost. What leaves the fusion is padded with zeros.
//
// Taken are the instructions that such arrays enter or leave, and whatever lies on a way from one to another, so that
// the fusion depends on nothing that depends on it. Loops and conditionals are taken whole where their state is
// bounded; otherwise their computations are looked at by themselves.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "strop/passes/pass.h"

namespace strop {
namespace {

bool TouchesBounded(const Instruction& i) {
  if (!i.shape().IsStatic()) return true;
  for (int64_t k = 0; k < i.operand_count(); ++k)
    if (!i.operand(k)->shape().IsStatic()) return true;
  return false;
}

class Outliner {
 public:
  explicit Outliner(Computation& computation) : c_(computation), order_(computation.PostOrder()) {}

  // Whether anything was outlined.
  bool Run() {
    FindMembers();
    if (members_.empty() || IsOutlined()) return false;
    MakeFused();
    Instruction* fusion = MakeFusion();
    MoveControlEdges(fusion);
    for (size_t k = members_.size(); k-- > 0;) c_.Remove(members_[k]);
    for (Instruction* i : constants_)
      if (i->parent() && i->use_count() == 0 && i != c_.root()) c_.Remove(i);
    c_.SortTopologically();
    return true;
  }

 private:
  // Nothing is left but a fusion that this pass has made, and its results.
  bool IsOutlined() const {
    const Instruction* fusion = members_[0];
    if (fusion->op() != Op::Fusion || fusion->attrs<FusionAttrs>().kind != FusionKind::Custom) return false;
    return std::all_of(members_.begin() + 1, members_.end(),
                       [&](const Instruction* i) { return i->op() == Op::GetTupleElement && i->operand(0) == fusion; });
  }
  // Parameters and the tuple that is returned stay outside.
  bool CanTake(const Instruction& i) const { return !i.IsParameter() && !(&i == c_.root() && i.op() == Op::Tuple); }

  void FindMembers() {
    std::unordered_set<const Instruction*> below, above;  // fed by bounded work, feeding it
    auto all_sources = [](const Instruction& i) {
      std::vector<Instruction*> sources = i.operands();
      sources.insert(sources.end(), i.control_predecessors().begin(), i.control_predecessors().end());
      return sources;
    };
    for (const Instruction* i : order_) {
      bool is = CanTake(*i) && TouchesBounded(*i);
      for (const Instruction* s : all_sources(*i)) is = is || below.contains(s);
      if (is) below.insert(i);
    }
    for (size_t n = order_.size(); n-- > 0;) {
      const Instruction* i = order_[n];
      if (CanTake(*i) && TouchesBounded(*i)) above.insert(i);
      if (!above.contains(i)) continue;
      for (const Instruction* s : all_sources(*i)) above.insert(s);
    }
    for (Instruction* i : order_) {
      if (!CanTake(*i) || !below.contains(i) || !above.contains(i)) continue;
      members_.push_back(i);
      taken_.insert(i);
    }
  }

  void MakeFused() {
    fused_ = c_.module()->AddComputation("bounded_computation");
    for (Instruction* m : members_) {
      std::vector<Instruction*> operands;
      for (int64_t k = 0; k < m->operand_count(); ++k) operands.push_back(Inside(m->operand(k)));
      inside_[m] = fused_->AddClone(*m, m->shape(), operands);
      if (IsUsedOutside(*m)) outputs_.push_back(m);
    }
    if (outputs_.empty()) outputs_.push_back(members_.back());  // there for its effect
    if (outputs_.size() == 1) return fused_->set_root(inside_.at(outputs_[0]));
    std::vector<Instruction*> results;
    std::vector<Shape> shapes;
    for (const Instruction* o : outputs_) {
      results.push_back(inside_.at(o));
      shapes.push_back(o->shape());
    }
    fused_->set_root(fused_->Add(Op::Tuple, Shape::Tuple(std::move(shapes)), results, NoAttrs{}));
  }

  Instruction* Inside(Instruction* outside) {
    auto [it, added] = inside_.emplace(outside, nullptr);
    if (!added) return it->second;
    if (outside->IsConstant()) {
      it->second = fused_->AddClone(*outside, outside->shape(), {});
      constants_.push_back(outside);
    } else {
      const int64_t number = static_cast<int64_t>(inputs_.size());
      it->second = fused_->AddParameter(number, outside->shape(), StrCat("param_", number));
      inputs_.push_back(outside);
    }
    return it->second;
  }

  bool IsUsedOutside(const Instruction& member) const {
    if (&member == c_.root()) return true;
    const std::vector<Instruction*> users = member.users();
    return std::ranges::any_of(users, [&](const Instruction* u) { return !taken_.contains(u); });
  }

  Instruction* MakeFusion() {
    FusionAttrs attrs;
    attrs.kind = FusionKind::Custom;
    Instruction* fusion = c_.Add(Op::Fusion, fused_->root()->shape(), inputs_, attrs, "bounded");
    fusion->set_called({fused_});
    if (outputs_[0]->has_metadata()) fusion->set_metadata(outputs_[0]->shared_metadata());
    for (size_t k = 0; k < outputs_.size(); ++k) {
      Instruction* value = fusion;
      if (outputs_.size() > 1)
        value =
            c_.Add(Op::GetTupleElement, outputs_[k]->shape(), {fusion}, GetTupleElementAttrs{static_cast<int64_t>(k)});
      outputs_[k]->ReplaceAllUsesWith(value);
    }
    return fusion;
  }

  void MoveControlEdges(Instruction* fusion) {
    for (Instruction* m : members_) {
      for (Instruction* p : m->control_predecessors())
        if (!taken_.contains(p)) fusion->AddControlPredecessor(p);
      for (Instruction* s : m->control_successors())
        if (!taken_.contains(s)) s->AddControlPredecessor(fusion);
      m->ClearControlEdges();
    }
  }

  Computation& c_;
  const std::vector<Instruction*> order_;
  std::vector<Instruction*> members_, inputs_, outputs_, constants_;
  std::unordered_set<const Instruction*> taken_;
  std::unordered_map<const Instruction*, Instruction*> inside_;
  Computation* fused_ = nullptr;
};

struct BoundedOutliner final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t outlined = 0;
    std::vector<Computation*> left = {module.entry()};
    std::unordered_set<const Computation*> seen;
    while (!left.empty()) {
      Computation* c = left.back();
      left.pop_back();
      if (!seen.insert(c).second) continue;
      if (Outliner(*c).Run()) ++outlined;
      for (const Instruction* i : c->instructions())
        if (Is(i->op(), kControlFlow)) left.insert(left.end(), i->called().begin(), i->called().end());
    }
    context.Count("bounded-outliner.outlined", outlined);
    return outlined > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeBoundedOutliner() { return std::make_unique<BoundedOutliner>(); }

}  // namespace strop
