#include "strop/passes/effects.h"

namespace strop {
namespace {

bool HasOwn(const Instruction& i) {
  return Is(i.op(), kSideEffect | kCollective) ||
         (i.op() == Op::CustomCall && i.attrs<CustomCallAttrs>().has_side_effect);
}

}  // namespace

Effects::Effects(const Module& module) {
  for (const Computation* c : module.PostOrder()) {  // callees first
    if (static_cast<int64_t>(computation_has_.size()) <= c->id()) computation_has_.resize(c->id() + 1, false);
    for (const Instruction* i : c->instructions()) {
      if (!Has(*i)) continue;
      computation_has_[c->id()] = true;
      break;
    }
  }
}

bool Effects::Has(const Instruction& i) const {
  if (HasOwn(i)) return true;
  for (const Computation* c : i.called())
    if (c->id() < static_cast<int64_t>(computation_has_.size()) && computation_has_[c->id()]) return true;
  return false;
}

void Effects::Inherit(const Computation& original, const Computation& copy) {
  if (original.id() >= static_cast<int64_t>(computation_has_.size()) || !computation_has_[original.id()]) return;
  if (static_cast<int64_t>(computation_has_.size()) <= copy.id()) computation_has_.resize(copy.id() + 1, false);
  computation_has_[copy.id()] = true;
}

}  // namespace strop
