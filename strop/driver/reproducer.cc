#include "strop/driver/reproducer.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>

#include "strop/base/version.h"
#include "strop/driver/dump.h"
#include "strop/ir/printer.h"

namespace strop {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kEnding = ".reproducer.hlo";

std::string AutomaticFolder() {
  std::error_code error;
  const fs::path base = fs::temp_directory_path(error);
  return error ? "" : (base / StrCat("strop-reproducers-", static_cast<int64_t>(getuid()))).string();
}

// Programs may be secret: in the folder that all users share, ours is for us alone, and it must be ours.
bool MakeFolder(const std::string& folder, bool automatic) {
  std::error_code error;
  if (!automatic) {
    fs::create_directories(folder, error);
    return fs::is_directory(folder, error);
  }
  mkdir(folder.c_str(), 0700);
  struct stat found;
  return lstat(folder.c_str(), &found) == 0 && S_ISDIR(found.st_mode) && found.st_uid == getuid();
}

// Leaves room for one more.
void RemoveOldest(const std::string& folder, int64_t most_files) {
  std::vector<std::pair<fs::file_time_type, fs::path>> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.size() > kEnding.size() && name.compare(name.size() - kEnding.size(), kEnding.size(), kEnding) == 0)
      files.emplace_back(entry.last_write_time(error), entry.path());
  }
  std::sort(files.begin(), files.end());
  for (int64_t n = 0; n + most_files <= static_cast<int64_t>(files.size()); ++n) fs::remove(files[n].second, error);
}

// Text of constants takes two characters an element or more.
bool IsTooLarge(const Module& module, int64_t most_bytes) {
  int64_t elements = 0;
  for (const Computation* computation : module.computations())
    for (const Instruction* i : computation->instructions())
      if (i->IsConstant() && i->shape().IsArray()) elements = SaturatingAdd(elements, i->shape().num_elements());
  return elements > most_bytes / 2;
}

// A word of the shell's.
std::string Quoted(std::string_view text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string AsComments(std::string_view text) {
  std::string out;
  for (std::string_view line : Split(text, '\n')) StrAppend(out, "// ", line, "\n");
  return out;
}

}  // namespace

ReproducerSettings ReproducersFrom(const Options& options) {
  ReproducerSettings out;
  if (options.reproducers == "none") return out;
  out.automatic = options.reproducers == "auto" || options.reproducers.empty();
  out.folder = out.automatic ? AutomaticFolder() : options.reproducers;
  out.slow_milliseconds = options.reproducer_ms;
  out.most_files = options.reproducer_files;
  out.most_bytes = options.reproducer_megabytes << 20;
  out.flags = FlagsOf(options);
  return out;
}

bool WantsReproducer(const ReproducerSettings& settings, const Status& status, double milliseconds) {
  if (settings.folder.empty()) return false;
  if (settings.slow_milliseconds > 0 && milliseconds >= static_cast<double>(settings.slow_milliseconds)) return true;
  if (status.ok() || status.code() == StatusCode::kInvalidArgument) return false;  // the user's to mend
  return !settings.automatic || status.code() == StatusCode::kInternal;
}

std::string WriteReproducer(const ReproducerSettings& settings, const Module& module, std::string_view backend,
                            std::string_view why) {
  static std::atomic<int> number{0};
  if (IsTooLarge(module, settings.most_bytes) || !MakeFolder(settings.folder, settings.automatic)) return "";
  std::error_code error;
  const fs::path file =
      fs::absolute(settings.folder, error) / StrCat(DumpFileName(module.name()), ".", getpid(), ".", number++, kEnding);
  const std::string path = file.string();
  std::string text = StrCat("// strop run --random-inputs --backend=", backend);
  for (const std::string& flag : settings.flags) StrAppend(text, " ", Quoted(flag));
  StrAppend(text, " ", Quoted(path), "\n", AsComments(why), "// Strop ", kVersion, "\n", PrintModule(module), "\n");
  if (static_cast<int64_t>(text.size()) > settings.most_bytes) return "";
  RemoveOldest(settings.folder, settings.most_files);
  return WriteDumpFile(path, text, "STROP_REPRODUCERS").ok() ? path : "";
}

}  // namespace strop
