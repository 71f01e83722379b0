// All kinds of recipes: the list that the compiler and whatever loads any program use.
#include "strop/cpu/load/recipe.h"

namespace strop::cpu {

std::span<const RecipeKind* const> AllRecipeKinds() {
  static constexpr const RecipeKind* kKinds[] = {
      &kKernelRecipe,     &kRegionRecipe,      &kSortByCodeRecipe, &kGemmRecipe,
      &kBandRecipe,       &kConvolutionRecipe, &kCholeskyRecipe,   &kTriangularSolveRecipe,
      &kRandomBitsRecipe, &kScanRecipe,        &kSortRecipe,       &kTopKRecipe,
      &kFftRecipe,        &kLapackRecipe,      &kWholeGemmRecipe,  &kKeptGemmRecipe,
  };
  static_assert(std::size(kKinds) == kNumRecipeKinds);
  return kKinds;
}

}  // namespace strop::cpu
