// What this process may use of the machine: processors (affinity mask, cgroup v1 or v2 quota) and memory (physical,
// cgroup limit). A container on a 64-core host with a quota of two processors must not start 64 threads.
// `root` stands for the file system root, so that tests can show their own /proc and /sys.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "strop/base/status.h"

namespace strop {

// Processors in the affinity mask; at least 1.
int AffinityCpus();
// The cgroup's quota in processors, rounded up; 0 when there is none. The tightest of all enclosing groups counts.
int CgroupCpus(const std::string& root = "");
// min(AffinityCpus, CgroupCpus), at least 1.
int UsableCpus();
// Bytes of physical memory, or of the tightest cgroup limit if that is less.
int64_t UsableMemory(const std::string& root = "");
// "1500000", "64MiB", "2GB", "50%" (of UsableMemory). InvalidArgument if it is none of these, or nothing.
Result<int64_t> ParseMemorySize(std::string_view text);

}  // namespace strop
