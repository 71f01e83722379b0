// Is a module legal at its stage? Run after every pass in tests, and after every import.
#pragma once
#include "strop/ir/module.h"

namespace strop {

// Checks, in this order (the first violation is reported, at the user's line, with the StableHLO constraint label where
// one applies): one root a computation, parameters numbered 0..n-1 once each; operands and callees live in the same
// computation / module, list order is topological (no cycle), computations don't call each other in a cycle; arity;
// attributes struct of the op's row; InferShape agrees with the shape; callee signatures; aliasing and donation refer
// to existing, compatible leaves; then the promises of module.stage().
Status VerifyModule(const Module& module);

}  // namespace strop
