#include "tests/fuzz/parsers/target.h"

#include <cstdio>
#include <cstdlib>

#include "strop/ir/printer.h"
#include "strop/ir/verifier.h"
#include "strop/text/parser.h"

namespace strop::fuzz {

void Insist(bool holds, std::string_view what, std::string_view detail) {
  if (holds) return;
  std::fprintf(stderr, "does not hold: %.*s\n%.*s\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(detail.size()), detail.data());
  std::abort();
}

void InsistOnTextFixpoint(const Module& module) {
  if (!VerifyModule(module).ok()) return;
  // The first round may spell out what was left open (the layouts of an entry); from then on nothing changes.
  std::string text = PrintModule(module);
  for (int round = 0; round < 2; ++round) {
    Result<std::unique_ptr<Module>> again = ParseHloModule(text);
    Insist(again.ok(), "what is printed is read", again.ok() ? "" : StrCat(again.status().ToString(), "\n", text));
    std::string once_more = PrintModule(**again);
    Insist(round == 0 || once_more == text, "what is printed and read is printed the same",
           StrCat(text, "\n----\n", once_more));
    text = std::move(once_more);
  }
}

}  // namespace strop::fuzz
