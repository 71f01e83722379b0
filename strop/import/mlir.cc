#include "strop/import/mlir.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "strop/import/mlir_ops.h"

namespace strop {

void* MlirArena::Allocate(size_t bytes, size_t alignment) {
  size_t pad = (alignment - reinterpret_cast<uintptr_t>(next_) % alignment) % alignment;
  if (bytes + pad > left_) {
    size_t chunk = std::max<size_t>(bytes + alignment, 64 * 1024);
    chunks_.push_back(std::make_unique_for_overwrite<std::byte[]>(chunk));
    next_ = chunks_.back().get();
    left_ = chunk;
    pad = (alignment - reinterpret_cast<uintptr_t>(next_) % alignment) % alignment;
  }
  void* result = next_ + pad;
  next_ += pad + bytes;
  left_ -= pad + bytes;
  return result;
}

std::string_view MlirArena::CopyString(std::string_view text) {
  if (text.empty()) return {};
  char* p = static_cast<char*>(Allocate(text.size(), 1));
  std::memcpy(p, text.data(), text.size());
  return {p, text.size()};
}

const MlirFloatInfo& InfoOf(MlirFloat f) {
  static constexpr MlirFloatInfo kTable[] = {
#define MLIR_FLOAT(e, name, bits, element) {name, bits, ElementType::element},
      STROP_MLIR_FLOATS(MLIR_FLOAT)
#undef MLIR_FLOAT
  };
  return kTable[static_cast<int>(f)];
}

bool HasFloatValue(MlirFloat f) {
  return InfoOf(f).element != ElementType::Invalid || f == MlirFloat::F6E2M3FN || f == MlirFloat::F6E3M2FN;
}

double DecodeMlirFloat(MlirFloat f, uint64_t bits) {
  if (InfoOf(f).element != ElementType::Invalid) return DecodeFloat(InfoOf(f).element, bits);
  // Six bits: a sign, then exponent and mantissa; every code is a finite number.
  int mantissa_bits = f == MlirFloat::F6E2M3FN ? 3 : 2;
  int bias = f == MlirFloat::F6E2M3FN ? 1 : 3;
  int exponent = static_cast<int>(bits & 31) >> mantissa_bits;
  double mantissa = static_cast<double>(bits & ((1u << mantissa_bits) - 1)) / (1 << mantissa_bits);
  double value = exponent == 0 ? std::ldexp(mantissa, 1 - bias) : std::ldexp(1 + mantissa, exponent - bias);
  return bits & 32 ? -value : value;
}

uint64_t EncodeMlirFloat(MlirFloat f, double value) {
  if (InfoOf(f).element != ElementType::Invalid) return EncodeFloat(InfoOf(f).element, value);
  uint64_t sign = std::signbit(value) ? 32 : 0, best = 31;
  for (uint64_t code = 31; code-- > 0;) {  // codes ascend with their values
    double here = std::fabs(DecodeMlirFloat(f, code) - std::fabs(value)),
           there = std::fabs(DecodeMlirFloat(f, best) - std::fabs(value));
    if (here < there || (here == there && code % 2 == 0)) best = code;
  }
  return sign | best;
}

bool SameType(const MlirType& a, const MlirType& b) {
  if (&a == &b) return true;
  if (a.kind != b.kind || a.sign != b.sign || a.width != b.width || a.float_kind != b.float_kind) return false;
  if (a.num_inputs != b.num_inputs || a.text != b.text) return false;
  if (!std::ranges::equal(a.dims, b.dims) || a.types.size() != b.types.size()) return false;
  if ((a.encoding != nullptr) != (b.encoding != nullptr) || (a.quant != nullptr) != (b.quant != nullptr)) return false;
  if ((a.encoding || a.quant) && PrintType(a) != PrintType(b)) return false;
  for (size_t i = 0; i < a.types.size(); ++i) {
    if (!SameType(*a.types[i], *b.types[i])) return false;
  }
  return true;
}

const MlirAttr* MlirAttr::Find(std::string_view field) const {
  for (const MlirNamedAttr& f : fields) {
    if (f.name == field) return f.value;
  }
  return nullptr;
}

const MlirAttr* MlirOp::Attr(std::string_view attr_name) const {
  for (const MlirNamedAttr& a : attrs) {
    if (a.name == attr_name) return a.value;
  }
  return nullptr;
}

double FloatValue(const MlirAttr& attr) {
  return HasFloatValue(attr.type->float_kind) ? DecodeMlirFloat(attr.type->float_kind, attr.bits) : 0;
}

std::optional<int64_t> NumElements(const MlirType& type) {
  int64_t n = 1;
  bool zero = false;
  for (int64_t d : type.dims) {
    if (d < 0) return std::nullopt;
    if (d == 0) zero = true;
    if (d != 0 && n > INT64_MAX / d) {
      n = -1;
      break;
    }
    n *= d == 0 ? 1 : d;
  }
  if (zero) return 0;
  if (n < 0) return std::nullopt;
  return n;
}

int64_t ElementBytes(const MlirType& element) {
  switch (element.kind) {
    case MlirTypeKind::Integer:
      return element.width <= 64 ? (element.width <= 8 ? 1 : element.width <= 16 ? 2 : element.width <= 32 ? 4 : 8) : 0;
    case MlirTypeKind::Index: return 8;
    case MlirTypeKind::Float: return element.width <= 64 ? (element.width + 7) / 8 : 0;
    case MlirTypeKind::Complex:
      return element.element()->kind == MlirTypeKind::Complex ? 0 : 2 * ElementBytes(*element.element());
    case MlirTypeKind::Quantized: return ElementBytes(*element.types[0]);
    default: return 0;
  }
}

Result<std::vector<int64_t>> IntegersOf(const MlirAttr& attr) {
  std::vector<int64_t> out;
  if (attr.kind == MlirAttrKind::Array) {
    for (const MlirAttr* e : attr.elements) {
      if (e->kind != MlirAttrKind::Integer && e->kind != MlirAttrKind::Bool) {
        return InvalidArgument("expected a list of integers, got ", PrintAttr(attr));
      }
      out.push_back(e->as_int());
    }
    return out;
  }
  if (attr.kind != MlirAttrKind::Dense && attr.kind != MlirAttrKind::DenseArray) {
    return InvalidArgument("expected a list of integers, got ", PrintAttr(attr));
  }
  const MlirType& element = attr.kind == MlirAttrKind::Dense ? *attr.type->element() : *attr.type;
  int64_t bytes = ElementBytes(element);
  if ((element.kind != MlirTypeKind::Integer && element.kind != MlirTypeKind::Index) || bytes == 0) {
    return InvalidArgument("expected integers, got elements of type ", PrintType(element));
  }
  int64_t n = static_cast<int64_t>(attr.data.size()) / bytes;
  int64_t count = n;
  if (attr.splat) {
    std::optional<int64_t> total = NumElements(*attr.type);
    if (!total || *total > kMaxIntegers)
      return InvalidArgument("a list of integers of type ", PrintType(*attr.type), " is too long");
    count = *total;
  }
  if (count > kMaxIntegers) return InvalidArgument("a list of ", count, " integers is too long");
  out.reserve(count);
  for (int64_t i = 0; i < count; ++i) {
    uint64_t v = 0;
    std::memcpy(&v, attr.data.data() + (attr.splat ? 0 : i) * bytes, bytes);
    bool extend = element.kind == MlirTypeKind::Integer && element.sign != MlirSign::Unsigned && element.width > 1 &&
                  element.width < 64;
    if (extend && (v >> (element.width - 1)) & 1) v |= ~uint64_t{0} << element.width;
    out.push_back(static_cast<int64_t>(v));
  }
  return out;
}

const MlirAttr* InnermostFile(const MlirAttr* loc) {
  // A chain of names and call sites is as long as the user's stack; a fusion is searched first to last. The budget
  // bounds the walk of a location that shares its parts many times.
  std::vector<const MlirAttr*> stack = {loc};
  for (int budget = 4096; !stack.empty() && budget > 0; --budget) {
    const MlirAttr* l = stack.back();
    stack.pop_back();
    if (!l) continue;
    if (l->kind == MlirAttrKind::FileLoc) return l;
    for (size_t i = l->IsLocation() ? l->elements.size() : 0; i-- > 0;) stack.push_back(l->elements[i]);
  }
  return nullptr;
}

std::string LocationText(const MlirAttr* loc) {
  const MlirAttr* file = InnermostFile(loc);
  if (!file) return {};
  std::string out = StrCat(file->text, ":", file->bits & 0xffffffff);
  if (file->bits >> 32) StrAppend(out, ":", file->bits >> 32);
  return out;
}

// ---- MlirModule
// -------------------------------------------------------------------------------------------------------

MlirModule::MlirModule() {
  auto simple = [&](MlirTypeKind kind) {
    MlirType* t = arena_.New<MlirType>();
    t->kind = kind;
    return t;
  };
  index_ = simple(MlirTypeKind::Index);
  none_ = simple(MlirTypeKind::None);
  token_ = simple(MlirTypeKind::Token);
  for (int i = 0; i < kNumMlirFloats; ++i) {
    MlirType* t = simple(MlirTypeKind::Float);
    t->float_kind = static_cast<MlirFloat>(i);
    t->width = InfoOf(t->float_kind).bits;
    floats_[i] = t;
  }
  auto attr = [&](MlirAttrKind kind, uint64_t bits) {
    MlirAttr* a = arena_.New<MlirAttr>();
    a->kind = kind;
    a->bits = bits;
    return a;
  };
  unit_ = attr(MlirAttrKind::Unit, 0);
  unknown_loc_ = attr(MlirAttrKind::UnknownLoc, 0);
  true_ = attr(MlirAttrKind::Bool, 1);
  false_ = attr(MlirAttrKind::Bool, 0);
}

MlirOp* MlirModule::NewHolder(const MlirAttr* loc) {
  MlirOp* holder = arena_.New<MlirOp>();
  holder->name = "builtin.module";
  holder->info = FindMlirOp(holder->name);
  holder->loc = loc;
  MlirRegion* region = arena_.New<MlirRegion>();
  region->parent = holder;
  MlirBlock* block = arena_.New<MlirBlock>();
  block->parent = region;
  region->blocks = arena_.CopyArray(std::vector<MlirBlock*>{block});
  holder->regions = arena_.CopyArray(std::vector<MlirRegion*>{region});
  return holder;
}

const MlirType* MlirModule::Integer(uint32_t width, MlirSign sign) {
  if (width <= 64 && integers_[static_cast<int>(sign)][width]) return integers_[static_cast<int>(sign)][width];
  MlirType* t = arena_.New<MlirType>();
  t->kind = MlirTypeKind::Integer;
  t->width = width;
  t->sign = sign;
  if (width <= 64) integers_[static_cast<int>(sign)][width] = t;
  return t;
}

Result<const MlirType*> MlirModule::Composite(MlirTypeKind kind, std::span<const MlirType* const> types,
                                              uint32_t num_inputs) {
  uint64_t size = 1;
  for (const MlirType* t : types) size += t->tree_size;
  if (size > kMaxTreeSize) return InvalidArgument("a type is too large");
  MlirType* t = arena_.New<MlirType>();
  t->kind = kind;
  t->num_inputs = num_inputs;
  t->tree_size = static_cast<uint32_t>(size);
  t->types = arena_.CopyArray(types);
  return t;
}

Result<const MlirType*> MlirModule::Shaped(MlirTypeKind kind, std::span<const int64_t> dims, const MlirType* element) {
  if (element->tree_size > kMaxTreeSize / 2) return InvalidArgument("a type is too large");
  for (int64_t d : dims) {
    if (d < 0 && d != kMlirDynamic) return InvalidArgument("negative dimension ", d, " in a shaped type");
  }
  MlirType* t = arena_.New<MlirType>();
  t->kind = kind;
  t->dims = arena_.CopyArray(dims);
  t->types = arena_.CopyArray(std::span<const MlirType* const>(&element, 1));
  t->tree_size = element->tree_size + 1;
  return t;
}

Result<const MlirType*> MlirModule::Tensor(std::span<const int64_t> dims, const MlirType* element,
                                           const MlirAttr* encoding) {
  STROP_ASSIGN(const MlirType* t, Shaped(MlirTypeKind::Tensor, dims, element));
  if (!encoding) return t;
  if (encoding->tree_size > kMaxTreeSize / 2) return InvalidArgument("a type is too large");
  MlirType* with = arena_.New<MlirType>();
  *with = *t;
  with->encoding = encoding;
  with->tree_size += encoding->tree_size;
  return with;
}

const MlirType* MlirModule::OpaqueType(std::string_view text) {
  MlirType* t = arena_.New<MlirType>();
  t->kind = MlirTypeKind::Opaque;
  t->text = arena_.CopyString(text);
  return t;
}

const MlirAttr* MlirModule::Int(int64_t value, const MlirType* type) {
  MlirAttr* a = arena_.New<MlirAttr>();
  a->kind = MlirAttrKind::Integer;
  a->type = type;
  a->bits = static_cast<uint64_t>(value);
  return a;
}

const MlirAttr* MlirModule::FloatBits(uint64_t bits, const MlirType* type) {
  MlirAttr* a = arena_.New<MlirAttr>();
  a->kind = MlirAttrKind::Float;
  a->type = type;
  a->bits = bits;
  return a;
}

const MlirAttr* MlirModule::String(std::string_view text, const MlirType* type) {
  MlirAttr* a = arena_.New<MlirAttr>();
  a->kind = MlirAttrKind::String;
  a->type = type;
  a->text = text;
  return a;
}

const MlirAttr* MlirModule::Symbol(std::string_view root, std::span<const MlirAttr* const> nested) {
  MlirAttr* a = arena_.New<MlirAttr>();
  a->kind = MlirAttrKind::Symbol;
  a->text = root;
  a->elements = arena_.CopyArray(nested);
  a->tree_size = static_cast<uint32_t>(nested.size() + 1);
  return a;
}

const MlirAttr* MlirModule::TypeValue(const MlirType* type) {
  MlirAttr* a = arena_.New<MlirAttr>();
  a->kind = MlirAttrKind::Type;
  a->type = type;
  a->tree_size = type->tree_size;
  return a;
}

const MlirAttr* MlirModule::Enum(std::string_view name, std::string_view member) {
  MlirAttr* a = arena_.New<MlirAttr>();
  a->kind = MlirAttrKind::Enum;
  a->name = name;
  a->text = member;
  return a;
}

const MlirAttr* MlirModule::OpaqueAttr(std::string_view text) {
  MlirAttr* a = arena_.New<MlirAttr>();
  a->kind = MlirAttrKind::Opaque;
  a->text = arena_.CopyString(text);
  return a;
}

const MlirAttr* MlirModule::Ints(std::span<const int64_t> values) {
  MlirAttr* a = arena_.New<MlirAttr>();
  a->kind = MlirAttrKind::DenseArray;
  a->type = Integer(64);
  std::span<int64_t> copy = arena_.CopyArray(values);
  a->data = {reinterpret_cast<const char*>(copy.data()), copy.size_bytes()};
  return a;
}

const MlirAttr* MlirModule::FileLoc(std::string_view file, uint64_t line, uint64_t column, uint64_t end_line,
                                    uint64_t end_column) {
  auto pack = [](uint64_t l, uint64_t c) { return (l & 0xffffffff) | (c & 0xffffffff) << 32; };
  MlirAttr* a = arena_.New<MlirAttr>();
  a->kind = MlirAttrKind::FileLoc;
  a->text = file;
  a->bits = pack(line, column);
  a->range_end = pack(end_line, end_column);
  return a;
}

Result<const MlirAttr*> MlirModule::Make(const MlirAttr& attr) {
  uint64_t size = 1;
  for (const MlirAttr* e : attr.elements) size += e->tree_size;
  for (const MlirNamedAttr& f : attr.fields) size += f.value->tree_size;
  if (attr.type) size += attr.type->tree_size;
  if (attr.metadata) size += attr.metadata->tree_size;
  // A chain of locations shares callers; it is walked, never expanded, so that its size need only stay a number.
  if (size > kMaxTreeSize) {
    if (!attr.IsLocation()) return InvalidArgument("an attribute is too large");
    size = kMaxTreeSize;
  }
  MlirAttr* copy = arena_.New<MlirAttr>();
  *copy = attr;
  copy->tree_size = static_cast<uint32_t>(size);
  return copy;
}

Result<const MlirAttr*> MlirModule::Array(std::span<const MlirAttr* const> elements) {
  MlirAttr a;
  a.kind = MlirAttrKind::Array;
  a.elements = arena_.CopyArray(elements);
  return Make(a);
}

Result<const MlirAttr*> MlirModule::Dict(std::vector<MlirNamedAttr> fields) {
  std::ranges::stable_sort(fields, {}, &MlirNamedAttr::name);
  for (size_t i = 1; i < fields.size(); ++i) {
    if (fields[i].name == fields[i - 1].name) return InvalidArgument("attribute '", fields[i].name, "' is given twice");
  }
  MlirAttr a;
  a.kind = MlirAttrKind::Dict;
  a.fields = arena_.CopyArray(fields);
  return Make(a);
}

Result<const MlirAttr*> MlirModule::Struct(std::string_view name, std::span<const MlirNamedAttr> fields) {
  MlirAttr a;
  a.kind = MlirAttrKind::Struct;
  a.name = name;
  a.fields = arena_.CopyArray(fields);
  return Make(a);
}

}  // namespace strop
