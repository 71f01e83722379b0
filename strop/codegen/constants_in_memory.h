// Constants that processors read as operands.
//
//   %p = call <8 x float> @llvm.fma(%r, %q, splat (0.5))  ->  %c = load <8 x float>, ptr @strop.splat
//                                                             %p = call <8 x float> @llvm.fma(%r, %q, %c)
//
// LLVM keeps a constant of equal lanes as one number and reads it by an instruction that copies it to all lanes. AVX2
// has no arithmetic that does so on its way: a polynomial whose coefficients find no register takes two instructions
// for each of them. Whole vectors are operands as they lie in memory.
#pragma once

namespace llvm {
class ModulePass;
}

namespace strop {

// For targets with VectorTarget::whole_operands. Blocks of few constants stay as they are: those have registers.
llvm::ModulePass* CreateConstantsInMemoryPass();

}  // namespace strop
