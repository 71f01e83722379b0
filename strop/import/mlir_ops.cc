#include "strop/import/mlir_ops.h"

#include <algorithm>
#include <unordered_map>

namespace strop {
namespace {

constexpr MlirOpInfo kMlirOps[] = {
#define MLIR_OP(name, properties, format) {name, properties, format},
#include "strop/import/mlir_ops.def"
#undef MLIR_OP
};

constexpr MlirEnumInfo kEnums[] = {
    {"stablehlo.precision", "DEFAULT HIGH HIGHEST"},
    {"chlo.precision", "DEFAULT HIGH HIGHEST"},
    {"stablehlo.result_accuracy_mode", "DEFAULT HIGHEST TOLERANCE"},
    {"stablehlo.fft_type", "FFT IFFT RFFT IRFFT"},
    {"stablehlo.comparison_direction", "EQ NE GE GT LE LT"},
    {"chlo.comparison_direction", "EQ NE GE GT LE LT"},
    {"stablehlo.comparison_type", "NOTYPE FLOAT TOTALORDER SIGNED UNSIGNED"},
    {"chlo.comparison_type", "NOTYPE FLOAT TOTALORDER SIGNED UNSIGNED"},
    {"stablehlo.transpose", "TRANSPOSE_INVALID NO_TRANSPOSE TRANSPOSE ADJOINT"},
    {"stablehlo.rng_distribution", "UNIFORM NORMAL", 1},
    {"stablehlo.rng_algorithm", "DEFAULT THREE_FRY PHILOX"},
    {"mhlo.kind", "sharding"},
    {"mhlo.fusion_kind", "kLoop kInput kOutput kCustom"},
    // Kept in MLIR as an i32 with these names in VHLO.
    {"stablehlo.custom_call_api_version",
     "API_VERSION_UNSPECIFIED API_VERSION_ORIGINAL API_VERSION_STATUS_RETURNING API_VERSION_STATUS_RETURNING_UNIFIED "
     "API_VERSION_TYPED_FFI"},
};

constexpr MlirStructInfo kStructs[] = {
    {"stablehlo.scatter",
     "update_window_dims:dims inserted_window_dims:dims input_batching_dims:dims scatter_indices_batching_dims:dims "
     "scatter_dims_to_operand_dims:dims index_vector_dim:int",
     true},
    {"stablehlo.gather",
     "offset_dims:dims collapsed_slice_dims:dims operand_batching_dims:dims start_indices_batching_dims:dims "
     "start_index_map:dims index_vector_dim:int",
     true},
    {"stablehlo.dot",
     "lhs_batching_dimensions:dims rhs_batching_dimensions:dims lhs_contracting_dimensions:dims "
     "rhs_contracting_dimensions:dims",
     true},
    {"chlo.ragged_dot",
     "lhs_batching_dimensions:dims rhs_batching_dimensions:dims lhs_contracting_dimensions:dims "
     "rhs_contracting_dimensions:dims lhs_ragged_dimensions:dims rhs_group_dimensions:dims",
     true},
    {"stablehlo.dot_algorithm",
     "lhs_precision_type:type rhs_precision_type:type accumulation_type:type lhs_component_count:int "
     "rhs_component_count:int "
     "num_primitive_operations:int allow_imprecise_accumulation:bool"},
    {"stablehlo.output_operand_alias", "output_tuple_indices:dims operand_index:int operand_tuple_indices:dims"},
    {"stablehlo.channel_handle", "handle:int type:int"},
    // Printed in their own notations (text_dialect_attrs.cc); the fields are those of the raw form.
    {"stablehlo.conv",
     "input_batch_dimension:int input_feature_dimension:int input_spatial_dimensions:dims "
     "kernel_input_feature_dimension:int "
     "kernel_output_feature_dimension:int kernel_spatial_dimensions:dims output_batch_dimension:int "
     "output_feature_dimension:int output_spatial_dimensions:dims"},
    {"stablehlo.type_extensions", "bounds:dims"},
    {"stablehlo.result_accuracy", "atol:attr rtol:attr ulps:int mode:attr"},
    {"stablehlo.sub_axis_info", "pre_size:int size:int"},
    {"stablehlo.axis_ref", "name:string sub_axis_info:attr"},
    {"stablehlo.mesh_axis", "name:string size:int"},
    {"stablehlo.mesh", "axes:attr device_ids:attr"},
    {"stablehlo.replica_group_mesh_axes", "mesh:attr axes:attr"},
};

template <class Info, size_t n>
const Info* FindByName(const Info (&table)[n], std::string_view name) {
  for (const Info& info : table) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

// Takes the next space-separated word off the front.
std::string_view NextWord(std::string_view& words) {
  size_t end = words.find(' ');
  std::string_view word = words.substr(0, end);
  words.remove_prefix(end == std::string_view::npos ? words.size() : end + 1);
  return word;
}

}  // namespace

const MlirOpInfo* FindMlirOp(std::string_view name) {
  static const auto* const index = [] {
    auto* map = new std::unordered_map<std::string_view, const MlirOpInfo*>();
    for (const MlirOpInfo& info : kMlirOps) map->emplace(info.name, &info);
    return map;
  }();
  auto it = index->find(name);
  return it == index->end() ? nullptr : it->second;
}

std::span<const MlirOpInfo> MlirOps() { return kMlirOps; }

bool IsIsolated(std::string_view op) {
  static constexpr std::string_view kIsolated[] = {
      "builtin.module",      "func.func",   "sdy.manual_computation", "sdy.named_computation", "stablehlo.async_start",
      "vhlo.async_start_v1", "vhlo.func_v1"};
  return std::ranges::find(kIsolated, op) != std::end(kIsolated);
}

bool IsProperty(const MlirOpInfo& info, std::string_view attr) {
  std::string_view rest = info.properties;
  while (!rest.empty()) {
    std::string_view word = NextWord(rest);
    if (word.ends_with('?')) word.remove_suffix(1);
    if (word == attr) return true;
  }
  return false;
}

const MlirEnumInfo* FindMlirEnum(std::string_view name) { return FindByName(kEnums, name); }

std::string_view EnumMember(const MlirEnumInfo& info, uint64_t number) {
  std::string_view rest = info.members;
  for (uint64_t i = info.first; !rest.empty(); ++i) {
    std::string_view word = NextWord(rest);
    if (i == number) return word;
  }
  return {};
}

std::string_view FindEnumMember(const MlirEnumInfo& info, std::string_view member) {
  std::string_view rest = info.members;
  while (!rest.empty()) {
    std::string_view word = NextWord(rest);
    if (word == member) return word;
  }
  return {};
}

const MlirStructInfo* FindMlirStruct(std::string_view name) { return FindByName(kStructs, name); }

bool NextField(std::string_view& fields, MlirFieldInfo& field) {
  if (fields.empty()) return false;
  std::string_view word = NextWord(fields);
  size_t colon = word.find(':');
  std::string_view kind = word.substr(colon + 1);
  field.name = word.substr(0, colon);
  field.kind = kind == "dims"     ? MlirFieldKind::Dims
               : kind == "int"    ? MlirFieldKind::Int
               : kind == "bool"   ? MlirFieldKind::Bool
               : kind == "type"   ? MlirFieldKind::Type
               : kind == "string" ? MlirFieldKind::String
                                  : MlirFieldKind::Attr;
  return true;
}

}  // namespace strop
