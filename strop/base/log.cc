#include "strop/base/log.h"

#include <cstdio>
#include <cstdlib>

#include "strop/base/options.h"

namespace strop {

int LogLevel() {
  static const int level = [] {
    const char* text = std::getenv("STROP_LOG");
    Options options;
    return text && SetOption(options, "log", text, "").ok() ? static_cast<int>(options.log) : 0;
  }();
  return level;
}

void LogLine(std::string_view message) {
  std::string line = StrCat("strop: ", message, "\n");
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace strop
