// Serialised executables. The input is what follows the version, or a program, which is put into an executable first,
// so that a mistake does not end at a length. Loading compiles, here for the backend that interprets: every pass sees
// programs with mistakes.
#include <string>

#include "strop/import/import.h"
#include "strop/pjrt/executable.h"
#include "tests/fuzz/parsers/target.h"

namespace {

void AppendPart(std::string& out, std::string_view part) {
  for (int i = 0; i < 8; ++i) out += static_cast<char>(uint64_t{part.size()} >> (8 * i));
  out += part;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strop;
  const std::string_view input = fuzz::AsText(data, size);
  std::string bytes = "STROPEXE";
  AppendPart(bytes, pjrt::Version());
  if (size > 7 && data[7] == 0) {  // the length of a format
    bytes += input;
  } else {
    const bool proto = size > 0 && data[0] == 0x0a && !LooksLikeMlirBytecode({data, size});  // a module's name
    for (std::string_view part : {std::string_view(proto ? "hlo" : "mlir"), std::string_view(), input})
      AppendPart(bytes, part);
  }
  Result<const Backend*> backend = FindBackend("null");
  fuzz::Insist(backend.ok(), "there is a backend that interprets");
  Result<std::shared_ptr<const pjrt::Program>> program = pjrt::DeserializeProgram(bytes, "", **backend, Options());
  if (program.ok())
    fuzz::Insist(pjrt::SerializeProgram(**program) == bytes, "what was read is written the same");
  else
    fuzz::Insist(program.status().code() != StatusCode::kInternal, "what is refused is the user's mistake",
                 program.status().ToString());
  return 0;
}
