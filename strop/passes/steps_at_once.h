// What a loop computes of its inputs alone, for all trips at once: see steps_at_once.cc.
#pragma once
#include <functional>
#include <set>
#include <unordered_map>
#include <vector>

#include "strop/analysis/trip_count.h"
#include "strop/ir/module.h"

namespace strop {

class StepsAtOnce {
 public:
  using IsInvariant = std::function<bool(const Instruction&)>;  // the same in every trip, and may move

  // `loop` has an explicit state, and is this body's only caller.
  StepsAtOnce(Instruction* loop, const Counter& counter) : loop_(loop), body_(loop->body()), counter_(counter) {}

  // Unrolls short inner loops whose state begins as inputs of the trip. True if there was one.
  bool UnrollLoopsOfInputs(const IsInvariant& invariant);
  // Makes arrays of all trips' values, in the body, of which each trip takes its own. Returns them: they are invariant.
  std::vector<Instruction*> Compute(const IsInvariant& invariant);

 private:
  void FindOfInputs(const IsInvariant& invariant);
  bool TakesStep(Instruction& i, const IsInvariant& invariant);
  bool KeepContracted();
  std::vector<Instruction*> Chosen() const;
  bool TakeOwn(Instruction* i, Instruction* all);
  bool MayBatch(const Instruction& i) const;
  bool IsOfInputs(const Instruction* i) const {
    const auto id = static_cast<size_t>(i->id());
    return id < of_inputs_.size() && of_inputs_[id];
  }
  int64_t CodeOf(const Instruction& i) const;
  Instruction* All(Instruction* i);
  Instruction* AllLike(Instruction* i, const Int64Vector& dims);

  Instruction* loop_;
  Computation* body_;
  Counter counter_;
  Instruction* index_ = nullptr;  // which step a trip takes of its inputs
  int64_t steps_ = 0;
  std::set<const Instruction*> kept_;  // in the loop; looked up only
  std::vector<bool> of_inputs_;        // by Instruction::id(): of what the trip takes and what is invariant, small
  std::unordered_map<const Instruction*, Instruction*> all_;
  Instruction* before_ = nullptr;
};

}  // namespace strop
