// Reads shapes and layouts:
//   shape   ::= type '[' [dim (',' dim)*] ']' [layout] | '(' [shape (',' shape)*] ')' | 'b(' shape ')'
//   dim     ::= integer | '<=' integer | '?'
//   layout  ::= '{' [integer (',' integer)*] [':' extra*] '}'
//   extra   ::= D(..) | T(..)(..) | L(n) | #(type) | *(type) | E(n) | S(n) | SC(d:i,..) | P(..) | M(n)
// A '{' opens a layout only if a digit or ':' follows: behind the result shape of a computation it opens the body.
#include "strop/base/cursor.h"
#include "strop/types/shape.h"

namespace strop {
namespace {

constexpr int kMaxDepth = 256;  // of nested tuples; what handles shapes is recursive

// One parenthesised number, "(5)".
Result<int64_t> ParenInt(Cursor& at) {
  STROP_TRY(at.Expect('('));
  int64_t value;
  if (!at.Int(value) || value < 0) return at.Expected("a number that is not negative");
  STROP_TRY(at.Expect(')'));
  return value;
}

// The text inside a balanced (...), verbatim.
Result<std::string> ParenText(Cursor& at) {
  STROP_TRY(at.Expect('('));
  const size_t start = at.offset();
  int depth = 1;
  std::string_view rest = at.rest();
  for (size_t i = 0; i < rest.size(); ++i) {
    depth += rest[i] == '(' ? 1 : rest[i] == ')' ? -1 : 0;
    if (depth > 0) continue;
    at.set_offset(start + i + 1);
    return std::string(rest.substr(0, i));
  }
  return at.ErrorAt(start, "'(' has no matching ')'");
}

Result<ElementType> ParenType(Cursor& at) {
  STROP_TRY(at.Expect('('));
  const size_t start = at.offset();
  std::optional<ElementType> type = ParseElementType(at.Word());
  if (!type || !IsUnsigned(*type)) return at.ErrorAt(start, "expected an unsigned integer type");
  STROP_TRY(at.Expect(')'));
  return *type;
}

Result<Tile> ParseTile(Cursor& at) {
  Tile tile;
  STROP_TRY(at.Expect('('));
  if (at.Consume(')')) return tile;
  do {
    int64_t dim = Tile::kCombineDimension;
    if (!at.Consume('*') && !at.Int(dim)) return at.Expected("a tile size or '*'");
    tile.dims.push_back(dim);
  } while (at.Consume(','));
  STROP_TRY(at.Expect(')'));
  return tile;
}

Result<SplitConfig> ParseSplitConfig(Cursor& at) {
  SplitConfig config;
  STROP_TRY(at.Expect('('));
  if (!at.Int(config.dimension)) return at.Expected("a dimension");
  STROP_TRY(at.Expect(':'));
  do {
    int64_t index;
    if (!at.Int(index)) return at.Expected("a split index");
    config.split_indices.push_back(index);
  } while (at.Consume(','));
  STROP_TRY(at.Expect(')'));
  return config;
}

// One of the marks behind ':'.
Status ParseLayoutExtra(Cursor& at, LayoutExtra& extra) {
  if (at.Consume('#')) {
    STROP_ASSIGN(extra.index_primitive_type, ParenType(at));
    return OkStatus();
  }
  if (at.Consume('*')) {
    STROP_ASSIGN(extra.pointer_primitive_type, ParenType(at));
    return OkStatus();
  }
  const std::string_view word = at.PeekWord();
  if (at.ConsumeWord("D")) {
    STROP_ASSIGN(extra.dim_level_types, ParenText(at));
  } else if (at.ConsumeWord("T")) {
    do {
      STROP_ASSIGN(Tile tile, ParseTile(at));
      extra.tiles.push_back(std::move(tile));
    } while (at.Peek() == '(');
  } else if (at.ConsumeWord("L")) {
    STROP_ASSIGN(extra.tail_padding_alignment, ParenInt(at));
  } else if (at.ConsumeWord("E")) {
    STROP_ASSIGN(extra.element_size_in_bits, ParenInt(at));
  } else if (at.ConsumeWord("S")) {
    STROP_ASSIGN(extra.memory_space, ParenInt(at));
  } else if (at.ConsumeWord("SC")) {
    do {
      STROP_ASSIGN(SplitConfig config, ParseSplitConfig(at));
      extra.split_configs.push_back(std::move(config));
    } while (at.Peek() == '(');
  } else if (at.ConsumeWord("P")) {
    STROP_ASSIGN(extra.physical_shape, ParenText(at));
  } else if (at.ConsumeWord("M")) {
    STROP_ASSIGN(extra.dynamic_shape_metadata_prefix_bytes, ParenInt(at));
  } else {
    return word.empty() ? at.Expected("'}' or one of D T L # * E S SC P M with parentheses")
                        : at.Error("layouts have no property '", word, "'; known are D T L # * E S SC P M");
  }
  return OkStatus();
}

bool LayoutFollows(Cursor& at, int64_t rank) {
  if (at.rest().substr(0, 2) == "{}") return rank == 0;
  const size_t start = at.offset();
  bool follows = false;
  if (at.Consume('{')) {
    const char c = at.Peek();
    follows = (c >= '0' && c <= '9') || c == ':';
  }
  at.set_offset(start);
  return follows;
}

Status ParseDims(Cursor& at, Int64Vector& dims, uint64_t& dynamic) {
  STROP_TRY(at.Expect('['));
  if (at.Consume(']')) return OkStatus();
  do {
    int64_t size = kUnboundedSize;
    if (dims.size() == 64) return at.Error("more than 64 dimensions");
    if (at.Consume('?')) {
      dynamic |= uint64_t{1} << dims.size();
    } else {
      if (at.Consume("<=")) dynamic |= uint64_t{1} << dims.size();
      const size_t start = at.offset();
      if (!at.Int(size)) return at.Expected("a dimension size, '<=' or '?'");
      if (size < 0) return at.ErrorAt(start, "dimension size ", size, " is negative");
    }
    dims.push_back(size);
  } while (at.Consume(','));
  return at.Expect(']');
}

Result<Shape> ParseNested(Cursor& at, int depth) {
  if (depth > kMaxDepth) return at.Error("shape is nested more than ", kMaxDepth, " deep");
  if (at.Consume('(')) {
    std::vector<Shape> elements;
    if (at.Consume(')')) return Shape::Tuple({});
    do {
      STROP_ASSIGN(Shape element, ParseNested(at, depth + 1));
      elements.push_back(std::move(element));
    } while (at.Consume(','));
    STROP_TRY(at.Expect(')'));
    return Shape::Tuple(std::move(elements));
  }
  const std::string_view word = at.PeekWord();
  const size_t start = at.offset();
  if (word.empty()) return at.Expected("a shape");
  if (word == "b" && at.Consume("b(")) {
    STROP_ASSIGN(Shape buffer, ParseNested(at, depth + 1));
    if (!buffer.IsArray() || buffer.IsBuffer()) return at.ErrorAt(start, "a buffer holds an array");
    buffer.set_buffer(true);
    STROP_TRY(at.Expect(')'));
    return buffer;
  }
  std::optional<ElementType> type = ParseElementType(word);
  if (!type) return at.Error("'", word, "' is no element type");
  at.Word();
  Int64Vector dims;
  uint64_t dynamic = 0;
  STROP_TRY(ParseDims(at, dims, dynamic));
  const int64_t rank = static_cast<int64_t>(dims.size());
  if (!IsArrayType(*type) && rank > 0) return at.ErrorAt(start, "a ", Name(*type), " has no dimensions");
  Shape shape = *type == ElementType::Token ? Shape::Token() : Shape::Array(*type, std::move(dims));
  for (int64_t i = 0; i < rank; ++i) shape.set_dynamic(i, (dynamic >> i) & 1);
  if (LayoutFollows(at, rank)) {
    STROP_ASSIGN(Layout layout, ParseLayout(at));
    if (shape.IsArray()) shape.set_layout(std::move(layout));
  }
  Status valid = shape.Validate();
  if (!valid.ok()) return at.Locate(std::move(valid), start);
  return shape;
}

}  // namespace

Result<Layout> ParseLayout(Cursor& at) {
  Layout layout;
  STROP_TRY(at.Expect('{'));
  if (at.Peek() != ':' && at.Peek() != '}') {
    do {
      int64_t dim;
      if (!at.Int(dim)) return at.Expected("a dimension number");
      layout.minor_to_major.push_back(dim);
    } while (at.Consume(','));
  }
  if (at.Consume(':')) {
    LayoutExtra extra;
    while (at.Peek() != '}') STROP_TRY(ParseLayoutExtra(at, extra));
    if (extra != LayoutExtra()) layout.extra = std::make_shared<const LayoutExtra>(std::move(extra));
  }
  STROP_TRY(at.Expect('}'));
  return layout;
}

Result<Shape> ParseShape(Cursor& at) { return ParseNested(at, 0); }

Result<Shape> ParseShape(std::string_view text) {
  Cursor at(text);
  STROP_ASSIGN(Shape shape, ParseShape(at));
  if (!at.AtEnd()) return at.Expected("the end of the shape");
  return shape;
}

Result<Shape> ConsumeShape(std::string_view& text) {
  Cursor at(text);
  STROP_ASSIGN(Shape shape, ParseShape(at));
  text = at.rest();
  return shape;
}

}  // namespace strop
