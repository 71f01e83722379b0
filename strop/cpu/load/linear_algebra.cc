// Cholesky and triangular solves, both of which work in place, on a copy of the operand; small systems of LAPACK's.
#include <cstring>

#include "strop/cpu/kernels/cholesky.h"
#include "strop/cpu/load/problems.h"
#include "strop/runtime/lapack/lapack.h"

namespace strop::cpu {
namespace {

void CopyIfApart(void* to, const void* from, int64_t bytes) {
  if (to != from) std::memcpy(to, from, static_cast<size_t>(bytes));
}

Result<MadeStep> MakeCholesky(ByteReader& fields, const LoadContext&) {
  STROP_ASSIGN(const CholeskyProblem p, ReadProblem<CholeskyProblem>(fields, kCholeskyRecipe));
  return MadeStep{HostStep{.fn = [p, bytes = p.batch * p.n * p.n * Bytes(p.type)](const HostCall& call) {
    CopyIfApart(call.args[1], call.args[0], bytes);
    return Cholesky(p.type, p.lower, p.batch, p.n, call.args[1], call.run.pool);
  }}};
}

Result<MadeStep> MakeTriangularSolve(ByteReader& fields, const LoadContext&) {
  STROP_ASSIGN(const TriangularSolveProblem p, ReadProblem<TriangularSolveProblem>(fields, kTriangularSolveRecipe));
  return MadeStep{HostStep{.fn = [p, bytes = p.batch * p.m * p.n * Bytes(p.type)](const HostCall& call) {
    CopyIfApart(call.args[2], call.args[1], bytes);
    return TriangularSolve(p.type, p.options, p.batch, p.m, p.n, call.args[0], call.args[2], call.run.pool);
  }}};
}

Result<MadeStep> MakeLapack(ByteReader& fields, const LoadContext&) {
  STROP_ASSIGN(const LapackProblem p, ReadProblem<LapackProblem>(fields, kLapackRecipe));
  CustomCallSite site{.target = p.target, .api = CustomCallApi::kTypedFfi, .opaque = p.attributes};
  for (const LapackProblem::Array& a : p.operands)
    site.operands.push_back(Shape::Array(a.type, a.dims).WithDefaultLayout());
  for (const LapackProblem::Array& a : p.results)
    site.results.push_back(Shape::Array(a.type, a.dims).WithDefaultLayout());
  STROP_ASSIGN(KernelStep step, LapackKernel(site));
  return MadeStep{std::move(step)};
}

}  // namespace

const RecipeKind kCholeskyRecipe = {"cholesky", &MakeCholesky};
const RecipeKind kTriangularSolveRecipe = {"triangular-solve", &MakeTriangularSolve};
const RecipeKind kLapackRecipe = {"lapack", &MakeLapack};

}  // namespace strop::cpu
