// VHLO (the versioned form of StableHLO that portable artifacts hold) to StableHLO, in place.
#pragma once
#include "strop/base/status.h"
#include "strop/import/mlir.h"

namespace strop {

// Renames the vhlo ops below module.root and puts their flattened attributes together again:
//   vhlo.gather_v2 {offset_dims, collapsed_slice_dims, ..., slice_sizes}
//     -> stablehlo.gather {dimension_numbers = #stablehlo.gather<...>, slice_sizes}
// Versions of an op differ only in which attributes they have, and missing ones mean StableHLO's default, so that one
// row serves them all. Attributes that say no more than the default are dropped.
Status ConvertVhloToStablehlo(MlirModule& module);

// The attributes of "vhlo.add_v1" and the like in the order of the bytecode; nullptr if there is no such op.
const char* VhloAttributes(std::string_view op);

}  // namespace strop
