#include "strop/text/attr_parse.h"

#include <cmath>
#include <map>

#include "strop/ir/attr_text.h"
#include "strop/text/literal_parse.h"

namespace strop {
namespace {

// Words are told apart by the printer's own names, so that the two cannot drift.
template <class E>
Status ParseEnum(Cursor& at, E& v, int count) {
  const std::string_view word = at.PeekWord();
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) {
    names.push_back(AttrText(static_cast<E>(i)));
    if (names.back() != word || word.empty()) continue;
    at.Word();
    v = static_cast<E>(i);
    return OkStatus();
  }
  std::erase_if(names, [](const std::string& n) { return n.empty(); });
  return at.Expected(StrCat("one of ", Join(names, ", ")));
}

// "{" item ("," item)* "}"
template <class F>
Status ParseList(Cursor& at, F&& item) {
  STROP_TRY(at.Expect('{'));
  if (at.Consume('}')) return OkStatus();
  do {
    STROP_TRY(item());
  } while (at.Consume(','));
  return at.Expect('}');
}

// 5x5
Status ParseByX(Cursor& at, std::vector<int64_t>& v) {
  do {
    int64_t n;
    if (!at.Int(n)) return at.Expected("an integer");
    v.push_back(n);
  } while (at.ConsumeAdjacent('x'));
  return OkStatus();
}

// 0_0x1_1 or 0_0_0x1_1_2: low, high and interior of each dimension.
Status ParsePads(Cursor& at, PaddingConfig& v) {
  do {
    PaddingDim d;
    if (!at.Int(d.low) || !at.ConsumeAdjacent('_') || !at.Int(d.high))
      return at.Expected("padding as low_high or low_high_interior");
    if (at.ConsumeAdjacent('_') && !at.Int(d.interior)) return at.Expected("the interior padding");
    v.push_back(d);
  } while (at.ConsumeAdjacent('x'));
  return OkStatus();
}

}  // namespace

Status ParseAttr(Cursor& at, int64_t& v) { return at.Int(v) ? OkStatus() : at.Expected("an integer"); }

Status ParseAttr(Cursor& at, bool& v) {
  if (at.ConsumeWord("true")) {
    v = true;
    return OkStatus();
  }
  if (!at.ConsumeWord("false")) return at.Expected("true or false");
  v = false;
  return OkStatus();
}

Status ParseAttr(Cursor& at, float& v) {
  double wide;
  if (!at.Number(wide)) return at.Expected("a number");
  v = static_cast<float>(wide);
  return OkStatus();
}

Status ParseAttr(Cursor& at, std::string& v) {
  STROP_ASSIGN(v, at.String());
  return OkStatus();
}

Status ParseAttr(Cursor& at, ChannelId& v) {
  v.stated = true;
  return ParseAttr(at, v.id);
}

Status ParseAttr(Cursor& at, Keyword& v) {
  const std::string_view word = at.Word();
  if (word.empty()) return at.Expected("a word");
  v = std::string(word);
  return OkStatus();
}

Status ParseAttr(Cursor& at, Dims& v) {
  STROP_ASSIGN(v, ParseIntList(at, '{', '}'));
  return OkStatus();
}

Status ParseAttr(Cursor& at, std::vector<Dims>& v) {
  v.clear();
  return ParseList(at, [&] { return ParseAttr(at, v.emplace_back()); });
}

Status ParseAttr(Cursor& at, std::vector<bool>& v) {
  v.clear();
  auto one = [&] {
    bool b = false;
    STROP_TRY(ParseAttr(at, b));
    v.push_back(b);
    return OkStatus();
  };
  return at.Peek() == '{' ? ParseList(at, one) : one();
}

Status ParseAttr(Cursor& at, Window& v) {
  using IntField = int64_t WindowDim::*;
  static constexpr std::pair<std::string_view, IntField> kFields[] = {{"size", &WindowDim::size},
                                                                      {"stride", &WindowDim::stride},
                                                                      {"lhs_dilate", &WindowDim::base_dilation},
                                                                      {"rhs_dilate", &WindowDim::window_dilation}};
  v.dims.clear();
  bool sized = false;
  STROP_TRY(at.Expect('{'));
  while (!at.Consume('}')) {
    at.Consume(',');
    const std::string_view name = at.PeekWord();
    const size_t start = at.offset();
    at.Word();
    if (!at.Consume('=')) return at.ErrorAt(start, "expected a window field (size= stride= pad= ...) or '}'");
    auto resize = [&](size_t n) {  // the first field says how many dimensions there are
      if (!sized) v.dims.resize(n);
      sized = true;
      return v.dims.size() == n
                 ? OkStatus()
                 : at.ErrorAt(start, "'", name, "=' has ", n, " entries, the other fields ", v.dims.size());
    };
    if (name == "pad") {
      PaddingConfig pads;
      STROP_TRY(ParsePads(at, pads));
      STROP_TRY(resize(pads.size()));
      for (size_t i = 0; i < pads.size(); ++i) {
        v.dims[i].pad_low = pads[i].low;
        v.dims[i].pad_high = pads[i].high;
      }
      continue;
    }
    IntField member = nullptr;
    for (const auto& [known, field] : kFields)
      if (known == name) member = field;
    if (!member && name != "rhs_reversal")
      return at.ErrorAt(start, "window has no field '", name,
                        "'; known are size stride pad lhs_dilate rhs_dilate rhs_reversal");
    std::vector<int64_t> values;
    STROP_TRY(ParseByX(at, values));
    STROP_TRY(resize(values.size()));
    for (size_t i = 0; i < values.size(); ++i) {
      if (member)
        v.dims[i].*member = values[i];
      else
        v.dims[i].reversal = values[i] != 0;
    }
  }
  return OkStatus();
}

