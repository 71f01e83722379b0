// Characters, positions and errors of the MLIR text parser, and the list of aliases.
#include "strop/import/text_parser_impl.h"

namespace strop {
namespace {

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsWordChar(char c) { return IsLetter(c) || IsDigit(c) || c == '$' || c == '.'; }
int HexDigit(char c) {
  if (IsDigit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

MlirTextParser::MlirTextParser(MlirModule& module, std::string_view text, std::string_view file_name,
                               int64_t first_line)
    : m_(module),
      text_(text),
      file_name_(m_.arena().CopyString(file_name)),
      first_line_(first_line),
      line_(first_line) {}

void MlirTextParser::SkipSpace() {
  while (pos_ < text_.size()) {
    char c = text_[pos_];
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      ++pos_;
    } else if (c == '/' && pos_ + 1 < text_.size() && text_[pos_ + 1] == '/') {
      size_t end = text_.find('\n', pos_);
      pos_ = end == std::string_view::npos ? text_.size() : end + 1;
    } else {
      return;
    }
  }
}

char MlirTextParser::Peek() {
  SkipSpace();
  return pos_ < text_.size() ? text_[pos_] : 0;
}

bool MlirTextParser::AtEnd() {
  SkipSpace();
  return pos_ >= text_.size();
}

bool MlirTextParser::Try(std::string_view token) {
  SkipSpace();
  if (!text_.substr(pos_).starts_with(token)) return false;
  pos_ += token.size();
  return true;
}

std::string_view MlirTextParser::PeekWord() {
  SkipSpace();
  if (pos_ >= text_.size() || !IsLetter(text_[pos_])) return {};
  size_t end = pos_ + 1;
  while (end < text_.size() && IsWordChar(text_[end])) ++end;
  return text_.substr(pos_, end - pos_);
}

std::string_view MlirTextParser::Word() {
  std::string_view word = PeekWord();
  pos_ += word.size();
  return word;
}

bool MlirTextParser::TryWord(std::string_view word) {
  if (PeekWord() != word) return false;
  pos_ += word.size();
  return true;
}

std::string MlirTextParser::Found() {
  SkipSpace();
  if (pos_ >= text_.size()) return "the end of the input";
  std::string_view word = PeekWord();
  if (word.empty()) word = text_.substr(pos_, 1);
  return StrCat("'", CEscape(word.substr(0, 40)), "'");
}

Status MlirTextParser::Expect(std::string_view token) {
  if (Try(token)) return OkStatus();
  return Error(pos_, "expected '", token, "', found ", Found());
}

Status MlirTextParser::ExpectWord(std::string_view word) {
  if (TryWord(word)) return OkStatus();
  return Error(pos_, "expected '", word, "', found ", Found());
}

Result<std::string_view> MlirTextParser::QuotedString() {
  STROP_TRY(Expect("\""));
  size_t start = pos_;
  std::string unescaped;
  bool escapes = false;
  while (true) {
    if (pos_ >= text_.size() || text_[pos_] == '\n') return Error(start - 1, "this string has no end");
    char c = text_[pos_++];
    if (c == '"') break;
    if (c != '\\') {
      if (escapes) unescaped += c;
      continue;
    }
    if (!escapes) unescaped = text_.substr(start, pos_ - 1 - start);
    escapes = true;
    char e = pos_ < text_.size() ? text_[pos_++] : 0;
    if (e == 'n' || e == 't' || e == '"' || e == '\\') {
      unescaped += e == 'n' ? '\n' : e == 't' ? '\t' : e;
      continue;
    }
    int high = HexDigit(e), low = pos_ < text_.size() ? HexDigit(text_[pos_]) : -1;
    if (high < 0 || low < 0)
      return Error(pos_ - 2, "unknown escape in a string; expected \\n, \\t, \\\", \\\\ or two hexadecimal digits");
    ++pos_;
    unescaped += static_cast<char>(high * 16 + low);
  }
  if (!escapes) return m_.arena().CopyString(text_.substr(start, pos_ - 1 - start));
  return m_.arena().CopyString(unescaped);
}

bool MlirTextParser::TryInteger(int64_t& value, Status& status) {
  SkipSpace();
  size_t p = pos_;
  bool negative = p < text_.size() && text_[p] == '-';
  if (negative) ++p;
  size_t digits = p;
  while (p < text_.size() && IsDigit(text_[p])) ++p;
  if (p == digits) return false;
  uint64_t v = 0;
  bool overflow = false;
  for (size_t i = digits; i < p; ++i) {
    uint64_t d = text_[i] - '0';
    overflow = overflow || v > (UINT64_MAX - d) / 10;
    v = v * 10 + d;
  }
  uint64_t limit = static_cast<uint64_t>(INT64_MAX) + (negative ? 1 : 0);
  if (overflow || v > limit) {
    status = Error(pos_, "integer ", text_.substr(pos_, p - pos_), " does not fit in 64 bits");
    return true;
  }
  value = static_cast<int64_t>(negative ? 0 - v : v);
  pos_ = p;
  return true;
}

Result<int64_t> MlirTextParser::Integer() {
  int64_t value = 0;
  Status status;
  if (!TryInteger(value, status)) return Error(pos_, "expected an integer, found ", Found());
  STROP_TRY(status);
  return value;
}

Result<std::string_view> MlirTextParser::SymbolName() {
  STROP_TRY(Expect("@"));
  if (Peek() == '"') return QuotedString();
  std::string_view word = Word();
  if (word.empty()) return Error(pos_, "expected a symbol name after '@', found ", Found());
  return m_.arena().CopyString(word);
}

Status MlirTextParser::CheckNesting() {
  if (depth_ <= kMaxNesting) return OkStatus();
  return Error(pos_, "nested deeper than ", kMaxNesting);
}

const MlirAttr* MlirTextParser::LocAt(size_t pos) {
  if (pos < line_pos_) {  // an alias, or an error
    line_pos_ = 0;
    line_ = first_line_;
  }
  for (; line_pos_ < pos && line_pos_ < text_.size(); ++line_pos_) {
    if (text_[line_pos_] == '\n') ++line_;
  }
  size_t begin = pos == 0 ? std::string_view::npos : text_.rfind('\n', pos - 1);
  size_t column = begin == std::string_view::npos ? pos + 1 : pos - begin;
  return m_.FileLoc(file_name_, static_cast<uint64_t>(line_), column);
}

Status MlirTextParser::ErrorAt(size_t pos, std::string message) {
  const MlirAttr* loc = LocAt(std::min(pos, text_.size()));
  uint64_t line = loc->bits & 0xffffffff, column = loc->bits >> 32;
  std::string where =
      file_name_.empty() ? StrCat("line ", line, ", column ", column) : StrCat(file_name_, ":", line, ":", column);
  return InvalidArgument(message).At(std::move(where));
}

Status MlirTextParser::ErrorHere(std::string message) {
  SkipSpace();
  return ErrorAt(pos_, StrCat(message, ", found ", Found()));
}

// Lines that begin with `#name =` or `!name =`. Whatever else stands at the start of a line begins differently.
void MlirTextParser::FindAliases() {
  size_t line = 0;
  while (line < text_.size()) {
    size_t end = text_.find('\n', line);
    if (end == std::string_view::npos) end = text_.size();
    size_t p = line;
    if (text_[p] == '#' || text_[p] == '!') {
      ++p;
      while (p < end && IsWordChar(text_[p])) ++p;
      std::string_view name = text_.substr(line, p - line);
      while (p < end && text_[p] == ' ') ++p;
      if (name.size() > 1 && p < end && text_[p] == '=' && name.find('.') == std::string_view::npos) {
        Alias alias;
        alias.pos = p + 1;
        aliases_.emplace(name, alias);
      }
    }
    line = end + 1;
  }
}

}  // namespace strop
