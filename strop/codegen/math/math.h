// Real functions as straight-line vector code, for float and double lanes of any number.
//
// Accuracy: see README.md here (measured by math_test). Subnormals, NaN, infinities and signed zeros are kept.
#pragma once
#include "strop/codegen/scalar.h"
#include "strop/codegen/vector_builder.h"

namespace strop {

// f(x) of float or double lanes.
llvm::Value* EmitMath(VectorBuilder& b, MathFunction f, llvm::Value* x);
llvm::Value* EmitPow(VectorBuilder& b, llvm::Value* x, llvm::Value* y);
llvm::Value* EmitAtan2(VectorBuilder& b, llvm::Value* y, llvm::Value* x);
llvm::Value* EmitFmod(VectorBuilder& b, llvm::Value* x, llvm::Value* y);

// For functions that are composed of others.
llvm::Value* EmitExp(VectorBuilder& b, llvm::Value* x);
llvm::Value* EmitExpm1(VectorBuilder& b, llvm::Value* x);
llvm::Value* EmitLog(VectorBuilder& b, llvm::Value* x);
llvm::Value* EmitLog1p(VectorBuilder& b, llvm::Value* x);
llvm::Value* EmitSin(VectorBuilder& b, llvm::Value* x);
llvm::Value* EmitCos(VectorBuilder& b, llvm::Value* x);

}  // namespace strop
