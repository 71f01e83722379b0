// Notation of the structured attributes that are not plain lists of fields:
//
//   #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>   #stablehlo.bounds<?, 4>
//   #sdy.mesh<["a"=2, "b"=4]>   #sdy.sharding<@mesh, [{"a"}, {?}p1], replicated={"b":(1)2}>
//
// Printing is here; the reading side is text_dialect_attrs.cc.
#pragma once
#include <string>

#include "strop/import/mlir.h"

namespace strop {

// "#stablehlo.gather<...>" of a Struct.
void AppendDialectAttr(std::string& out, const MlirAttr& attr);
// The part in angle brackets (or other brackets) alone: "<@mesh, [{}]>"
void AppendDialectAttrBody(std::string& out, const MlirAttr& attr);
// "[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]"; falls back to the raw fields where the numbers are inconsistent.
void AppendConvDimensions(std::string& out, const MlirAttr& conv);
// The factors of a sharding rule, as in `([i, j])->([i]) {i=2, j=4}`: index 0 is i, 17 is z, 18 is z_1.
void AppendFactorSymbol(std::string& out, int64_t index);

}  // namespace strop
