#include "strop/driver/program_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <vector>

#include "strop/base/archive.h"
#include "strop/base/build_identity.h"
#include "strop/base/content_hash.h"
#include "strop/base/log.h"
#include "strop/base/mapped_file.h"
#include "strop/base/version.h"
#include "strop/driver/artifact.h"
#include "strop/proto/module_proto.h"

namespace strop {
namespace {

constexpr uint32_t kKeySection = SectionName("ckey");
constexpr std::string_view kEnding = ".strop", kUnfinished = ".unfinished";
// So old, an unfinished file has lost its writer.
constexpr time_t kUnfinishedSeconds = 3600;

std::string Hex(uint64_t value) {
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[(value >> shift) & 15];
  return out;
}
std::string FileOf(std::string_view key) { return StrCat(Hex(ContentHash(key, 1)), Hex(ContentHash(key, 2)), kEnding); }

bool OthersMayWrite(const struct stat& status) {
  return status.st_uid != geteuid() || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
}

bool WriteAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

struct File {
  std::string name;
  int64_t size;
  timespec used;
  bool OlderThan(const File& other) const {
    return std::tie(used.tv_sec, used.tv_nsec, name) < std::tie(other.used.tv_sec, other.used.tv_nsec, other.name);
  }
};

// The entries of a folder, and what writers left unfinished.
std::vector<File> FilesIn(int folder, std::string_view ending) {
  std::vector<File> files;
  const int copy = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* listing = copy < 0 ? nullptr : fdopendir(copy);
  if (!listing) {
    if (copy >= 0) close(copy);
    return files;
  }
  while (const dirent* entry = readdir(listing)) {
    struct stat status;
    if (!std::string_view(entry->d_name).ends_with(ending)) continue;
    if (fstatat(folder, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(status.st_mode))
      files.push_back({entry->d_name, static_cast<int64_t>(status.st_size), status.st_mtim});
  }
  closedir(listing);
  return files;
}

}  // namespace

Result<std::optional<ProgramCache>> ProgramCache::Open(const CompileSettings& settings) {
  const std::string& path = settings.cache.folder;
  const auto none = [] { return Result<std::optional<ProgramCache>>(std::optional<ProgramCache>()); };
  if (path.empty() || settings.explain || settings.verify_each || !settings.dump_dir.empty() ||
      !settings.xla_dump.to.empty())
    return none();
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  (void)mkdir(path.c_str(), S_IRWXU);
  const int folder = open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) {
    STROP_LOG_AT(1, "compiled programs are not kept: cannot open the folder ", path, ": ", std::strerror(errno));
    return none();
  }
  ProgramCache cache(path, folder, settings.cache.most_bytes);
  struct stat status;
  if (fstat(folder, &status) != 0 || OthersMayWrite(status))
    return FailedPrecondition(
        "the folder of compiled programs ", path,
        status.st_uid != geteuid() ? " belongs to another user" : " may be written by others",
        ", who could have this process run anything: name another one (option cache_dir), or chmod 700 it");
  return std::optional<ProgramCache>(std::move(cache));
}

ProgramCache::ProgramCache(ProgramCache&& other) noexcept
    : path_(std::move(other.path_)), folder_(std::exchange(other.folder_, -1)), most_bytes_(other.most_bytes_) {}

ProgramCache::~ProgramCache() {
  if (folder_ >= 0) close(folder_);
}

std::string ProgramCache::KeyOf(std::string_view source, const Backend& backend, const CompileSettings& settings) {
  ByteWriter key;
  key(std::string_view(kVersion), BuildIdentity(), backend.name(), backend.CodeKey(),
      static_cast<int64_t>(settings.optimization_level), settings.disabled_passes, settings.lapack_library,
      settings.memory_limit, static_cast<uint64_t>(source.size()), ContentHash(source, 3), ContentHash(source, 4));
  return key.Take();
}

std::optional<Artifact> ProgramCache::Find(std::string_view key) const {
  const std::string name = FileOf(key);
  const int file = openat(folder_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  const auto read = [&]() -> Result<Artifact> {
    struct stat status;
    if (fstat(file, &status) != 0 || OthersMayWrite(status)) return FailedPrecondition("others may write to it");
    STROP_ASSIGN(MappedFile mapped, MapFile(file, name));
    return Artifact::Open(mapped.bytes, std::move(mapped.owner));
  };
  Result<Artifact> artifact = read();
  if (artifact.ok()) (void)futimens(file, nullptr);  // used now
  close(file);
  if (!artifact.ok()) {
    STROP_LOG_AT(1, "removed from the folder of compiled programs ", path_, ": ", name, ": ",
                 artifact.status().message());
    (void)unlinkat(folder_, name.c_str(), 0);
    return std::nullopt;
  }
  const Result<std::string_view> kept = artifact->Section(kKeySection);
  if (!kept.ok() || *kept != key) return std::nullopt;  // another program of the same hash
  return *std::move(artifact);
}

void ProgramCache::Keep(std::string_view key, ArtifactWriter entry) const {
  entry.Add(kKeySection, std::string(key));
  const std::string bytes = entry.Finish();
  if (static_cast<int64_t>(bytes.size()) > most_bytes_) return;
  static std::atomic<int64_t> number{0};
  const std::string name = FileOf(key);
  const std::string unfinished = StrCat(name, ".", static_cast<int64_t>(getpid()), ".", number++, kUnfinished);
  const int file = openat(folder_, unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  bool written = file >= 0 && WriteAll(file, bytes);
  if (file >= 0) written &= close(file) == 0;
  if (!written || renameat(folder_, unfinished.c_str(), folder_, name.c_str()) != 0) {
    STROP_LOG_AT(1, "a compiled program is not kept in ", path_, ": ", std::strerror(errno));
    (void)unlinkat(folder_, unfinished.c_str(), 0);
    return;
  }
  STROP_LOG_AT(2, "kept in ", path_, ": ", name, ", ", bytes.size(), " bytes");
  Evict();
}

// What was not used for longest goes, until the rest is small enough.
void ProgramCache::Evict() const {
  const time_t now = time(nullptr);
  for (const File& file : FilesIn(folder_, kUnfinished))
    if (now - file.used.tv_sec > kUnfinishedSeconds) (void)unlinkat(folder_, file.name.c_str(), 0);
  std::vector<File> files = FilesIn(folder_, kEnding);
  int64_t bytes = 0;
  for (const File& file : files) bytes += file.size;
  if (bytes <= most_bytes_) return;
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.OlderThan(b); });
  for (const File& file : files) {
    if (bytes <= most_bytes_) return;
    if (unlinkat(folder_, file.name.c_str(), 0) == 0) bytes -= file.size;
  }
}

Result<std::shared_ptr<const CompiledProgram>> CompileOrFind(
    std::string_view source, const Backend& backend, const CompileSettings& settings,
    const std::function<Result<std::unique_ptr<Module>>()>& load) {
  STROP_ASSIGN(const std::optional<ProgramCache> cache, ProgramCache::Open(settings));
  std::string key;
  if (cache) {
    key = ProgramCache::KeyOf(source, backend, settings);
    if (const std::optional<Artifact> entry = cache->Find(key)) {
      Result<std::shared_ptr<const CompiledProgram>> program = ReadProgram(*entry, backend, settings);
      if (program.ok()) return program;
      STROP_LOG_AT(1, "a program that was kept is compiled again: ", program.status().message());
    }
  }
  STROP_ASSIGN(std::unique_ptr<Module> module, load());
  STROP_ASSIGN(std::shared_ptr<const CompiledProgram> program, Compile(std::move(module), backend, settings));
  if (cache) {
    ArtifactWriter entry;
    const Status written = WriteProgram(*program, backend, entry);
    if (written.ok())
      cache->Keep(key, std::move(entry));
    else
      STROP_LOG_AT(1, "a compiled program is not kept: ", written.message());
  }
  return program;
}

Result<std::shared_ptr<const CompiledProgram>> CompileOrFind(std::unique_ptr<Module> module, const Backend& backend,
                                                             const CompileSettings& settings) {
  if (settings.cache.folder.empty()) return Compile(std::move(module), backend, settings);
  STROP_ASSIGN(const std::string source, SerializeModuleProtoWithConfig(*module));
  return CompileOrFind(source, backend, settings, [&] { return Result<std::unique_ptr<Module>>(std::move(module)); });
}

}  // namespace strop
