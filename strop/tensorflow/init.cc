// TF_InitKernel: TensorFlow calls it when it loads this library. Of the entries that it looks for this is the only one
// that can refuse a release: the others would have to hand over structs whose layout depends on it.
#include <dlfcn.h>

#include <cstdlib>

#include "strop/base/log.h"
#include "strop/base/options.h"
#include "strop/pjrt/c_api.h"
#include "strop/tensorflow/connect.h"

namespace strop::tensorflow {
namespace {

constexpr char kPlugin[] = "libstrop_pjrt.so";

// The folder of this library, with a slash.
std::string OwnFolder() {
  Dl_info info{};
  if (!dladdr(reinterpret_cast<void*>(&OwnFolder), &info) || !info.dli_fname) return "";
  const std::string path = info.dli_fname;
  return path.substr(0, path.rfind('/') + 1);
}

// STROP_PLUGIN names it, as in the Python package; else it lies where the wheel put it, or beside this library, where a
// build does.
Result<const PJRT_Api*> OpenStrop() {
  const char* named = std::getenv("STROP_PLUGIN");
  std::vector<std::string> places;
  if (named && *named)
    places = {named};
  else
    places = {OwnFolder() + "../strop/lib/" + kPlugin, OwnFolder() + kPlugin};
  std::string tried;
  for (const std::string& place : places) {
    if (void* library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) {
      auto* get = reinterpret_cast<const PJRT_Api* (*)()>(dlsym(library, "GetPjrtApi"));
      const PJRT_Api* api = get ? get() : nullptr;
      if (api) return api;
      return FailedPrecondition(place, " is no PJRT plugin");
    }
    tried += (tried.empty() ? "" : "; ") + std::string(dlerror());
  }
  return NotFound("no Strop plugin (", tried, ")");
}

// TensorFlow's C++ library; it brings the other one with it.
void* Symbol(const char* name) {
  static void* const library = dlopen("libtensorflow_cc.so.2", RTLD_LAZY | RTLD_NOLOAD);
  return library ? dlsym(library, name) : nullptr;
}

void Refuse(const Status& why) {
  LogLine(StrCat(why.message(), "; TensorFlow runs without Strop (docs/tensorflow.md)"));
}

void Start() {
  const Result<Options> options = OptionsFromEnvironment();
  if (!options.ok()) return Refuse(options.status());
  if (!options->tensorflow) return;
  const Result<Framework> framework = Recognize(Symbol);
  if (!framework.ok()) return Refuse(framework.status());
  const Status connected = Connect(*framework, OpenStrop);
  if (!connected.ok()) return Refuse(connected);
  STROP_LOG_AT(2, "TensorFlow ", framework->version, " compiles its XLA programs for the CPU with Strop");
}

}  // namespace
}  // namespace strop::tensorflow

extern "C" __attribute__((visibility("default"))) void TF_InitKernel() {
  try {
    strop::tensorflow::Start();
  } catch (...) {
    strop::LogLine("out of memory while TensorFlow was loaded; it runs without Strop");
  }
}
