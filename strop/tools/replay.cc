// strop replay: does a change of the compiler leave all plans of a corpus as they were? --record writes one file a
// program: the instructions after optimisation, and the plan (kernels, steps, buffers). --check compiles again and says
// which differ, and where first. A program that does not compile is recorded as the error that it gives.
#include <atomic>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <thread>

#include <unistd.h>

#include "strop/tools/command.h"

namespace strop::tools {
namespace {

namespace fs = std::filesystem;

struct Entry {
  std::string program;  // the file to compile
  std::string name;     // its record, below the folder
};

// Programs of a folder are those with a program's ending; a file that is named is one whatever it is called.
bool IsProgram(const fs::path& path) {
  for (const char* ending : {".hlo", ".mlir", ".mlirbc", ".pb", ".txt", ".stablehlo"})
    if (path.extension() == ending) return true;
  return false;
}

std::string RecordName(std::string name) {
  for (char& c : name)
    if (c == '/') c = '_';
  return name + ".plan";
}

Result<std::vector<Entry>> Corpus(const std::vector<std::string>& files) {
  std::vector<Entry> corpus;
  for (const std::string& file : files) {
    std::error_code error;
    if (!fs::is_directory(file, error)) {
      corpus.push_back({file, RecordName(fs::path(file).filename().string())});
      continue;
    }
    std::vector<fs::path> found;
    for (auto it = fs::recursive_directory_iterator(file, error); !error && it != fs::recursive_directory_iterator();
         it.increment(error))
      if (it->is_regular_file(error) && IsProgram(it->path())) found.push_back(it->path());
    if (error) return NotFound("cannot read the folder ", file, ": ", error.message());
    std::sort(found.begin(), found.end());
    for (const fs::path& path : found)
      corpus.push_back({path.string(), RecordName(path.lexically_relative(file).string())});
  }
  std::vector<std::string> names;
  for (const Entry& entry : corpus) names.push_back(entry.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice != names.end()) return InvalidArgument("two programs would be recorded as ", *twice, ": name their folder");
  if (corpus.empty()) return InvalidArgument("there is no program in ", Join(files, ", "));
  return corpus;
}

// What is recorded of a program.
std::string PlanOf(const std::string& file, const Backend& backend, const CompileSettings& settings) {
  Result<std::unique_ptr<Module>> module = LoadFile(file);
  if (!module.ok()) return StrCat("not a program: ", module.status().message(), "\n");
  const Result<std::shared_ptr<const CompiledProgram>> program = Compile(*std::move(module), backend, settings);
  if (!program.ok()) return StrCat("not compiled: ", program.status().message(), "\n");
  const Result<std::shared_ptr<const Module>> compiled = (*program)->module->Get();
  if (!compiled.ok()) return StrCat("not compiled: ", compiled.status().message(), "\n");
  return StrCat((*compiled)->ToString(), "\n\n", (*program)->plan_text, "\n");
}

// "line 12\n- was\n+ is\n"
std::string FirstDifference(const std::string& was, const std::string& is) {
  const std::vector<std::string_view> a = Split(was, '\n'), b = Split(is, '\n');
  size_t at = 0;
  while (at < a.size() && at < b.size() && a[at] == b[at]) ++at;
  int64_t differ = 0;
  for (size_t n = at; n < std::max(a.size(), b.size()); ++n) differ += n >= a.size() || n >= b.size() || a[n] != b[n];
  std::string out = StrCat("  from line ", at + 1, " on, ", differ, differ == 1 ? " line\n" : " lines\n");
  if (at < a.size()) StrAppend(out, "  - ", a[at], "\n");
  if (at < b.size()) StrAppend(out, "  + ", b[at], "\n");
  return out;
}

class Replay {
 public:
  Replay(std::vector<Entry> corpus, std::string folder, bool record, const Backend& backend, CompileSettings settings)
      : corpus_(std::move(corpus)),
        folder_(std::move(folder)),
        record_(record),
        backend_(backend),
        settings_(std::move(settings)),
        told_(corpus_.size()) {}

