// The backends, an explicit list: nothing registers itself.
#include <map>
#include <mutex>

#include "strop/base/strings.h"
#include "strop/cpu/cpu_backend.h"
#include "strop/driver/compile.h"
#include "strop/gpu/gpu_backend.h"
#include "strop/null/null_backend.h"

namespace strop {

const std::vector<const Backend*>& Backends() {
  static const std::vector<const Backend*>* const kBackends = [] {
    auto* list = new std::vector<const Backend*>;
    list->push_back(new cpu::CpuBackend);
    list->push_back(new null::NullBackend);
    list->push_back(new gpu::GpuBackend);
    return list;
  }();
  return *kBackends;
}

namespace {

// Backends for other machines: made once, and there for the rest of the process, as those of the list are.
Result<const Backend*> ForMachine(const Backend& backend, std::string_view machine) {
  static std::mutex mutex;
  static auto* const kMade = new std::map<std::string, std::unique_ptr<Backend>>;
  std::lock_guard<std::mutex> lock(mutex);
  std::unique_ptr<Backend>& made = (*kMade)[StrCat(backend.name(), " ", machine)];
  if (!made) {
    STROP_ASSIGN(made, backend.ForMachine(machine));
  }
  return made.get();
}

}  // namespace

Result<const Backend*> FindBackend(std::string_view name, std::string_view machine) {
  std::vector<std::string_view> names;
  for (const Backend* b : Backends()) {
    if (b->name() == name && !machine.empty()) return ForMachine(*b, machine);
    if (b->name() == name) return b;
    names.push_back(b->name());
  }
  std::string_view near = Nearest(name, names);
  if (!near.empty())
    return NotFound("no backend is called \"", name, "\"; did you mean \"", near, "\"? there are: ", Join(names, ", "));
  return NotFound("no backend is called \"", name, "\"; there are: ", Join(names, ", "));
}

}  // namespace strop
