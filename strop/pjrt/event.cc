#include "strop/pjrt/event.h"

#include "strop/pjrt/slots.h"

namespace strop::pjrt {

Status Event_Destroy(PJRT_Event_Destroy_Args& args) {
  if (args.event != ReadyEvent()) delete args.event;
  return OkStatus();
}

Status Event_IsReady(PJRT_Event_IsReady_Args& args) {
  args.is_ready = args.event->event->IsReady();
  return OkStatus();
}

Status Event_Error(PJRT_Event_Error_Args& args) {
  if (!args.event->event->IsReady()) return FailedPrecondition("PJRT_Event_Error: the event is not ready yet");
  return args.event->event->status();
}

Status Event_Await(PJRT_Event_Await_Args& args) {
  EventRef event = args.event->event;  // another thread may destroy the handle meanwhile
  return event->Await();
}

Status Event_OnReady(PJRT_Event_OnReady_Args& args) {
  if (!args.callback) return InvalidArgument("PJRT_Event_OnReady: callback is null");
  if (args.event->of_contents) args.event->event->NoteAwaited();
  args.event->event->OnReady([callback = args.callback, user_arg = args.user_arg](const Status& status) {
    callback(MakeError(status), user_arg);  // the callback owns the error
  });
  return OkStatus();
}

Status Event_Create(PJRT_Event_Create_Args& args) {
  args.event = NewEvent(Make<Event>());
  return OkStatus();
}

Status Event_Set(PJRT_Event_Set_Args& args) {
  Status status;
  if (args.error_code != PJRT_Error_Code_OK)
    status = StatusFrom(args.error_code, args.error_message, args.error_message_size);
  if (!args.event->event->Set(std::move(status))) return FailedPrecondition("PJRT_Event_Set: the event is set already");
  return OkStatus();
}

}  // namespace strop::pjrt
