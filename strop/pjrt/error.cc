#include "strop/pjrt/error.h"

#include <new>

#include "strop/pjrt/slots.h"

namespace strop::pjrt {
namespace {

void TableDestroy(PJRT_Error* error) { DestroyError(error); }
void TableMessage(const PJRT_Error* error, const char** message, size_t* size) {
  *message = error ? error->message.c_str() : "";
  *size = error ? error->message.size() : 0;
}
PJRT_Error_Code TableCode(const PJRT_Error* error) { return error ? error->code : PJRT_Error_Code_OK; }
void TableForEachPayload(const PJRT_Error*, PJRT_Error_PayloadVisitor, void*) {}  // errors carry no payloads

constexpr PJRT_Error_FunctionTable kTable = {
    .struct_size = kStructSize<PJRT_Error_FunctionTable>,
    .instance_size = sizeof(PJRT_Error),
    .extension_start = nullptr,
    .destroy = TableDestroy,
    .message = TableMessage,
    .get_code = TableCode,
    .for_each_payload = TableForEachPayload,
};

// Short enough to live inside the std::string: making it allocates nothing but the object, once.
PJRT_Error* OutOfMemory() {
  alignas(PJRT_Error) static unsigned char place[sizeof(PJRT_Error)];
  static PJRT_Error* const kError =
      new (place) PJRT_Error{&kTable, PJRT_Error_Code_RESOURCE_EXHAUSTED, "out of memory"};
  return kError;
}

}  // namespace

PJRT_Error* MakeError(const Status& status) noexcept {
  if (status.ok()) [[likely]]
    return nullptr;
  try {
    std::string text = status.message();
    if (!status.location().empty()) StrAppend(text, " [at ", status.location(), "]");
    for (const std::string& note : status.notes()) StrAppend(text, "\n  note: ", note);
    return new PJRT_Error{&kTable, static_cast<PJRT_Error_Code>(status.code()), std::move(text)};
  } catch (...) {
    return OutOfMemory();
  }
}

void DestroyError(PJRT_Error* error) noexcept {
  if (error != OutOfMemory()) delete error;
}

Status StatusFrom(PJRT_Error_Code code, const char* message, size_t message_size) {
  std::string text = message ? std::string(message, message_size) : std::string("no message");
  if (code == PJRT_Error_Code_OK || code < 0 || code > PJRT_Error_Code_UNAUTHENTICATED)
    return Internal("error with code ", static_cast<int>(code), ": ", text);
  return Status(static_cast<StatusCode>(code), std::move(text));
}

void Error_Destroy(PJRT_Error_Destroy_Args& args) { DestroyError(args.error); }

void Error_Message(PJRT_Error_Message_Args& args) { TableMessage(args.error, &args.message, &args.message_size); }

Status Error_GetCode(PJRT_Error_GetCode_Args& args) {
  args.code = TableCode(args.error);
  return OkStatus();
}

Status Error_ForEachPayload(PJRT_Error_ForEachPayload_Args&) { return OkStatus(); }

}  // namespace strop::pjrt
