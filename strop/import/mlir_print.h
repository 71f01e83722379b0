// Pieces of the MLIR printer; users call PrintGeneric, PrintAttr and PrintType of mlir.h.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "strop/import/mlir.h"

namespace strop {

void AppendMlirString(std::string& out, std::string_view text);  // "a\0Ab"
void AppendMlirSymbol(std::string& out, std::string_view name);  // @main, @"a b"
void AppendMlirKey(std::string& out, std::string_view key);      // name of an attribute
// Decimal text that reads back to the same bits, or 0x... with the bits.
void AppendMlirFloat(std::string& out, uint64_t bits, MlirFloat kind);
void AppendType(std::string& out, const MlirType& type);
void AppendFunctionType(std::string& out, std::span<const MlirType* const> inputs,
                        std::span<const MlirType* const> results);
void AppendAttr(std::string& out, const MlirAttr& attr);
void AppendNamedAttr(std::string& out, const MlirNamedAttr& attr);

}  // namespace strop
