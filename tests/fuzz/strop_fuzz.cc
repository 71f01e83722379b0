// strop_fuzz: random modules, the evaluator against a backend. Each failure is written as an .hlo file that says how to
// see it again; a module that crashes or hangs is a failure like any other, since batches run in processes of their
// own.
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "strop/base/strings.h"
#include "strop/driver/load.h"
#include "tests/fuzz/differential.h"
#include "tests/fuzz/generator.h"
#include "tests/fuzz/settings.h"
#include "tests/fuzz/shardings.h"
#include "tests/fuzz/values.h"

namespace strop::fuzz {
namespace {

constexpr const char* kUsage = R"(usage: strop_fuzz [FLAGS]
Makes random modules and compares what a backend computes with what the evaluator does.

  --modules=N     how many (default 1000)
  --minutes=M     stop after so long
  --seed=S        the first one's seed; the others follow (default 1)
  --setting=NAME  only this way of compiling
  --every-setting each module in every way, not in two of them; --check always does
  --backend=NAME  what is tested (default cpu)
  --tame          arguments without special values
  --out=DIR       where failures are written (default fuzz-failures)
  --max-failures=N  stop after so many (default 20)
  --print         print the modules and do nothing else
  --shardings     each module on 2 to 8 devices, with random shardings, against the evaluator on one
  --mistakes      no backend: how many mistakes, made on purpose, the comparison finds out; exit code 1 if too few
  --check FILE    compare on this program; arguments from --seed. For strop reduce:
                    strop reduce FILE --check "strop_fuzz --seed=S --check"
  --arguments     with --check: print these arguments as well
Exit code: 0 all agree, 1 a difference, 2 the command line is wrong.
)";

struct CommandLine {
  uint64_t modules = 1000, seed = 1, max_failures = 20;
  double minutes = 0;
  bool print = false, mistakes = false, arguments = false, shardings = false;
  std::string out = "fuzz-failures", check;
  DifferentialOptions differential;
};

// What a batch tells its parent, in shared memory: it survives a crash.
struct Progress {
  uint64_t seed;  // in work
  uint64_t agreed, conditioned, skipped, failed;
  char reason[1024];      // of the failure that ended the batch
  char skipped_for[256];  // why the last one was skipped
};

constexpr uint64_t kBatch = 250;  // modules a process
constexpr int kSecondsEach = 60;  // a module that takes longer hangs

// Ends the process with SIGALRM after so many seconds in which it was there: one that was stopped in between, or a
// machine asleep, is given no blame.
volatile sig_atomic_t seconds_left;
void LimitSeconds(int seconds) {
  seconds_left = seconds;
  signal(SIGALRM, [](int) {
    seconds_left = seconds_left - 1;
    if (seconds_left > 0) return;
    signal(SIGALRM, SIG_DFL);
    kill(getpid(), SIGALRM);
  });
  const itimerval every_second = {{1, 0}, {1, 0}};
  setitimer(ITIMER_REAL, &every_second, nullptr);
}

void WriteFailure(const CommandLine& line, uint64_t seed, const std::string& reason) {
  std::filesystem::create_directories(line.out);
  const std::string path = StrCat(line.out, "/", seed, ".hlo");
  std::ofstream file(path);
  std::unique_ptr<Module> module = GenerateModule(seed), sharded;
  if (line.shardings) sharded = WithShardings(*module, seed);
  std::string comment = reason.substr(0, reason.find('\n'));
  file << "// " << comment << "\n// strop_fuzz " << (line.shardings ? "--shardings " : "") << "--seed=" << seed
       << " --check " << seed << ".hlo\n"
       << (sharded ? *sharded : *module).ToString() << "\n";
  std::printf("seed %llu: %s\n", static_cast<unsigned long long>(seed), comment.c_str());
  std::fflush(stdout);
}

Outcome Check(const CommandLine& line, const Module& module, uint64_t seed, const DifferentialOptions& options) {
  return line.shardings ? CheckShardings(module, seed, options) : CheckModule(module, seed, options);
}

// Runs in a process of its own; ends at the first failure.
[[noreturn]] void RunBatch(const CommandLine& line, uint64_t first, uint64_t count, Progress& progress) {
  for (uint64_t seed = first; seed < first + count; ++seed) {
    progress.seed = seed;
    LimitSeconds(kSecondsEach);
    const Outcome outcome = Check(line, *GenerateModule(seed), seed, line.differential);
    if (outcome.verdict == Verdict::kAgrees) ++progress.agreed;
    if (outcome.conditioned) ++progress.conditioned;
    if (outcome.verdict == Verdict::kAgrees) continue;
    if (outcome.verdict == Verdict::kDiffers) {
      std::snprintf(progress.reason, sizeof progress.reason, "%s", outcome.text.c_str());
      _exit(1);
    }
    std::snprintf(progress.skipped_for, sizeof progress.skipped_for, "%s", outcome.text.c_str());
    ++progress.skipped;
  }
  _exit(0);
}

std::string ReasonOf(int status, const Progress& progress) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 1) return progress.reason;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) return StrCat("hangs: ", kSecondsEach, " s were not enough");
  if (WIFSIGNALED(status)) return StrCat("crashes: ", strsignal(WTERMSIG(status)));
  return StrCat("ends with exit code ", WEXITSTATUS(status));
}