namespace {

// The labels of one operand: which dimension is the batch (or input feature, ...), which are spatial, which unknown.
struct Labelled {
  int64_t a = -1, b = -1;
  Dims spatial, unknown;
};

Status ParseLabels(Cursor& at, size_t start, std::string_view text, char a, char b, Labelled& out) {
  for (char c : text)
    if (c >= '0' && c <= '9') out.spatial.push_back(-1);
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const int64_t dim = static_cast<int64_t>(i);
    int64_t* slot = nullptr;
    if (c == '?') {
      out.unknown.push_back(dim);
      continue;
    }
    if (c == a)
      slot = &out.a;
    else if (c == b)
      slot = &out.b;
    else if (c >= '0' && c - '0' < static_cast<int>(out.spatial.size()))
      slot = &out.spatial[c - '0'];
    if (!slot || *slot >= 0)
      return at.ErrorAt(start, "'", text, "' is no labelling: expected each of ", std::string_view(&a, 1), ", ",
                        std::string_view(&b, 1), " and the spatial dimensions 0.. once, and '?' for others");
    *slot = dim;
  }
  if (out.a < 0 || out.b < 0) return at.ErrorAt(start, "'", text, "' lacks ", std::string_view(out.a < 0 ? &a : &b, 1));
  return OkStatus();
}

}  // namespace

Status ParseAttr(Cursor& at, ConvDimLabels& v) {
  at.SkipSpace();
  const size_t start = at.offset();
  const std::string_view text = at.Until(" \t\r\n,(){}=/");
  const size_t underscore = text.find('_');
  const size_t arrow = text.find("->");
  if (underscore == text.npos || arrow == text.npos || arrow < underscore)
    return at.ErrorAt(start, "expected dimension labels like bf01_oi01->b01f");
  Labelled input, kernel, output;
  STROP_TRY(ParseLabels(at, start, text.substr(0, underscore), 'b', 'f', input));
  STROP_TRY(ParseLabels(at, start, text.substr(underscore + 1, arrow - underscore - 1), 'i', 'o', kernel));
  STROP_TRY(ParseLabels(at, start, text.substr(arrow + 2), 'b', 'f', output));
  if (input.spatial.size() != kernel.spatial.size() || input.spatial.size() != output.spatial.size())
    return at.ErrorAt(start, "input, kernel and output have ", input.spatial.size(), ", ", kernel.spatial.size(),
                      " and ", output.spatial.size(), " spatial dimensions; expected the same number");
  v = ConvDimLabels{input.a,  input.b,  input.spatial,  kernel.b,      kernel.a,       kernel.spatial,
                    output.a, output.b, output.spatial, input.unknown, kernel.unknown, output.unknown};
  return OkStatus();
}

Status ParseAttr(Cursor& at, PaddingConfig& v) {
  v.clear();
  const char c = at.Peek();
  if (c != '-' && (c < '0' || c > '9')) return OkStatus();  // padding= of a scalar
  return ParsePads(at, v);
}

Status ParseAttr(Cursor& at, SliceDims& v) {
  v.clear();
  return ParseList(at, [&] {
    SliceDim d;
    STROP_TRY(at.Expect('['));
    if (!at.Int(d.start) || !at.Consume(':') || !at.Int(d.limit))
      return at.Expected("[start:limit] or [start:limit:stride]");
    if (at.Consume(':') && !at.Int(d.stride)) return at.Expected("a stride");
    v.push_back(d);
    return at.Expect(']');
  });
}

Status ParseAttr(Cursor& at, PrecisionConfig& v) {
  v.clear();
  return ParseList(at, [&] { return ParseEnum(at, v.emplace_back(), 4); });
}

Status ParseShapeIndex(Cursor& at, Dims& v) { return ParseAttr(at, v); }

Status ParseAttr(Cursor& at, OutputOperandAliasing& v) {
  v.clear();
  return ParseList(at, [&] {
    OutputOperandAlias& alias = v.emplace_back();
    STROP_TRY(ParseShapeIndex(at, alias.output_index));
    STROP_TRY(at.Expect(':'));
    STROP_TRY(at.Expect('('));
    if (!at.Int(alias.operand)) return at.Expected("an operand number");
    STROP_TRY(at.Expect(','));
    STROP_TRY(ParseShapeIndex(at, alias.operand_index));
    return at.Expect(')');
  });
}

