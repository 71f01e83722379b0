#include "strop/codegen/selection_guard.h"

#include <llvm/CodeGen/SelectionDAG.h>

#include <memory>

#include "strop/codegen/llvm_guard.h"

namespace strop {
namespace {

thread_local SelectionGuard* t_guard = nullptr;

// Of all kernels of the benches, XLA's modules and random ones the largest phase made 10 changes for each of its nodes
// (415 nodes, 4329). One that does not end looks at all nodes each time: 20,000 changes take it 0.1 s.
constexpr int64_t kChangesPerNode = 200;
constexpr int64_t kChangesAtLeast = 20'000;

class ChangeCounter final : public llvm::SelectionDAG::DAGUpdateListener {
 public:
  explicit ChangeCounter(llvm::SelectionDAG& dag)
      : DAGUpdateListener(dag), left_(kChangesAtLeast + kChangesPerNode * static_cast<int64_t>(dag.allnodes_size())) {}
  void NodeDeleted(llvm::SDNode*, llvm::SDNode*) override { Count(); }
  void NodeUpdated(llvm::SDNode*) override { Count(); }
  void NodeInserted(llvm::SDNode*) override { Count(); }

 private:
  void Count() {
    if (--left_ > 0) return;
    t_guard->GiveUp();
    throw LlvmFatalError{"instruction selection does not come to an end"};
  }
  int64_t left_;
};

// phase(), which changes the graph no more often than its budget has it.
template <class Phase>
auto Budgeted(llvm::SelectionDAG* dag, Phase phase) {
  if (!t_guard) return phase();
  auto counter = std::make_unique<ChangeCounter>(*dag);
  try {
    return phase();
  } catch (...) {
    // LLVM's frames had listeners of their own, which nobody has taken from the graph's list.
    (void)counter.release();
    throw;
  }
}

}  // namespace

SelectionGuard::SelectionGuard() : outer_(t_guard) { t_guard = this; }
SelectionGuard::~SelectionGuard() { t_guard = outer_; }

}  // namespace strop

// What SelectionDAGISel calls in place of the phases (--wrap, cmake/strop_room.cmake): Combine, LegalizeTypes,
// LegalizeVectors, Legalize.
#define STROP_COMBINE _ZN4llvm12SelectionDAG7CombineENS_12CombineLevelEPNS_14BatchAAResultsENS_15CodeGenOptLevelE
#define STROP_LEGALIZE_TYPES _ZN4llvm12SelectionDAG13LegalizeTypesEv
#define STROP_LEGALIZE_VECTORS _ZN4llvm12SelectionDAG15LegalizeVectorsEv
#define STROP_LEGALIZE _ZN4llvm12SelectionDAG8LegalizeEv
#define STROP_JOIN_(a, b) a##b
#define STROP_JOIN(a, b) STROP_JOIN_(a, b)
#define STROP_REAL(name) STROP_JOIN(__real_, name)
#define STROP_WRAP(name) STROP_JOIN(__wrap_, name)

extern "C" {
using Dag = llvm::SelectionDAG;
void STROP_REAL(STROP_COMBINE)(Dag*, llvm::CombineLevel, llvm::BatchAAResults*, llvm::CodeGenOptLevel);
bool STROP_REAL(STROP_LEGALIZE_TYPES)(Dag*);
bool STROP_REAL(STROP_LEGALIZE_VECTORS)(Dag*);
void STROP_REAL(STROP_LEGALIZE)(Dag*);

void STROP_WRAP(STROP_COMBINE)(Dag* dag, llvm::CombineLevel level, llvm::BatchAAResults* aliases,
                               llvm::CodeGenOptLevel optimization);
bool STROP_WRAP(STROP_LEGALIZE_TYPES)(Dag* dag);
bool STROP_WRAP(STROP_LEGALIZE_VECTORS)(Dag* dag);
void STROP_WRAP(STROP_LEGALIZE)(Dag* dag);

void STROP_WRAP(STROP_COMBINE)(Dag* dag, llvm::CombineLevel level, llvm::BatchAAResults* aliases,
                               llvm::CodeGenOptLevel optimization) {
  if (level != llvm::AfterLegalizeDAG && strop::t_guard && !strop::t_guard->combines()) return;
  strop::Budgeted(dag, [&] { STROP_REAL(STROP_COMBINE)(dag, level, aliases, optimization); });
}
bool STROP_WRAP(STROP_LEGALIZE_TYPES)(Dag* dag) {
  return strop::Budgeted(dag, [&] { return STROP_REAL(STROP_LEGALIZE_TYPES)(dag); });
}
bool STROP_WRAP(STROP_LEGALIZE_VECTORS)(Dag* dag) {
  return strop::Budgeted(dag, [&] { return STROP_REAL(STROP_LEGALIZE_VECTORS)(dag); });
}
void STROP_WRAP(STROP_LEGALIZE)(Dag* dag) {
  strop::Budgeted(dag, [&] { STROP_REAL(STROP_LEGALIZE)(dag); });
}
}
