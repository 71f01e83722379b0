// The table of MLIR ops that are known by name (mlir_ops.def) and of the structured attributes and enums of their
// dialects.
#pragma once
#include <span>
#include <string_view>

namespace strop {

struct MlirOpInfo {
  std::string_view name;
  std::string_view properties;  // "dimension_numbers indices_are_sorted? slice_sizes"
  std::string_view format;
};
const MlirOpInfo* FindMlirOp(std::string_view name);  // null if not known
std::span<const MlirOpInfo> MlirOps();
// Whether `attr` is one of the op's inherent attributes.
bool IsProperty(const MlirOpInfo& info, std::string_view attr);
// Whether the regions of an op see no values from outside.
bool IsIsolated(std::string_view op);

// ---- enums: `#stablehlo<comparison_direction LT>`
struct MlirEnumInfo {
  std::string_view name;     // "stablehlo.comparison_direction"
  std::string_view members;  // "EQ NE GE GT LE LT": the numbers of the bytecode start at `first`
  int first = 0;
};
const MlirEnumInfo* FindMlirEnum(std::string_view name);
std::string_view EnumMember(const MlirEnumInfo& info, uint64_t number);              // "" if there is none
std::string_view FindEnumMember(const MlirEnumInfo& info, std::string_view member);  // the table's copy, or ""

// ---- structs: `#stablehlo.gather<offset_dims = [1], index_vector_dim = 1>`
enum class MlirFieldKind : uint8_t { Dims, Int, Bool, Type, String, Attr };
struct MlirFieldInfo {
  std::string_view name;
  MlirFieldKind kind = MlirFieldKind::Dims;
};
struct MlirStructInfo {
  std::string_view name;
  std::string_view fields;  // "offset_dims:dims index_vector_dim:int"
  // Fields that are empty lists or zero are left out in text (and then absent from the Struct).
  bool elide = false;
};
const MlirStructInfo* FindMlirStruct(std::string_view name);
// The next "name:kind" of a field list; false at the end.
bool NextField(std::string_view& fields, MlirFieldInfo& field);

}  // namespace strop
