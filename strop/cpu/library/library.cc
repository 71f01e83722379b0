#include "strop/cpu/library/library.h"

#include "strop/analysis/cost.h"

namespace strop::cpu {
namespace {

struct Row {
  Op op;
  Decision (*supports)(const Instruction&);
  Result<CompiledKernel> (*make)(const KernelSpec&);
};

constexpr Row kRows[] = {
    {Op::Dot, &SupportsDot, &MakeDot},
    {Op::Convolution, &SupportsConvolution, &MakeConvolution},
    {Op::Cholesky, &SupportsCholesky, &MakeCholesky},
    {Op::TriangularSolve, &SupportsTriangularSolve, &MakeTriangularSolve},
    {Op::RngBitGenerator, &SupportsRngBitGenerator, &MakeRngBitGenerator},
    {Op::ReduceWindow, &SupportsScan, &MakeScan},
    {Op::Sort, &SupportsSort, &MakeSort},
    {Op::TopK, &SupportsTopK, &MakeTopK},
    {Op::Fft, &SupportsFft, &MakeFft},
};

const Row* Find(Op op) {
  for (const Row& row : kRows)
    if (row.op == op) return &row;
  return nullptr;
}

}  // namespace

Decision LibrarySupports(const Instruction& i) {
  const Row* row = Find(i.op());
  if (!row) return Decision::No("the library has no ", Name(i.op()));
  return row->supports(i);
}

Result<CompiledKernel> MakeLibraryKernel(const KernelSpec& spec) {
  const Row* row = Find(spec.instruction->op());
  if (!row) return Internal("no library kernel for ", Name(spec.instruction->op()));
  STROP_ASSIGN(CompiledKernel kernel, row->make(spec));
  kernel.flops = Flops(*spec.instruction);
  kernel.bytes = BytesAccessed(*spec.instruction);
  return kernel;
}

}  // namespace strop::cpu
