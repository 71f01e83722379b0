// Instruction selection that does not come to an end is given up.
//
// Rewrites of LLVM 22's SelectionDAG sometimes undo each other for ever: of doubled bytes whose vectors are repeated,
// for one (docs/adr/0032). Each of its phases gets a budget of changes to the graph, which does not depend on time.
#pragma once
#include <cstdint>

namespace strop {

// While there is one, selection on this thread has budgets: a phase that exceeds its own throws LlvmFatalError (what
// LLVM holds then is to be thrown away, as after each of its fatal errors).
class SelectionGuard {
 public:
  SelectionGuard();
  ~SelectionGuard();
  SelectionGuard(const SelectionGuard&) = delete;
  SelectionGuard& operator=(const SelectionGuard&) = delete;

  bool has_given_up() const { return given_up_; }

  // From now on nodes are not combined before all are legal (what comes after that is part of x86's selection): the
  // code is slower, but nothing makes the nodes that are legalised without end.
  void DoWithoutCombining() { combines_ = false; }
  bool combines() const { return combines_; }

  void GiveUp() { given_up_ = true; }

 private:
  SelectionGuard* const outer_;
  bool given_up_ = false;
  bool combines_ = true;
};

}  // namespace strop
