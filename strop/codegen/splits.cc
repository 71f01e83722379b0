#include "strop/codegen/splits.h"

#include <algorithm>

namespace strop {
namespace {

constexpr size_t kMaxRegions = 64;         // of rows, times the segments of each
constexpr size_t kMaxInstructions = 3000;  // of LLVM, in all regions
// What is tried in vain: most regions need one part of many, and are far shorter than the whole.
constexpr size_t kMaxTried = 6000;

bool HasConditions(const KernelBody& body) {
  for (const Instruction* i : body.Computed()) {
    switch (i->op()) {
      case Op::Concatenate:
      case Op::Pad: return true;
      case Op::ReduceWindow:
        for (const WindowDim& w : i->attrs<WindowAttrs>().window.dims)
          if (w.pad_low > 0 || w.pad_high > 0) return true;
        break;
      default: break;
    }
  }
  return false;
}

struct Trial {
  ElementalEmitter::Splits splits;
  size_t instructions = 0;
};

// Emits the kernel into a function that is thrown away.
Trial EmitInVain(VectorBuilder& b, const KernelBody& body, std::span<const int> in_place, const KernelFrame::Cut& cut,
                 const LoopSpace& space) {
  Trial trial;
  std::vector<llvm::GlobalVariable*> globals;
  for (llvm::GlobalVariable& g : b.module().globals()) globals.push_back(&g);
  const llvm::IRBuilderBase::InsertPoint place = b.ir().saveIP();
  llvm::Function* function = nullptr;
  {
    KernelFrame frame(b, "in_vain", body, in_place);
    function = b.ir().GetInsertBlock()->getParent();
    frame.NoteSplits(&trial.splits);
    const Status status = frame.Walk(
        space, cut, [&](ElementalEmitter& e, const ArrayIndex& at) { return EmitRoots(e, frame, body, space, at); });
    if (!status.ok()) trial.splits.clear();  // emitting it in earnest will say so
    frame.Return();
  }
  b.ir().restoreIP(place);
  trial.instructions = function->getInstructionCount();
  function->eraseFromParent();
  std::vector<llvm::GlobalVariable*> unused;
  for (llvm::GlobalVariable& g : b.module().globals())
    if (g.use_empty() && std::find(globals.begin(), globals.end(), &g) == globals.end()) unused.push_back(&g);
  for (llvm::GlobalVariable* g : unused) g->eraseFromParent();
  return trial;
}

}  // namespace

bool ChooseSplits(VectorBuilder& b, const KernelBody& body, std::span<const int> in_place, const KernelFrame::Cut& cut,
                  LoopSpace& space) {
  if (space.uniform || !HasConditions(body)) return true;
  bool all = true;
  // Rows of different parts of the result do not go together.
  const auto cut_at = [digits = space.row_sizes.size() + 1](LoopSpace& to, size_t d, const Int64Vector& places) {
    to.splits[d] = places;
    if (d + 1 != digits && !places.empty()) to.together = 1;
  };
  const Trial trial = EmitInVain(b, body, in_place, cut, space);
  const size_t digits = space.row_sizes.size() + 1;
  space.splits.assign(digits, {});
  size_t regions = 1;
  // The row first: there a condition costs each vector a selection, on the other digits a branch.
  for (size_t d = digits; d-- > 0;) {
    const auto at = trial.splits.find(static_cast<int>(d));
    if (at == trial.splits.end()) continue;
    const int64_t size = d + 1 == digits ? space.row_size : space.row_sizes[d];
    Int64Vector inside;
    for (int64_t s : at->second)
      if (s > 0 && s < size) inside.push_back(s);
    const size_t parts = inside.size() + 1;
    bool fits = regions * parts <= kMaxRegions;
    if (fits && regions * parts * trial.instructions > kMaxInstructions) {
      LoopSpace cut_here = space;
      cut_at(cut_here, d, inside);
      fits = trial.instructions <= kMaxTried &&
             EmitInVain(b, body, in_place, cut, cut_here).instructions <= kMaxInstructions;
    }
    if (!fits) {
      all &= d + 1 != digits;
      continue;
    }
    regions *= parts;
    cut_at(space, d, inside);
  }
  return all;
}

}  // namespace strop
