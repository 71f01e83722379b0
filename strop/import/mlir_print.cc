// Text of types and attributes, as MLIR writes them. Values that are shared print where they are used; no aliases are
// made.
#include <bit>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "strop/import/mlir_dialect_text.h"
#include "strop/import/mlir_ops.h"
#include "strop/import/mlir_print.h"

namespace strop {
namespace {

constexpr std::string_view kHexDigits = "0123456789ABCDEF";

bool IsBareWord(std::string_view s, bool dots) {
  if (s.empty()) return false;
  for (size_t i = 0; i < s.size(); ++i) {
    char c = s[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    bool later = (c >= '0' && c <= '9') || c == '$' || (c == '.' && dots);
    if (!letter && !(i > 0 && later)) return false;
  }
  return true;
}

}  // namespace

void AppendMlirString(std::string& out, std::string_view text) {
  out += '"';
  for (char c : text) {
    if (c == '\\') {
      out += "\\\\";
    } else if (c >= 0x20 && c < 0x7f && c != '"') {
      out += c;
    } else {
      out += '\\';
      out += kHexDigits[static_cast<uint8_t>(c) >> 4];
      out += kHexDigits[static_cast<uint8_t>(c) & 15];
    }
  }
  out += '"';
}

void AppendMlirSymbol(std::string& out, std::string_view name) {
  out += '@';
  if (IsBareWord(name, true)) {
    out += name;
  } else {
    AppendMlirString(out, name);
  }
}

void AppendMlirKey(std::string& out, std::string_view key) {
  if (IsBareWord(key, true)) {
    out += key;
  } else {
    AppendMlirString(out, key);
  }
}

void AppendMlirFloat(std::string& out, uint64_t bits, MlirFloat kind) {
  const MlirFloatInfo& info = InfoOf(kind);
  auto append_hex = [&] {
    out += "0x";
    for (int i = (info.bits + 3) / 4; i-- > 0;) out += kHexDigits[(bits >> (4 * i)) & 15];
  };
  if (!HasFloatValue(kind)) return append_hex();
  double value = DecodeMlirFloat(kind, bits);
  if (!(value - value == 0)) return append_hex();  // infinities and NaNs
  char text[40];
  std::snprintf(text, sizeof text, "%.6e", value);
  if (EncodeMlirFloat(kind, std::strtod(text, nullptr)) != bits) {
    std::snprintf(text, sizeof text, "%.*e", info.bits > 32 ? 17 : 9, value);
    if (EncodeMlirFloat(kind, std::strtod(text, nullptr)) != bits) return append_hex();
  }
  out += text;
}

namespace {

// One element of a Dense attribute.
void AppendElement(std::string& out, const char* data, const MlirType& element) {
  switch (element.kind) {
    case MlirTypeKind::Integer:
    case MlirTypeKind::Index: {
      uint64_t v = 0;
      std::memcpy(&v, data, ElementBytes(element));
      uint32_t width = element.kind == MlirTypeKind::Index ? 64 : element.width;
      if (width == 1) {
        out += v & 1 ? "true" : "false";
      } else if (element.sign == MlirSign::Unsigned) {
        StrAppend(out, v);
      } else {
        if (width < 64 && (v >> (width - 1)) & 1) v |= ~uint64_t{0} << width;
        StrAppend(out, static_cast<int64_t>(v));
      }
      return;
    }
    case MlirTypeKind::Float: {
      uint64_t v = 0;
      std::memcpy(&v, data, std::min<int64_t>(8, ElementBytes(element)));
      AppendMlirFloat(out, v, element.float_kind);
      return;
    }
    case MlirTypeKind::Complex: {
      const MlirType& part = *element.element();
      out += '(';
      AppendElement(out, data, part);
      out += ',';
      AppendElement(out, data + ElementBytes(part), part);
      out += ')';
      return;
    }
    case MlirTypeKind::Quantized: return AppendElement(out, data, *element.types[0]);
    default: out += '?';
  }
}

// Prints nested brackets of `dims` and calls one(i) for the i-th element.
template <class One>
void AppendNested(std::string& out, std::span<const int64_t> dims, int64_t& next, One one) {
  if (dims.empty()) return one(next++);
  out += '[';
  for (int64_t i = 0; i < dims[0]; ++i) {
    if (i) out += ", ";
    AppendNested(out, dims.subspan(1), next, one);
  }
  out += ']';
}

void AppendHex(std::string& out, std::string_view bytes) {
  out += "\"0x";
  for (char c : bytes) {
    out += kHexDigits[static_cast<uint8_t>(c) >> 4];
    out += kHexDigits[static_cast<uint8_t>(c) & 15];
  }
  out += '"';
}

void AppendDense(std::string& out, const MlirAttr& a) {
  constexpr int64_t kHexLimit = 100;  // MLIR's own; longer ones print as bytes
  const MlirType& element = *a.type->element();
  int64_t bytes = ElementBytes(element);
  int64_t n = bytes ? static_cast<int64_t>(a.data.size()) / bytes : 0;
  out += "dense<";
  if (n == 1) {  // one element, or one for all (of none)
    AppendElement(out, a.data.data(), element);
  } else if (n > kHexLimit) {
    AppendHex(out, a.data);
  } else if (n > 0) {
    int64_t next = 0;
    AppendNested(out, a.type->dims, next, [&](int64_t i) { AppendElement(out, a.data.data() + i * bytes, element); });
  }
  out += "> : ";
  AppendType(out, *a.type);
}

// Indices are written one by one, whether or not they are equal: they say how many values there are.
void AppendSparse(std::string& out, const MlirAttr& a) {
  out += "sparse<";
  const MlirAttr &indices = *a.elements[0], &values = *a.elements[1];
  if (indices.type->dims[0] > 0) {
    auto all = [&](const MlirAttr& part) {
      const MlirType& element = *part.type->element();
      const int64_t bytes = ElementBytes(element);
      int64_t next = 0;
      AppendNested(out, part.type->dims, next,
                   [&](int64_t i) { AppendElement(out, part.data.data() + (part.splat ? 0 : i * bytes), element); });
    };
    all(indices);
    out += ", ";
    if (values.splat)
      AppendElement(out, values.data.data(), *values.type->element());
    else
      all(values);
  }
  out += "> : ";
  AppendType(out, *a.type);
}

void AppendDenseArray(std::string& out, const MlirAttr& a) {
  out += "array<";
  AppendType(out, *a.type);
  int64_t bytes = ElementBytes(*a.type);
  for (size_t i = 0; bytes && i < a.data.size() / bytes; ++i) {
    out += i ? ", " : ": ";
    AppendElement(out, a.data.data() + i * bytes, *a.type);
  }
  out += '>';
}

void AppendList(std::string& out, std::span<const MlirAttr* const> elements) {
  for (size_t i = 0; i < elements.size(); ++i) {
    if (i) out += ", ";
    AppendAttr(out, *elements[i]);
  }
}

void AppendLocBody(std::string& out, const MlirAttr& a) {
  if (a.tree_size > 1 << 16) {
    out += "unknown";
    return;
  }
  switch (a.kind) {
    case MlirAttrKind::FileLoc:
      AppendMlirString(out, a.text);
      StrAppend(out, ":", a.bits & 0xffffffff, ":", a.bits >> 32);
      if (a.range_end) {
        out += " to ";
        if ((a.range_end & 0xffffffff) != (a.bits & 0xffffffff)) StrAppend(out, a.range_end & 0xffffffff);
        StrAppend(out, ":", a.range_end >> 32);
      }
      return;
    case MlirAttrKind::NameLoc:
      AppendMlirString(out, a.text);
      if (!a.elements.empty() && a.elements[0]->kind != MlirAttrKind::UnknownLoc) {
        out += '(';
        AppendLocBody(out, *a.elements[0]);
        out += ')';
      }
      return;
    case MlirAttrKind::CallSiteLoc:
      out += "callsite(";
      AppendLocBody(out, *a.elements[0]);
      out += " at ";
      AppendLocBody(out, *a.elements[1]);
      out += ')';
      return;
    case MlirAttrKind::FusedLoc:
      out += "fused";
      if (a.metadata) {
        out += '<';
        AppendAttr(out, *a.metadata);
        out += '>';
      }
      out += '[';
      for (size_t i = 0; i < a.elements.size(); ++i) {
        if (i) out += ", ";
        AppendLocBody(out, *a.elements[i]);
      }
      out += ']';
      return;
    default: out += "unknown";
  }
}

void AppendQuant(std::string& out, const MlirType& t) {
  const MlirQuant& q = *t.quant;
  StrAppend(out, "!quant.uniform<", q.flags & 1 ? "i" : "u", t.types[0]->width);
  int64_t width = t.types[0]->width;
  int64_t lowest = q.flags & 1 ? -(int64_t{1} << (width - 1)) : 0;
  int64_t highest = q.flags & 1 ? (int64_t{1} << (width - 1)) - 1 : (int64_t{1} << width) - 1;
  if (q.storage_min != lowest || q.storage_max != highest) StrAppend(out, "<", q.storage_min, ":", q.storage_max, ">");
  out += ':';
  AppendType(out, *t.types[1]);
  if (q.axis >= 0) StrAppend(out, ":", q.axis);
  if (q.axis == -2) {
    out += ":{";
    for (size_t i = 0; i < q.block_axes.size(); ++i)
      StrAppend(out, i ? ", " : "", q.block_axes[i], ":", q.block_sizes[i]);
    out += '}';
  }
  out += q.axis == -1 ? ", " : ", {";
  for (size_t i = 0; i < q.scales.size(); ++i) {
    if (i) out += ", ";
    AppendMlirFloat(out, std::bit_cast<uint64_t>(q.scales[i]), MlirFloat::F64);
    if (q.zero_points[i] != 0) StrAppend(out, ":", q.zero_points[i]);
  }
  out += q.axis == -1 ? ">" : "}>";
}

void AppendDims(std::string& out, std::span<const int64_t> dims) {
  for (int64_t d : dims) {
    if (d == kMlirDynamic) {
      out += "?x";
    } else {
      StrAppend(out, d, "x");
    }
  }
}

void AppendTypes(std::string& out, std::span<const MlirType* const> types) {
  for (size_t i = 0; i < types.size(); ++i) {
    if (i) out += ", ";
    AppendType(out, *types[i]);
  }
}

}  // namespace

void AppendFunctionType(std::string& out, std::span<const MlirType* const> inputs,
                        std::span<const MlirType* const> results) {
  out += '(';
  AppendTypes(out, inputs);
  out += ") -> ";
  bool bare = results.size() == 1 && results[0]->kind != MlirTypeKind::Function;
  if (!bare) out += '(';
  AppendTypes(out, results);
  if (!bare) out += ')';
}

void AppendType(std::string& out, const MlirType& t) {
  switch (t.kind) {
    case MlirTypeKind::Integer:
      StrAppend(out, t.sign == MlirSign::Signless ? "i" : t.sign == MlirSign::Signed ? "si" : "ui", t.width);
      return;
    case MlirTypeKind::Index: out += "index"; return;
    case MlirTypeKind::Float: out += InfoOf(t.float_kind).name; return;
    case MlirTypeKind::Complex:
      out += "complex<";
      AppendType(out, *t.element());
      out += '>';
      return;
    case MlirTypeKind::Function: return AppendFunctionType(out, t.inputs(), t.results());
    case MlirTypeKind::Tuple:
    case MlirTypeKind::Future:
      out += t.kind == MlirTypeKind::Tuple ? "tuple<" : "!stablehlo.future<";
      AppendTypes(out, t.types);
      out += '>';
      return;
    case MlirTypeKind::Tensor:
    case MlirTypeKind::Vector:
    case MlirTypeKind::MemRef:
      out += t.IsTensor() ? "tensor<" : t.kind == MlirTypeKind::Vector ? "vector<" : "memref<";
      AppendDims(out, t.dims);
      AppendType(out, *t.element());
      if (t.encoding) {
        out += ", ";
        AppendAttr(out, *t.encoding);
      }
      out += '>';
      return;
    case MlirTypeKind::UnrankedTensor:
      out += "tensor<*x";
      AppendType(out, *t.element());
      out += '>';
      return;
    case MlirTypeKind::None: out += "none"; return;
    case MlirTypeKind::Token: out += "!stablehlo.token"; return;
    case MlirTypeKind::Quantized: return AppendQuant(out, t);
    case MlirTypeKind::Opaque: out += t.text; return;
  }
}

void AppendAttr(std::string& out, const MlirAttr& a) {
  switch (a.kind) {
    case MlirAttrKind::Unit: out += "unit"; return;
    case MlirAttrKind::Bool: out += a.bits ? "true" : "false"; return;
    case MlirAttrKind::Integer:
      if (a.type->kind == MlirTypeKind::Integer && a.type->sign == MlirSign::Unsigned) {
        StrAppend(out, a.bits, " : ");
      } else {
        StrAppend(out, a.as_int(), " : ");
      }
      return AppendType(out, *a.type);
    case MlirAttrKind::Float:
      AppendMlirFloat(out, a.bits, a.type->float_kind);
      out += " : ";
      return AppendType(out, *a.type);
    case MlirAttrKind::String:
      AppendMlirString(out, a.text);
      if (a.type) {
        out += " : ";
        AppendType(out, *a.type);
      }
      return;
    case MlirAttrKind::Array:
      out += '[';
      AppendList(out, a.elements);
      out += ']';
      return;
    case MlirAttrKind::Dict:
      out += '{';
      for (size_t i = 0; i < a.fields.size(); ++i) {
        if (i) out += ", ";
        AppendNamedAttr(out, a.fields[i]);
      }
      out += '}';
      return;
    case MlirAttrKind::Type: return AppendType(out, *a.type);
    case MlirAttrKind::Symbol:
      AppendMlirSymbol(out, a.text);
      for (const MlirAttr* e : a.elements) {
        out += "::";
        AppendMlirSymbol(out, e->text);
      }
      return;
    case MlirAttrKind::Dense: return AppendDense(out, a);
    case MlirAttrKind::DenseString: {
      out += "dense<";
      int64_t next = 0;
      if (a.splat && !a.elements.empty()) {
        AppendAttr(out, *a.elements[0]);
      } else if (!a.elements.empty()) {
        AppendNested(out, a.type->dims, next, [&](int64_t i) { AppendAttr(out, *a.elements[i]); });
      }
      out += "> : ";
      return AppendType(out, *a.type);
    }
    case MlirAttrKind::DenseResource:
      out += "dense_resource<";
      AppendMlirKey(out, a.text);
      out += "> : ";
      return AppendType(out, *a.type);
    case MlirAttrKind::DenseArray: return AppendDenseArray(out, a);
    case MlirAttrKind::Sparse: return AppendSparse(out, a);
    case MlirAttrKind::Struct: return AppendDialectAttr(out, a);
    case MlirAttrKind::Enum: {
      size_t dot = a.name.find('.');
      std::string_view mnemonic = a.name.substr(dot + 1);
      if (mnemonic == "result_accuracy_mode") {
        StrAppend(out, "#", a.name, "<", a.text, ">");
      } else {
        StrAppend(out, "#", a.name.substr(0, dot), "<", mnemonic, " ", a.text, ">");
      }
      return;
    }
    case MlirAttrKind::Opaque: out += a.text; return;
    default:
      out += "loc(";
      AppendLocBody(out, a);
      out += ')';
  }
}

void AppendNamedAttr(std::string& out, const MlirNamedAttr& attr) {
  AppendMlirKey(out, attr.name);
  if (attr.value->kind == MlirAttrKind::Unit) return;
  out += " = ";
  AppendAttr(out, *attr.value);
}

std::string PrintType(const MlirType& type) {
  std::string out;
  AppendType(out, type);
  return out;
}

std::string PrintAttr(const MlirAttr& attr) {
  std::string out;
  AppendAttr(out, attr);
  return out;
}

}  // namespace strop
