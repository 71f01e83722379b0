#include "strop/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace strop {

Result<MappedFile> MapFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return NotFound("cannot open ", path, ": ", std::strerror(errno));
  Result<MappedFile> mapped = MapFile(file, path);
  close(file);
  return mapped;
}

Result<MappedFile> MapFile(int file, const std::string& path) {
  struct stat status;
  if (fstat(file, &status) != 0) return NotFound("cannot read ", path, ": ", std::strerror(errno));
  if (!S_ISREG(status.st_mode)) return InvalidArgument(path, " is no file");
  const size_t size = static_cast<size_t>(status.st_size);
  if (size == 0) return MappedFile{};
  void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
  if (memory == MAP_FAILED) return ResourceExhausted("cannot map ", path, ": ", std::strerror(errno));
  return MappedFile{{static_cast<const char*>(memory), size},
                    std::shared_ptr<const void>(memory, [size](void* gone) { munmap(gone, size); })};
}

}  // namespace strop
