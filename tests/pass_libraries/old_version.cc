// As a library from another version would look; nothing of this version's headers.
#include <cstddef>
#include <cstdint>

namespace {
struct Library {
  uint32_t format;
  const char* version;
  uint64_t layout;
  const void* passes;
  size_t pass_count;
};
}  // namespace

extern "C" __attribute__((visibility("default"))) const Library* strop_pass_library() {
  static const Library library = {STROP_TEST_FORMAT, STROP_TEST_VERSION, 1, nullptr, 0};
  return &library;
}
