#include "strop/ir/config_value.h"

#include <algorithm>

#include "strop/base/cursor.h"

namespace strop {
namespace {

// One value, skipped without recursion: a string, something in brackets, or whatever stands before the next separator.
std::string_view SkipValue(Cursor& at) {
  at.SkipSpace();
  const size_t start = at.offset();
  const std::string_view text = at.text();
  int64_t depth = 0;
  size_t i = start;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i)
        if (text[i] == '\\') ++i;
      if (i >= text.size()) break;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (depth-- == 0) break;
    } else if (c == ',' && depth == 0) {
      break;
    }
  }
  at.set_offset(std::min(i, text.size()));
  return Trim(at.Since(start));
}

std::optional<std::string> Key(Cursor& at) {
  if (at.Peek() == '"') {
    Result<std::string> key = at.String();
    if (!key.ok()) return std::nullopt;
    return *std::move(key);
  }
  const std::string_view word = at.Word();
  if (word.empty()) return std::nullopt;
  return std::string(word);
}

}  // namespace

std::optional<std::string> ConfigValue(std::string_view config, std::string_view path) {
  for (std::string_view wanted : Split(path, '.')) {
    Cursor at(config);
    if (!at.Consume('{')) return std::nullopt;
    std::optional<std::string_view> found;
    while (!found && at.Peek() != '}') {
      std::optional<std::string> key = Key(at);
      if (!key || (!at.Consume(':') && !at.Consume('='))) return std::nullopt;
      const std::string_view value = SkipValue(at);
      if (*key == wanted) found = value;
      at.Consume(',');
    }
    if (!found) return std::nullopt;
    config = *found;
  }
  Cursor at(config);
  if (at.Peek() != '"') return std::string(config);
  Result<std::string> text = at.String();
  if (!text.ok()) return std::nullopt;
  return *std::move(text);
}

}  // namespace strop