int Fuzz(const CommandLine& line) {
  auto* progress = static_cast<Progress*>(
      mmap(nullptr, sizeof(Progress), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (progress == MAP_FAILED) return 2;
  const auto start = std::chrono::steady_clock::now();
  auto seconds = [&] { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(); };
  uint64_t failures = 0;
  uint64_t next = line.seed;
  const uint64_t end = line.seed + line.modules;
  while (next < end && failures < line.max_failures && (line.minutes <= 0 || seconds() < line.minutes * 60)) {
    const uint64_t count = std::min(kBatch, end - next);
    const pid_t child = fork();
    if (child == 0) RunBatch(line, next, count, *progress);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) < 0) {
      std::perror("strop_fuzz");
      return 2;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
      next += count;
      continue;
    }
    ++failures;
    WriteFailure(line, progress->seed, ReasonOf(status, *progress));
    next = progress->seed + 1;
  }
  std::printf("%llu modules in %.0f s: %llu agree (%llu by conditioning), %llu skipped, %llu failed\n",
              static_cast<unsigned long long>(next - line.seed), seconds(),
              static_cast<unsigned long long>(progress->agreed), static_cast<unsigned long long>(progress->conditioned),
              static_cast<unsigned long long>(progress->skipped), static_cast<unsigned long long>(failures));
  if (progress->skipped) std::printf("the last skipped: %s\n", progress->skipped_for);
  return failures ? 1 : 0;
}

int CheckFile(const CommandLine& line) {
  std::stringstream text;
  text << std::ifstream(line.check).rdbuf();
  Result<std::unique_ptr<Module>> module = LoadProgram(text.str(), line.check);
  if (!module.ok()) {
    std::fprintf(stderr, "%s\n", module.status().ToString().c_str());
    return 2;
  }
  if (line.arguments)
    for (const Literal& argument : RandomArguments(**module, line.seed, line.differential.tame))
      std::printf("%s %s\n", argument.shape().ToString().c_str(), argument.ToString().c_str());
  DifferentialOptions differential = line.differential;
  differential.every_setting = true;
  const Outcome outcome = Check(line, **module, line.seed, differential);
  std::printf("%s%s\n", outcome.verdict == Verdict::kAgrees ? "agrees" : "", outcome.text.c_str());
  return outcome.verdict == Verdict::kDiffers ? 1 : 0;
}

// Wild modules hide mistakes: behind a comparison, a logarithm of infinity, a result that nobody could compute.
constexpr double kFoundOut = 0.6;

int FindMistakes(const CommandLine& line) {
  bool enough = true;
  for (Mistake mistake : kMistakes) {
    uint64_t shown = 0, found = 0;
    for (uint64_t seed = line.seed; seed < line.seed + line.modules; ++seed) {
      const Outcome outcome = CheckMistake(*GenerateModule(seed, Sizes::kSmall), mistake, seed, line.differential);
      if (outcome.verdict == Verdict::kSkipped) continue;
      ++shown;
      if (outcome.verdict == Verdict::kDiffers) ++found;
    }
    const std::string name(Name(mistake));
    std::printf("%s: %llu modules show it, %llu are found out\n", name.c_str(), static_cast<unsigned long long>(shown),
                static_cast<unsigned long long>(found));
    enough = enough && static_cast<double>(found) >= kFoundOut * static_cast<double>(shown);
  }
  return enough ? 0 : 1;
}

bool ReadCommandLine(int argc, char** argv, CommandLine& line) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const size_t equals = word.find('=');
    const std::string_view name = word.substr(0, equals);
    const std::string value(equals == std::string_view::npos ? "" : word.substr(equals + 1));
    if (name == "--modules")
      line.modules = std::strtoull(value.c_str(), nullptr, 10);
    else if (name == "--minutes")
      line.minutes = std::strtod(value.c_str(), nullptr);
    else if (name == "--seed")
      line.seed = std::strtoull(value.c_str(), nullptr, 10);
    else if (name == "--max-failures")
      line.max_failures = std::strtoull(value.c_str(), nullptr, 10);
    else if (name == "--setting")
      line.differential.setting = value;
    else if (name == "--backend")
      line.differential.backend = value;
    else if (name == "--out")
      line.out = value;
    else if (name == "--tame")
      line.differential.tame = true;
    else if (name == "--every-setting")
      line.differential.every_setting = true;
    else if (name == "--arguments")
      line.arguments = true;
    else if (name == "--mistakes")
      line.mistakes = true;
    else if (name == "--shardings")
      line.shardings = true;
    else if (name == "--print")
      line.print = true;
    else if (name == "--check" && value.empty() && i + 1 < argc)
      line.check = argv[++i];
    else if (name == "--check")
      line.check = value;
    else
      return false;
  }
  return true;
}

int Main(int argc, char** argv) {
  CommandLine line;
  if (!ReadCommandLine(argc, argv, line)) {
    std::fputs(kUsage, stderr);
    return 2;
  }
  if (!line.check.empty()) return CheckFile(line);
  if (line.mistakes) return FindMistakes(line);
  if (!line.print) return Fuzz(line);
  for (uint64_t seed = line.seed; seed < line.seed + line.modules; ++seed)
    std::printf("%s\n", GenerateModule(seed)->ToString().c_str());
  return 0;
}

}  // namespace
}  // namespace strop::fuzz

int main(int argc, char** argv) { return strop::fuzz::Main(argc, argv); }
