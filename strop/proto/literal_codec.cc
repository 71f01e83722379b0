// Literals. LiteralProto holds the elements in the order of the literal's *layout*; our Literal is always row-major, so
// a layout that is not row-major permutes here. Types of less than a byte take one byte an element (XLA of 2026), older
// writers packed them, first element in the high bits; the size tells which.
#include <cstring>

#include "strop/proto/codecs.h"

namespace strop::codec {
namespace {

// Which bytes field holds elements of a type; null for those in typed repeated fields.
const std::string* BytesField(const proto::LiteralProto& in, ElementType type) {
  switch (type) {
    case ElementType::S1: return &in.s1s();
    case ElementType::S2: return &in.s2s();
    case ElementType::S4: return &in.s4s();
    case ElementType::S8: return &in.s8s();
    case ElementType::S16: return &in.s16s();
    case ElementType::U1: return &in.u1s();
    case ElementType::U2: return &in.u2s();
    case ElementType::U4: return &in.u4s();
    case ElementType::U8: return &in.u8s();
    case ElementType::U16: return &in.u16s();
    case ElementType::F16: return &in.f16s();
    case ElementType::BF16: return &in.bf16s();
    case ElementType::F4E2M1FN: return &in.f4e2m1fns();
    case ElementType::F8E3M4: return &in.f8e3m4s();
    case ElementType::F8E4M3: return &in.f8e4m3s();
    case ElementType::F8E4M3FN: return &in.f8e4m3fns();
    case ElementType::F8E4M3B11FNUZ: return &in.f8e4m3b11fnuzs();
    case ElementType::F8E4M3FNUZ: return &in.f8e4m3fnuzs();
    case ElementType::F8E5M2: return &in.f8e5m2s();
    case ElementType::F8E5M2FNUZ: return &in.f8e5m2fnuzs();
    case ElementType::F8E8M0FNU: return &in.f8e8m0fnus();
    default: return nullptr;
  }
}

// The element at `position` of the layout's order is row-major element result[position]; empty for row-major layouts.
std::vector<int64_t> RowMajorPositions(const Shape& shape) {
  if (!shape.has_layout() || shape.layout().IsRowMajor() || shape.rank() < 2) return {};
  const Int64Vector& minor_to_major = shape.layout().minor_to_major;
  Int64Vector strides = shape.WithoutLayout().Strides();
  std::vector<int64_t> positions(shape.num_elements());
  Int64Vector index(shape.rank(), 0);
  for (int64_t& position : positions) {
    position = 0;
    for (int64_t d = 0; d < shape.rank(); ++d) position += index[d] * strides[d];
    for (int64_t dim : minor_to_major) {
      if (++index[dim] < shape.dim(dim)) break;
      index[dim] = 0;
    }
  }
  return positions;
}

void Scatter(const uint8_t* from, uint8_t* to, int64_t size, const std::vector<int64_t>& positions) {
  for (size_t i = 0; i < positions.size(); ++i) std::memcpy(to + positions[i] * size, from + i * size, size);
}
void Gather(const uint8_t* from, uint8_t* to, int64_t size, const std::vector<int64_t>& positions) {
  for (size_t i = 0; i < positions.size(); ++i) std::memcpy(to + i * size, from + positions[i] * size, size);
}

std::string Unpack(const std::string& packed, int bits, int64_t count) {
  std::string out(count, '\0');
  const int per_byte = 8 / bits;
  for (int64_t i = 0; i < count; ++i) {
    int shift = bits * (per_byte - 1 - static_cast<int>(i % per_byte));
    out[i] = static_cast<char>((static_cast<uint8_t>(packed[i / per_byte]) >> shift) & ((1 << bits) - 1));
  }
  return out;
}

// Our bytes of s2, s4 hold the sign-extended value.
void SignExtend(std::string& bytes, int bits) {
  const int shift = 8 - bits;
  for (char& b : bytes) b = static_cast<char>(static_cast<int8_t>(static_cast<uint8_t>(b) << shift) >> shift);
}

// The elements as bytes in the layout's order, checked to be `count` many.
Result<std::string> ElementBytes(const proto::LiteralProto& in, ElementType type, int64_t count) {
  auto mismatch = [&](int64_t have) {
    return InvalidArgument("literal of ", Name(type), " with ", have, " elements, its shape has ", count);
  };
  auto typed = [&](const auto& values, int64_t per_element) -> Result<std::string> {
    if (values.size() / per_element != count || values.size() % per_element != 0)
      return mismatch(values.size() / per_element);
    return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(*values.data()));
  };
  switch (type) {
    case ElementType::Pred: {
      if (in.preds_size() != count) return mismatch(in.preds_size());
      std::string out(count, '\0');
      for (int64_t i = 0; i < count; ++i) out[i] = in.preds(static_cast<int>(i));
      return out;
    }
    case ElementType::S32: return typed(in.s32s(), 1);
    case ElementType::S64: return typed(in.s64s(), 1);
    case ElementType::U32: return typed(in.u32s(), 1);
    case ElementType::U64: return typed(in.u64s(), 1);
    case ElementType::F32: return typed(in.f32s(), 1);
    case ElementType::F64: return typed(in.f64s(), 1);
    case ElementType::C64: return typed(in.c64s(), 2);
    case ElementType::C128: return typed(in.c128s(), 2);
    default: break;
  }
  const std::string* bytes = BytesField(in, type);
  if (!bytes) return InvalidArgument("a literal cannot have element type ", Name(type));
  const int64_t have = static_cast<int64_t>(bytes->size());
  if (!IsSubByte(type)) {
    if (have % Bytes(type) != 0 || have / Bytes(type) != count) return mismatch(have / Bytes(type));
    return *bytes;
  }
  const int per_byte = 8 / Bits(type);
  std::string out;
  if (have == count) {
    out = *bytes;
    for (char& b : out) b &= static_cast<char>((1 << Bits(type)) - 1);
  } else if (have == count / per_byte + (count % per_byte != 0)) {
    out = Unpack(*bytes, Bits(type), count);
  } else {
    return mismatch(have);
  }
  if (IsSigned(type)) SignExtend(out, Bits(type));
  return out;
}

}  // namespace

