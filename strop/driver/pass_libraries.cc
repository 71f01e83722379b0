// The order of the questions matters: what a library of another version says is only read as far as its format is
// known, and its undefined symbols are looked for last, since that is where the unclear errors come from.
#include "strop/driver/pass_libraries.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>

#include "strop/passes/library.h"

namespace strop {
namespace {

constexpr std::string_view kHow = "; docs/how-to/write-a-pass-outside-the-tree.md says how one is built";

std::string LoaderError() {
  const char* why = dlerror();
  return why ? why : "no reason given";
}

Status CheckFits(const PassLibrary& library, const std::string& path) {
  if (library.format != kPassLibraryFormat)
    return InvalidArgument(path, " has passes in format ", library.format, ", but this Strop (", kVersion,
                           ") reads format ", kPassLibraryFormat, ": build it against this version");
  if (std::string_view(library.version) != kVersion)
    return InvalidArgument(path, " was built against Strop ", library.version, ", but this is ", kVersion,
                           ": build it against this version");
  if (library.layout != PassLibraryLayout())
    return InvalidArgument(path, " was built against another build of Strop ", kVersion,
                           ", whose types have other layouts: build it against this installation, with the same "
                           "standard library");
  return OkStatus();
}

}  // namespace

Status PassLibraries::Load(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) return NotFound("cannot load ", path, ": there is no such file");
  // A plain name would be looked for in the system's folders.
  const std::string file = path.find('/') == path.npos ? "./" + path : path;
  void* handle = dlopen(file.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
  if (!handle) return InvalidArgument("cannot load ", path, ": ", LoaderError());
  const auto entry = reinterpret_cast<PassLibraryEntry>(dlsym(handle, kPassLibraryEntry));
  if (!entry)
    return InvalidArgument(path, " has no passes: it does not define ", kPassLibraryEntry, "() (STROP_PASS_LIBRARY)",
                           kHow);
  const PassLibrary* library = entry();
  if (!library) return InvalidArgument(path, ": ", kPassLibraryEntry, "() returned null", kHow);
  STROP_TRY(CheckFits(*library, path));
  if (!dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE))
    return InvalidArgument("cannot load ", path, ": ", LoaderError());
  for (const PassInfo& pass : std::span(library->passes, library->pass_count)) {
    if (pass.name.empty() || !pass.make || pass.name.find_first_of(", ") != pass.name.npos)
      return InvalidArgument(path, ": pass '", CEscape(pass.name),
                             "' needs a name without blanks and commas, and a function that makes it");
    if (FindPasses(pass.name, passes_).ok())
      return InvalidArgument(path, ": there is a pass '", pass.name, "' already; it needs a name of its own");
    passes_.push_back(pass);
  }
  return OkStatus();
}

}  // namespace strop
