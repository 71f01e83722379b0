// Kernels that are not generated for the program but bound to one problem of the kernel library (strop/cpu/kernels):
// one row an op in library.cc, one file an op here that reads the instruction and makes the library's problem of it.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "strop/backend/backend.h"
#include "strop/cpu/isa.h"
#include "strop/cpu/load/recipe.h"
#include "strop/plan/band.h"

namespace strop::cpu {

struct GemmProblem;

// The recipe that the library's makers state, with the step made from it.
Result<CompiledKernel> FromRecipe(std::string recipe, const LoadContext& context = {{}, AllRecipeKinds()});

// Does the library have a kernel for this instruction (not fused)?
Decision LibrarySupports(const Instruction& instruction);
// InvalidArgument or Internal only; call it for what LibrarySupports() agreed to.
Result<CompiledKernel> MakeLibraryKernel(const KernelSpec& spec);

// ---- bands (plan/band.h)
// As TargetInfo::joins_band.
Decision JoinsBand(const Instruction& kernel, const BandTask& task, const Isa& isa);
// The band that a fusion is, if all its kernels may join one in blocks of its size: others come from who wrote the
// program.
std::optional<Band> BandOf(const Instruction& fusion, const Isa& isa);
// The kernels of a band for which code is generated, and the band's own of them once they are compiled.
std::vector<KernelSpec> GeneratedOf(const KernelSpec& whole, const Band& band);
Result<CompiledKernel> MakeBand(const KernelSpec& spec, const Band& band, std::span<const CompiledKernel> generated,
                                const LoadContext& context);

// ---- one pair an op
// -----------------------------------------------------------------------------------------------------
// A dot as a product of matrices. Unimplemented: its dimensions interleave.
Result<GemmProblem> GemmProblemOf(const Instruction& dot);
Decision SupportsDot(const Instruction& dot);
Result<CompiledKernel> MakeDot(const KernelSpec& spec);
Decision SupportsConvolution(const Instruction& convolution);
Result<CompiledKernel> MakeConvolution(const KernelSpec& spec);

Decision SupportsCholesky(const Instruction& cholesky);
Result<CompiledKernel> MakeCholesky(const KernelSpec& spec);
Decision SupportsTriangularSolve(const Instruction& solve);
Result<CompiledKernel> MakeTriangularSolve(const KernelSpec& spec);
// Small systems in LAPACK's calls, of which one thread computes all: steps that are no kernels outside of regions.
Decision SupportsLapackCall(const Instruction& custom_call);
Result<CompiledKernel> MakeLapackCall(const KernelSpec& spec);
Decision SupportsRngBitGenerator(const Instruction& generator);
Result<CompiledKernel> MakeRngBitGenerator(const KernelSpec& spec);
Decision SupportsScan(const Instruction& reduce_window);
Result<CompiledKernel> MakeScan(const KernelSpec& spec);
Decision SupportsSort(const Instruction& sort);
Result<CompiledKernel> MakeSort(const KernelSpec& spec);
Decision SupportsTopK(const Instruction& topk);
Result<CompiledKernel> MakeTopK(const KernelSpec& spec);
Decision SupportsFft(const Instruction& fft);
Result<CompiledKernel> MakeFft(const KernelSpec& spec);

}  // namespace strop::cpu
