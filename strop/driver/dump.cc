#include "strop/driver/dump.h"

#include <atomic>
#include <cstdio>
#include <filesystem>

#include "strop/ir/printer.h"

namespace strop {
namespace {

// Letters that are safe in a file name on any system.
std::string FileName(std::string_view name) {
  std::string out;
  for (char c : name.substr(0, 80)) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
    out += plain ? c : '_';
  }
  return out;
}

}  // namespace

Dump::Dump(const std::string& dir, const std::string& module_name) {
  if (dir.empty()) return;
  static std::atomic<int> number{0};
  char prefix[24];
  std::snprintf(prefix, sizeof prefix, "module_%04d.", number++);
  folder_ = StrCat(dir, "/", prefix, FileName(module_name));
}

Status Dump::Write(const std::string& name, const std::string& text) {
  std::error_code error;
  std::filesystem::create_directories(folder_, error);
  const std::string path = StrCat(folder_, "/", name);
  std::FILE* file = error ? nullptr : std::fopen(path.c_str(), "wb");
  if (!file) return FailedPrecondition("cannot write ", path, "; STROP_DUMP must name a folder that can be written");
  const bool ok = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (std::fclose(file) != 0 || !ok) return FailedPrecondition("cannot write ", path, ": is the disk full?");
  return OkStatus();
}

Status Dump::Module(std::string_view phase, const class Module& module) {
  if (!on()) return OkStatus();
  char number[16];
  std::snprintf(number, sizeof number, "%03d.", next_++);
  return Write(StrCat(number, FileName(phase), ".hlo"), PrintModule(module));
}

Status Dump::Text(std::string_view file_name, const std::function<std::string()>& text) {
  if (!on()) return OkStatus();
  return Write(std::string(file_name), text());
}

PassPipeline::Observer Dump::PassObserver() {
  if (!on()) return {};
  return [this](std::string_view pass, const class Module& module, bool changed) {
    // A dump that fails must not stop the compilation: the first file of the phase has reported the folder already.
    if (changed) (void)Module(pass, module).ok();
  };
}

}  // namespace strop
