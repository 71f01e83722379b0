// The evaluator: runs a module instruction by instruction on host values. It is slow and obviously right; every backend
// is compared with it, constant folding uses it, and a backend calls it for what it has no code for.
//
//   Interpreter interpreter;
//   STROP_ASSIGN(Literal result, interpreter.Evaluate(module, {x, y}));
//
// The module must have passed VerifyModule. Values are Literals; a value with a bounded dynamic dimension (f32[<=8]) is
// held at its actual size, and PadToBounds brings it to its bound. Same inputs, same options: same bits.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "strop/ir/module.h"

namespace strop {

// The result of one check.expect_* (or @check.eq) of a program that tests itself.
struct CheckOutcome {
  std::string check;  // "check.expect_eq"
  bool passed = false;
  std::string message;  // why not
};

struct InterpretOptions {
  // Trips that one execution of a while loop may make; -1: no limit.
  int64_t max_loop_iterations = -1;
  // A loop that would make more is left with the state it has by then; otherwise that is an error.
  bool leaves_long_loops = false;
  // Computations inside computations: calls, loops, branches, fusions.
  int64_t max_call_depth = 400;
  // Which of how many processes this is. With more than one, collectives and send/recv go to `communicate`.
  int64_t num_replicas = 1, num_partitions = 1;
  int64_t replica_id = 0, partition_id = 0;
  // Start of the generator behind `rng` (not rng-bit-generator, whose state is an operand).
  uint64_t rng_seed = 0;
  // Every `rng` draws the same numbers, so that no result depends on how many were drawn before.
  bool rng_repeats = false;

  using Hook = std::function<Status(const Instruction&, std::span<const Literal> operands, Literal* result)>;
  Hook custom_call;  // targets that are not built in
  Hook communicate;  // collectives, send, recv
  Hook infeed;       // result: (data, token); the operand is the token
  Hook outfeed;      // operands: data, token; result: token
  // What needs others and finds this process alone, as a shard's shape or a collective of groups; unset: an error.
  Hook absent_others;
  // Asked at every computation and loop trip; true stops with Cancelled.
  std::function<bool()> cancelled;
};

namespace interp {
struct State;
}

// Not thread safe; make one per thread.
class Interpreter {
 public:
  explicit Interpreter(InterpretOptions options = {});
  ~Interpreter();
  Interpreter(const Interpreter&) = delete;
  Interpreter& operator=(const Interpreter&) = delete;

  // One literal per parameter, of its shape (tuples included).
  Result<Literal> Evaluate(const Module& module, std::span<const Literal> arguments);
  Result<Literal> Evaluate(const Computation& computation, std::span<const Literal> arguments);
  // One instruction on given operands; its called computations are run as well. Not for parameters.
  Result<Literal> EvaluateInstruction(const Instruction& instruction, std::span<const Literal> operands);

  // Outcomes of the checks that ran since the last Evaluate began, in order.
  const std::vector<CheckOutcome>& checks() const;
  InterpretOptions& options() { return options_; }

 private:
  InterpretOptions options_;
  std::unique_ptr<interp::State> state_;
};

// The first elements of an array along each dimension.
Result<Literal> CutToSize(const Literal& value, const Int64Vector& dims);
// `value` with bounded dynamic dimensions of `shape` filled up with zeros to their bounds; through tuples.
Result<Literal> PadToBounds(const Literal& value, const Shape& shape);

}  // namespace strop
