// Structured attributes of StableHLO, CHLO and Shardy in MLIR text; mlir_dialect_text.h shows the notations.
#include "strop/import/text_parser_impl.h"

namespace strop {

// Positioned after `#dialect.mnemonic` (or `#dialect<mnemonic`). A null result: not one of ours.
Result<const MlirAttr*> MlirTextParser::ParseDialectAttr(std::string_view name, size_t start) {
  if (const MlirEnumInfo* info = FindMlirEnum(name)) {
    bool angle = pos_ < text_.size() && text_[pos_] == '<' && Try("<");
    size_t at = pos_;
    std::string_view word = Word();
    std::string_view member = FindEnumMember(*info, word);
    if (member.empty()) return Error(at, "'", word, "' is no ", name, "; expected one of ", info->members);
    if (angle) STROP_TRY(Expect(">"));
    return m_.Enum(info->name, member);
  }
  if (name == "stablehlo.bounds" || name == "mhlo.bounds" || name == "mhlo.type_extensions")
    name = "stablehlo.type_extensions";
  if (name.starts_with("sdy.")) return ParseSdyBody(name.substr(4));
  const MlirStructInfo* info = FindMlirStruct(name);
  if (!info) return static_cast<const MlirAttr*>(nullptr);
  return ParseStructBody(*info);
}

Result<const MlirAttr*> MlirTextParser::ParseStructBody(const MlirStructInfo& info) {
  if (info.name == "stablehlo.conv") {
    STROP_TRY(Expect("<"));
    if (TryWord("raw")) return ParseStructFields(info, ">");
    STROP_ASSIGN(const MlirAttr* conv, ParseConvDimensions());
    STROP_TRY(Expect(">"));
    return conv;
  }
  if (info.name == "stablehlo.type_extensions") {
    STROP_TRY(Expect("<"));
    std::vector<int64_t> bounds;
    if (TryWord("bounds")) {
      STROP_TRY(Expect("="));
      STROP_ASSIGN(bounds, ParseIntList(true));
    } else if (Peek() != '>') {
      do {
        if (Try("?")) {
          bounds.push_back(kMlirDynamic);
        } else {
          STROP_ASSIGN(int64_t bound, Integer());
          bounds.push_back(bound);
        }
      } while (Try(","));
    }
    STROP_TRY(Expect(">"));
    MlirNamedAttr field = {"bounds", m_.Ints(bounds)};
    return m_.Struct(info.name, {&field, 1});
  }
  if (info.name == "stablehlo.result_accuracy") return ParseAccuracyBody();
  if (info.name == "stablehlo.sub_axis_info") return ParseSubAxis(info.name);
  if (info.name == "stablehlo.axis_ref") return ParseStablehloAxisRef();
  if (info.name == "stablehlo.mesh") return ParseStablehloMesh();
  STROP_TRY(Expect("<"));
  return ParseStructFields(info, ">");
}

// name = value, ... in any order; through `end`
Result<const MlirAttr*> MlirTextParser::ParseStructFields(const MlirStructInfo& info, std::string_view end) {
  std::vector<MlirNamedAttr> given;
  while (!Try(end)) {
    size_t at = pos_;
    std::string_view word = Word();
    MlirFieldInfo field, match;
    std::string names;
    for (std::string_view rest = info.fields; NextField(rest, field);) {
      if (field.name == word) match = field;
      StrAppend(names, names.empty() ? "" : ", ", field.name);
    }
    if (match.name.empty()) return Error(at, "'", word, "' is no field of #", info.name, "; expected one of ", names);
    for (const MlirNamedAttr& g : given) {
      if (g.name == match.name) return Error(at, "field '", word, "' is given twice");
    }
    STROP_TRY(Expect("="));
    MlirNamedAttr out = {match.name};
    bool empty = false;
    switch (match.kind) {
      case MlirFieldKind::Dims: {
        STROP_ASSIGN(std::vector<int64_t> dims, ParseIntList(true));
        empty = dims.empty();
        out.value = m_.Ints(dims);
        break;
      }
      case MlirFieldKind::Int: {
        STROP_ASSIGN(int64_t value, Integer());
        empty = value == 0;
        out.value = m_.Int64(value);
        break;
      }
      case MlirFieldKind::Bool:
        if (PeekWord() != "true" && PeekWord() != "false")
          return Error(pos_, "expected true or false, found ", Found());
        out.value = m_.Bool(Word() == "true");
        break;
      case MlirFieldKind::Type: {
        STROP_ASSIGN(const MlirType* type, ParseType());
        out.value = m_.TypeValue(type);
        break;
      }
      case MlirFieldKind::String: {
        STROP_ASSIGN(std::string_view text, QuotedString());
        out.value = m_.String(text);
        break;
      }
      case MlirFieldKind::Attr: {
        STROP_ASSIGN(out.value, ParseAttr());
        break;
      }
    }
    if (!(info.elide && empty)) given.push_back(out);
    if (!Try(",")) {
      STROP_TRY(Expect(end));
      break;
    }
  }
  // In the order of the table.
  std::vector<MlirNamedAttr> fields;
  MlirFieldInfo field;
  for (std::string_view rest = info.fields; NextField(rest, field);) {
    for (const MlirNamedAttr& g : given) {
      if (g.name == field.name) fields.push_back(g);
    }
  }
  return m_.Struct(info.name, fields);
}

// [b, 0, 1, f]: `first` and `second` are the letters of the other two dimensions.
Status MlirTextParser::ParseConvPart(char first, char second, std::vector<int64_t>& spatial, int64_t& a, int64_t& b) {
  STROP_TRY(Expect("["));
  a = b = -1;
  std::vector<int64_t> where;  // of each spatial dimension, -1 if not seen
  int64_t index = 0;
  do {
    char c = Peek();
    size_t at = pos_;
    if (c >= '0' && c <= '9') {
      STROP_ASSIGN(int64_t dim, Integer());
      if (dim >= 64) return Error(at, "unexpected dimension ", dim);
      if (dim >= static_cast<int64_t>(where.size())) where.resize(dim + 1, -1);
      if (where[dim] != -1) return Error(at, "spatial dimension ", dim, " is given twice");
      where[dim] = index++;
      continue;
    }
    std::string_view word = Word();
    int64_t* slot = word == std::string_view(&first, 1) ? &a : word == std::string_view(&second, 1) ? &b : nullptr;
    if (!slot || *slot != -1)
      return Error(at, "unexpected dimension '", word, "', expected ", first, ", ", second, " or a number");
    *slot = index++;
  } while (Try(","));
  if (a == -1 || b == -1) return Error(pos_, "expected dimension ", a == -1 ? first : second);
  for (size_t i = 0; i < where.size(); ++i) {
    if (where[i] == -1) return Error(pos_, "expected spatial dimension ", i);
  }
  spatial = std::move(where);
  return Expect("]");
}

Result<const MlirAttr*> MlirTextParser::ParseConvDimensions() {
  std::vector<int64_t> spatial[3];
  int64_t a[3], b[3];
  STROP_TRY(ParseConvPart('b', 'f', spatial[0], a[0], b[0]));
  STROP_TRY(ExpectWord("x"));
  STROP_TRY(ParseConvPart('i', 'o', spatial[1], a[1], b[1]));
  STROP_TRY(Expect("->"));
  STROP_TRY(ParseConvPart('b', 'f', spatial[2], a[2], b[2]));
  std::vector<MlirNamedAttr> fields;
  MlirFieldInfo field;
  size_t i = 0;
  for (std::string_view rest = FindMlirStruct("stablehlo.conv")->fields; NextField(rest, field); ++i) {
    const MlirAttr* value = i % 3 == 2 ? m_.Ints(spatial[i / 3]) : m_.Int64(i % 3 == 0 ? a[i / 3] : b[i / 3]);
    fields.push_back({field.name, value});
  }
  return m_.Struct("stablehlo.conv", fields);
}

// <atol = 1.0e-05, ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>
Result<const MlirAttr*> MlirTextParser::ParseAccuracyBody() {
  STROP_TRY(Expect("<"));
  const MlirType* f64 = m_.Float(MlirFloat::F64);
  MlirNamedAttr fields[4] = {
      {"atol", m_.FloatBits(0, f64)}, {"rtol", m_.FloatBits(0, f64)}, {"ulps", m_.Int64(0)}, {"mode"}};
  for (int i = 0; i < 2; ++i) {
    if (!TryWord(fields[i].name)) continue;
    STROP_TRY(Expect("="));
    STROP_ASSIGN(fields[i].value, ParseNumber(f64));
    STROP_TRY(Expect(","));
  }
  if (TryWord("ulps")) {
    STROP_TRY(Expect("="));
    STROP_ASSIGN(int64_t ulps, Integer());
    fields[2].value = m_.Int64(ulps);
    STROP_TRY(Expect(","));
  }
  STROP_TRY(ExpectWord("mode"));
  STROP_TRY(Expect("="));
  STROP_ASSIGN(fields[3].value, ParseAttr());
  STROP_TRY(Expect(">"));
  return m_.Struct("stablehlo.result_accuracy", fields);
}

// (2)4: part of an axis, of size 4 after a factor of 2
Result<const MlirAttr*> MlirTextParser::ParseSubAxis(std::string_view name) {
  STROP_TRY(Expect("("));
  STROP_ASSIGN(int64_t pre, Integer());
  STROP_TRY(Expect(")"));
  STROP_ASSIGN(int64_t size, Integer());
  MlirNamedAttr fields[2] = {{"pre_size", m_.Int64(pre)}, {"size", m_.Int64(size)}};
  return m_.Struct(name, fields);
}

Result<const MlirAttr*> MlirTextParser::ParseStablehloAxisRef() {
  STROP_TRY(Expect("<"));
  STROP_TRY(ExpectWord("name"));
  STROP_TRY(Expect("="));
  STROP_ASSIGN(std::string_view name, QuotedString());
  MlirNamedAttr fields[2] = {{"name", m_.String(name)}, {"sub_axis_info"}};
  if (Try(",")) {
    STROP_TRY(ExpectWord("sub_axis_info"));
    STROP_TRY(Expect("="));
    STROP_ASSIGN(fields[1].value, ParseSubAxis("stablehlo.sub_axis_info"));
  }
  STROP_TRY(Expect(">"));
  return m_.Struct("stablehlo.axis_ref", std::span(fields, fields[1].value ? 2 : 1));
}

// [axis, ...] and the device ids that may follow, up to the '>'.
template <class Axis, class Ids>
Result<const MlirAttr*> MlirTextParser::ParseMeshRest(std::string_view kind, Axis&& parse_axis, Ids&& parse_ids) {
  STROP_TRY(Expect("["));
  std::vector<const MlirAttr*> axes;
  if (!Try("]")) {
    do {
      STROP_ASSIGN(const MlirAttr* axis, parse_axis());
      axes.push_back(axis);
    } while (Try(","));
    STROP_TRY(Expect("]"));
  }
  MlirNamedAttr fields[2] = {{"axes"}, {"device_ids"}};
  STROP_ASSIGN(fields[0].value, m_.Array(axes));
  if (Try(",")) {
    STROP_TRY(ExpectWord("device_ids"));
    STROP_TRY(Expect("="));
    STROP_ASSIGN(fields[1].value, parse_ids());
  }
  STROP_TRY(Expect(">"));
  return m_.Struct(kind, std::span(fields, fields[1].value ? 2 : 1));
}

// <axes=[<name = "x", size = 2>], device_ids=dense<...> : tensor<2xi64>>
Result<const MlirAttr*> MlirTextParser::ParseStablehloMesh() {
  STROP_TRY(Expect("<"));
  STROP_TRY(ExpectWord("axes"));
  STROP_TRY(Expect("="));
  const MlirStructInfo& info = *FindMlirStruct("stablehlo.mesh_axis");
  auto axis = [&]() -> Result<const MlirAttr*> {
    size_t at = pos_;
    if (Try("<")) return ParseStructFields(info, ">");
    STROP_ASSIGN(const MlirAttr* named, ParseAttr());
    if (named->kind != MlirAttrKind::Struct || named->name != info.name) return Error(at, "expected #", info.name);
    return named;
  };
  return ParseMeshRest("stablehlo.mesh", axis, [&] { return ParseAttr(); });
}

// ---- Shardy
// -----------------------------------------------------------------------------------------------------------

Result<const MlirAttr*> MlirTextParser::ParseSdyBody(std::string_view kind) {
  if (kind == "mesh") return ParseSdyMesh();
  if (kind == "sharding") return ParseSdySharding();
  if (kind == "manual_axes") return ParseSdyManualAxes();
  if (kind == "sharding_per_value") {
    STROP_TRY(Expect("<"));
    STROP_ASSIGN(const MlirAttr* list, ParseSdyShardingList());
    STROP_TRY(Expect(">"));
    return list;
  }
  return static_cast<const MlirAttr*>(nullptr);
}

// <["a"=2, "b"=4], device_ids=[0, 2, 1, 3]>
Result<const MlirAttr*> MlirTextParser::ParseSdyMesh() {
  STROP_TRY(Expect("<"));
  auto axis = [&]() -> Result<const MlirAttr*> {
    STROP_ASSIGN(std::string_view name, QuotedString());
    STROP_TRY(Expect("="));
    STROP_ASSIGN(int64_t size, Integer());
    MlirNamedAttr fields[2] = {{"name", m_.String(name)}, {"size", m_.Int64(size)}};
    return m_.Struct("sdy.mesh_axis", fields);
  };
  auto ids = [&]() -> Result<const MlirAttr*> {
    STROP_ASSIGN(std::vector<int64_t> list, ParseIntList(false));
    return m_.Ints(list);
  };
  return ParseMeshRest("sdy.mesh", axis, ids);
}

Result<const MlirAttr*> MlirTextParser::ParseSdyAxis() {
  STROP_ASSIGN(std::string_view name, QuotedString());
  MlirNamedAttr fields[2] = {{"name", m_.String(name)}, {"sub_axis_info"}};
  if (Try(":")) {
    STROP_ASSIGN(fields[1].value, ParseSubAxis("sdy.sub_axis_info"));
  }
  return m_.Struct("sdy.axis_ref", std::span(fields, fields[1].value ? 2 : 1));
}

Result<const MlirAttr*> MlirTextParser::ParseSdyAxes() {
  STROP_TRY(Expect("{"));
  std::vector<const MlirAttr*> axes;
  if (!Try("}")) {
    do {
      STROP_ASSIGN(const MlirAttr* axis, ParseSdyAxis());
      axes.push_back(axis);
    } while (Try(","));
    STROP_TRY(Expect("}"));
  }
  return m_.Array(axes);
}

// {"a", "b":(1)2, ?}p1
Result<const MlirAttr*> MlirTextParser::ParseSdyDimension() {
  STROP_TRY(Expect("{"));
  std::vector<const MlirAttr*> axes;
  bool closed = true;
  if (!Try("}")) {
    do {
      if (Try("?")) {
        closed = false;
        break;
      }
      STROP_ASSIGN(const MlirAttr* axis, ParseSdyAxis());
      axes.push_back(axis);
    } while (Try(","));
    STROP_TRY(Expect("}"));
  }
  MlirNamedAttr fields[3] = {{"axes"}, {"is_closed", m_.Bool(closed)}, {"priority"}};
  STROP_ASSIGN(fields[0].value, m_.Array(axes));
  std::string_view word = PeekWord();
  bool has_priority = word.size() > 1 && word[0] == 'p';
  if (has_priority) {
    std::optional<int64_t> priority = strop::ParseNumber<int64_t>(word.substr(1));
    if (!priority || *priority < 0) return Error(pos_, "expected a priority p<number>, found ", Found());
    Word();
    fields[2].value = m_.Int64(*priority);
  }
  return m_.Struct("sdy.dimension_sharding", std::span(fields, has_priority ? 3 : 2));
}

// <@mesh, [{"a"}, {?}], replicated={"b"}, unreduced={"c"}>
Result<const MlirAttr*> MlirTextParser::ParseSdySharding() {
  STROP_TRY(Expect("<"));
  const MlirAttr* mesh = nullptr;
  if (TryWord("mesh")) {
    STROP_ASSIGN(mesh, ParseSdyMesh());
  } else {
    STROP_ASSIGN(mesh, ParseSymbolAttr());
  }
  STROP_TRY(Expect(","));
  STROP_TRY(Expect("["));
  std::vector<const MlirAttr*> dims;
  if (!Try("]")) {
    do {
      STROP_ASSIGN(const MlirAttr* dim, ParseSdyDimension());
      dims.push_back(dim);
    } while (Try(","));
    STROP_TRY(Expect("]"));
  }
  std::vector<MlirNamedAttr> fields = {{"mesh_or_ref", mesh}, {"dim_shardings"}, {"replicated_axes"}};
  STROP_ASSIGN(fields[1].value, m_.Array(dims));
  STROP_ASSIGN(fields[2].value, m_.Array({}));
  while (Try(",")) {
    size_t at = pos_;
    std::string_view which = Word();
    if (which != "replicated" && which != "unreduced")
      return Error(at, "expected 'replicated' or 'unreduced', found ", Found());
    STROP_TRY(Expect("="));
    STROP_ASSIGN(const MlirAttr* axes, ParseSdyAxes());
    if (which == "replicated") {
      fields[2].value = axes;
    } else {
      fields.resize(3);
      fields.push_back({"unreduced_axes", axes});
    }
  }
  STROP_TRY(Expect(">"));
  return m_.Struct("sdy.sharding", fields);
}

Result<const MlirAttr*> MlirTextParser::ParseSdyShardingList() {
  STROP_TRY(Expect("["));
  std::vector<const MlirAttr*> shardings;
  if (!Try("]")) {
    do {
      STROP_ASSIGN(const MlirAttr* sharding, ParseSdySharding());
      shardings.push_back(sharding);
    } while (Try(","));
    STROP_TRY(Expect("]"));
  }
  MlirNamedAttr field = {"shardings"};
  STROP_ASSIGN(field.value, m_.Array(shardings));
  return m_.Struct("sdy.sharding_per_value", {&field, 1});
}

Result<const MlirAttr*> MlirTextParser::ParseSdyManualAxes() {
  STROP_TRY(Expect("{"));
  std::vector<const MlirAttr*> axes;
  if (!Try("}")) {
    do {
      STROP_ASSIGN(std::string_view name, QuotedString());
      axes.push_back(m_.String(name));
    } while (Try(","));
    STROP_TRY(Expect("}"));
  }
  MlirNamedAttr field = {"value"};
  STROP_ASSIGN(field.value, m_.Array(axes));
  return m_.Struct("sdy.manual_axes", {&field, 1});
}

}  // namespace strop
