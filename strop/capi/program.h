// Program: Strop as a library, in one class. Text or bytes in, literals in and out; compiled for the first device of a backend.
//
//   STROP_ASSIGN(Program program, Program::Compile(hlo_text));
//   STROP_ASSIGN(Literal y, program.Run({{x}}));
//
// Errors come back as a Status, never as an exception. A Program is immutable; Run may be called from several threads at once.
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

struct ProgramOptions {
  std::string backend = "cpu";   // or "null", or what `strop devices` lists
  int optimization_level = 2;    // 0: compile as fast as possible
};

class Program {
 public:
  // `source` is StableHLO (MLIR text or bytecode) or HLO (text or a serialized HloModuleProto); which of them is seen from its bytes.
  static Result<Program> Compile(std::string_view source, const ProgramOptions& options = {});

  int num_parameters() const;
  const Shape& parameter_shape(int parameter) const;
  const Shape& result_shape() const;

  // One literal per parameter, of the parameter's shape. The result is a tuple where the program's is.
  Result<Literal> Run(std::span<const Literal> arguments) const;

  // The program as it was compiled, in HLO text.
  std::string ToString() const;
  // Instructions that have no machine code on this backend and run in the evaluator.
  int64_t interpreted_instructions() const;

 private:
  struct State;
  std::shared_ptr<const State> state_;
};

}  // namespace strop
