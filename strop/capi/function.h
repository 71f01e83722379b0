// Function: Strop as a library, in one class. Text or bytes in, literals in and out; compiled for the first device of a
// backend.
//
//   STROP_ASSIGN(Function triple, Function::Compile(hlo_text));
//   STROP_ASSIGN(Literal y, triple.Run({{x}}));
//
// Errors come back as a Status, never as an exception. A Function does not change once it is made; Run may be called
// from several threads at once. Options come from the environment (docs/options.md).
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "strop/base/status.h"
#include "strop/types/literal.h"
#include "strop/types/shape.h"

namespace strop {

class Function {
 public:
  // `program` is StableHLO (MLIR text or bytecode) or HLO (text or a serialized HloModuleProto): its bytes tell.
  // `backend` is "cpu" or another that `strop devices` lists.
  static Result<Function> Compile(std::string_view program, std::string_view backend = "cpu");

  int num_parameters() const;
  const Shape& parameter_shape(int parameter) const;  // parameter < num_parameters()
  const Shape& result_shape() const;

  // One literal per parameter, of its shape. The result is a tuple where the program's is.
  Result<Literal> Run(std::span<const Literal> arguments) const;

  // The program as it was compiled, in HLO text.
  std::string ToString() const;
  // Instructions that have no machine code on this backend and run in the evaluator.
  int64_t interpreted_instructions() const;

 private:
  struct State;
  explicit Function(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

}  // namespace strop
