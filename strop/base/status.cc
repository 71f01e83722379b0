#include "strop/base/status.h"

#include <cstdio>
#include <cstdlib>

namespace strop {
namespace {
const std::string kEmpty;
const std::vector<std::string> kNoNotes;
}  // namespace

std::string_view StatusCodeName(StatusCode code) {
  static constexpr std::string_view kNames[] = {
      "Ok",       "Cancelled",      "Unknown",          "InvalidArgument",   "DeadlineExceeded",
      "NotFound", "AlreadyExists",  "PermissionDenied", "ResourceExhausted", "FailedPrecondition",
      "Aborted",  "OutOfRange",     "Unimplemented",    "Internal",          "Unavailable",
      "DataLoss", "Unauthenticated"};
  size_t i = static_cast<size_t>(code);
  return i < std::size(kNames) ? kNames[i] : "Unknown";
}

Status::Status(StatusCode code, std::string message) {
  if (code != StatusCode::kOk) rep_ = std::make_shared<Rep>(Rep{code, std::move(message), {}, {}});
}

const std::string& Status::message() const { return rep_ ? rep_->message : kEmpty; }
const std::string& Status::location() const { return rep_ ? rep_->location : kEmpty; }
const std::vector<std::string>& Status::notes() const { return rep_ ? rep_->notes : kNoNotes; }

// Copies of a status share what they say, also between threads (all devices of a launch get the same error): whoever
// adds to it takes a copy of its own.
Status&& Status::At(std::string location) && {
  if (!rep_ || !rep_->location.empty()) return std::move(*this);
  if (rep_.use_count() > 1) rep_ = std::make_shared<Rep>(*rep_);
  rep_->location = std::move(location);
  return std::move(*this);
}

Status&& Status::Note(std::string note) && {
  if (!rep_) return std::move(*this);
  if (rep_.use_count() > 1) rep_ = std::make_shared<Rep>(*rep_);
  rep_->notes.push_back(std::move(note));
  return std::move(*this);
}

std::string Status::ToString() const {
  if (ok()) return "Ok";
  std::string out = StrCat(StatusCodeName(code()), ": ", message());
  if (!location().empty()) StrAppend(out, " [at ", location(), "]");
  for (const std::string& note : notes()) StrAppend(out, "\n  note: ", note);
  return out;
}

void CheckFailed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "strop: internal check failed: %s (%s:%d)\n", condition, file, line);
  std::abort();
}

}  // namespace strop
