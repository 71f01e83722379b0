// StableHLO and VHLO as MLIR bytecode. Whatever the bytes, they are tried as bytecode.
#include <vector>

#include "strop/import/import.h"
#include "tests/fuzz/parsers/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strop;
  static constexpr uint8_t kMagic[] = {'M', 'L', 0xef, 'R'};
  std::vector<uint8_t> bytes(data, data + size);
  for (size_t i = 0; i < sizeof kMagic && i < size; ++i) bytes[i] = kMagic[i];
  if (!LooksLikeMlirBytecode(bytes)) return 0;
  Result<std::unique_ptr<Module>> module = ImportMlir(bytes);
  if (module.ok()) fuzz::InsistOnTextFixpoint(**module);
  fuzz::InsistOnGenericFixpoint(bytes);
  return 0;
}