Status ParseAttr(Cursor& at, SourceTargetPairs& v) {
  v.clear();
  return ParseList(at, [&] {
    auto& [source, target] = v.emplace_back();
    STROP_TRY(at.Expect('{'));
    if (!at.Int(source) || !at.Consume(',') || !at.Int(target)) return at.Expected("a pair {source,target}");
    return at.Expect('}');
  });
}

Status ParseAttr(Cursor& at, ReplicaGroups& v) {
  STROP_ASSIGN(v, ParseReplicaGroups(at));
  return OkStatus();
}

Status ParseAttr(Cursor& at, ResultAccuracy& v) {
  v = ResultAccuracy();
  STROP_TRY(at.Expect('{'));
  if (at.ConsumeWord("mode")) {
    STROP_TRY(at.Expect('='));
    if (at.ConsumeWord("highest"))
      v.mode = ResultAccuracy::Mode::Highest;
    else if (!at.ConsumeWord("default"))
      return at.Expected("default or highest");
    return at.Expect('}');
  }
  if (!at.ConsumeWord("tolerance")) return at.Expected("mode= or tolerance=");
  STROP_TRY(at.Expect('='));
  v.mode = ResultAccuracy::Mode::Tolerance;
  STROP_TRY(ParseList(at, [&] {
    const std::string_view name = at.PeekWord();
    if (name != "atol" && name != "rtol" && name != "ulps") return at.Expected("atol=, rtol= or ulps=");
    at.Word();
    STROP_TRY(at.Expect('='));
    const size_t start = at.offset();
    double n;
    if (!at.Number(n)) return at.Expected("a number");
    if (name == "atol")
      v.atol = n;
    else if (name == "rtol")
      v.rtol = n;
    else if (n >= -9e18 && n <= 9e18)
      v.ulps = static_cast<int64_t>(n);
    else
      return at.ErrorAt(start, "ulps=", n, " is out of range");
    return OkStatus();
  }));
  return at.Expect('}');
}

Status ParseAttr(Cursor& at, Verbatim& v) {
  const char c = at.Peek();
  if (c == '{') {
    STROP_ASSIGN(std::string_view text, at.Braced());
    v.text = std::string(text);
    return OkStatus();
  }
  v.text = std::string(at.Until(" \t\r\n,(){}"));
  return v.text.empty() ? at.Expected("a value") : OkStatus();
}

Status ParseAttr(Cursor& at, Shape& v) {
  STROP_ASSIGN(v, ParseShape(at));
  return OkStatus();
}

Status ParseAttr(Cursor& at, CompareDirection& v) { return ParseEnum(at, v, 6); }
Status ParseAttr(Cursor& at, CompareOrder& v) { return ParseEnum(at, v, 5); }
Status ParseAttr(Cursor& at, FftType& v) { return ParseEnum(at, v, 4); }
Status ParseAttr(Cursor& at, FusionKind& v) { return ParseEnum(at, v, 4); }
Status ParseAttr(Cursor& at, RngDistribution& v) { return ParseEnum(at, v, 3); }
Status ParseAttr(Cursor& at, RngAlgorithm& v) { return ParseEnum(at, v, 3); }
Status ParseAttr(Cursor& at, TransposeA& v) { return ParseEnum(at, v, 4); }
Status ParseAttr(Cursor& at, CustomCallSchedule& v) { return ParseEnum(at, v, 3); }
Status ParseAttr(Cursor& at, ApiVersion& v) { return ParseEnum(at, v, 5); }
Status ParseAttr(Cursor& at, PaddingType& v) { return ParseEnum(at, v, 3); }
Status ParseAttr(Cursor& at, std::vector<Window>& v) { return ParseAttr(at, v.emplace_back()); }
Status ParseAttr(Cursor& at, std::vector<ConvDimLabels>& v) { return ParseAttr(at, v.emplace_back()); }

Status ParseAttr(Cursor& at, std::vector<Literal>& v) {
  STROP_ASSIGN(Literal literal, ParseTypedLiteral(at));
  v.push_back(std::move(literal));
  return OkStatus();
}

Status ParseStringOrJson(Cursor& at, std::string& v) {
  if (at.Peek() != '{') return ParseAttr(at, v);
  STROP_ASSIGN(std::string_view text, at.Braced());
  v = std::string(text);
  return OkStatus();
}

Status ParseFrontendAttributes(Cursor& at, std::map<std::string, std::string>& attributes) {
  return ParseList(at, [&] {
    std::string key(at.Word());
    if (key.empty()) {
      if (at.Peek() != '"') return at.Expected("the name of a frontend attribute");
      STROP_ASSIGN(key, at.String());
    }
    STROP_TRY(at.Expect('='));
    return ParseStringOrJson(at, attributes[std::move(key)]);
  });
}

}  // namespace strop
