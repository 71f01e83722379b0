// One program, one device, arguments and results as literals: what `strop run` does with a backend.
#pragma once
#include <memory>
#include <span>

#include "strop/driver/compile.h"
#include "strop/runtime/device.h"

namespace strop::tools {

// Literals are row-major, so that is what the entry takes and gives, whatever layouts its instructions name.
void MakeEntryRowMajor(Module& module);

class Program {
 public:
  // Takes the module over; its entry becomes row-major, as literals are.
  static Result<Program> Compile(std::unique_ptr<Module> module, const Backend& backend, CompileSettings settings);
  // Of an artifact that `owner` keeps.
  static Result<Program> Load(std::string_view bytes, std::shared_ptr<const void> owner, const Backend& backend,
                              const CompileSettings& settings);
  // `observer`: told about every step.
  Result<Literal> Run(std::span<const Literal> arguments, std::shared_ptr<StepObserver> observer = nullptr) const;
  const CompiledProgram& compiled() const { return *program_; }
  const std::shared_ptr<const CompiledProgram>& shared_compiled() const { return program_; }

 private:
  Shape result_;
  std::unique_ptr<DeviceSet> devices_;
  std::shared_ptr<const CompiledProgram> program_;
};

// What a custom call gives that the evaluator does not know: the call alone, as a program of the backend that
// interprets.
Result<Literal> RunCustomCall(const Instruction& call, std::span<const Literal> operands,
                              const CompileSettings& settings);

}  // namespace strop::tools
