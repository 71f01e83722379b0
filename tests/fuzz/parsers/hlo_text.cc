// HLO text.
#include "strop/text/parser.h"
#include "tests/fuzz/parsers/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strop;
  Result<std::unique_ptr<Module>> module = ParseHloModule(fuzz::AsText(data, size));
  if (module.ok()) fuzz::InsistOnTextFixpoint(**module);
  return 0;
}
