#include "strop/cpu/load/step_maker.h"

#include "strop/cpu/load/code.h"

namespace strop::cpu {
namespace {

class RecipeSteps final : public StepMaker {
 public:
  RecipeSteps(std::shared_ptr<const LoadedCode> code, size_t objects, std::span<const RecipeKind* const> kinds)
      : code_(std::move(code)) {
    context_.kinds = kinds;
    for (size_t n = 0; n < objects; ++n) context_.objects.push_back({code_.get(), n});
  }
  Result<StepBody> Make(std::string_view recipe) const override {
    STROP_ASSIGN(MadeStep made, MakeStep(recipe, context_));
    return std::move(made.body);
  }
  std::shared_ptr<const void> code() const override { return code_; }
  int64_t code_bytes() const override { return code_->bytes(); }

 private:
  std::shared_ptr<const LoadedCode> code_;
  LoadContext context_;
};

}  // namespace

Result<std::unique_ptr<StepMaker>> OpenRecipes(std::span<const std::string_view> objects,
                                               std::span<const RecipeKind* const> kinds) {
  STROP_ASSIGN(std::shared_ptr<const LoadedCode> code, LoadedCode::Load(objects));
  return std::unique_ptr<StepMaker>(std::make_unique<RecipeSteps>(std::move(code), objects.size(), kinds));
}

}  // namespace strop::cpu
