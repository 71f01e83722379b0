// One function an attribute type. The forms are XLA's, to the blank: window fields are separated by blanks and left out
// when they are all default, padding drops its third number unless some dimension has one, slices drop strides of one.
#include "strop/ir/attr_text.h"

#include <algorithm>

#include "strop/base/cursor.h"

namespace strop {
namespace {

// {a,b} with `separator`.
template <class Range, class F>
std::string Braced(const Range& range, std::string_view separator, F&& one) {
  std::string out = "{";
  bool first = true;
  for (const auto& v : range) {
    if (!first) out += separator;
    first = false;
    one(out, v);
  }
  return out + "}";
}

void AppendDims(std::string& out, const Dims& dims) { StrAppend(out, "{", Join(dims, ","), "}"); }
// A ShapeIndex is written with blanks nowhere else but here: {0, 1} would be read too, XLA writes {0,1}.
void AppendIndex(std::string& out, const Dims& index) { AppendDims(out, index); }

constexpr std::string_view kDirections[] = {"EQ", "NE", "GE", "GT", "LE", "LT"};
constexpr std::string_view kOrders[] = {"", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"};
constexpr std::string_view kFftTypes[] = {"FFT", "IFFT", "RFFT", "IRFFT"};
constexpr std::string_view kFusionKinds[] = {"kLoop", "kInput", "kOutput", "kCustom"};
constexpr std::string_view kDistributions[] = {"rng_invalid", "rng_uniform", "rng_normal"};
constexpr std::string_view kRngAlgorithms[] = {"rng_default", "rng_three_fry", "rng_philox"};
constexpr std::string_view kTransposes[] = {"TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"};
constexpr std::string_view kSchedules[] = {"SCHEDULE_NONE", "SCHEDULE_LATEST", "SCHEDULE_EARLIEST"};
constexpr std::string_view kApiVersions[] = {"API_VERSION_UNSPECIFIED", "API_VERSION_ORIGINAL",
                                             "API_VERSION_STATUS_RETURNING", "API_VERSION_STATUS_RETURNING_UNIFIED",
                                             "API_VERSION_TYPED_FFI"};
constexpr std::string_view kPaddingTypes[] = {"PADDING_INVALID", "PADDING_VALID", "PADDING_SAME"};
constexpr std::string_view kPrecisions[] = {"default", "high", "highest", "packed_nibble"};

template <class E, size_t N>
std::string Word(const std::string_view (&names)[N], E v) {
  return std::string(names[std::min<size_t>(static_cast<size_t>(v), N - 1)]);
}

// "b01f": the letter of each dimension, '?' where none is known. Labels of absurd dimensions (a corrupt proto) are
// dropped.
std::string Labels(const Dims& spatial, const Dims& unknown, std::pair<int64_t, char> a, std::pair<int64_t, char> b) {
  constexpr int64_t kMaxRank = 64;
  std::vector<std::string> labels;
  auto set = [&](int64_t dim, std::string label) {
    if (dim < 0 || dim >= kMaxRank) return;
    if (static_cast<int64_t>(labels.size()) <= dim) labels.resize(dim + 1, "?");
    labels[dim] = std::move(label);
  };
  for (int64_t d : unknown) set(d, "?");
  set(a.first, std::string(1, a.second));
  set(b.first, std::string(1, b.second));
  for (size_t i = 0; i < spatial.size(); ++i) set(spatial[i], StrCat(i));
  return Join(labels, "");
}

}  // namespace

std::string AttrText(int64_t v) { return StrCat(v); }
std::string AttrText(bool v) { return v ? "true" : "false"; }
std::string AttrText(float v) { return StrCat(v); }
std::string AttrText(const std::string& v) { return StrCat("\"", CEscape(v), "\""); }
std::string AttrText(const ChannelId& v) { return StrCat(v.id); }
std::string AttrText(const Keyword& v) { return v; }
std::string AttrText(const Dims& v) { return StrCat("{", Join(v, ","), "}"); }
std::string AttrText(const std::vector<Dims>& v) { return Braced(v, ",", AppendDims); }
std::string AttrText(const std::vector<bool>& v) {
  return Braced(v, ",", [](std::string& out, bool b) { StrAppend(out, b); });
}

std::string AttrText(const Window& v) {
  std::string out = "{";
  auto field = [&](std::string_view name, bool wanted, auto&& one) {
    if (!wanted) return;
    StrAppend(out, out.size() > 1 ? " " : "", name, "=");
    for (size_t i = 0; i < v.dims.size(); ++i) {
      if (i) out += 'x';
      one(v.dims[i]);
    }
  };
  auto any = [&](auto&& differs) { return std::any_of(v.dims.begin(), v.dims.end(), differs); };
  using D = const WindowDim&;
  field("size", !v.dims.empty(), [&](D d) { StrAppend(out, d.size); });
  field("stride", any([](D d) { return d.stride != 1; }), [&](D d) { StrAppend(out, d.stride); });
  field("pad", any([](D d) { return d.pad_low != 0 || d.pad_high != 0; }),
        [&](D d) { StrAppend(out, d.pad_low, "_", d.pad_high); });
  field("lhs_dilate", any([](D d) { return d.base_dilation != 1; }), [&](D d) { StrAppend(out, d.base_dilation); });
  field("rhs_dilate", any([](D d) { return d.window_dilation != 1; }), [&](D d) { StrAppend(out, d.window_dilation); });
  field("rhs_reversal", any([](D d) { return d.reversal; }), [&](D d) { StrAppend(out, d.reversal ? 1 : 0); });
  return out + "}";
}

std::string AttrText(const ConvDimLabels& v) {
  return StrCat(
      Labels(v.input_spatial, v.input_unknown, {v.input_batch, 'b'}, {v.input_feature, 'f'}), "_",
      Labels(v.kernel_spatial, v.kernel_unknown, {v.kernel_input_feature, 'i'}, {v.kernel_output_feature, 'o'}), "->",
      Labels(v.output_spatial, v.output_unknown, {v.output_batch, 'b'}, {v.output_feature, 'f'}));
}

std::string AttrText(const PaddingConfig& v) {
  const bool interior = std::any_of(v.begin(), v.end(), [](const PaddingDim& d) { return d.interior != 0; });
  std::string out;
  for (size_t i = 0; i < v.size(); ++i) {
    StrAppend(out, i ? "x" : "", v[i].low, "_", v[i].high);
    if (interior) StrAppend(out, "_", v[i].interior);
  }
  return out;
}

std::string AttrText(const SliceDims& v) {
  const bool strides = std::any_of(v.begin(), v.end(), [](const SliceDim& d) { return d.stride != 1; });
  return Braced(v, ", ", [&](std::string& out, const SliceDim& d) {
    StrAppend(out, "[", d.start, ":", d.limit);
    if (strides) StrAppend(out, ":", d.stride);
    out += ']';
  });
}

std::string AttrText(const PrecisionConfig& v) {
  return Braced(v, ",", [](std::string& out, Precision p) { out += AttrText(p); });
}

std::string AttrText(const OutputOperandAliasing& v) {
  return Braced(v, ", ", [](std::string& out, const OutputOperandAlias& a) {
    AppendIndex(out, a.output_index);
    StrAppend(out, ": (", a.operand, ", ");
    AppendIndex(out, a.operand_index);
    out += ')';
  });
}

std::string AttrText(const SourceTargetPairs& v) {
  return Braced(v, ",", [](std::string& out, const std::pair<int64_t, int64_t>& p) {
    StrAppend(out, "{", p.first, ",", p.second, "}");
  });
}

std::string AttrText(const ReplicaGroups& v) { return v.ToString(); }

std::string AttrText(const ResultAccuracy& v) {
  switch (v.mode) {
    case ResultAccuracy::Mode::Highest: return "{mode=highest}";
    case ResultAccuracy::Mode::Tolerance:
      return StrCat("{tolerance={atol=", v.atol, ",rtol=", v.rtol, ",ulps=", v.ulps, "}}");
    case ResultAccuracy::Mode::Default: break;
  }
  return "{mode=default}";
}

std::string AttrText(const Verbatim& v) { return v.text; }
std::string AttrText(const Shape& v) { return v.ToStringWithLayout(); }
std::string AttrText(Precision v) { return Word(kPrecisions, v); }
std::string AttrText(CompareDirection v) { return Word(kDirections, v); }
std::string AttrText(CompareOrder v) { return Word(kOrders, v); }
std::string AttrText(FftType v) { return Word(kFftTypes, v); }
std::string AttrText(FusionKind v) { return Word(kFusionKinds, v); }
std::string AttrText(RngDistribution v) { return Word(kDistributions, v); }
std::string AttrText(RngAlgorithm v) { return Word(kRngAlgorithms, v); }
std::string AttrText(TransposeA v) { return Word(kTransposes, v); }
std::string AttrText(CustomCallSchedule v) { return Word(kSchedules, v); }
std::string AttrText(ApiVersion v) { return Word(kApiVersions, v); }
std::string AttrText(PaddingType v) { return Word(kPaddingTypes, v); }
std::string AttrText(const std::vector<Window>& v) { return v.empty() ? "" : AttrText(v[0]); }
std::string AttrText(const std::vector<ConvDimLabels>& v) { return v.empty() ? "" : AttrText(v[0]); }

namespace {
// "s32[2]{0} {1, 2}"; a tuple has no shape of its own: "( s32[] 1, f32[] 2 )".
void AppendTypedLiteral(std::string& out, const Literal& literal) {
  if (!literal.shape().IsTuple()) {
    StrAppend(out, literal.shape().WithDefaultLayout().ToStringWithLayout(), " ");
    literal.AppendText(out);
    return;
  }
  out += "( ";
  for (size_t i = 0; i < literal.elements().size(); ++i) {
    if (i) out += ", ";
    AppendTypedLiteral(out, literal.elements()[i]);
  }
  out += " )";
}
}  // namespace

std::string AttrText(const std::vector<Literal>& v) {
  std::string out;
  if (!v.empty()) AppendTypedLiteral(out, v[0]);
  return out;
}

std::string FrontendAttributesText(const std::map<std::string, std::string>& attributes) {
  return Braced(attributes, ",", [](std::string& out, const auto& entry) {
    // XLA has no text for a key that is no word; ours is quoted.
    if (AsWord(entry.first) == entry.first)
      StrAppend(out, entry.first, "=");
    else
      StrAppend(out, "\"", CEscape(entry.first), "\"=");
    if (ReadsAsJsonObject(entry.second))
      out += entry.second;
    else
      StrAppend(out, "\"", CEscape(entry.second), "\"");
  });
}

bool ReadsAsJsonObject(std::string_view text) {
  if (text.empty() || text[0] != '{') return false;
  int64_t depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\0') return false;
    if (c == '{') ++depth;
    if (c == '}' && --depth == 0) return i + 1 == text.size();
    if (c != '"') continue;
    for (++i; i < text.size() && text[i] != '"'; ++i)
      if (text[i] == '\\') ++i;
  }
  return false;
}

}  // namespace strop
