#include "strop/analysis/inside_loops.h"

#include <vector>

namespace strop {

std::set<const Computation*> InsideLoops(const Module& module) {
  std::set<const Computation*> inside;
  std::vector<const Computation*> stack;
  for (const Computation* c : module.computations())
    for (const Instruction* i : c->instructions())
      if (i->op() == Op::While) stack.push_back(i->body());
  while (!stack.empty()) {
    const Computation* c = stack.back();
    stack.pop_back();
    if (!inside.insert(c).second) continue;
    for (const Instruction* i : c->instructions())
      if (Is(i->op(), kControlFlow))
        for (const Computation* called : i->called()) stack.push_back(called);
  }
  return inside;
}

}  // namespace strop
