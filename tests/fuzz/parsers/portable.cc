// Portable artifacts: a program in any form, MLIR text or bytecode, written for a release of StableHLO and read again.
// Which release follows from the size of the input, so that one corpus serves all.
#include "strop/import/import.h"
#include "strop/import/vhlo.h"
#include "tests/fuzz/parsers/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strop;
  const std::string release = StrCat("1.", size % (kCurrentStablehloMinor + 1), ".0");
  Result<std::string> artifact = WritePortableArtifact({data, size}, release);
  // The first round may drop what only says a default; from then on nothing changes.
  for (int round = 0; artifact.ok() && round < 2; ++round) {
    const std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(artifact->data()), artifact->size());
    Result<std::string> again = WritePortableArtifact(bytes, release);
    fuzz::Insist(again.ok(), "what was written is read and written", again.ok() ? "" : again.status().ToString());
    fuzz::Insist(round == 0 || *again == *artifact, "the artifact stays", release);
    fuzz::InsistOnGenericFixpoint(bytes);
    artifact = std::move(again);
  }
  return 0;
}
