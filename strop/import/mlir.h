// A small generic MLIR: what the text parser and the bytecode reader produce, and what the converter reads.
//
// Nothing here knows an op by name. Everything is owned by one MlirModule, whose arena frees it all at once; nodes are
// plain structs that are never changed after they are made (operations excepted: operands are patched when a forward
// reference is resolved). Attributes and types of dialects are structured the same way whatever they came from:
//
//   #stablehlo.gather<offset_dims = [1], index_vector_dim = 1>   Struct "stablehlo.gather" {offset_dims,
//   index_vector_dim} #stablehlo<comparison_direction LT>                          Enum
//   "stablehlo.comparison_direction", text "LT" #foo.bar<...> of a dialect that is not known                 Opaque,
//   the text as written
//
// An attribute may be shared by many others (bytecode tables are graphs), so each node carries the size of its expanded
// tree; kMaxTreeSize bounds what a printer or converter can be made to walk.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strop/base/status.h"
#include "strop/types/element_type.h"

namespace strop {

struct MlirAttr;
struct MlirOp;
struct MlirBlock;
struct MlirRegion;
struct MlirOpInfo;  // a row of ops.def

// Bump allocator. Memory is freed with the arena; no destructor runs.
class MlirArena {
 public:
  MlirArena() = default;
  MlirArena(const MlirArena&) = delete;
  MlirArena& operator=(const MlirArena&) = delete;

  void* Allocate(size_t bytes, size_t alignment);
  template <class T>
  T* New() {
    static_assert(std::is_trivially_destructible_v<T>);
    return new (Allocate(sizeof(T), alignof(T))) T();
  }
  template <class T>
  std::span<T> NewArray(size_t n) {
    static_assert(std::is_trivially_destructible_v<T>);
    T* p = static_cast<T*>(Allocate(n * sizeof(T), alignof(T)));
    for (size_t i = 0; i < n; ++i) new (p + i) T();
    return {p, n};
  }
  template <class T>
  std::span<T> CopyArray(std::span<const T> values) {
    std::span<T> out = NewArray<T>(values.size());
    for (size_t i = 0; i < values.size(); ++i) out[i] = values[i];
    return out;
  }
  template <class T>
  std::span<T> CopyArray(const std::vector<T>& values) {
    return CopyArray(std::span<const T>(values));
  }
  std::string_view CopyString(std::string_view text);

