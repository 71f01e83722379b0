#include "strop/base/host_limits.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <optional>
#include <vector>

#include "strop/base/strings.h"

namespace strop {
namespace {

// /proc and /sys files are short and have no size: read until the end, at most 64 KB.
std::optional<std::string> ReadSmallFile(const std::string& path) {
  FILE* file = std::fopen(path.c_str(), "re");
  if (!file) return std::nullopt;
  std::string text(64 << 10, '\0');
  text.resize(std::fread(text.data(), 1, text.size(), file));
  std::fclose(file);
  return text;
}

// Paths of this process's cgroup, as /proc/self/cgroup tells: "id:controllers:path"; v2 has no controllers.
struct CgroupPaths {
  std::string v2, v1_cpu, v1_memory;
};

CgroupPaths ReadCgroupPaths(const std::string& root) {
  CgroupPaths paths;
  std::string text = ReadSmallFile(root + "/proc/self/cgroup").value_or("");
  for (std::string_view line : Split(text, '\n')) {
    size_t first = line.find(':');
    size_t second = first == line.npos ? line.npos : line.find(':', first + 1);
    if (second == line.npos) continue;
    std::string path(line.substr(second + 1));
    if (path == "/") path.clear();
    std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (controllers.empty()) paths.v2 = path;
    for (std::string_view controller : Split(controllers, ',')) {
      if (controller == "cpu") paths.v1_cpu = path;
      if (controller == "memory") paths.v1_memory = path;
    }
  }
  return paths;
}

// Calls visit(directory) for the group and all groups that enclose it, up to the mount point. In a container the path
// is often not visible under the mount: then only the mount point itself has the files.
void ForEachEnclosing(const std::string& mount, std::string path,
                      const std::function<void(const std::string&)>& visit) {
  for (;;) {
    visit(mount + path);
    if (path.empty()) return;
    path.resize(path.rfind('/') == std::string::npos ? 0 : path.rfind('/'));
  }
}

std::optional<int64_t> ReadNumber(const std::string& path) {
  std::optional<std::string> text = ReadSmallFile(path);
  if (!text) return std::nullopt;
  return ParseNumber<int64_t>(Trim(*text));
}

void Tighten(std::optional<double>& limit, double value) {
  if (!limit || value < *limit) limit = value;
}

}  // namespace

int AffinityCpus() {
  for (int bits = 1024; bits <= 1 << 20; bits *= 2) {
    std::vector<cpu_set_t> set(bits / (8 * sizeof(cpu_set_t)));
    size_t bytes = set.size() * sizeof(cpu_set_t);
    if (sched_getaffinity(0, bytes, set.data()) == 0) return std::max(1, CPU_COUNT_S(bytes, set.data()));
    if (errno != EINVAL) break;  // EINVAL: the kernel's mask is larger
  }
  return std::max<int>(1, static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)));
}

int CgroupCpus(const std::string& root) {
  CgroupPaths paths = ReadCgroupPaths(root);
  std::optional<double> limit;
  ForEachEnclosing(root + "/sys/fs/cgroup", paths.v2, [&](const std::string& directory) {
    std::string text = ReadSmallFile(directory + "/cpu.max").value_or("");  // "max 100000" or "150000 100000"
    std::vector<std::string_view> words = Split(Trim(text), ' ');
    if (words.size() != 2) return;
    std::optional<int64_t> quota = ParseNumber<int64_t>(words[0]), period = ParseNumber<int64_t>(words[1]);
    if (quota && period && *quota > 0 && *period > 0) Tighten(limit, double(*quota) / *period);
  });
  for (const char* mount : {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"}) {
    ForEachEnclosing(root + mount, paths.v1_cpu, [&](const std::string& directory) {
      std::optional<int64_t> quota = ReadNumber(directory + "/cpu.cfs_quota_us");  // -1: none
      std::optional<int64_t> period = ReadNumber(directory + "/cpu.cfs_period_us");
      if (quota && period && *quota > 0 && *period > 0) Tighten(limit, double(*quota) / *period);
    });
  }
  if (!limit || *limit >= 1 << 20) return 0;
  int whole = static_cast<int>(*limit);
  return std::max(1, whole < *limit ? whole + 1 : whole);
}

int UsableCpus() {
  int cpus = AffinityCpus();
  int quota = CgroupCpus();
  return quota > 0 ? std::min(cpus, quota) : cpus;
}

int64_t UsableMemory(const std::string& root) {
  std::optional<double> limit;
  int64_t pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) Tighten(limit, double(pages) * page);
  CgroupPaths paths = ReadCgroupPaths(root);
  auto tighten = [&](std::optional<int64_t> bytes) {
    if (bytes && *bytes > 0) Tighten(limit, static_cast<double>(*bytes));
  };
  ForEachEnclosing(root + "/sys/fs/cgroup", paths.v2,
                   [&](const std::string& directory) { tighten(ReadNumber(directory + "/memory.max")); });
  ForEachEnclosing(root + "/sys/fs/cgroup/memory", paths.v1_memory,
                   [&](const std::string& directory) { tighten(ReadNumber(directory + "/memory.limit_in_bytes")); });
  return limit ? static_cast<int64_t>(*limit) : int64_t{1} << 40;
}

Result<int64_t> ParseMemorySize(std::string_view text) {
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr Unit kUnits[] = {{"KiB", 1024}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1024.0 * (1 << 30)},
                             {"kB", 1e3},   {"KB", 1e3},      {"MB", 1e6},      {"GB", 1e9},
                             {"TB", 1e12},  {"B", 1}};
  std::string_view number = Trim(text);
  double unit = 1;
  if (!number.empty() && number.back() == '%') {
    number.remove_suffix(1);
    unit = static_cast<double>(UsableMemory()) / 100;
  } else {
    for (const Unit& u : kUnits) {
      if (number.size() <= u.name.size() || number.substr(number.size() - u.name.size()) != u.name) continue;
      number.remove_suffix(u.name.size());
      unit = u.bytes;
      break;
    }
  }
  const std::optional<double> value = ParseNumber<double>(Trim(number));
  if (!value || !(*value > 0) || *value * unit >= 9e18)
    return InvalidArgument("\"", text, "\" is no size of memory: expected bytes, as 1500000, 64MiB, 2GB or 50%");
  return static_cast<int64_t>(*value * unit);
}

}  // namespace strop
