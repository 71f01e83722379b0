#include "strop/interp/ops/dictionary.h"

#include "strop/base/strings.h"

namespace strop::interp {

namespace {

bool IsWord(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

// Up to a comma or the end, outside of brackets and quotes.
std::string_view Value(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '[' || c == '{' || c == '(' || c == '<') ++depth;
    if (c == ']' || c == '}' || c == ')' || c == '>') --depth;
    if (depth < 0 || (depth == 0 && (c == ',' || c == ':'))) break;
  }
  return Trim(text.substr(0, i));
}

}  // namespace

std::optional<std::string_view> FindValue(std::string_view dictionary, std::string_view key) {
  for (size_t at = dictionary.find(key); at != std::string_view::npos; at = dictionary.find(key, at + 1)) {
    size_t end = at + key.size();
    if (at > 0 && IsWord(dictionary[at - 1])) continue;
    if (end < dictionary.size() && dictionary[end] == '"') ++end;  // JSON
    while (end < dictionary.size() && dictionary[end] == ' ') ++end;
    if (end >= dictionary.size() || (dictionary[end] != '=' && dictionary[end] != ':')) continue;
    return Value(dictionary.substr(end + 1));
  }
  return std::nullopt;
}

Result<double> NumberOr(std::string_view dictionary, std::string_view key, double otherwise) {
  const auto text = FindValue(dictionary, key);
  if (!text) return otherwise;
  const auto number = ParseNumber<double>(*text);
  if (!number) return InvalidArgument("'", *text, "' is no number for ", key, " in ", dictionary);
  return *number;
}

std::string_view TextOr(std::string_view dictionary, std::string_view key, std::string_view otherwise) {
  auto text = FindValue(dictionary, key).value_or(otherwise);
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  return text;
}

Result<std::vector<double>> Numbers(std::string_view dictionary, std::string_view key) {
  std::string_view text = FindValue(dictionary, key).value_or("");
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  std::vector<double> out;
  if (Trim(text).empty()) return out;
  for (std::string_view item : Split(text, ',')) {
    const auto number = ParseNumber<double>(Trim(item));
    if (!number) return InvalidArgument("'", item, "' is no number for ", key, " in ", dictionary);
    out.push_back(*number);
  }
  return out;
}

}  // namespace strop::interp
