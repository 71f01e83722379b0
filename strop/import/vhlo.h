// VHLO (the versioned form of StableHLO that portable artifacts hold) to StableHLO and back, in place.
#pragma once
#include <span>
#include <string_view>

#include "strop/base/status.h"
#include "strop/import/mlir.h"

namespace strop {

// Renames the vhlo ops below module.root and puts their flattened attributes together again:
//   vhlo.gather_v2 {offset_dims, collapsed_slice_dims, ..., slice_sizes}
//     -> stablehlo.gather {dimension_numbers = #stablehlo.gather<...>, slice_sizes}
// Versions of an op differ only in which attributes they have, and missing ones mean StableHLO's default, so that one
// row serves them all. Attributes that say no more than the default are dropped.
Status ConvertVhloToStablehlo(MlirModule& module);

// The inverse, to the ops of StableHLO's release 1.`minor`. What that release cannot say is refused.
inline constexpr int kCurrentStablehloMinor = 20;
Status ConvertStablehloToVhlo(MlirModule& module, int minor);

// A row of vhlo_ops.def: an op in one version, with its attributes in the order of the bytecode.
struct VhloOp {
  std::string_view name;  // "vhlo.add_v1"
  int first, last;        // the releases that write it
  const char* attributes;
};
// The op of a StableHLO op (its name without dialect) at a release; null if there is none.
const VhloOp* FindVhloOp(std::string_view base, int minor);
// The attributes of "vhlo.add_v1" and the like; nullptr if there is no such op.
const char* VhloAttributes(std::string_view op);

// ---- what both directions share
struct VhloStructRule {
  std::string_view ops;   // names without dialect and version
  std::string_view attr;  // the StableHLO attribute
  std::string_view name;  // the struct; its fields are attributes of the VHLO op
};
std::span<const VhloStructRule> VhloStructRules();
// Whether an attribute of an op says what its absence says.
bool IsVhloDefault(std::string_view op, std::string_view name, const MlirAttr& attr);
bool HasWord(std::string_view words, std::string_view word);  // of a list separated by blanks, or "*"

}  // namespace strop
