#include "strop/base/cursor.h"

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace strop {

bool Cursor::SkipComment() {
  const std::string_view rest = text_.substr(at_);
  if (rest.substr(0, 2) == "//") {
    const size_t end = rest.find_first_of("\r\n");
    at_ += std::min(end, rest.size());
    return true;
  }
  if (rest.substr(0, 2) != "/*") return false;
  const size_t end = rest.find("*/", 2);
  if (end == rest.npos) return false;
  at_ += end + 2;
  return true;
}

std::string_view Cursor::PeekWord() {
  SkipSpace();
  size_t end = at_;
  if (end < text_.size() && IsWordStart(text_[end])) {
    ++end;
    while (end < text_.size() && IsWordChar(text_[end])) ++end;
  }
  return text_.substr(at_, end - at_);
}

bool Cursor::Int(int64_t& value) {
  SkipSpace();
  auto r = std::from_chars(text_.data() + at_, text_.data() + text_.size(), value);
  if (r.ec != std::errc{}) return false;
  at_ = static_cast<size_t>(r.ptr - text_.data());
  return true;
}

bool Cursor::Number(double& value) {
  SkipSpace();
  const char* const begin = text_.data() + at_;
  const char* const end = text_.data() + text_.size();
  const char* digits = begin;
  if (digits != end && *digits == '-') ++digits;
  if (digits == end) return false;
  if (IsWordStart(*digits)) {
    const std::string_view rest(digits, static_cast<size_t>(end - digits));
    if (rest.substr(0, 3) != "inf" || (rest.size() > 3 && IsWordChar(rest[3]))) return false;
    value = std::numeric_limits<double>::infinity();
    if (digits != begin) value = -value;
    at_ += static_cast<size_t>(digits - begin) + 3;
    return true;
  }
  auto r = std::from_chars(begin, end, value);
  if (r.ec == std::errc::result_out_of_range) {  // from_chars leaves the value alone: say which end
    value = std::strtod(std::string(begin, r.ptr).c_str(), nullptr);
  } else if (r.ec != std::errc{}) {
    return false;
  }
  at_ += static_cast<size_t>(r.ptr - begin);
  return true;
}

std::string_view Cursor::Until(std::string_view stop) {
  SkipSpace();
  const size_t start = at_;
  at_ = std::min(text_.find_first_of(stop, at_), text_.size());
  return text_.substr(start, at_ - start);
}

Result<std::string> Cursor::String() {
  const char quote = Peek();
  if (quote != '"' && quote != '\'') return Expected("a quoted string");
  const size_t start = at_++;
  bool escapes = false;
  while (at_ < text_.size() && text_[at_] != quote) {
    if (text_[at_] == '\\') {
      escapes = true;
      ++at_;
    }
    ++at_;
  }
  if (at_ >= text_.size()) {
    at_ = start;
    return ErrorAt(start, "string has no closing ", std::string_view(&quote, 1));
  }
  std::string_view raw = text_.substr(start + 1, at_ - start - 1);
  ++at_;
  if (!escapes) return std::string(raw);
  std::optional<std::string> value = CUnescape(raw);
  if (!value) return ErrorAt(start, "string contains an unknown escape sequence");
  return *std::move(value);
}

Result<std::string_view> Cursor::Braced() {
  if (Peek() != '{') return Expected("'{'");
  const size_t start = at_;
  int64_t depth = 0;
  for (size_t i = at_; i < text_.size(); ++i) {
    const char c = text_[i];
    if (c == '{') ++depth;
    if (c == '}' && --depth == 0) {
      at_ = i + 1;
      return Since(start);
    }
    if (c != '"') continue;
    for (++i; i < text_.size() && text_[i] != '"'; ++i)
      if (text_[i] == '\\') ++i;
  }
  return ErrorAt(start, "'{' has no matching '}'");
}

Status Cursor::Expect(char c) {
  if (Consume(c)) return OkStatus();
  const char quoted[] = {'\'', c, '\'', 0};
  return Expected(quoted);
}

Status Cursor::Expected(std::string_view what) {
  SkipSpace();
  if (at_ >= text_.size()) return Error("expected ", what, ", found the end of the text");
  size_t end = at_ + 1;
  while (end < text_.size() && end - at_ < 40 && IsWordChar(text_[at_]) && IsWordChar(text_[end])) ++end;
  return Error("expected ", what, ", found '", CEscape(text_.substr(at_, end - at_)), "'");
}

std::string Cursor::Position(size_t offset) const {
  offset = std::min(offset, text_.size());
  const std::string_view before = text_.substr(0, offset);
  const size_t line = 1 + static_cast<size_t>(std::count(before.begin(), before.end(), '\n'));
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 == 0
  const size_t column = offset - line_start + 1;
  if (file_.empty()) return StrCat("line ", line, ", column ", column);
  return StrCat(file_, ":", line, ":", column);
}

Status Cursor::Locate(Status status, size_t offset) const {
  if (status.ok() || !status.location().empty()) return status;
  offset = std::min(offset, text_.size());
  constexpr size_t kBefore = 60, kWidth = 100;
  const size_t line_start = text_.substr(0, offset).rfind('\n') + 1;
  const size_t start = offset - line_start > kBefore ? offset - kBefore : line_start;
  std::string line(text_.substr(start, kWidth));
  line.resize(std::min(line.size(), line.find_first_of("\r\n")));
  for (char& c : line)
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  std::string caret(offset - start, ' ');
  return std::move(status).At(Position(offset)).Note(StrCat("\n  ", line, "\n  ", caret, "^"));
}

std::string AsWord(std::string_view text) {
  std::string word(text);
  for (char& c : word)
    if (!IsWordChar(c)) c = '_';
  if (word.empty() || !IsWordStart(word[0])) word.insert(0, "_");
  return word;
}

}  // namespace strop
