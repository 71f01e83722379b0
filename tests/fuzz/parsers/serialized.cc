// Serialised executables. The input is a program, which is put into an artifact as it came; loading compiles it, here
// for the backend that interprets: every pass sees programs with mistakes. What was compiled is then serialised and
// loaded without compiling. (Mistakes in artifacts themselves: artifact.cc.)
#include <string>

#include "strop/import/import.h"
#include "strop/pjrt/executable.h"
#include "tests/fuzz/parsers/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strop;
  const std::string_view input = fuzz::AsText(data, size);
  const bool proto = size > 0 && data[0] == 0x0a && !LooksLikeMlirBytecode({data, size});  // a module's name
  const std::string bytes = pjrt::SerializeSource(proto ? "hlo" : "mlir", "", input);
  Result<const Backend*> backend = FindBackend("null");
  fuzz::Insist(backend.ok(), "there is a backend that interprets");
  Result<std::shared_ptr<const pjrt::Program>> program = pjrt::DeserializeProgram(bytes, "", **backend, Options());
  if (program.ok()) {
    const Result<std::string> written = pjrt::SerializeProgram(**program);
    fuzz::Insist(written.ok(), "what was compiled is written", written.status().ToString());
    const auto again = pjrt::DeserializeProgram(*written, "", **backend, Options());
    fuzz::Insist(again.ok(), "what was written is read", again.status().ToString());
    fuzz::Insist(*pjrt::SerializeProgram(**again) == *written, "what was read is written the same");
  } else {
    fuzz::Insist(program.status().code() != StatusCode::kInternal, "what is refused is the user's mistake",
                 program.status().ToString());
  }
  return 0;
}
