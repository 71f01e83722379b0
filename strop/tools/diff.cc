// strop diff: what two modules, two compilations, or two reports of strop explain do not have in common. Exit code 1 if
// there is something.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "strop/driver/load.h"
#include "strop/tools/command.h"
#include "strop/tools/module_diff.h"
#include "strop/tools/report_diff.h"
#include "strop/tools/run_diff.h"

namespace strop::tools {
namespace {

constexpr size_t kMostRows = 20;  // of a list of kernels

bool IsFolder(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

}  // namespace

Status RunDiffCommand(Arguments& arguments) {
  const bool json = arguments.TakeFlag("--json");
  STROP_ASSIGN(const int64_t context, arguments.TakeInt("--context", 2, 0));
  STROP_ASSIGN(const std::vector<std::string> files, arguments.Files(2, 2));
  const std::string &was = files[0], &is = files[1];
  if (IsFolder(was) != IsFolder(is))
    return InvalidArgument("two programs or two folders of dumps are compared, but only ", IsFolder(was) ? was : is,
                           " is a folder");
  if (IsFolder(was)) {
    STROP_ASSIGN(const RunDiff diff, DiffRuns(was, is, context));
    STROP_TRY(
        WriteFile("-", json ? nlohmann::json{{"equal", diff.equal}, {"text", diff.text}}.dump(1) + "\n" : diff.text));
    return diff.equal ? OkStatus() : FailedPrecondition("the compilations differ");
  }
  STROP_ASSIGN(const std::string was_contents, ReadFile(was));
  STROP_ASSIGN(const std::string is_contents, ReadFile(is));
  if (LooksLikeReport(was_contents) != LooksLikeReport(is_contents))
    return InvalidArgument("two programs or two reports of strop explain are compared, but only ",
                           LooksLikeReport(was_contents) ? was : is, " is a report");
  if (LooksLikeReport(was_contents)) {
    STROP_ASSIGN(const ReportDiff diff, DiffReports(was_contents, was, is_contents, is, kMostRows));
    STROP_TRY(WriteFile("-", json ? diff.json : diff.text));
    return diff.equal ? OkStatus() : FailedPrecondition("the reports differ");
  }
  STROP_ASSIGN(const std::unique_ptr<Module> before, LoadProgram(was_contents, was));
  STROP_ASSIGN(const std::unique_ptr<Module> now, LoadProgram(is_contents, is));
  const ModuleDiff diff = DiffModules(*before, *now);
  STROP_TRY(WriteFile("-", json ? DiffJson(diff) : DiffText(diff, context)));
  return diff.equal() ? OkStatus() : FailedPrecondition("the modules differ: ", DiffSummary(diff));
}

}  // namespace strop::tools