 private:
  std::vector<std::unique_ptr<std::byte[]>> chunks_;
  std::byte* next_ = nullptr;
  size_t left_ = 0;
};

inline constexpr int64_t kMlirDynamic = INT64_MIN;  // `?` in a shape
inline constexpr uint32_t kMaxTreeSize = 1u << 24;  // nodes of one attribute, shared ones counted each time
inline constexpr int kMaxNesting = 256;             // of regions, types and attributes in text

// ---- types
// ------------------------------------------------------------------------------------------------------------

// MLIR_FLOAT(enumerator, MLIR name, bits, element type; Invalid where HLO has none)
#define STROP_MLIR_FLOATS(MLIR_FLOAT)                          \
  MLIR_FLOAT(F16, "f16", 16, F16)                              \
  MLIR_FLOAT(BF16, "bf16", 16, BF16)                           \
  MLIR_FLOAT(F32, "f32", 32, F32)                              \
  MLIR_FLOAT(F64, "f64", 64, F64)                              \
  MLIR_FLOAT(F80, "f80", 80, Invalid)                          \
  MLIR_FLOAT(F128, "f128", 128, Invalid)                       \
  MLIR_FLOAT(TF32, "tf32", 19, Invalid)                        \
  MLIR_FLOAT(F4E2M1FN, "f4E2M1FN", 4, F4E2M1FN)                \
  MLIR_FLOAT(F6E2M3FN, "f6E2M3FN", 6, Invalid)                 \
  MLIR_FLOAT(F6E3M2FN, "f6E3M2FN", 6, Invalid)                 \
  MLIR_FLOAT(F8E3M4, "f8E3M4", 8, F8E3M4)                      \
  MLIR_FLOAT(F8E4M3, "f8E4M3", 8, F8E4M3)                      \
  MLIR_FLOAT(F8E4M3FN, "f8E4M3FN", 8, F8E4M3FN)                \
  MLIR_FLOAT(F8E4M3FNUZ, "f8E4M3FNUZ", 8, F8E4M3FNUZ)          \
  MLIR_FLOAT(F8E4M3B11FNUZ, "f8E4M3B11FNUZ", 8, F8E4M3B11FNUZ) \
  MLIR_FLOAT(F8E5M2, "f8E5M2", 8, F8E5M2)                      \
  MLIR_FLOAT(F8E5M2FNUZ, "f8E5M2FNUZ", 8, F8E5M2FNUZ)          \
  MLIR_FLOAT(F8E8M0FNU, "f8E8M0FNU", 8, F8E8M0FNU)

enum class MlirFloat : uint8_t {
#define MLIR_FLOAT(e, ...) e,
  STROP_MLIR_FLOATS(MLIR_FLOAT)
#undef MLIR_FLOAT
};
inline constexpr int kNumMlirFloats = static_cast<int>(MlirFloat::F8E8M0FNU) + 1;
struct MlirFloatInfo {
  std::string_view name;
  int bits;
  ElementType element;
};
const MlirFloatInfo& InfoOf(MlirFloat f);
// Decimal values can be told for the formats of HLO and the two of six bits; the others are kept as bits only.
bool HasFloatValue(MlirFloat f);
double DecodeMlirFloat(MlirFloat f, uint64_t bits);
uint64_t EncodeMlirFloat(MlirFloat f, double value);  // nearest, ties to even

struct MlirQuant {     // !quant.uniform<...>; scales and zero points in step
  uint64_t flags = 0;  // bit 0: the storage is signed
  int64_t axis = -1;   // per-axis dimension; -1 for per tensor, -2 for blockwise
  int64_t storage_min = 0, storage_max = 0;
  std::span<const double> scales;
  std::span<const int64_t> zero_points;
  std::span<const int64_t> block_axes, block_sizes;  // blockwise only
};

enum class MlirTypeKind : uint8_t {
  Integer,
  Index,
  Float,
  Complex,
  Function,
  Tuple,
  Tensor,
  UnrankedTensor,
  Vector,
  MemRef,
  None,
  Token,
  Future,
  Quantized,
  Opaque
};
enum class MlirSign : uint8_t { Signless = 0, Signed = 1, Unsigned = 2 };  // the numbers of the bytecode

struct MlirType {
  MlirTypeKind kind = MlirTypeKind::None;
  MlirSign sign = MlirSign::Signless;     // Integer
  MlirFloat float_kind = MlirFloat::F32;  // Float
  uint32_t width = 0;                     // Integer, Float: bits
  uint32_t num_inputs = 0;                // Function: types[0, num_inputs) are the inputs, the rest results
  uint32_t tree_size = 1;
  std::span<const int64_t> dims;  // Tensor, Vector, MemRef (kMlirDynamic for `?`)
  // Element type of Complex, Tensor, UnrankedTensor, Vector, MemRef; members of Tuple, Future; inputs and results of
  // Function; storage and expressed type of Quantized.
  std::span<const MlirType* const> types;
  const MlirAttr* encoding = nullptr;  // Tensor
  const MlirQuant* quant = nullptr;    // Quantized
  std::string_view text;               // Opaque: "!dialect.rest" as written

