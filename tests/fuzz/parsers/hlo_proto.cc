// HloModuleProto and the messages that wrap it.
#include "strop/ir/printer.h"
#include "strop/ir/verifier.h"
#include "strop/proto/module_proto.h"
#include "tests/fuzz/parsers/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strop;
  Result<std::unique_ptr<Module>> module = ParseAnyModuleProto(fuzz::AsText(data, size));
  if (!module.ok() || !VerifyModule(**module).ok()) return 0;
  fuzz::InsistOnTextFixpoint(**module);
  Result<std::string> bytes = SerializeModuleProto(**module);
  fuzz::Insist(bytes.ok(), "what was read is written");
  Result<std::unique_ptr<Module>> again = ParseModuleProto(*bytes);
  fuzz::Insist(again.ok(), "what was written is read", again.ok() ? "" : again.status().ToString());
  PrintOptions plain;  // what had no layout gets one
  plain.layouts = false;
  const std::string text = PrintModule(**module, plain), once_more = PrintModule(**again, plain);
  fuzz::Insist(text == once_more, "the text stays through the proto", StrCat(text, "\n----\n", once_more));
  return 0;
}
