// Cholesky and triangular solves; both work in place, on a copy of the operand.
#include <cstring>

#include "strop/cpu/kernels/cholesky.h"
#include "strop/cpu/load/problems.h"

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

}  // namespace

const RecipeKind kCholeskyRecipe = {"cholesky", &MakeCholesky};
const RecipeKind kTriangularSolveRecipe = {"triangular-solve", &MakeTriangularSolve};

}  // namespace strop::cpu
