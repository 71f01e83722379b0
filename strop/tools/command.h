// The sub-commands of the `strop` binary: one file each, one row each in main.cc.
#pragma once
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strop/base/options.h"
#include "strop/base/status.h"
#include "strop/driver/compile.h"
#include "strop/ir/module.h"

namespace strop::tools {

// What came on the command line after the sub-command: flags of the options table are taken out already.
class Arguments {
 public:
  Arguments(Options options, std::vector<std::string_view> words)
      : options_(std::move(options)), words_(std::move(words)) {}

  const Options& options() const { return options_; }
  // --name, given without a value. Each call takes the flag out.
  bool TakeFlag(std::string_view name);
  // --name=value or --name value; empty if absent, error if the value is missing.
  Result<std::string> TakeValue(std::string_view name, std::string fallback = {});
  Result<int64_t> TakeInt(std::string_view name, int64_t fallback);
  // What is left: the files. An unknown --flag is an error with the nearest of `known`.
  Result<std::vector<std::string>> Files(std::vector<std::string_view> known, size_t at_least, size_t at_most);

 private:
  Options options_;
  std::vector<std::string_view> words_;
};

struct Command {
  std::string_view name;
  std::string_view usage;  // after the name: "FILE [--interpret]"
  std::string_view sentence;
  Status (*run)(Arguments& arguments);
};

// "-" is standard input. NotFound says which file.
Result<std::string> ReadFile(const std::string& path);
// "-" or empty is standard output.
Status WriteFile(const std::string& path, std::string_view contents);
// Reads, loads and verifies the one program of a file.
Result<std::unique_ptr<Module>> LoadFile(const std::string& path);
CompileSettings SettingsFrom(const Options& options);

Status RunCheck(Arguments& arguments);
Status RunDevices(Arguments& arguments);
Status RunExplain(Arguments& arguments);
Status RunParse(Arguments& arguments);
Status RunRun(Arguments& arguments);
Status RunTranslate(Arguments& arguments);
Status RunViz(Arguments& arguments);
Status RunOpt(Arguments& arguments);

}  // namespace strop::tools
