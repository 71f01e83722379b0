// What STROP_DUMP writes: <dir>/<module>/NNN.<phase or pass>.hlo whenever the module changed, plan.txt, and the command
// that repeats a step. Any .hlo file can be given back to `strop opt` or `strop run`.
#pragma once
#include <functional>
#include <string>

#include "strop/base/status.h"
#include "strop/passes/pipeline.h"

namespace strop {

// The name with letters that are safe in a file name on any system, 80 at most.
std::string DumpFileName(std::string_view name);
// Writes a file and the folders above it; an error names the file, and `option` that asked for it.
Status WriteDumpFile(const std::string& path, const std::string& bytes, std::string_view option);

class Dump {
 public:
  // Nothing is written if `dir` is empty.
  Dump(const std::string& dir, const std::string& module_name);

  bool on() const { return !folder_.empty(); }
  const std::string& folder() const { return folder_; }
  // An error says which file could not be written.
  Status Module(std::string_view phase, const class Module& module);
  Status Text(std::string_view file_name, const std::function<std::string()>& text);

 private:
  std::string folder_;
  int next_ = 0;
};

}  // namespace strop
