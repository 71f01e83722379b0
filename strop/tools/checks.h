// Programs that check themselves (check.expect_* custom calls), on a backend that compiles: the checks are taken out of
// the program, what they compare becomes results, and the comparison is done here, on the host.
#pragma once
#include <span>
#include <vector>

#include "strop/interp/interpreter.h"

namespace strop::tools {

class ExtractedChecks {
 public:
  // Takes the checks out of the entry computation: its result becomes (old result, compared values...). Without checks
  // nothing changes. Unimplemented if a called computation holds some, or if a check's own result is used.
  static Result<ExtractedChecks> From(Module& module);

  bool empty() const { return checks_.empty(); }
  // Splits the result of the changed program: the old result, and the outcomes.
  Result<Literal> Compare(const Literal& result, std::vector<CheckOutcome>* outcomes) const;

 private:
  struct Check {
    Attrs attrs;
    Shape result_shape;
    std::vector<Shape> operands;
  };
  std::vector<Check> checks_;
};

// Is there a check anywhere in the module?
bool HasChecks(const Module& module);

}  // namespace strop::tools