  bool IsTensor() const { return kind == MlirTypeKind::Tensor; }
  const MlirType* element() const { return types[0]; }
  std::span<const MlirType* const> inputs() const { return types.subspan(0, num_inputs); }
  std::span<const MlirType* const> results() const { return types.subspan(num_inputs); }
};
bool SameType(const MlirType& a, const MlirType& b);  // structural, encodings by their printed text
std::string PrintType(const MlirType& type);

// ---- attributes
// -------------------------------------------------------------------------------------------------------

enum class MlirAttrKind : uint8_t {
  Unit,
  Bool,
  Integer,
  Float,
  String,
  Array,
  Dict,
  Type,
  Symbol,
  Dense,
  DenseString,
  DenseResource,
  DenseArray,
  Sparse,
  Struct,
  Enum,
  Opaque,
  UnknownLoc,
  FileLoc,
  NameLoc,
  CallSiteLoc,
  FusedLoc
};

struct MlirNamedAttr {
  std::string_view name;
  const MlirAttr* value = nullptr;
};

struct MlirAttr {
  MlirAttrKind kind = MlirAttrKind::Unit;
  bool splat = false;  // Dense: `data` holds one element for all
  uint32_t tree_size = 1;
  // Integer, Float, String (may be null), Type (the value), Dense, DenseString, DenseResource, Sparse (the tensor),
  // DenseArray (the element).
  const MlirType* type = nullptr;
  // Bool: 0 or 1. Integer: sign- or zero-extended to 64 bits by its type. Float: the bits of its format.
  // FileLoc: line | column << 32.
  uint64_t bits = 0;
  // String and Symbol value; Enum member; Opaque text ("#dialect.rest"); DenseResource key; name of NameLoc; file of
  // FileLoc.
  std::string_view text;
  std::string_view name;  // Struct, Enum: "stablehlo.gather"
  // Array; DenseString values (Strings); nested references of a Symbol; {indices, values} of Sparse; NameLoc {child};
  // CallSiteLoc {callee, caller}; FusedLoc.
  std::span<const MlirAttr* const> elements;
  std::span<const MlirNamedAttr> fields;  // Dict (sorted by name), Struct (in declaration order)
  const MlirAttr* metadata = nullptr;     // FusedLoc
  // Dense, DenseArray, DenseResource: elements little-endian and row-major, each in whole bytes (i1 and i4 take one).
  std::string_view data;
  uint64_t range_end = 0;  // FileLoc: end line | end column << 32, 0 if there is no range

  const MlirAttr* Find(std::string_view field) const;  // Dict, Struct; null if absent
  bool IsLocation() const { return kind >= MlirAttrKind::UnknownLoc; }
  int64_t as_int() const { return static_cast<int64_t>(bits); }
};
std::string PrintAttr(const MlirAttr& attr);
// Value of a Float attribute (0 for formats that HLO lacks).
double FloatValue(const MlirAttr& attr);
// The integers of a DenseArray, of an integer Dense (splats expanded) or of an Array of Integers. Refused: other
// attributes, and more than kMaxIntegers values.
inline constexpr int64_t kMaxIntegers = 1 << 24;
Result<std::vector<int64_t>> IntegersOf(const MlirAttr& attr);
// Number of elements of a ranked static tensor type; nullopt if dynamic or beyond int64.
std::optional<int64_t> NumElements(const MlirType& type);
// Bytes that one element takes in MlirAttr::data; 0 if the element type has no such form.
int64_t ElementBytes(const MlirType& element);

// ---- operations
// -------------------------------------------------------------------------------------------------------

struct MlirValue {
  const MlirType* type = nullptr;
  MlirOp* op = nullptr;           // defining op, or
  MlirBlock* block = nullptr;     // the block whose argument this is
  uint32_t index = 0;             // result or argument number
  const MlirAttr* loc = nullptr;  // of block arguments
  std::string_view name;          // as written in text; empty otherwise
  // Of an argument whose value is told (an Integer), for sizes that depend on it.
  const MlirAttr* known = nullptr;
};

struct MlirOp {
  std::string_view name;             // "stablehlo.add"
  const MlirOpInfo* info = nullptr;  // its row, or null for an op that is not known
  std::span<MlirValue*> operands;
  std::span<MlirValue> results;
  std::span<const MlirNamedAttr> attrs;  // properties and discardable attributes together, sorted by name
  std::span<MlirRegion*> regions;
  std::span<MlirBlock*> successors;
  MlirBlock* parent = nullptr;
  const MlirAttr* loc = nullptr;  // never null

