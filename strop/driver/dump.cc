#include "strop/driver/dump.h"

#include <atomic>
#include <cstdio>
#include <filesystem>

#include "strop/ir/printer.h"

namespace strop {

std::string DumpFileName(std::string_view name) {
  std::string out;
  for (char c : name.substr(0, 80)) {
    const bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
    out += plain ? c : '_';
  }
  return out;
}

Status WriteDumpFile(const std::string& path, const std::string& bytes, std::string_view option) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  std::FILE* file = error ? nullptr : std::fopen(path.c_str(), "wb");
  if (!file) return FailedPrecondition("cannot write ", path, "; ", option, " must name a folder that can be written");
  const bool ok = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size();
  if (std::fclose(file) != 0 || !ok) return FailedPrecondition("cannot write ", path, ": is the disk full?");
  return OkStatus();
}

Dump::Dump(const std::string& dir, const std::string& module_name) {
  if (dir.empty()) return;
  static std::atomic<int> number{0};
  char prefix[24];
  std::snprintf(prefix, sizeof prefix, "module_%04d.", number++);
  folder_ = StrCat(dir, "/", prefix, DumpFileName(module_name));
}

Status Dump::Module(std::string_view phase, const class Module& module) {
  if (!on()) return OkStatus();
  char number[16];
  std::snprintf(number, sizeof number, "%03d.", next_++);
  return WriteDumpFile(StrCat(folder_, "/", number, DumpFileName(phase), ".hlo"), PrintModule(module), "STROP_DUMP");
}

Status Dump::Text(std::string_view file_name, const std::function<std::string()>& text) {
  if (!on()) return OkStatus();
  return WriteDumpFile(StrCat(folder_, "/", file_name), text(), "STROP_DUMP");
}

}  // namespace strop