  // Each job takes the next program; what is told is in the order of the corpus.
  void Run(int64_t jobs) {
    std::vector<std::jthread> threads;
    for (int64_t n = 1; n < jobs; ++n) threads.emplace_back([this] { Work(); });
    Work();
  }

  const std::vector<std::string>& told() const { return told_; }

 private:
  void Work() {
    for (size_t n = next_++; n < corpus_.size(); n = next_++) {
      const std::string plan = PlanOf(corpus_[n].program, backend_, settings_);
      told_[n] = record_ ? Record(corpus_[n], plan) : Check(corpus_[n], plan);
      const std::lock_guard<std::mutex> lock(mutex_);
      ++done_;
      if (isatty(STDERR_FILENO)) std::fprintf(stderr, "\r%zu of %zu", done_, corpus_.size());
    }
  }

  std::string Record(const Entry& entry, const std::string& plan) const {
    const Status written = WriteFile(StrCat(folder_, "/", entry.name), plan);
    return written.ok() ? "" : StrCat(entry.program, ": ", written.message(), "\n");
  }

  std::string Check(const Entry& entry, const std::string& plan) const {
    const Result<std::string> recorded = ReadFile(StrCat(folder_, "/", entry.name));
    if (!recorded.ok()) return StrCat(entry.program, ": not recorded\n");
    if (*recorded == plan) return "";
    return StrCat(entry.program, ": the plan changed\n", FirstDifference(*recorded, plan));
  }

  const std::vector<Entry> corpus_;
  const std::string folder_;
  const bool record_;
  const Backend& backend_;
  const CompileSettings settings_;
  std::atomic<size_t> next_{0};
  std::mutex mutex_;
  size_t done_ = 0;  // guarded by mutex_
  std::vector<std::string> told_;
};

}  // namespace

Status RunReplay(Arguments& arguments) {
  STROP_ASSIGN(const std::string record, arguments.TakeValue("--record"));
  STROP_ASSIGN(const std::string check, arguments.TakeValue("--check"));
  STROP_ASSIGN(const int64_t jobs, arguments.TakeInt("-j", 1, 1));
  STROP_ASSIGN(const std::vector<std::string> files, arguments.Files(1, SIZE_MAX));
  if (record.empty() == check.empty())
    return InvalidArgument("--record=DIR writes the plans, --check=DIR compares them: give one of the two");
  STROP_ASSIGN(const Backend* backend, FindBackend(arguments.options().backend));
  STROP_ASSIGN(std::vector<Entry> corpus, Corpus(files));
  const std::string& folder = record.empty() ? check : record;
  std::error_code error;
  if (!record.empty()) std::filesystem::create_directories(record, error);
  if (!std::filesystem::is_directory(folder, error))
    return NotFound(folder, " is no folder", record.empty() ? "; --record=DIR makes one" : " and cannot be made");
  STROP_ASSIGN(CompileSettings settings, SettingsFrom(arguments.options()));
  settings.explain = true;
  settings.pool = nullptr;  // the jobs are the parallelism
  const int64_t programs = static_cast<int64_t>(corpus.size());
  Replay replay(std::move(corpus), folder, !record.empty(), *backend, settings);
  replay.Run(std::min<int64_t>(jobs, 256));
  if (isatty(STDERR_FILENO)) std::fputc('\n', stderr);
  int64_t wrong = 0;
  std::string out;
  for (const std::string& told : replay.told()) {
    wrong += !told.empty();
    out += told;
  }
  STROP_TRY(WriteFile("-", out));
  if (wrong > 0)
    return FailedPrecondition(wrong, " of ", programs, record.empty() ? " plans differ" : " plans were not written");
  std::fprintf(stderr, "%lld plans %s\n", static_cast<long long>(programs),
               record.empty() ? "are as they were" : "recorded");
  return OkStatus();
}

}  // namespace strop::tools