  const MlirAttr* Attr(std::string_view attr_name) const;  // null if absent
  std::string_view dialect() const { return name.substr(0, name.find('.')); }
};

struct MlirBlock {
  MlirRegion* parent = nullptr;
  std::span<MlirValue*> args;
  std::span<MlirOp*> ops;
};

struct MlirRegion {
  MlirOp* parent = nullptr;
  std::span<MlirBlock*> blocks;
};

// Where the user wrote it: "file.py:12:3", or "" if unknown. Follows names, call sites and fusions to the innermost
// file.
std::string LocationText(const MlirAttr* loc);
const MlirAttr* InnermostFile(const MlirAttr* loc);  // a FileLoc or null

// Owns everything that was read from one program.
class MlirModule {
 public:
  MlirModule();
  MlirOp* root = nullptr;  // builtin.module
  std::string producer;    // of bytecode
  int64_t bytecode_version = -1;

  MlirArena& arena() { return arena_; }
  // A module op with one empty block: takes in what stands at the top of a file.
  MlirOp* NewHolder(const MlirAttr* loc);

  // Types.
  const MlirType* Integer(uint32_t width, MlirSign sign = MlirSign::Signless);
  const MlirType* Float(MlirFloat f) { return floats_[static_cast<int>(f)]; }
  const MlirType* Index() { return index_; }
  const MlirType* None() { return none_; }
  const MlirType* Token() { return token_; }
  // The kinds that are just a list of types.
  Result<const MlirType*> Composite(MlirTypeKind kind, std::span<const MlirType* const> types, uint32_t num_inputs = 0);
  Result<const MlirType*> Tensor(std::span<const int64_t> dims, const MlirType* element,
                                 const MlirAttr* encoding = nullptr);
  Result<const MlirType*> Shaped(MlirTypeKind kind, std::span<const int64_t> dims, const MlirType* element);
  const MlirType* OpaqueType(std::string_view text);

  // Attributes.
  const MlirAttr* Unit() { return unit_; }
  const MlirAttr* UnknownLoc() { return unknown_loc_; }
  const MlirAttr* Bool(bool value) { return value ? true_ : false_; }
  const MlirAttr* Int(int64_t value, const MlirType* type);
  const MlirAttr* Int64(int64_t value) { return Int(value, Integer(64)); }
  const MlirAttr* FloatBits(uint64_t bits, const MlirType* type);
  const MlirAttr* String(std::string_view text, const MlirType* type = nullptr);
  const MlirAttr* Symbol(std::string_view root, std::span<const MlirAttr* const> nested = {});
  const MlirAttr* TypeValue(const MlirType* type);
  const MlirAttr* Enum(std::string_view name, std::string_view member);
  const MlirAttr* OpaqueAttr(std::string_view text);
  const MlirAttr* Ints(std::span<const int64_t> values);  // array<i64: ...>
  const MlirAttr* FileLoc(std::string_view file, uint64_t line, uint64_t column, uint64_t end_line = 0,
                          uint64_t end_column = 0);
  Result<const MlirAttr*> Array(std::span<const MlirAttr* const> elements);
  Result<const MlirAttr*> Dict(std::vector<MlirNamedAttr> fields);  // sorts; refuses a name twice
  Result<const MlirAttr*> Struct(std::string_view name, std::span<const MlirNamedAttr> fields);
  // A node given field by field: computes its tree size, refuses it if too large, and copies it into the arena (its
  // spans must already be there).
  Result<const MlirAttr*> Make(const MlirAttr& attr);

 private:
  MlirArena arena_;
  const MlirType* integers_[3][65] = {};
  const MlirType* floats_[kNumMlirFloats];
  const MlirType *index_, *none_, *token_;
  const MlirAttr *unit_, *unknown_loc_, *true_, *false_;
};

// The whole module in MLIR's generic form, `"stablehlo.add"(%0, %1) : (...) -> ...`; with_locations adds `loc(...)`.
std::string PrintGeneric(const MlirOp& op, bool with_locations = false);

}  // namespace strop
