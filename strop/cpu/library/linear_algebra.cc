// cholesky, triangular-solve and small systems of LAPACK's -> the kernel library.
#include "strop/cpu/library/library.h"
#include "strop/cpu/load/problems.h"
#include "strop/plan/call_site.h"
#include "strop/runtime/lapack/lapack.h"

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

}  // namespace

Decision SupportsCholesky(const Instruction& i) { return IsLapackType(i.shape().type()); }

Result<CompiledKernel> MakeCholesky(const KernelSpec& spec) {
  const Shape& shape = spec.instruction->shape();
  return FromRecipe(
      RecipeOf(kCholeskyRecipe, CholeskyProblem{shape.type(), spec.instruction->attrs<CholeskyAttrs>().lower,
                                                BatchOf(shape), shape.dim(shape.rank() - 1)}));
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
  return FromRecipe(RecipeOf(kTriangularSolveRecipe,
                             TriangularSolveProblem{shape.type(), options, BatchOf(shape), shape.dim(shape.rank() - 2),
                                                    shape.dim(shape.rank() - 1)}));
}

Decision SupportsLapackCall(const Instruction& i) {
  const CustomCallSite site = CallSiteOf(i);
  if (!IsLapackCall(site)) return Decision::No(site.target, " is not LAPACK's");
  const Result<KernelStep> kernel = LapackKernel(site);
  return kernel.ok() ? Decision::Yes() : Decision::No(kernel.status().message());
}

Result<CompiledKernel> MakeLapackCall(const KernelSpec& spec) {
  const CustomCallSite site = CallSiteOf(*spec.instruction);
  LapackProblem problem{.target = site.target, .attributes = site.opaque};
  for (const Shape& s : site.operands) problem.operands.push_back({s.type(), s.dims()});
  for (const Shape& s : site.results) problem.results.push_back({s.type(), s.dims()});
  return FromRecipe(RecipeOf(kLapackRecipe, problem));
}

}  // namespace strop::cpu
