// The sub-commands of the `strop` binary: one file each, one row each in main.cc.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strop/base/options.h"
#include "strop/base/status.h"
#include "strop/driver/compile.h"
#include "strop/driver/pass_libraries.h"
#include "strop/ir/module.h"

namespace strop::tools {

// A flag of one sub-command. Those of the options table hold for all of them.
struct Flag {
  std::string_view name;   // "--runs"
  std::string_view value;  // "N"; "" for a switch; "[SEED]" may be left out
  std::string_view sentence;
};

// What came on the command line after the sub-command: flags of the options table are taken out already.
class Arguments {
 public:
  Arguments(std::span<const Flag> flags, Options options, std::vector<std::string_view> words)
      : flags_(flags), options_(std::move(options)), words_(std::move(words)) {}

  const Options& options() const { return options_; }
  // --name, given without a value. Each call takes the flag out.
  bool TakeFlag(std::string_view name);
  // --name=value or --name value; empty if absent, error if the value is missing.
  Result<std::string> TakeValue(std::string_view name, std::string fallback = {});
  Result<int64_t> TakeInt(std::string_view name, int64_t fallback, int64_t lowest);
  // What is left: the files. A flag among them is unknown, given twice, or has a value that it doesn't take.
  Result<std::vector<std::string>> Files(size_t at_least, size_t at_most);

 private:
  Status Refuse(std::string_view word) const;

  std::span<const Flag> flags_;
  Options options_;
  std::vector<std::string_view> words_;
};

struct Command {
  std::string_view name;
  std::string_view files;  // "FILE", "FILE...", or nothing
  std::string_view sentence;
  std::span<const Flag> flags;
  Status (*run)(Arguments& arguments);
};

// "-" is standard input. NotFound says which file.
Result<std::string> ReadFile(const std::string& path);
// "-" or empty is standard output.
Status WriteFile(const std::string& path, std::string_view contents);
// Reads, loads and verifies the one program of a file.
Result<std::unique_ptr<Module>> LoadFile(const std::string& path);
// Only reads it: constants may lack their values, as in dumps.
Result<std::unique_ptr<Module>> ParseFile(const std::string& path);
// The shared objects of all --load flags.
Result<PassLibraries> TakeLibraries(Arguments& arguments);

Status RunCheck(Arguments& arguments);
Status RunCompile(Arguments& arguments);
Status RunDevices(Arguments& arguments);
Status RunDiffCommand(Arguments& arguments);
Status RunExplain(Arguments& arguments);
Status RunParse(Arguments& arguments);
Status RunReduce(Arguments& arguments);
Status RunReplay(Arguments& arguments);
Status RunRun(Arguments& arguments);
Status RunTranslate(Arguments& arguments);
Status RunViz(Arguments& arguments);
Status RunOpt(Arguments& arguments);

}  // namespace strop::tools
