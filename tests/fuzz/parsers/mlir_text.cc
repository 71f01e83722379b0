// StableHLO as MLIR text.
#include "strop/import/import.h"
#include "tests/fuzz/parsers/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strop;
  if (LooksLikeMlirBytecode({data, size})) return 0;
  Result<std::vector<std::unique_ptr<Module>>> modules = ImportMlirText(fuzz::AsText(data, size), "");
  if (modules.ok())
    for (const std::unique_ptr<Module>& module : *modules) fuzz::InsistOnTextFixpoint(*module);
  Result<std::string> generic = MlirToGenericText({data, size});
  if (!generic.ok()) return 0;
  const auto* bytes = reinterpret_cast<const uint8_t*>(generic->data());
  Result<std::string> again = MlirToGenericText({bytes, generic->size()});
  fuzz::Insist(again.ok(), "the generic form is read",
               again.ok() ? "" : StrCat(again.status().ToString(), "\n", *generic));
  fuzz::Insist(*again == *generic, "the generic form stays", StrCat(*generic, "\n----\n", *again));
  return 0;
}
