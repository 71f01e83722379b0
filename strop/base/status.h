// Status and Result<T>: how every room reports failure. No exception crosses a room.
//
// Codes are those of the PJRT C API, so that the C boundary is one cast. Three kinds of error, never mixed:
//   InvalidArgument  the user's mistake, told at the user's line and in the user's words
//   Unimplemented    not supported: names the op, the types and the reason
//   Internal         our bug: names the stage and the pass
//
//   Result<Shape> Infer(...) {
//     STROP_ASSIGN(Shape lhs, Parse(text));        // returns the error to the caller
//     STROP_TRY(Check(lhs));
//     if (bad) return InvalidArgument("dot: lhs has rank ", lhs.rank(), ", expected 2");
//     return lhs;
//   }
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "strop/base/strings.h"

namespace strop {

enum class StatusCode : int {
  kOk = 0,
  kCancelled = 1,
  kUnknown = 2,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kAlreadyExists = 6,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kAborted = 10,
  kOutOfRange = 11,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
  kDataLoss = 15,
  kUnauthenticated = 16,
};

std::string_view StatusCodeName(StatusCode code);  // "InvalidArgument"

class [[nodiscard]] Status {
 public:
  Status() = default;  // OK; costs one null pointer
  Status(StatusCode code, std::string message);

  bool ok() const { return rep_ == nullptr; }
  StatusCode code() const { return rep_ ? rep_->code : StatusCode::kOk; }
  const std::string& message() const;

  // Where in the user's program: "file.py:12" or "line 3, column 7". Empty when unknown. The first one set wins.
  const std::string& location() const;
  Status&& At(std::string location) &&;
  // Adds a line of context below the message ("while parsing computation %body").
  Status&& Note(std::string note) &&;
  const std::vector<std::string>& notes() const;

  // "InvalidArgument: message [at location]\n  note: ..." — what a user reads.
  std::string ToString() const;

 private:
  struct Rep {
    StatusCode code;
    std::string message;
    std::string location;
    std::vector<std::string> notes;
  };
  std::shared_ptr<Rep> rep_;
};

inline Status OkStatus() { return Status(); }

template <class... Args>
Status MakeError(StatusCode code, const Args&... args) {
  return Status(code, StrCat(args...));
}
template <class... Args>
Status InvalidArgument(const Args&... args) {
  return MakeError(StatusCode::kInvalidArgument, args...);
}
template <class... Args>
Status Unimplemented(const Args&... args) {
  return MakeError(StatusCode::kUnimplemented, args...);
}
template <class... Args>
Status Internal(const Args&... args) {
  return MakeError(StatusCode::kInternal, args...);
}
template <class... Args>
Status FailedPrecondition(const Args&... args) {
  return MakeError(StatusCode::kFailedPrecondition, args...);
}
template <class... Args>
Status NotFound(const Args&... args) {
  return MakeError(StatusCode::kNotFound, args...);
}
template <class... Args>
Status ResourceExhausted(const Args&... args) {
  return MakeError(StatusCode::kResourceExhausted, args...);
}

// A value or the reason why there is none.
template <class T>
class [[nodiscard]] Result {
 public:
  using value_type = T;
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {
    if (status_.ok()) status_ = Internal("Result made from an OK status without a value");
  }
  template <class U>
    requires(std::is_convertible_v<U, T> && !std::is_same_v<std::remove_cvref_t<U>, Result> &&
             !std::is_same_v<std::remove_cvref_t<U>, Status> && !std::is_same_v<std::remove_cvref_t<U>, T>)
  Result(U&& value) : value_(std::forward<U>(value)) {}

  bool ok() const { return value_.has_value(); }
  const Status& status() const& { return status_; }
  Status&& status() && { return std::move(status_); }
  T& operator*() & { return *value_; }
  const T& operator*() const& { return *value_; }
  T&& operator*() && { return std::move(*value_); }
  T* operator->() { return &*value_; }
  const T* operator->() const { return &*value_; }

 private:
  std::optional<T> value_;
  Status status_;
};

// The answer of supports() and can_fuse(): yes, or no with the reason.
class Decision {
 public:
  static Decision Yes() { return Decision(); }
  template <class... Args>
  static Decision No(const Args&... args) {
    Decision d;
    d.why_not_ = StrCat(args...);
    if (d.why_not_.empty()) d.why_not_ = "no reason given";
    return d;
  }
  explicit operator bool() const { return why_not_.empty(); }
  const std::string& why_not() const { return why_not_; }

 private:
  std::string why_not_;
};

namespace internal {
inline Status&& TakeStatus(Status&& s) { return std::move(s); }
template <class T>
Status&& TakeStatus(Result<T>&& r) {
  return std::move(r).status();
}
}  // namespace internal

#define STROP_CONCAT_INNER(a, b) a##b
#define STROP_CONCAT(a, b) STROP_CONCAT_INNER(a, b)

// Returns the error of a Status or Result expression to the caller.
#define STROP_TRY(expr)                                            \
  do {                                                             \
    auto strop_try_ = (expr);                                      \
    if (!strop_try_.ok()) [[unlikely]]                             \
      return ::strop::internal::TakeStatus(std::move(strop_try_)); \
  } while (false)

// STROP_ASSIGN(Shape s, Infer(x)); declares or assigns from a Result, or returns its error.
#define STROP_ASSIGN(lhs, expr) STROP_ASSIGN_IMPL(STROP_CONCAT(strop_result_, __LINE__), lhs, expr)
#define STROP_ASSIGN_IMPL(result, lhs, expr) \
  auto result = (expr);                      \
  if (!result.ok()) [[unlikely]]             \
    return std::move(result).status();       \
  lhs = *std::move(result)

// Only where going on would corrupt memory: reports and traps. Never reachable from user input.
#define STROP_CHECK(cond) (static_cast<bool>(cond) ? (void)0 : ::strop::CheckFailed(#cond, __FILE__, __LINE__))
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace strop
