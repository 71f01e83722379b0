#include "strop/import/import.h"
#include "tests/fuzz/parsers/target.h"

namespace strop::fuzz {

void InsistOnGenericFixpoint(std::span<const uint8_t> program) {
  Result<std::string> text = MlirToGenericText(program);
  // The first round may write equal elements as one; from then on nothing changes.
  for (int round = 0; text.ok() && round < 2; ++round) {
    Result<std::string> again = MlirToGenericText({reinterpret_cast<const uint8_t*>(text->data()), text->size()});
    Insist(again.ok(), "the generic form is read", again.ok() ? "" : StrCat(again.status().ToString(), "\n", *text));
    Insist(round == 0 || *again == *text, "the generic form stays", StrCat(*text, "\n----\n", *again));
    text = std::move(again);
  }
}

}  // namespace strop::fuzz
