// PJRT_Error: a Status for the other side of the C boundary.
#pragma once
#include <string>

#include "strop/base/status.h"
#include "strop/pjrt/c_api.h"

struct PJRT_Error {
  const PJRT_Error_FunctionTable* table;  // first: part of the binary interface since 0.112
  PJRT_Error_Code code;
  std::string message;
};

namespace strop::pjrt {

// Null for OK. Never fails: where there is no memory for an error, a fixed out-of-memory error is returned.
PJRT_Error* MakeError(const Status& status) noexcept;
void DestroyError(PJRT_Error* error) noexcept;
// What a caller handed over as code and text (null text allowed). OK code gives an Internal error.
Status StatusFrom(PJRT_Error_Code code, const char* message, size_t message_size);

}  // namespace strop::pjrt
