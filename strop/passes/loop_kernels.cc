// Loops whose state is computed element by element become one kernel: a fusion of the loop alone.
//
//   %w = (s32[], f32[N], f32[N]) while(%init), ...     ->     %f = f32[N] fusion(%x, %c), calls=%loop
//
// A loop writes its state to memory in every trip; in a kernel each element runs through all trips in registers
// (codegen/elemental.cc). What starts the state and is constant goes into the fusion.
#include "strop/passes/loop_kernels.h"

#include <map>
#include <set>

#include "strop/analysis/positionwise_loop.h"

namespace strop {
namespace {

using Role = PositionwiseLoop::Role;

constexpr int64_t kFewestElements = 4096;  // of fewer, loops are regions

class KernelMaker {
 public:
  KernelMaker(Instruction* loop, const PositionwiseLoop& what) : loop_(loop), what_(what), c_(*loop->parent()) {}

  // False: more than the arrays of the state is read.
  bool Run() {
    std::map<int64_t, std::vector<Instruction*>> results;
    for (Instruction* user : loop_->users()) {
      if (user->op() != Op::GetTupleElement || what_.roles[user->tuple_index()] == Role::kUniform) return false;
      results[user->tuple_index()].push_back(user);
    }
    if (loop_ == c_.root() || results.empty()) return false;
    // What does not change is what it was.
    for (auto at = results.begin(); at != results.end();) {
      if (what_.roles[at->first] != Role::kInvariant) {
        ++at;
        continue;
      }
      for (Instruction* i : at->second) {
        i->ReplaceAllUsesWith(loop_->operand(0)->operand(at->first));
        c_.Remove(i);
      }
      at = results.erase(at);
    }
    if (results.empty()) return false;
    Instruction* fusion = MakeFusion(results);
    int64_t k = 0;
    for (const auto& [element, users] : results) {
      Instruction* value = fusion;
      if (results.size() > 1)
        value = c_.Add(Op::GetTupleElement, users[0]->shape(), {fusion}, GetTupleElementAttrs{k++}, "loop", loop_);
      for (Instruction* user : users) user->ReplaceAllUsesWith(value);
    }
    for (const auto& [element, users] : results)
      for (Instruction* user : users) c_.Remove(user);
    return true;
  }

 private:
  Instruction* MakeFusion(const std::map<int64_t, std::vector<Instruction*>>& results) {
    fused_ = c_.module()->AddComputation("loop");
    const Instruction* init = loop_->operand(0);
    std::vector<Instruction*> parts;
    for (int64_t k = 0; k < init->operand_count(); ++k) parts.push_back(Inside(init->operand(k)));
    Instruction* tuple = fused_->Add(Op::Tuple, init->shape(), parts, NoAttrs{});
    Instruction* loop = fused_->AddClone(*loop_, loop_->shape(), {&tuple, 1});
    std::vector<Instruction*> outputs;
    std::vector<Shape> shapes;
    for (const auto& [element, users] : results) {
      shapes.push_back(users[0]->shape());
      outputs.push_back(fused_->Add(Op::GetTupleElement, shapes.back(), {loop}, GetTupleElementAttrs{element}));
    }
    fused_->set_root(outputs.size() == 1 ? outputs[0]
                                         : fused_->Add(Op::Tuple, Shape::Tuple(std::move(shapes)), outputs, NoAttrs{}));
    FusionAttrs attrs;
    attrs.kind = FusionKind::Custom;  // no pass takes it apart again
    Instruction* fusion = c_.Add(Op::Fusion, fused_->root()->shape(), inputs_, attrs, "loop_fusion", loop_);
    fusion->set_called({fused_});
    if (loop_->has_metadata()) fusion->set_metadata(loop_->shared_metadata());
    return fusion;
  }

  Instruction* Inside(Instruction* outside) {
    if (const auto known = inside_.find(outside); known != inside_.end()) return known->second;
    Instruction* made = nullptr;
    if (outside->IsConstant() && outside->shape().IsScalar()) {
      made = fused_->AddClone(*outside, outside->shape(), {});
    } else if (outside->op() == Op::Broadcast && outside->operand(0)->IsConstant() &&
               outside->operand(0)->shape().IsScalar()) {
      Instruction* scalar = Inside(outside->operand(0));
      made = fused_->AddClone(*outside, outside->shape(), {&scalar, 1});
    } else {
      const int64_t number = static_cast<int64_t>(inputs_.size());
      made = fused_->AddParameter(number, outside->shape(), StrCat("param_", number));
      inputs_.push_back(outside);
    }
    return inside_[outside] = made;
  }

  Instruction* loop_;
  const PositionwiseLoop& what_;
  Computation& c_;
  Computation* fused_ = nullptr;
  std::vector<Instruction*> inputs_;
  std::map<Instruction*, Instruction*> inside_;  // looked up only
};

struct LoopKernels final : Pass {
  explicit LoopKernels(int64_t fewest) : fewest_elements(fewest) {}
  int64_t fewest_elements;

  Result<bool> Run(Module& module, PassContext& context) override {
    bool changed = false;
    std::set<const Computation*> fused;  // looked up only
    for (const Computation* c : module.computations())
      for (const Instruction* i : c->instructions())
        if (i->op() == Op::Fusion) fused.insert(i->called(0));
    for (Computation* c : module.PostOrder()) {
      if (fused.contains(c)) continue;
      std::vector<Instruction*> loops;
      for (Instruction* i : c->instructions())
        if (i->op() == Op::While && !i->HasControlEdges()) loops.push_back(i);
      for (Instruction* loop : loops) {
        const std::optional<PositionwiseLoop> what = FindPositionwiseLoop(*loop);
        if (!what || what->elements < fewest_elements || !KernelMaker(loop, *what).Run()) continue;
        c->Remove(loop);
        context.Count("loop-kernels.loops");
        changed = true;
      }
    }
    if (changed) module.RemoveDeadComputations();
    return changed;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeLoopKernels() { return MakeLoopKernelsOf(kFewestElements); }
std::unique_ptr<Pass> MakeLoopKernelsOf(int64_t fewest_elements) {
  return std::make_unique<LoopKernels>(fewest_elements);
}

}  // namespace strop
