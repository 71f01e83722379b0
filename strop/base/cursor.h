// Cursor: reads a text from front to back, token by token, in the lexical habits of HLO text: blanks and both kinds of
// comment between tokens mean nothing, names are [A-Za-z_][A-Za-z0-9_.-]*. Errors know their line and column.
//
//   Cursor at("f32[2,3] /*x*/ {1,0}");
//   at.Word() == "f32";  at.Consume('[');  at.Int(n);  ...  return at.Expected("']'");
//
// Views returned point into the text. Positions are counted only when an error is made.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "strop/base/status.h"

namespace strop {

class Cursor {
 public:
  // `file` names the text in errors ("a.hlo:3:7"); without it they say "line 3, column 7".
  explicit Cursor(std::string_view text, std::string_view file = {}) : text_(text), file_(file) {}

  size_t offset() const { return at_; }
  void set_offset(size_t offset) { at_ = offset; }
  std::string_view text() const { return text_; }
  std::string_view rest() const { return text_.substr(at_); }
  std::string_view Since(size_t offset) const { return text_.substr(offset, at_ - offset); }

  // Moves past blanks and comments; an unterminated comment is left for the next expectation to stumble over.
  void SkipSpace() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == ' ' || c == '\n' || c == '\t' || c == '\r')
        ++at_;
      else if (c != '/' || !SkipComment())
        return;
    }
  }
  bool AtEnd() {
    SkipSpace();
    return at_ == text_.size();
  }
  // The next character that means something, '\0' at the end.
  char Peek() {
    SkipSpace();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool Consume(char c) {
    if (Peek() != c || at_ == text_.size()) return false;
    ++at_;
    return true;
  }
  // The same of the very next character: a name that begins with it may come after a space.
  bool ConsumeAdjacent(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  bool Consume(std::string_view token) {
    SkipSpace();
    if (text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }
  // A name; empty (and nothing consumed) if none is next.
  std::string_view Word() {
    std::string_view word = PeekWord();
    at_ += word.size();
    return word;
  }
  std::string_view PeekWord();
  // A whole word: ConsumeWord("devices") does not match "devices2".
  bool ConsumeWord(std::string_view word) {
    if (PeekWord() != word) return false;
    at_ += word.size();
    return true;
  }
  // [-]digits that fit; false (and nothing consumed) otherwise.
  bool Int(int64_t& value);
  // A decimal number (integers too), inf or -inf; false (and nothing consumed) otherwise.
  bool Number(double& value);
  // Characters up to the first that `stop` contains.
  std::string_view Until(std::string_view stop);

  // "..." or '...', C escapes undone.
  Result<std::string> String();
  // A balanced {...}, braces included, strings inside skipped; verbatim.
  Result<std::string_view> Braced();

  Status Expect(char c);
  // InvalidArgument: "expected <what>, found <the next token>", with the position, the line and a caret below it.
  Status Expected(std::string_view what);
  // InvalidArgument with the position of `offset`.
  template <class... Args>
  Status ErrorAt(size_t offset, const Args&... args) const {
    return Locate(InvalidArgument(args...), offset);
  }
  template <class... Args>
  Status Error(const Args&... args) const {
    return ErrorAt(at_, args...);
  }
  // Adds position and line to a status that has none yet.
  Status Locate(Status status, size_t offset) const;
  // "line 3, column 7" or "a.hlo:3:7".
  std::string Position(size_t offset) const;

 private:
  bool SkipComment();

  std::string_view text_;
  std::string_view file_;
  size_t at_ = 0;
};

constexpr bool IsWordStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
constexpr bool IsWordChar(char c) { return IsWordStart(c) || (c >= '0' && c <= '9') || c == '.' || c == '-'; }
// `text` as a word: what no word may hold becomes '_'.
std::string AsWord(std::string_view text);

}  // namespace strop
