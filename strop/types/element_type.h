// The element types of HLO. Enum values are XLA's PrimitiveType numbers: they are on the wire (HloModuleProto, FFI).
#pragma once
#include <bit>
#include <cstdint>
#include <optional>
#include <string_view>

namespace strop {

// ELEMENT(enumerator, wire number, HLO name, bits, kind)
// bits: size of one element in a packed buffer (pred is stored as one byte: 8).
#define STROP_ELEMENT_TYPES(ELEMENT)                    \
  ELEMENT(Pred, 1, "pred", 8, Pred)                     \
  ELEMENT(S2, 26, "s2", 2, Signed)                      \
  ELEMENT(S4, 21, "s4", 4, Signed)                      \
  ELEMENT(S8, 2, "s8", 8, Signed)                       \
  ELEMENT(S16, 3, "s16", 16, Signed)                    \
  ELEMENT(S32, 4, "s32", 32, Signed)                    \
  ELEMENT(S64, 5, "s64", 64, Signed)                    \
  ELEMENT(U2, 27, "u2", 2, Unsigned)                    \
  ELEMENT(U4, 22, "u4", 4, Unsigned)                    \
  ELEMENT(U8, 6, "u8", 8, Unsigned)                     \
  ELEMENT(U16, 7, "u16", 16, Unsigned)                  \
  ELEMENT(U32, 8, "u32", 32, Unsigned)                  \
  ELEMENT(U64, 9, "u64", 64, Unsigned)                  \
  ELEMENT(F16, 10, "f16", 16, Float)                    \
  ELEMENT(BF16, 16, "bf16", 16, Float)                  \
  ELEMENT(F32, 11, "f32", 32, Float)                    \
  ELEMENT(F64, 12, "f64", 64, Float)                    \
  ELEMENT(F8E5M2, 19, "f8e5m2", 8, Float)               \
  ELEMENT(F8E4M3, 28, "f8e4m3", 8, Float)               \
  ELEMENT(F8E4M3FN, 20, "f8e4m3fn", 8, Float)           \
  ELEMENT(F8E4M3B11FNUZ, 23, "f8e4m3b11fnuz", 8, Float) \
  ELEMENT(F8E5M2FNUZ, 24, "f8e5m2fnuz", 8, Float)       \
  ELEMENT(F8E4M3FNUZ, 25, "f8e4m3fnuz", 8, Float)       \
  ELEMENT(F8E3M4, 29, "f8e3m4", 8, Float)               \
  ELEMENT(F8E8M0FNU, 33, "f8e8m0fnu", 8, Float)         \
  ELEMENT(F4E2M1FN, 32, "f4e2m1fn", 4, Float)           \
  ELEMENT(C64, 15, "c64", 64, Complex)                  \
  ELEMENT(C128, 18, "c128", 128, Complex)               \
  ELEMENT(S1, 30, "s1", 1, Signed)                      \
  ELEMENT(U1, 31, "u1", 1, Unsigned)                    \
  ELEMENT(Tuple, 13, "tuple", 0, Other)                 \
  ELEMENT(Opaque, 14, "opaque", 0, Other)               \
  ELEMENT(Token, 17, "token", 0, Other)

enum class ElementType : uint8_t {
  Invalid = 0,
#define ELEMENT(e, number, ...) e = number,
  STROP_ELEMENT_TYPES(ELEMENT)
#undef ELEMENT
};
inline constexpr int kNumElementTypes = 34;  // one more than the largest wire number

enum class ElementKind : uint8_t { Pred, Signed, Unsigned, Float, Complex, Other };

namespace internal {
struct ElementInfo {
  std::string_view name = "invalid";
  uint8_t bits = 0;
  ElementKind kind = ElementKind::Other;
};
struct ElementTable {
  ElementInfo row[kNumElementTypes];
  constexpr ElementTable() {
#define ELEMENT(e, number, name, bits, kind) row[number] = ElementInfo{name, bits, ElementKind::kind};
    STROP_ELEMENT_TYPES(ELEMENT)
#undef ELEMENT
  }
};
inline constexpr ElementTable kElementTable;
}  // namespace internal

constexpr std::string_view Name(ElementType t) { return internal::kElementTable.row[static_cast<int>(t)].name; }
constexpr ElementKind Kind(ElementType t) { return internal::kElementTable.row[static_cast<int>(t)].kind; }
// Bits of one element where elements are packed; 0 for tuple, token and opaque.
constexpr int Bits(ElementType t) { return internal::kElementTable.row[static_cast<int>(t)].bits; }
// Bytes of one element in an unpacked buffer or a Literal: at least one (s4 takes a byte), 0 for non-arrays.
constexpr int Bytes(ElementType t) { return (Bits(t) + 7) / 8; }

constexpr bool IsArrayType(ElementType t) { return Kind(t) != ElementKind::Other; }
constexpr bool IsPred(ElementType t) { return t == ElementType::Pred; }
constexpr bool IsSigned(ElementType t) { return Kind(t) == ElementKind::Signed; }
constexpr bool IsUnsigned(ElementType t) { return Kind(t) == ElementKind::Unsigned; }
constexpr bool IsInteger(ElementType t) { return IsSigned(t) || IsUnsigned(t); }  // without pred
constexpr bool IsFloat(ElementType t) { return Kind(t) == ElementKind::Float; }
constexpr bool IsComplex(ElementType t) { return Kind(t) == ElementKind::Complex; }
constexpr bool IsSubByte(ElementType t) { return IsArrayType(t) && Bits(t) < 8; }
// f32 for c64, f64 for c128.
constexpr ElementType ComplexPart(ElementType t) { return t == ElementType::C64 ? ElementType::F32 : ElementType::F64; }
constexpr ElementType ComplexOf(ElementType t) { return t == ElementType::F32 ? ElementType::C64 : ElementType::C128; }

// "f32" -> F32. Tuple is not a name in HLO text.
std::optional<ElementType> ParseElementType(std::string_view name);
// A wire number, or nullopt when it names no type.
std::optional<ElementType> ElementTypeFromNumber(int64_t number);

// ---- small floating-point formats -----------------------------------------------------------------------------------
// The parameters of a binary floating-point format with at most 16 bits (also f32/f64 for the sake of tables).
struct FloatFormat {
  int bits;
  int exponent_bits;
  int mantissa_bits;  // stored, without the implicit one
  int bias;
  bool has_infinity;
  bool has_nan;
  bool has_negative_zero;  // false for the FNUZ formats, where the code of -0 is NaN, and for unsigned e8m0
  bool has_sign = true;
  bool has_zero = true;  // false for e8m0
};
const FloatFormat& FormatOf(ElementType t);  // t must be a float type

// Exact value of a code of format t; `code` holds Bits(t) bits.
double DecodeFloat(ElementType t, uint64_t code);
// The code nearest to `value`, ties to even; overflow gives infinity, or NaN where the format has no infinity (XLA's
// rule).
uint64_t EncodeFloat(ElementType t, double value);

}  // namespace strop
