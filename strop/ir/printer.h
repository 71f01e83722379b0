// Module -> HLO text, exactly as XLA writes it, so that XLA's own parser reads it and golden files compare.
#pragma once
#include <string>

#include "strop/ir/module.h"

namespace strop {

struct PrintOptions {
  bool sigils = true;           // %names and the `(p: shape) -> shape` signature of computations
  bool operand_shapes = false;  // convert(s8[3,2]{1,0} %p)
  bool result_shape = true;
  bool metadata = true;
  bool backend_config = true;
  bool large_constants = true;  // otherwise constants of more than ten elements print as {...}
  bool layouts = true;
  bool control_predecessors = true;
  bool sharding = true;
  // Names replaced by canonical ones (structural comparison).
  bool canonical_names = false;

  static PrintOptions Default() { return {}; }
  static PrintOptions Short();        // no sigils, no operand shapes: `add(x, y)`
  static PrintOptions Fingerprint();  // canonical, no metadata: equal text == equal program
};

std::string PrintModule(const Module& module, const PrintOptions& options = {});
std::string PrintComputation(const Computation& computation, const PrintOptions& options = {});
std::string PrintInstruction(const Instruction& instruction, const PrintOptions& options = {});

}  // namespace strop
