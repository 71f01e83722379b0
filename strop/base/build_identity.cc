#include "strop/base/build_identity.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/stat.h>

#include <cstring>
#include <string>

#include "strop/base/strings.h"

namespace strop {
namespace {

std::string Hex(const unsigned char* bytes, size_t size) {
  std::string out;
  for (size_t n = 0; n < size; ++n) {
    out += "0123456789abcdef"[bytes[n] >> 4];
    out += "0123456789abcdef"[bytes[n] & 15];
  }
  return out;
}

// The build id among the notes of a segment; empty if there is none.
std::string BuildIdIn(const char* at, size_t size) {
  const char* const end = at + size;
  const auto padded = [](size_t n) { return (n + 3) / 4 * 4; };
  while (static_cast<size_t>(end - at) >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, at, sizeof note);
    const char* const name = at + sizeof note;
    const char* const contents = name + padded(note.n_namesz);
    if (contents + padded(note.n_descsz) > end) break;
    if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0)
      return Hex(reinterpret_cast<const unsigned char*>(contents), note.n_descsz);
    at = contents + padded(note.n_descsz);
  }
  return {};
}

// Looks at the program or library that holds this very function.
int Visit(dl_phdr_info* info, size_t, void* result) {
  const auto here = reinterpret_cast<uintptr_t>(&Visit);
  bool holds = false;
  for (int n = 0; n < info->dlpi_phnum; ++n) {
    const ElfW(Phdr) & segment = info->dlpi_phdr[n];
    const uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    holds |= segment.p_type == PT_LOAD && here >= begin && here < begin + segment.p_memsz;
  }
  if (!holds) return 0;
  auto& identity = *static_cast<std::string*>(result);
  for (int n = 0; n < info->dlpi_phnum && identity.empty(); ++n) {
    const ElfW(Phdr) & segment = info->dlpi_phdr[n];
    if (segment.p_type == PT_NOTE)
      identity = BuildIdIn(reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr), segment.p_memsz);
  }
  return 1;
}

std::string Find() {
  std::string identity;
  dl_iterate_phdr(&Visit, &identity);
  if (!identity.empty()) return identity;
  Dl_info file;
  struct stat status;
  if (dladdr(reinterpret_cast<void*>(&Visit), &file) && stat(file.dli_fname, &status) == 0)
    return StrCat("written ", static_cast<int64_t>(status.st_mtim.tv_sec), ".",
                  static_cast<int64_t>(status.st_mtim.tv_nsec), " ", static_cast<int64_t>(status.st_size));
  return "unknown";
}

}  // namespace

std::string_view BuildIdentity() {
  static const std::string identity = Find();
  return identity;
}

}  // namespace strop
