#include "strop/cpu/library/library.h"

#include "strop/analysis/cost.h"

namespace strop::cpu {
namespace {

struct Row {
  Op op;
  std::string_view family;
  Decision (*supports)(const Instruction&);
  Result<CompiledKernel> (*make)(const KernelSpec&);
};

constexpr Row kRows[] = {
    {Op::Dot, "gemm", &SupportsDot, &MakeDot},
    {Op::Convolution, "convolution", &SupportsConvolution, &MakeConvolution},
    {Op::Cholesky, "cholesky", &SupportsCholesky, &MakeCholesky},
    {Op::TriangularSolve, "triangular-solve", &SupportsTriangularSolve, &MakeTriangularSolve},
    {Op::RngBitGenerator, "random bits", &SupportsRngBitGenerator, &MakeRngBitGenerator},
    {Op::ReduceWindow, "scan", &SupportsScan, &MakeScan},
    {Op::Sort, "sort", &SupportsSort, &MakeSort},
    {Op::TopK, "top-k", &SupportsTopK, &MakeTopK},
    {Op::Fft, "fft", &SupportsFft, &MakeFft},
};

const Row* Find(Op op) {
  for (const Row& row : kRows)
    if (row.op == op) return &row;
  return nullptr;
}

}  // namespace

Result<CompiledKernel> FromRecipe(std::string recipe, const LoadContext& context) {
  STROP_ASSIGN(MadeStep made, MakeStep(recipe, context));
  CompiledKernel kernel;
  kernel.body = std::move(made.body);
  kernel.tiles = std::move(made.tiles);
  kernel.recipe = std::move(recipe);
  return kernel;
}

Decision LibrarySupports(const Instruction& i) {
  const Row* row = Find(i.op());
  if (!row) return Decision::No("the library has no ", Name(i.op()));
  return row->supports(i);
}

Result<CompiledKernel> MakeLibraryKernel(const KernelSpec& spec) {
  const Row* row = Find(spec.instruction->op());
  if (!row) return Internal("no library kernel for ", Name(spec.instruction->op()));
  STROP_ASSIGN(CompiledKernel kernel, row->make(spec));
  kernel.family = row->family;
  kernel.flops = Flops(*spec.instruction);
  kernel.bytes = BytesAccessed(*spec.instruction);
  return kernel;
}

}  // namespace strop::cpu
