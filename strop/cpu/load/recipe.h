// Recipes: what the body of a step is made from, as plain data that can be written down. The compiler makes its steps
// from recipes too, so that a program that was kept runs what it ran when it was compiled.
//
// A recipe is the name of its kind, then the fields of that kind's struct (problems.h). Generated code is named by
// object and function; what the library computes is a problem of cpu/kernels.
//
// To add a kind: its struct and Fields in problems.h, a RecipeKind beside the others here, its row in kinds.cc.
#pragma once
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strop/base/archive.h"
#include "strop/base/status.h"
#include "strop/runtime/executable.h"

namespace strop::cpu {

class LoadedCode;

// A function of generated code.
struct CodeRef {
  int32_t object = 0;  // of the program's list
  std::string function;
};

struct MadeStep {
  StepBody body;
  std::string tiles = {};  // how the library cut it, for reports
};

struct RecipeKind;

// What recipes may refer to.
struct LoadContext {
  struct Object {
    const LoadedCode* code;
    size_t number;  // in `code`
  };
  std::vector<Object> objects;
  std::span<const RecipeKind* const> kinds;

  // InvalidArgument if there is no such function.
  Result<void*> Find(const CodeRef& ref) const;
};

struct RecipeKind {
  std::string_view name;
  Result<MadeStep> (*make)(ByteReader& fields, const LoadContext& context);
};

extern const RecipeKind kKernelRecipe, kRegionRecipe, kSortByCodeRecipe;           // generated.cc
extern const RecipeKind kGemmRecipe, kWholeGemmRecipe, kKeptGemmRecipe;            // gemm.cc
extern const RecipeKind kBandRecipe;                                               // band.cc
extern const RecipeKind kConvolutionRecipe;                                        // convolution.cc
extern const RecipeKind kCholeskyRecipe, kTriangularSolveRecipe, kLapackRecipe;    // linear_algebra.cc
extern const RecipeKind kRandomBitsRecipe, kScanRecipe, kSortRecipe, kTopKRecipe;  // lines.cc
extern const RecipeKind kFftRecipe;                                                // fft.cc

inline constexpr size_t kNumRecipeKinds = 16;
// All of them. A program that links those which it needs has a list of its own.
std::span<const RecipeKind* const> AllRecipeKinds();

template <class Problem>
std::string RecipeOf(const RecipeKind& kind, const Problem& problem) {
  ByteWriter out;
  out(kind.name, problem);
  return out.Take();
}

// InvalidArgument if the recipe is damaged or of a kind that is not known here; else what the library says of the
// problem.
Result<MadeStep> MakeStep(std::string_view recipe, const LoadContext& context);
// The problem of a recipe that is of this kind.
template <class Problem>
Result<Problem> ProblemOfRecipe(std::string_view recipe, const RecipeKind& kind) {
  ByteReader in(recipe);
  std::string_view name;
  Problem problem;
  in(name, problem);
  if (name != kind.name) return InvalidArgument("a recipe of kind \"", CEscape(name), "\", not ", kind.name);
  STROP_TRY(in.Finish(kind.name));
  return problem;
}

}  // namespace strop::cpu
