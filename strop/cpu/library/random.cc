// rng-bit-generator -> the kernel library. The state is taken as 64-bit words, low one first, whatever its elements
// are.
#include "strop/cpu/kernels/rng.h"
#include "strop/cpu/library/library.h"

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
  const RngAlgorithm algorithm = static_cast<RngAlgorithm>(i.attrs<RngBitGeneratorAttrs>().algorithm);
  HostStep step;
  step.fn = [algorithm, type = bits.type(), dims = bits.dims(),
             words = static_cast<size_t>(i.operand(0)->shape().byte_size() / 8)](const HostCall& call) {
    const std::span<const uint64_t> state(static_cast<const uint64_t*>(call.args[0]), words);
    const std::span<uint64_t> next(static_cast<uint64_t*>(call.args[1]), words);
    return RngBitGenerator(algorithm, type, dims, state, next, call.args[2], call.run.pool);
  };
  CompiledKernel kernel;
  kernel.body = std::move(step);
  return kernel;
}

}  // namespace strop::cpu
