// Functions of single numbers in code that one trip of a loop waits for: several that do not need each other are
// computed as one vector.
//
//   %a = call float @strop.math.exp.f32(float %x)        %v = x y z x
//   %b = call float @strop.math.exp.f32(float %y)   ->   %w = <exp of 4 lanes>
//   %c = call float @strop.math.exp.f32(float %z)        %a, %b, %c = lanes of %w
//
// Each is a chain of some twenty operations. Processors look ahead by two of them, so that six neurons' gates would be
// computed almost one after the other.
#pragma once
#include "strop/codegen/math/math.h"

namespace llvm {
class ModulePass;
}

namespace strop {

// A call that stands for f(x) of one float or double until the pass comes: x, unchanged memory, and nothing else.
llvm::Value* DeferMath(VectorBuilder& b, MathFunction f, llvm::Value* x);

// Turns such calls into code. `pack`: together where that pays, for which instructions of a block are put in an order
// that computes all that some function needs before all that needs it.
llvm::ModulePass* CreateDeferredMathPass(const VectorTarget& target, bool pack);

}  // namespace strop
