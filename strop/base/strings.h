// Text without <format> and without locale: StrCat, Join, number parsing.
#pragma once
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace strop {

inline void StrAppendOne(std::string& out, std::string_view v) { out.append(v); }
inline void StrAppendOne(std::string& out, const char* v) { out.append(v); }
inline void StrAppendOne(std::string& out, const std::string& v) { out.append(v); }
inline void StrAppendOne(std::string& out, char v) { out.push_back(v); }
inline void StrAppendOne(std::string& out, bool v) { out.append(v ? "true" : "false"); }
template <class T>
  requires(std::is_arithmetic_v<T>)
void StrAppendOne(std::string& out, T v) {
  char buf[48];
  auto r = std::to_chars(buf, buf + sizeof buf, v);  // floats: shortest text that reads back the same
  out.append(buf, r.ptr);
}
template <class T>
  requires(std::is_enum_v<T>)
void StrAppendOne(std::string& out, T v) {
  StrAppendOne(out, static_cast<int64_t>(v));
}
template <class T>
  requires requires(const T& t) {
    { t.ToString() } -> std::convertible_to<std::string>;
  }
void StrAppendOne(std::string& out, const T& v) {
  out.append(v.ToString());
}

template <class... Args>
void StrAppend(std::string& out, const Args&... args) {
  (StrAppendOne(out, args), ...);
}
template <class... Args>
std::string StrCat(const Args&... args) {
  std::string out;
  (StrAppendOne(out, args), ...);
  return out;
}
// Join({1,2,3}, ",") == "1,2,3"
template <class Range>
std::string Join(const Range& range, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const auto& v : range) {
    if (!first) out.append(separator);
    first = false;
    StrAppendOne(out, v);
  }
  return out;
}

// The whole of `text` as a decimal number, or nullopt.
template <class T>
std::optional<T> ParseNumber(std::string_view text) {
  T v{};
  auto r = std::from_chars(text.data(), text.data() + text.size(), v);
  if (r.ec != std::errc{} || r.ptr != text.data() + text.size()) return std::nullopt;
  return v;
}

std::vector<std::string_view> Split(std::string_view text, char separator);
std::string_view Trim(std::string_view text);
// "\n", "\"", "\x01" as C escapes; the inverse refuses what it does not know.
std::string CEscape(std::string_view text);
std::optional<std::string> CUnescape(std::string_view text);
// The entry of `known` with the smallest edit distance, if close enough to be a typing error; for "did you mean".
std::string_view Nearest(std::string_view word, const std::vector<std::string_view>& known);

}  // namespace strop
