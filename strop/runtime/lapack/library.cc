#include "strop/runtime/lapack/library.h"

#include <dlfcn.h>

#include <map>
#include <memory>
#include <optional>

#include "strop/base/strings.h"

namespace strop::lapack {
namespace {

constexpr const char* kUsualPlaces[] = {"libopenblas.so.0", "liblapack.so.3"};
constexpr const char* kPrefixes[] = {"", "scipy_"};

Status Missing(const std::vector<std::string>& tried) {
  return NotFound("no LAPACK library: tried ", Join(tried, ", "),
                  "; install one (Debian: libopenblas0) or name its file with the option lapack_library "
                  "(STROP_LAPACK_LIBRARY)");
}

}  // namespace

void* Library::Symbol(const std::string& name) const { return dlsym(handle_, name.c_str()); }

// Finds how the library names its functions, how wide its integers are, and what threads it has.
Status Library::Recognize() {
  std::optional<std::string> prefix;
  for (const char* candidate : kPrefixes) {
    if (Symbol(StrCat(candidate, "dgetrf_"))) {
      prefix = candidate;
      break;
    }
    if (Symbol(StrCat(candidate, "dgetrf_64_")))
      return Unimplemented(path_, " has 64-bit integers (ILP64); a library with 32-bit ones is needed");
  }
  if (!prefix) return NotFound(path_, " has no function dgetrf_");
  prefix_ = *prefix;

  auto* version = reinterpret_cast<void (*)(void*, void*, void*)>(Symbol(StrCat(prefix_, "ilaver_")));
  if (!version) return NotFound(path_, " has no function ", prefix_, "ilaver_");
  int64_t numbers[3] = {-1, -1, -1};
  version(&numbers[0], &numbers[1], &numbers[2]);
  if (numbers[0] >= 0)  // 32-bit integers leave the upper half as it was
    return Unimplemented(path_, " has 64-bit integers (ILP64); a library with 32-bit ones is needed");

  auto* parallel = reinterpret_cast<int (*)()>(Symbol(StrCat(prefix_, "openblas_get_parallel")));
  if (!parallel) return OkStatus();
  get_threads_ = reinterpret_cast<int (*)()>(Symbol(StrCat(prefix_, "openblas_get_num_threads")));
  set_threads_ = reinterpret_cast<void (*)(int)>(Symbol(StrCat(prefix_, "openblas_set_num_threads")));
  const int kind = parallel();
  kind_ = kind == 0 || !get_threads_ || !set_threads_ ? Kind::kSerial : Kind::kPthreads;
  if (kind != 2) return OkStatus();
  // OpenMP keeps the number for each thread; it comes with the library.
  auto* get_openmp = reinterpret_cast<int (*)()>(Symbol("omp_get_max_threads"));
  auto* set_openmp = reinterpret_cast<void (*)(int)>(Symbol("omp_set_num_threads"));
  if (!get_openmp || !set_openmp) return OkStatus();
  kind_ = Kind::kOpenMp;
  get_threads_ = get_openmp;
  set_threads_ = set_openmp;
  return OkStatus();
}

Result<const Library*> Library::OpenFile(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = dlerror();
    return NotFound(why ? why : path);
  }
  std::unique_ptr<Library> library(new Library(path, handle));
  Status recognized = library->Recognize();
  if (!recognized.ok()) {
    dlclose(handle);
    return recognized;
  }
  return library.release();
}

Result<const Library*> Library::Open(const std::string& path) {
  static std::mutex* const kMutex = new std::mutex;
  static auto* const kOpened = new std::map<std::string, Result<const Library*>>;
  std::lock_guard<std::mutex> lock(*kMutex);
  auto known = kOpened->find(path);
  if (known != kOpened->end()) return known->second;
  auto open = [&]() -> Result<const Library*> {
    if (!path.empty()) {
      Result<const Library*> library = OpenFile(path);
      if (library.ok() || library.status().code() != StatusCode::kNotFound) return library;
      return Missing({StrCat(path, " (", library.status().message(), ")")});
    }
    std::vector<std::string> tried;
    for (const char* place : kUsualPlaces) {
      Result<const Library*> library = OpenFile(place);
      if (library.ok()) return library;
      tried.push_back(StrCat(place, " (", library.status().message(), ")"));
    }
    return Missing(tried);
  };
  return kOpened->emplace(path, open()).first->second;
}

Result<void*> Library::Find(const std::string& routine) const {
  const std::string name = StrCat(prefix_, routine, "_");
  if (void* function = Symbol(name)) return function;
  return NotFound("the LAPACK library ", path_, " has no function ", name);
}

Library::OneThread::OneThread(const Library& library) : library_(library) {
  switch (library.kind_) {
    case Kind::kPlain: break;
    case Kind::kSerial: alone_ = std::unique_lock<std::mutex>(library.mutex_); break;
    case Kind::kOpenMp:
      before_ = library.get_threads_();
      library.set_threads_(1);
      break;
    case Kind::kPthreads: {
      std::lock_guard<std::mutex> lock(library.mutex_);
      if (library.users_++ > 0) break;
      library.before_ = library.get_threads_();
      if (library.before_ != 1) library.set_threads_(1);
      break;
    }
  }
}

Library::OneThread::~OneThread() {
  switch (library_.kind_) {
    case Kind::kPlain:
    case Kind::kSerial: break;
    case Kind::kOpenMp: library_.set_threads_(before_); break;
    case Kind::kPthreads: {
      std::lock_guard<std::mutex> lock(library_.mutex_);
      if (--library_.users_ == 0 && library_.before_ != 1) library_.set_threads_(library_.before_);
      break;
    }
  }
}

}  // namespace strop::lapack
