// strop reduce: a smaller program that still fails. What failing means is a command's business: it gets each candidate
// as its last argument. As of `git bisect run`, the exit status that it had on the whole program is looked for, and 125
// says that a candidate cannot be judged; as of creduce (--interesting), 0 is looked for; and with --slow it is time.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "strop/tools/command.h"
#include "strop/tools/reducer.h"
#include "strop/tools/shell_command.h"

namespace strop::tools {
namespace {

constexpr int kCannotJudge = 125;
// A candidate may take this much longer than the whole program before it counts as another failure.
constexpr double kMostTimes = 4, kMostSecondsMore = 10;

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

// While it lives, Ctrl-C does not end the program but is seen here: what was reached is still written.
class Interruption {
 public:
  Interruption() {
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_BLOCK, &interrupt, &before_);
  }
  ~Interruption() {
    // The signal has done what it was sent for.
    if (Seen()) std::signal(SIGINT, SIG_IGN);
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    std::signal(SIGINT, SIG_DFL);
  }
  Interruption(const Interruption&) = delete;
  Interruption& operator=(const Interruption&) = delete;
  static bool Seen() {
    sigset_t pending;
    return sigpending(&pending) == 0 && sigismember(&pending, SIGINT) == 1;
  }

 private:
  sigset_t before_;
};

struct Settings {
  std::string command;
  bool interesting = false;  // --interesting: what is looked for is status 0
  double slow = 0;           // --slow: what is looked for is that the command takes so many seconds
  int wanted = 0;            // the status that is looked for
  double limit = 0;
  std::string folder;
};

Result<bool> StillShows(const Settings& s, const Module& candidate, int slot) {
  const std::string file = StrCat(s.folder, "/candidate_", slot, ".hlo");
  STROP_TRY(WriteFile(file, candidate.ToString() + "\n"));
  STROP_ASSIGN(const CommandOutcome outcome, RunShellCommand(s.command, file, s.limit, &Interruption::Seen));
  if (s.slow > 0) return outcome.timed_out;
  return !outcome.timed_out && outcome.status == s.wanted;
}

// The command on the whole program: there must be something to reduce.
Status CheckWhole(Settings& s, const Module& module, const std::string& name) {
  const std::string file = s.folder + "/candidate_0.hlo";
  STROP_TRY(WriteFile(file, module.ToString() + "\n"));
  const std::string_view flag = s.interesting ? "--interesting" : "--check";
  STROP_ASSIGN(const CommandOutcome outcome, RunShellCommand(s.command, file, s.slow, &Interruption::Seen));
  if (s.slow > 0) {
    s.limit = s.slow;
    if (outcome.timed_out) return OkStatus();
    return InvalidArgument("the command takes ", outcome.seconds, " seconds on ", name,
                           ", which is less than --slow=", s.slow, ", so there is nothing to reduce");
  }
  s.limit = kMostTimes * outcome.seconds + kMostSecondsMore;
  if (outcome.status == 126 || outcome.status == 127)
    return InvalidArgument(flag, ": the shell cannot run ", s.command, " (status ", outcome.status, ")");
  if (s.interesting && outcome.status != 0)
    return InvalidArgument("--interesting fails on ", name, " with status ", outcome.status,
                           ", so there is nothing to reduce");
  if (!s.interesting && (outcome.status == 0 || outcome.status == kCannotJudge))
    return InvalidArgument("--check ", outcome.status == 0 ? "succeeds on " : "cannot judge (status 125) ", name,
                           ", so there is nothing to reduce");
  s.wanted = outcome.status;
  return OkStatus();
}

Result<Settings> TakeSettings(Arguments& arguments) {
  Settings s;
  STROP_ASSIGN(s.command, arguments.TakeValue("--check"));
  STROP_ASSIGN(const std::string interesting, arguments.TakeValue("--interesting"));
  if (!interesting.empty() && !s.command.empty())
    return InvalidArgument("--check and --interesting are two ways of saying what is looked for: give one of them");
  if (!interesting.empty()) s.interesting = true, s.command = interesting;
  STROP_ASSIGN(const std::string slow, arguments.TakeValue("--slow"));
  if (slow.empty()) return s;
  const auto seconds = ParseNumber<double>(slow);
  if (!seconds || !(*seconds > 0) || *seconds > 86400)
    return InvalidArgument("--slow=", slow, " is not accepted: expected a number of seconds above 0");
  if (s.interesting) return InvalidArgument("--slow goes with --check: the command's time is what counts");
  s.slow = *seconds;
  return s;
}

}  // namespace

Status RunReduce(Arguments& arguments) {
  STROP_ASSIGN(Settings settings, TakeSettings(arguments));
  STROP_ASSIGN(const std::string out, arguments.TakeValue("-o"));
  ReduceOptions options;
  STROP_ASSIGN(options.max_checks, arguments.TakeInt("--max-checks", options.max_checks, 1));
  STROP_ASSIGN(const int64_t jobs, arguments.TakeInt("-j", 1, 1));
  options.jobs = static_cast<int>(std::min<int64_t>(jobs, 256));
  STROP_ASSIGN(const std::vector<std::string> files, arguments.Files(1, 1));
  STROP_ASSIGN(std::unique_ptr<Module> module, LoadFile(files[0]));
  if (settings.command.empty())
    return InvalidArgument("--check=CMD is needed: a command that fails on ", files[0],
                           " (or --interesting=CMD, one that succeeds)");
  STROP_ASSIGN(const TemporaryFolder folder, TemporaryFolder::Make());
  settings.folder = folder.path();
  const Interruption interruption;
  STROP_TRY(CheckWhole(settings, *module, files[0]));
  options.stop = &Interruption::Seen;
  if (isatty(STDERR_FILENO))
    options.progress = [](const Module& smaller, int64_t checks) {
      std::fprintf(stderr, "%lld instructions after %lld checks\n", static_cast<long long>(smaller.instruction_count()),
                   static_cast<long long>(checks));
    };
  const int64_t before = module->instruction_count();
  STROP_ASSIGN(ReduceResult result, Reduce(
                                        *module,
                                        [&](const Module& candidate, int slot) -> Result<bool> {
                                          Result<bool> shows = StillShows(settings, candidate, slot);
                                          if (shows.status().code() == StatusCode::kCancelled)
                                            return false;  // options.stop tells
                                          return shows;
                                        },
                                        options));
  std::fprintf(stderr, "%lld of %lld instructions after %lld checks%s\n",
               static_cast<long long>(result.module->instruction_count()), static_cast<long long>(before),
               static_cast<long long>(result.checks),
               result.complete                      ? ""
               : result.checks < options.max_checks ? ", when it was interrupted"
                                                    : ", which is all that --max-checks allows");
  return WriteFile(out, result.module->ToString() + "\n");
}

}  // namespace strop::tools
