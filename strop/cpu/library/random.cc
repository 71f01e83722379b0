// rng-bit-generator -> the kernel library. The state is taken as 64-bit words, low one first, whatever its elements
// are.
#include "strop/cpu/library/library.h"
#include "strop/cpu/load/problems.h"

namespace strop::cpu {

Decision SupportsRngBitGenerator(const Instruction& i) {
  const Shape& state = i.operand(0)->shape();
  const ElementType type = i.shape().element(1).type();
  if (state.rank() != 1 || state.byte_size() % 8 != 0) return Decision::No("rng state ", state.ToString());
  if (!IsInteger(type) && !IsFloat(type)) return Decision::No("random bits as ", Name(type));
  return Decision::Yes();
}

Result<CompiledKernel> MakeRngBitGenerator(const KernelSpec& spec) {
  const Instruction& i = *spec.instruction;
  const Shape& bits = i.shape().element(1);
  RandomBitsProblem problem;
  problem.algorithm = static_cast<RngAlgorithm>(i.attrs<RngBitGeneratorAttrs>().algorithm);
  problem.type = bits.type();
  problem.dims = bits.dims();
  problem.words = i.operand(0)->shape().byte_size() / 8;
  return FromRecipe(RecipeOf(kRandomBitsRecipe, problem));
}

}  // namespace strop::cpu
