// Inside of the interpreter: how a computation is walked, and what an op's function receives.
//
// A computation is planned once: its live instructions in list order, each with the slots of its operands and a mark
// where a value is used for the last time. There the value is moved into the call instead of copied, so that an op
// which updates its operand (dynamic-update-slice, scatter) owns the bytes and works in place; loops carry their state
// without copies.
#pragma once
#include <map>
#include <memory>
#include <unordered_map>

#include "strop/interp/interpreter.h"
#include "strop/interp/scalar_function.h"

namespace strop::interp {

class Evaluator;

// One execution of one instruction.
struct OpCall {
  Evaluator& evaluator;
  const Instruction& instruction;
  std::span<Literal> operands;  // the call's own: may be moved from
  const Shape& shape;           // of the result, with the actual sizes of dynamic dimensions

  const Literal& in(int64_t i) const { return operands[static_cast<size_t>(i)]; }
  Op op() const { return instruction.op(); }
  template <class A>
  const A& attrs() const {
    return instruction.attrs<A>();
  }
  // A result full of zeros.
  Result<Literal> NewResult() const { return Literal::Zeros(shape); }
};

using EvalFn = Result<Literal> (*)(OpCall& call);
EvalFn EvalFunction(Op op);  // never null: the column is complete

// What outlives one Evaluate.
struct State {
  std::vector<CheckOutcome> checks;
  std::map<std::string, std::vector<Literal>> probes;  // interpreter.probe: what each saw
  uint64_t rng_counter = 0;
  // rng-get-and-update-state: a 128-bit number per instruction (low, high); XLA starts it at this value.
  static constexpr uint64_t kFirstRngState = 0x7012395;
  std::map<int64_t, std::pair<uint64_t, uint64_t>> rng_states;
};

struct PlanStep {
  const Instruction* instruction;
  EvalFn fn;
  int slot;                    // of the result
  std::vector<int> operands;   // slots
  std::vector<bool> last_use;  // by operand: nothing reads the slot afterwards
  bool take_element = false;   // get-tuple-element: nobody else wants this element of the tuple
  bool dynamic = false;        // result or an operand has a bounded dimension
};

struct ComputationPlan {
  std::vector<PlanStep> steps;  // without parameters
  std::vector<int> parameter_slots;
  int root_slot = 0;
  int slot_count = 0;
};

class Evaluator {
 public:
  Evaluator(const InterpretOptions& options, State& state) : options_(options), state_(state) {}

  const InterpretOptions& options() const { return options_; }
  State& state() { return state_; }

  Result<Literal> Run(const Computation& computation, std::vector<Literal> arguments);
  Result<Literal> RunInstruction(const Instruction& instruction, EvalFn fn, bool dynamic, std::span<Literal> operands);
  // The computation as a function of scalars, prepared once.
  Result<ScalarFunction*> Scalar(const Computation& computation);
  // Cancelled, if the caller of the interpreter says so.
  Status Poll() const;

 private:
  const ComputationPlan& PlanOf(const Computation& computation);

  const InterpretOptions& options_;
  State& state_;
  int64_t depth_ = 0;
  // Looked up, never iterated.
  std::unordered_map<const Computation*, std::unique_ptr<ComputationPlan>> plans_;
  std::unordered_map<const Computation*, std::unique_ptr<ScalarFunction>> functions_;
};

ComputationPlan MakePlan(const Computation& computation);
// The shape of the result of an instruction, given operands whose dynamic dimensions have their actual sizes.
Result<Shape> ActualShape(const Instruction& instruction, std::span<const Literal> operands);
// The front part of an array of larger dimensions: a static operand beside one that has been cut.
Result<Literal> CutToShape(Literal value, const Shape& shape);
// `shape` with every bounded dimension at its bound.
Shape StaticShape(const Shape& shape);

}  // namespace strop::interp
