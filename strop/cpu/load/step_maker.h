// Steps from recipes and objects.
#pragma once
#include <memory>
#include <span>
#include <string_view>

#include "strop/cpu/load/recipe.h"
#include "strop/runtime/step_maker.h"

namespace strop::cpu {

// `kinds` are those that the recipes may be of.
Result<std::unique_ptr<StepMaker>> OpenRecipes(std::span<const std::string_view> objects,
                                               std::span<const RecipeKind* const> kinds);

}  // namespace strop::cpu
