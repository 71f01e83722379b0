// cholesky and triangular-solve -> the kernel library; both work in place, on a copy of the operand.
#include <cstring>

#include "strop/cpu/kernels/cholesky.h"
#include "strop/cpu/kernels/triangular_solve.h"
#include "strop/cpu/library/library.h"

namespace strop::cpu {
namespace {

Decision IsLapackType(ElementType type) {
  switch (type) {
    case ElementType::F32:
    case ElementType::F64:
    case ElementType::C64:
    case ElementType::C128: return Decision::Yes();
    default: return Decision::No("linear algebra in ", Name(type));
  }
}

int64_t BatchOf(const Shape& shape) {
  int64_t n = 1;
  for (int64_t d = 0; d + 2 < shape.rank(); ++d) n *= shape.dim(d);
  return n;
}

void CopyIfApart(void* to, const void* from, int64_t bytes) {
  if (to != from) std::memcpy(to, from, bytes);
}

}  // namespace

Decision SupportsCholesky(const Instruction& i) { return IsLapackType(i.shape().type()); }

Result<CompiledKernel> MakeCholesky(const KernelSpec& spec) {
  const Instruction& i = *spec.instruction;
  const Shape& shape = i.shape();
  HostStep step;
  step.fn = [type = shape.type(), lower = i.attrs<CholeskyAttrs>().lower, batch = BatchOf(shape),
             n = shape.dim(shape.rank() - 1), bytes = shape.byte_size()](const HostCall& call) {
    CopyIfApart(call.args[1], call.args[0], bytes);
    return Cholesky(type, lower, batch, n, call.args[1], call.run.pool);
  };
  CompiledKernel kernel;
  kernel.body = std::move(step);
  return kernel;
}

Decision SupportsTriangularSolve(const Instruction& i) { return IsLapackType(i.shape().type()); }

Result<CompiledKernel> MakeTriangularSolve(const KernelSpec& spec) {
  const Instruction& i = *spec.instruction;
  const TriangularSolveAttrs& a = i.attrs<TriangularSolveAttrs>();
  const Shape& shape = i.shape();
  TriangularOptions options;
  options.left_side = a.left_side;
  options.lower = a.lower;
  options.unit_diagonal = a.unit_diagonal;
  switch (a.transpose_a) {
    case TransposeA::Transpose: options.transpose = TriangularTranspose::kTranspose; break;
    case TransposeA::Adjoint: options.transpose = TriangularTranspose::kAdjoint; break;
    default: options.transpose = TriangularTranspose::kNone;
  }
  HostStep step;
  step.fn = [type = shape.type(), options, batch = BatchOf(shape), m = shape.dim(shape.rank() - 2),
             n = shape.dim(shape.rank() - 1), bytes = shape.byte_size()](const HostCall& call) {
    CopyIfApart(call.args[2], call.args[1], bytes);
    return TriangularSolve(type, options, batch, m, n, call.args[0], call.args[2], call.run.pool);
  };
  CompiledKernel kernel;
  kernel.body = std::move(step);
  return kernel;
}

}  // namespace strop::cpu
