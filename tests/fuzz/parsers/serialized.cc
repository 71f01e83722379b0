// Serialised executables, from what follows the version on: the format of the program, compile options and the program
// as it came. Loading compiles, here for the backend that interprets, so that every pass sees programs with mistakes.
#include <string>

#include "strop/pjrt/executable.h"
#include "tests/fuzz/parsers/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strop;
  const std::string_view version = pjrt::Version();
  std::string bytes = "STROPEXE";
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(uint64_t{version.size()} >> (8 * i));
  StrAppend(bytes, version, fuzz::AsText(data, size));
  Result<const Backend*> backend = FindBackend("null");
  fuzz::Insist(backend.ok(), "there is a backend that interprets");
  const Options settings;
  Result<std::shared_ptr<const pjrt::Program>> program = pjrt::DeserializeProgram(bytes, "", **backend, settings);
  if (!program.ok()) {
    fuzz::Insist(program.status().code() != StatusCode::kInternal, "what is refused is the user's mistake",
                 program.status().ToString());
    return 0;
  }
  const std::string again = pjrt::SerializeProgram(**program);
  fuzz::Insist(again == bytes, "what was read is written the same");
  return 0;
}
