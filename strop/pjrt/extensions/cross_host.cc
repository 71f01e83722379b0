// Buffers that go from a device of one process to a device of another: jax.device_put between their shardings. The two
// sides name each transfer by a key that the framework counts up in all processes alike. What a transfer waits for is
// waited for on the launch queue of this side's device.
#include "strop/pjrt/buffer.h"
#include "strop/pjrt/error.h"
#include "strop/pjrt/event.h"
#include "strop/pjrt/extensions.h"
#include "strop/pjrt/slots.h"
#include "strop/runtime/launch_queue.h"

namespace strop::pjrt {
namespace {

Result<ProcessGroup*> ProcessesOf(PJRT_Client* client) {
  if (!client->processes) return FailedPrecondition("a transfer between processes, and there is one process");
  return client->processes.get();
}

Result<PJRT_Device*> DeviceOf(PJRT_Client* client, int id) {
  if (id < 0 || static_cast<size_t>(id) >= client->devices.size())
    return InvalidArgument("a transfer from or to device ", id, "; there are ", client->devices.size());
  PJRT_Device* device = client->devices[id];
  if (device->device) return InvalidArgument("a transfer between processes names device ", id, " of this one");
  return device;
}

// One buffer to another process; the event comes when it has been taken.
Result<EventRef> Send(PJRT_Client* client, PJRT_Buffer* buffer, int to, int64_t key) {
  STROP_ASSIGN(ProcessGroup * processes, ProcessesOf(client));
  STROP_TRY(DeviceOf(client, to));
  STROP_ASSIGN(Ref<Storage> storage, buffer->buffer.Acquire());
  PJRT_Device* device = buffer->device();
  EventRef done = Make<Event>();
  storage->AddUse(done);
  const TransferId id{.key = key, .from = device->description->id, .to = to};
  auto send = [processes = processes->shared_from_this(), storage, bytes = buffer->buffer.byte_size(), id, done] {
    LaunchQueue::BlockingScope blocking;
    done->Set(processes->SendBuffer(id, storage->data(), bytes));
  };
  buffer->buffer.definition()->OnReady([send = std::move(send), done, device](const Status& status) mutable {
    if (status.ok())
      device->device->queue().Enqueue(std::move(send));
    else
      done->Set(status);
  });
  return done;
}

Status SendBuffers(PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args& args) {
  std::vector<EventRef> sent;
  for (size_t i = 0; i < args.num_buffers; ++i) {
    STROP_ASSIGN(EventRef done,
                 Send(args.client, args.buffers[i], args.dst_global_device_ids[i], args.transfer_keys[i]));
    sent.push_back(std::move(done));
  }
  for (size_t i = 0; i < sent.size(); ++i) args.send_events[i] = NewEvent(std::move(sent[i]));
  return OkStatus();
}

Result<PJRT_Buffer*> Receive(PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args& args, size_t i) {
  STROP_ASSIGN(ProcessGroup * processes, ProcessesOf(args.client));
  const int from = args.src_global_device_ids[i];
  STROP_TRY(DeviceOf(args.client, from));
  STROP_ASSIGN(Shape shape, ShapeFrom(args.element_types[i], args.dims[i], args.shape_num_dims[i]));
  STROP_TRY(SetDeviceLayout(args.layouts ? args.layouts[i] : nullptr, shape));
  EventRef defined = Make<Event>();
  Ref<Storage> storage;
  STROP_ASSIGN(PJRT_Buffer * buffer, PendingBuffer(shape, args.device->memories[0], defined, storage));
  const TransferId id{.key = args.transfer_keys[i], .from = from, .to = args.device->description->id};
  args.device->device->queue().Enqueue(
      [processes = processes->shared_from_this(), storage, bytes = buffer->buffer.byte_size(), id, defined] {
        LaunchQueue::BlockingScope blocking;
        defined->Set(processes->ReceiveBuffer(id, storage->data(), bytes));
      });
  return buffer;
}

Status ReceiveBuffers(PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args& args) {
  if (!args.client->Owns(args.device)) return InvalidArgument("the device belongs to another client");
  STROP_TRY(CheckAddressable(args.device));
  for (size_t i = 0; i < args.num_shapes; ++i) {
    Result<PJRT_Buffer*> buffer = Receive(args, i);
    if (!buffer.ok()) {
      for (size_t made = 0; made < i; ++made) delete args.buffers[made];
      return std::move(buffer).status();
    }
    args.buffers[i] = *buffer;
  }
  return OkStatus();
}

// The older way, by descriptors, which frameworks take where the newer one is not there.
Status MakeReceiveBuffers(PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args&) {
  return Unimplemented(
      "transfers between processes by descriptors; there are CrossHostSendBuffers and -ReceiveBuffers");
}

void CopyToRemoteDevice(PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice_Args* args) {
  const Status status = Unimplemented("copies to a remote device by descriptor; there is CrossHostSendBuffers");
  if (args->on_done) args->on_done(MakeError(status), /*sends_were_enqueued=*/false, args->on_done_user_arg);
}

}  // namespace

PJRT_Extension_Base* CrossHostTransfersExtension(PJRT_Extension_Base* next) {
  static PJRT_CrossHostTransfers_Extension extension = {
      {sizeof(PJRT_CrossHostTransfers_Extension), PJRT_Extension_Type_CrossHostTransfers, nullptr},
      &Entry<PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers_Args, &MakeReceiveBuffers,
             "PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers">,
      &CopyToRemoteDevice,
      &Entry<PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args, &ReceiveBuffers,
             "PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers">,
      &Entry<PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args, &SendBuffers,
             "PJRT_Transfers_PJRT_Client_CrossHostSendBuffers">};
  extension.base.next = next;
  return &extension.base;
}

}  // namespace strop::pjrt
