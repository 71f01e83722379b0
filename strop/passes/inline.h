// Cloning the body of a computation into another: what call-inliner, while-simplifier and conditional-simplifier share.
#pragma once
#include <span>

#include "strop/ir/module.h"
#include "strop/passes/effects.h"

namespace strop {

// Clones the instructions of `callee` before `before`, with `arguments` for its parameters. Returns the root's value,
// which may be one of the arguments. Control edges within the body are kept.
Instruction* CloneBodyBefore(const Computation& callee, std::span<Instruction* const> arguments, Instruction* before);

// Clones the body and lets it stand where `caller` stood: uses, control edges, sharding, and the source line where the
// body knows none; `caller` is removed.
void InlineInPlaceOf(Instruction* caller, const Computation& callee, std::span<Instruction* const> arguments);

// How many instructions call each computation, by Computation::id().
std::vector<int32_t> CallerCounts(const Module& module);

// Is everything about a while loop's state explicit, and the loop's alone? It begins and goes on as a tuple of which
// only elements are read, its computations have no other caller (`callers` as from CallerCounts), and nothing else
// holds it: control edges, a sharding.
bool HasExplicitState(const Instruction& loop, const std::vector<int32_t>& callers);

// Makes `caller` the only one that calls its k-th callee, by a copy if need be, so that the callee can be changed.
// Callees of the callee are shared with the copy; `callers` is kept up to date.
void OwnCallee(Instruction* caller, int64_t k, std::vector<int32_t>& callers, Effects& effects);

}  // namespace strop
