// CompileOptionsProto, as frameworks send it.
#include "strop/proto/compile_options.h"
#include "tests/fuzz/parsers/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strop;
  Result<FrontendCompileOptions> options = ParseCompileOptions(fuzz::AsText(data, size));
  if (!options.ok()) return 0;
  const std::string bytes = SerializeCompileOptions(*options);
  Result<FrontendCompileOptions> again = ParseCompileOptions(bytes);
  fuzz::Insist(again.ok(), "what was written is read", again.ok() ? "" : again.status().ToString());
  fuzz::Insist(SerializeCompileOptions(*again) == bytes, "what was read is written the same");
  return 0;
}
