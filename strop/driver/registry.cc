// The backends, an explicit list: nothing registers itself.
#include "strop/cpu/cpu_backend.h"
#include "strop/driver/compile.h"
#include "strop/null/null_backend.h"

namespace strop {

const std::vector<const Backend*>& Backends() {
  static const std::vector<const Backend*>* const kBackends = [] {
    auto* list = new std::vector<const Backend*>;
    list->push_back(new cpu::CpuBackend);
    list->push_back(new null::NullBackend);
    return list;
  }();
  return *kBackends;
}

Result<const Backend*> FindBackend(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Backend* b : Backends()) {
    if (b->name() == name) return b;
    names.push_back(b->name());
  }
  std::string_view near = Nearest(name, names);
  if (!near.empty())
    return NotFound("no backend is called \"", name, "\"; did you mean \"", near, "\"? there are: ", Join(names, ", "));
  return NotFound("no backend is called \"", name, "\"; there are: ", Join(names, ", "));
}

}  // namespace strop
