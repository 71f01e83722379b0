#include "strop/cpu/load/recipe.h"

#include "strop/cpu/load/code.h"

namespace strop::cpu {

Result<void*> LoadContext::Find(const CodeRef& ref) const {
  const bool known = ref.object >= 0 && static_cast<size_t>(ref.object) < objects.size();
  void* address = known ? objects[ref.object].code->Find(objects[ref.object].number, ref.function) : nullptr;
  if (!address) return InvalidArgument("the code has no function ", CEscape(ref.function), " in object ", ref.object);
  return address;
}

Result<MadeStep> MakeStep(std::string_view recipe, const LoadContext& context) {
  ByteReader fields(recipe);
  std::string_view name;
  fields(name);
  for (const RecipeKind* kind : context.kinds)
    if (!fields.failed() && kind->name == name) return kind->make(fields, context);
  return InvalidArgument("a recipe of kind \"", CEscape(name), "\", which is not known here");
}

}  // namespace strop::cpu
