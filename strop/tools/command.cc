#include "strop/tools/command.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "strop/base/thread_pool.h"
#include "strop/driver/load.h"

namespace strop::tools {

bool Arguments::TakeFlag(std::string_view name) {
  for (size_t n = 0; n < words_.size(); ++n) {
    if (words_[n] != name) continue;
    words_.erase(words_.begin() + static_cast<int64_t>(n));
    return true;
  }
  return false;
}

Result<std::string> Arguments::TakeValue(std::string_view name, std::string fallback) {
  for (size_t n = 0; n < words_.size(); ++n) {
    std::string_view word = words_[n];
    if (word == name) {
      if (n + 1 == words_.size()) return InvalidArgument(name, " needs a value: ", name, "=VALUE");
      std::string value(words_[n + 1]);
      words_.erase(words_.begin() + static_cast<int64_t>(n), words_.begin() + static_cast<int64_t>(n) + 2);
      return value;
    }
    if (word.substr(0, name.size()) == name && word.size() > name.size() && word[name.size()] == '=') {
      std::string value(word.substr(name.size() + 1));
      words_.erase(words_.begin() + static_cast<int64_t>(n));
      return value;
    }
  }
  return fallback;
}

Result<int64_t> Arguments::TakeInt(std::string_view name, int64_t fallback, int64_t lowest) {
  STROP_ASSIGN(std::string text, TakeValue(name));
  if (text.empty()) return fallback;
  std::optional<int64_t> value = ParseNumber<int64_t>(text);
  if (!value || *value < lowest)
    return InvalidArgument(name, "=", text, " is not accepted: expected a whole number of at least ", lowest);
  return *value;
}

Status Arguments::Refuse(std::string_view word) const {
  const std::string_view name = word.substr(0, word.find('='));
  std::vector<std::string_view> known;
  for (const Flag& flag : flags_) {
    if (flag.name == name && flag.value.empty() && name != word)
      return InvalidArgument(name, " takes no value, but has ", word.substr(name.size()));
    if (flag.name == name) return InvalidArgument(name, " is given twice");
    known.push_back(flag.name);
  }
  const std::vector<OptionFlag> options = OptionFlags();
  for (const OptionFlag& option : options) known.push_back(option.flag);
  const std::string_view near = Nearest(name, known);
  if (!near.empty()) return InvalidArgument("unknown flag ", name, "; did you mean ", near, "?");
  return InvalidArgument("unknown flag ", name, "; there are: ", Join(known, " "));
}

Result<std::vector<std::string>> Arguments::Files(size_t at_least, size_t at_most) {
  std::vector<std::string> files;
  for (std::string_view word : words_) {
    if (word.size() > 1 && word[0] == '-') return Refuse(word);
    if (word.empty()) return InvalidArgument("the name of a file is empty");
    files.emplace_back(word);
  }
  if (files.size() < at_least && at_least > 1)
    return InvalidArgument(at_least, " files are needed, ", files.size(), " are named");
  if (files.size() < at_least) return InvalidArgument("no file to read is named; - is standard input");
  if (files.size() > at_most)
    return InvalidArgument("unexpected argument \"", files[at_most], "\": ",
                           at_most == 0   ? "no file is read"
                           : at_most == 1 ? "one file is read at a time"
                                          : StrCat(at_most, " files are read"));
  return files;
}

Result<std::string> ReadFile(const std::string& path) {
  std::FILE* file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (!file) return NotFound("cannot read ", path, ": ", std::strerror(errno));
  std::string contents;
  char block[1 << 16];
  while (size_t n = std::fread(block, 1, sizeof block, file)) contents.append(block, n);
  const bool failed = std::ferror(file) != 0;
  if (file != stdin) std::fclose(file);
  if (failed) return NotFound("cannot read ", path, ": ", std::strerror(errno));
  return contents;
}

Status WriteFile(const std::string& path, std::string_view contents) {
  std::FILE* file = path.empty() || path == "-" ? stdout : std::fopen(path.c_str(), "wb");
  if (!file) return FailedPrecondition("cannot write ", path, ": ", std::strerror(errno));
  bool ok = std::fwrite(contents.data(), 1, contents.size(), file) == contents.size();
  ok &= (file == stdout ? std::fflush(file) : std::fclose(file)) == 0;
  if (!ok)
    return FailedPrecondition("cannot write ", path.empty() ? "standard output" : path, ": ", std::strerror(errno));
  return OkStatus();
}

Result<std::unique_ptr<Module>> LoadFile(const std::string& path) {
  STROP_ASSIGN(std::string bytes, ReadFile(path));
  STROP_ASSIGN(std::unique_ptr<Module> module, LoadProgram(bytes, path));
  STROP_TRY(VerifyLoaded(*module, bytes, path));
  return module;
}

Result<std::unique_ptr<Module>> ParseFile(const std::string& path) {
  STROP_ASSIGN(const std::string bytes, ReadFile(path));
  return LoadProgram(bytes, path);
}

Result<PassLibraries> TakeLibraries(Arguments& arguments) {
  PassLibraries libraries;
  for (;;) {
    STROP_ASSIGN(const std::string library, arguments.TakeValue("--load"));
    if (library.empty()) return libraries;
    STROP_TRY(libraries.Load(library));
  }
}

}  // namespace strop::tools
