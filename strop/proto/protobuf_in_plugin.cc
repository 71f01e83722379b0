// Two objects of protobuf-lite, in a form that fits into a shared library.
//
// Debian's static protobuf-lite is position-independent but for arena.o (its thread cache) and common.o (it reads
// stderr), which no shared library can hold. What other objects need of the two is defined here, so that the linker
// leaves them out:
//
//   arenas    messages live on the heap and never on an arena; none of these functions is reached
//   logging   protobuf says on stderr what is wrong with a message; here the reader of the message returns an error
//   that
//             says it, so nothing is printed. A failed check inside protobuf still ends the process.
//
// Should protobuf come to need more of them, the link fails with two definitions or none.
#include <arpa/inet.h>
#include <google/protobuf/arena.h>
#include <google/protobuf/stubs/logging.h>

#include "strop/base/status.h"

namespace google::protobuf {

std::pair<void*, internal::SerialArena::CleanupNode*> Arena::AllocateAlignedWithCleanup(size_t, const std::type_info*) {
  strop::CheckFailed("no message lives on an arena", __FILE__, __LINE__);
}
void* Arena::AllocateAlignedWithHook(size_t, const std::type_info*) {
  strop::CheckFailed("no message lives on an arena", __FILE__, __LINE__);
}
void* Arena::AllocateAlignedWithHookForArray(size_t, const std::type_info*) {
  strop::CheckFailed("no message lives on an arena", __FILE__, __LINE__);
}

uint32_t ghtonl(uint32_t x) { return htonl(x); }

namespace internal {

__thread ThreadSafeArena::ThreadCache ThreadSafeArena::thread_cache_ = {};

void ThreadSafeArena::AddCleanup(void*, void (*)(void*)) {
  strop::CheckFailed("no message lives on an arena", __FILE__, __LINE__);
}
uint64_t ThreadSafeArena::SpaceAllocated() const { return 0; }
ThreadSafeArena::~ThreadSafeArena() { strop::CheckFailed("no message lives on an arena", __FILE__, __LINE__); }

LogMessage::LogMessage(LogLevel level, const char* filename, int line)
    : level_(level), filename_(filename), line_(line) {}
LogMessage::~LogMessage() = default;
LogMessage& LogMessage::operator<<(const std::string& value) {
  message_ += value;
  return *this;
}
LogMessage& LogMessage::operator<<(const char* value) {
  message_ += value;
  return *this;
}
LogMessage& LogMessage::operator<<(int value) { return *this << std::to_string(value); }
LogMessage& LogMessage::operator<<(unsigned int value) { return *this << std::to_string(value); }
LogMessage& LogMessage::operator<<(unsigned long value) { return *this << std::to_string(value); }
LogMessage& LogMessage::operator<<(void* value) { return *this << std::to_string(reinterpret_cast<uintptr_t>(value)); }
void LogMessage::Finish() {
  if (level_ == LOGLEVEL_FATAL) strop::CheckFailed(message_.c_str(), filename_, line_);
}
void LogFinisher::operator=(LogMessage& other) { other.Finish(); }

}  // namespace internal
}  // namespace google::protobuf
