// Which instructions have side effects, for a whole module at once: asking Instruction::HasSideEffect of every
// instruction walks callees again and again.
#pragma once
#include <vector>

#include "strop/ir/module.h"

namespace strop {

class Effects {
 public:
  explicit Effects(const Module& module);
  // Of itself or of anything that it calls. Computations made after construction must be told: see Inherit.
  bool Has(const Instruction& i) const;
  // `copy` does what `original` does.
  void Inherit(const Computation& original, const Computation& copy);

 private:
  std::vector<bool> computation_has_;  // by Computation::id()
};

}  // namespace strop
