// strop reduce: a smaller program that still fails. What failing means is a command's business: it gets each candidate
// as its last argument, and the exit status that it had on the whole program is the one that is kept.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "strop/tools/command.h"
#include "strop/tools/reducer.h"

namespace strop::tools {
namespace {

// A folder that goes with the object.
class TemporaryFolder {
 public:
  static Result<TemporaryFolder> Make() {
    std::error_code error;
    std::string pattern = (std::filesystem::temp_directory_path(error) / "strop-reduce-XXXXXX").string();
    if (error || !mkdtemp(pattern.data())) return FailedPrecondition("cannot make a temporary folder as ", pattern);
    return TemporaryFolder(pattern);
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// What a shell would say of it: 128 more than the signal that ended it.
Result<int> ExitStatus(const std::string& command, const std::string& file) {
  const int status = std::system(StrCat(command, " '", file, "' >/dev/null 2>&1 </dev/null").c_str());
  if (status == -1) return Internal("cannot start a shell for ", command);
  if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGQUIT))
    return FailedPrecondition("interrupted");
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

Status RunReduce(Arguments& arguments) {
  STROP_ASSIGN(const std::string check, arguments.TakeValue("--check"));
  STROP_ASSIGN(const std::string out, arguments.TakeValue("-o"));
  STROP_ASSIGN(const int64_t max_checks, arguments.TakeInt("--max-checks", 2000, 1));
  STROP_ASSIGN(const std::vector<std::string> files, arguments.Files(1, 1));
  STROP_ASSIGN(std::unique_ptr<Module> module, LoadFile(files[0]));
  if (check.empty()) return InvalidArgument("--check=CMD is needed: a command that fails on ", files[0]);
  STROP_ASSIGN(const TemporaryFolder folder, TemporaryFolder::Make());
  const std::string candidate_file = folder.path() + "/candidate.hlo";

  int wanted = 0;
  const auto status_of = [&](const Module& candidate) -> Result<int> {
    STROP_TRY(WriteFile(candidate_file, candidate.ToString() + "\n"));
    return ExitStatus(check, candidate_file);
  };
  STROP_ASSIGN(wanted, status_of(*module));
  if (wanted == 0) return InvalidArgument("--check succeeds on ", files[0], ", so there is nothing to reduce");
  const int64_t before = module->instruction_count();
  STROP_ASSIGN(ReduceResult result, Reduce(
                                        *module,
                                        [&](const Module& candidate) -> Result<bool> {
                                          STROP_ASSIGN(const int status, status_of(candidate));
                                          return status == wanted;
                                        },
                                        max_checks));
  std::fprintf(stderr, "%lld of %lld instructions after %lld checks%s\n",
               static_cast<long long>(result.module->instruction_count()), static_cast<long long>(before),
               static_cast<long long>(result.checks), result.complete ? "" : ", which is all that --max-checks allows");
  return WriteFile(out, result.module->ToString() + "\n");
}

}  // namespace strop::tools