void Encode(const Literal& literal, proto::LiteralProto* out) {
  const Shape& shape = literal.shape();
  Encode(shape.IsTuple() ? shape : shape.WithDefaultLayout(), out->mutable_shape());
  if (shape.IsTuple()) {
    for (const Literal& element : literal.elements()) Encode(element, out->add_tuple_literals());
    return;
  }
  if (!shape.IsArray()) return;
  std::string bytes(literal.bytes().begin(), literal.bytes().end());
  std::vector<int64_t> positions = RowMajorPositions(shape);
  if (!positions.empty())
    Gather(literal.bytes().data(), reinterpret_cast<uint8_t*>(bytes.data()), Bytes(shape.type()), positions);
  auto typed = [&](auto* field) {
    using T = typename std::remove_pointer_t<decltype(field)>::value_type;
    field->Resize(static_cast<int>(bytes.size() / sizeof(T)), T());
    if (!bytes.empty()) std::memcpy(field->mutable_data(), bytes.data(), bytes.size());
  };
  switch (shape.type()) {
    case ElementType::Pred:
      for (char b : bytes) out->add_preds(b != 0);
      return;
    case ElementType::S32: return typed(out->mutable_s32s());
    case ElementType::S64: return typed(out->mutable_s64s());
    case ElementType::U32: return typed(out->mutable_u32s());
    case ElementType::U64: return typed(out->mutable_u64s());
    case ElementType::F32: return typed(out->mutable_f32s());
    case ElementType::F64: return typed(out->mutable_f64s());
    case ElementType::C64: return typed(out->mutable_c64s());
    case ElementType::C128: return typed(out->mutable_c128s());
    default: break;
  }
  switch (shape.type()) {
#define BYTES(type, name) \
  case ElementType::type: *out->mutable_##name() = std::move(bytes); return;
    BYTES(S1, s1s)
    BYTES(S2, s2s)
    BYTES(S4, s4s)
    BYTES(S8, s8s)
    BYTES(S16, s16s)
    BYTES(U1, u1s)
    BYTES(U2, u2s)
    BYTES(U4, u4s)
    BYTES(U8, u8s)
    BYTES(U16, u16s)
    BYTES(F16, f16s)
    BYTES(BF16, bf16s)
    BYTES(F4E2M1FN, f4e2m1fns)
    BYTES(F8E3M4, f8e3m4s)
    BYTES(F8E4M3, f8e4m3s)
    BYTES(F8E4M3FN, f8e4m3fns)
    BYTES(F8E4M3B11FNUZ, f8e4m3b11fnuzs)
    BYTES(F8E4M3FNUZ, f8e4m3fnuzs)
    BYTES(F8E5M2, f8e5m2s)
    BYTES(F8E5M2FNUZ, f8e5m2fnuzs)
    BYTES(F8E8M0FNU, f8e8m0fnus)
#undef BYTES
    default: return;
  }
}

Result<Literal> Decode(const proto::LiteralProto& in) {
  if (!in.has_shape()) return InvalidArgument("literal without a shape");
  STROP_ASSIGN(Shape shape, Decode(in.shape()));
  if (shape.IsTuple()) {
    if (in.tuple_literals_size() != shape.tuple_size())
      return InvalidArgument("tuple literal with ", in.tuple_literals_size(), " elements, its shape has ",
                             shape.tuple_size());
    std::vector<Literal> elements;
    for (int i = 0; i < in.tuple_literals_size(); ++i) {
      STROP_ASSIGN(Literal element, Decode(in.tuple_literals(i)));
      if (!element.shape().Compatible(shape.element(i)))
        return InvalidArgument("element ", i, " of a tuple literal is ", element.shape().ToString(),
                               ", its shape says ", shape.element(i).ToString());
      elements.push_back(std::move(element));
    }
    return Literal::Tuple(std::move(elements));
  }
  if (shape.IsToken()) return Literal::Token();
  if (!shape.IsArray()) return InvalidArgument("literal of ", shape.ToString());
  for (int64_t i = 0; i < shape.rank(); ++i)
    if (shape.is_unbounded(i)) return InvalidArgument("literal of unbounded shape ", shape.ToString());
  // Counted before anything of that size is allocated: the bytes are here already.
  STROP_ASSIGN(std::string bytes, ElementBytes(in, shape.type(), shape.num_elements()));
  std::vector<int64_t> positions = RowMajorPositions(shape);
  if (!positions.empty()) {
    std::string row_major(bytes.size(), '\0');
    Scatter(reinterpret_cast<const uint8_t*>(bytes.data()), reinterpret_cast<uint8_t*>(row_major.data()),
            Bytes(shape.type()), positions);
    bytes = std::move(row_major);
  }
  return Literal::FromBytes(shape, {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

}  // namespace strop::codec
