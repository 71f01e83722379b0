// StableHLO as MLIR text.
#include "strop/import/import.h"
#include "tests/fuzz/parsers/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strop;
  if (LooksLikeMlirBytecode({data, size})) return 0;
  Result<std::vector<std::unique_ptr<Module>>> modules = ImportMlirText(fuzz::AsText(data, size), "");
  if (modules.ok())
    for (const std::unique_ptr<Module>& module : *modules) fuzz::InsistOnTextFixpoint(*module);
  fuzz::InsistOnGenericFixpoint({data, size});
  return 0;
}
