// PJRT_Event: a handle to a runtime event. The event lives on without its handle, so that a callback registered before
// the handle was destroyed still comes.
#pragma once
#include "strop/pjrt/c_api.h"
#include "strop/runtime/event.h"

struct PJRT_Event {
  strop::EventRef event;
  bool of_contents = false;  // of a buffer: who asks for it waits for what is computed
};

namespace strop::pjrt {

inline PJRT_Event* NewEvent(EventRef event) { return new PJRT_Event{std::move(event)}; }

}  // namespace strop::pjrt
