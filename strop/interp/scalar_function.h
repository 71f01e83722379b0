// A computation over scalars (the body of reduce, sort, scatter, map, ...) as a function of cells. Nearly all of them
// are a few elementwise ops and become a flat list of steps over registers; any other computation is evaluated as
// usual, call by call.
#pragma once
#include <memory>
#include <span>
#include <vector>

#include "strop/interp/scalar.h"
#include "strop/ir/module.h"

namespace strop::interp {

class Evaluator;

class ScalarFunction {
 public:
  static Result<std::unique_ptr<ScalarFunction>> Make(Evaluator& evaluator, const Computation& computation);

  int64_t input_count() const { return static_cast<int64_t>(input_types_.size()); }
  const std::vector<ElementType>& input_types() const { return input_types_; }
  const std::vector<ElementType>& output_types() const { return output_types_; }

  Status Call(std::span<const Cell> inputs, std::span<Cell> outputs);
  // A compiled function cannot fail; for inner loops.
  bool compiled() const { return compiled_; }
  void CallCompiled(const Cell* inputs, Cell* outputs) {
    Cell* r = registers_.data();
    for (size_t i = 0; i < input_types_.size(); ++i) r[i] = inputs[i];
    for (const Step& s : steps_) r[s.out] = s.op(r[s.in[0]], r[s.in[1]], r[s.in[2]]);
    for (size_t i = 0; i < outputs_.size(); ++i) outputs[i] = r[outputs_[i]];
  }

  // The op, if the function is nothing but op(p0, p1) or, for commutative ops, op(p1, p0); else Op::kEnd. Further
  // parameters may exist (the companions of a sort).
  Op single_op() const { return single_op_; }
  // The same with its result not yet rounded to the element type: for sums and products that are rounded once at the
  // end.
  const ScalarOp& single() const { return single_; }

 private:
  struct Step {
    ScalarOp op;
    int in[3];
    int out;
  };
  friend class ScalarCompiler;

  Evaluator* evaluator_ = nullptr;
  const Computation* computation_ = nullptr;
  std::vector<ElementType> input_types_, output_types_;
  bool compiled_ = false;
  std::vector<Step> steps_;
  std::vector<Cell> registers_;  // inputs first, then constants and results
  std::vector<int> outputs_;
  Op single_op_ = Op::kEnd;
  ScalarOp single_;
};

// Sums of at most so many terms of 32 bits or more, in dots and windows, are what the specification's own interpreter
// makes of them: each term is added in the type of the result. With more terms, or in smaller types, the rounding of
// each step would hide what every other order of summation gives.
inline constexpr int64_t kShortSum = 16;

// Combines values one after the other with a binary scalar function. Sums and products of floats and complex numbers
// are kept in double and rounded once, by Finish: the oracle has the sum that every order of summation approximates.
class Accumulator {
 public:
  // `terms`: how many values a window combines to one at most, if they may be a short sum.
  explicit Accumulator(ScalarFunction* function, int64_t terms = INT64_MAX);
  // accumulated = f(accumulated, value), for `count` of each (variadic reductions).
  Status Combine(std::span<Cell> accumulated, std::span<const Cell> values);
  void Finish(std::span<Cell> accumulated) const;

 private:
  ScalarFunction* function_;
  bool delay_rounding_;
  std::vector<Cell> inputs_, outputs_;
};

}  // namespace strop::interp
