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

// Events that are ready and OK are told apart by nothing: one immortal handle serves all, so that calls which ended
// before they returned allocate none.
inline PJRT_Event* ReadyEvent() {
  static PJRT_Event* const kReady = new PJRT_Event{Event::Ready()};
  return kReady;
}
inline PJRT_Event* NewEvent(EventRef event, bool of_contents = false) {
  if (event == Event::Ready()) return ReadyEvent();
  return new PJRT_Event{std::move(event), of_contents};
}

}  // namespace strop::pjrt
