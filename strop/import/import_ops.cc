// The table of converters, import_ops.def.
#include <unordered_map>

#include "strop/import/convert.h"

namespace strop {

#define IMPORT_OP(mlir, fn, ...) Status Convert##fn(OpImport& op);
#include "strop/import/import_ops.def"
#undef IMPORT_OP

namespace {

constexpr ImportRow kRows[] = {
#define IMPORT_OP(mlir, fn, hlo, operands, results, regions) {mlir, &Convert##fn, Op::hlo, operands, results, regions},
#include "strop/import/import_ops.def"
#undef IMPORT_OP
};

}  // namespace

const ImportRow* FindImportRow(std::string_view mlir_op) {
  static const auto* const index = [] {
    auto* map = new std::unordered_map<std::string_view, const ImportRow*>();
    for (const ImportRow& row : kRows) map->emplace(row.name, &row);
    return map;
  }();
  auto it = index->find(mlir_op);
  return it == index->end() ? nullptr : it->second;
}

}  // namespace strop
