// Transfers in pieces: the manager that fills a set of buffers chunk by chunk, and the stream that fills one.
#include <algorithm>
#include <cstring>

#include "strop/pjrt/buffer.h"
#include "strop/pjrt/slots.h"
#include "strop/pjrt/strided_copy.h"

struct PJRT_AsyncHostToDeviceTransferManager {
  struct Target {
    strop::Shape shape;
    strop::Ref<strop::Storage> storage;
    strop::EventRef definition;
    std::unique_ptr<PJRT_Buffer> buffer;  // until it is retrieved
    bool complete = false;
  };
  PJRT_Device* device = nullptr;
  std::mutex mutex;
  std::vector<Target> targets;  // `buffer` and `complete` guarded by mutex

  // Buffers that nobody can fill any more become errors.
  ~PJRT_AsyncHostToDeviceTransferManager() {
    for (Target& target : targets)
      target.definition->Set(strop::Status(strop::StatusCode::kCancelled, "the transfer manager was destroyed"));
  }
};

struct PJRT_CopyToDeviceStream {
  strop::Ref<strop::Storage> target;
  strop::EventRef definition;
  int64_t granule = 1;
  std::mutex mutex;
  int64_t current = 0;  // guarded by mutex
};

namespace strop::pjrt {
namespace {

using Manager = PJRT_AsyncHostToDeviceTransferManager;

Result<Manager::Target*> TargetOf(Manager* manager, int index) {
  if (index < 0 || static_cast<size_t>(index) >= manager->targets.size())
    return InvalidArgument("buffer ", index, " of a transfer manager with ", manager->targets.size(), " buffers");
  return &manager->targets[index];
}

// Marks the target as filled by this call; an error if it was already.
Status Finish(Manager* manager, Manager::Target* target) {
  std::lock_guard<std::mutex> lock(manager->mutex);
  if (target->complete) return FailedPrecondition("the buffer was transferred already");
  target->complete = true;
  return OkStatus();
}

}  // namespace

Status Client_CreateBuffersForAsyncHostToDevice(PJRT_Client_CreateBuffersForAsyncHostToDevice_Args& args) {
  STROP_ASSIGN(PJRT_Memory * memory, MemoryFrom(args.client, args.memory, nullptr));
  if (args.num_shape_specs > 0 && !args.shape_specs) return InvalidArgument("the list of shapes is null");
  if (args.device_layouts && args.num_device_layouts != args.num_shape_specs)
    return InvalidArgument(args.num_device_layouts, " layouts for ", args.num_shape_specs, " buffers");
  auto manager = std::make_unique<Manager>();
  manager->device = memory->device;
  for (size_t i = 0; i < args.num_shape_specs; ++i) {
    const PJRT_ShapeSpec& spec = args.shape_specs[i];
    Manager::Target target;
    STROP_ASSIGN(target.shape, ShapeFrom(spec.element_type, spec.dims, spec.num_dims));
    if (args.device_layouts) STROP_TRY(SetDeviceLayout(args.device_layouts[i], target.shape));
    target.definition = Make<Event>();
    STROP_ASSIGN(PJRT_Buffer * buffer, PendingBuffer(target.shape, memory, target.definition, target.storage));
    target.buffer.reset(buffer);
    manager->targets.push_back(std::move(target));
  }
  args.transfer_manager = manager.release();
  return OkStatus();
}

Status AsyncHostToDeviceTransferManager_Destroy(PJRT_AsyncHostToDeviceTransferManager_Destroy_Args& args) {
  delete args.transfer_manager;
  return OkStatus();
}

Status AsyncHostToDeviceTransferManager_TransferData(PJRT_AsyncHostToDeviceTransferManager_TransferData_Args& args) {
  Manager* manager = args.transfer_manager;
  STROP_ASSIGN(Manager::Target * target, TargetOf(manager, args.buffer_index));
  const int64_t bytes = target->storage->size();
  if (args.offset < 0 || args.transfer_size < 0 || args.offset > bytes || args.transfer_size > bytes - args.offset)
    return InvalidArgument("bytes [", args.offset, ", +", args.transfer_size, ") lie outside of a buffer of ", bytes);
  if (!args.data && args.transfer_size > 0) return InvalidArgument("the host data is null");
  if (target->definition->IsReady()) return FailedPrecondition("the buffer was transferred already");
  DenseCopy(args.data, static_cast<char*>(target->storage->data()) + args.offset, args.transfer_size,
            manager->device->client->device_set->pool());
  if (args.is_last_transfer) {
    STROP_TRY(Finish(manager, target));
    NormalizeSubByte(target->shape.type(), target->storage->data(), target->shape.num_elements());
    target->definition->Set(OkStatus());
  }
  args.done_with_h2d_transfer = NewEvent(Event::Ready());
  return OkStatus();
}

Status AsyncHostToDeviceTransferManager_TransferLiteral(
    PJRT_AsyncHostToDeviceTransferManager_TransferLiteral_Args& args) {
  Manager* manager = args.transfer_manager;
  STROP_ASSIGN(Manager::Target * target, TargetOf(manager, args.buffer_index));
  STROP_ASSIGN(Shape shape, ShapeFrom(args.shape_element_type, args.shape_dims, args.shape_num_dims));
  if (!shape.Compatible(target->shape))
    return InvalidArgument("a literal of ", shape.ToString(), " for a buffer of ", target->shape.ToString());
  if (!args.data && shape.byte_size() > 0) return InvalidArgument("the literal's data is null");
  STROP_ASSIGN(HostLayout layout, LayoutFrom(args.shape_layout, shape));
  STROP_TRY(Finish(manager, target));
  StridedCopy(shape, args.data, layout.byte_strides, target->storage->data(),
              DenseStrides(shape, shape.layout().minor_to_major), manager->device->client->device_set->pool());
  NormalizeSubByte(shape.type(), target->storage->data(), shape.num_elements());
  target->definition->Set(OkStatus());
  args.done_with_h2d_transfer = NewEvent(Event::Ready());
  return OkStatus();
}

Status AsyncHostToDeviceTransferManager_RetrieveBuffer(
    PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args& args) {
  STROP_ASSIGN(Manager::Target * target, TargetOf(args.transfer_manager, args.buffer_index));
  std::lock_guard<std::mutex> lock(args.transfer_manager->mutex);
  if (!target->buffer) return FailedPrecondition("buffer ", args.buffer_index, " was retrieved already");
  args.buffer_out = target->buffer.release();
  return OkStatus();
}

Status AsyncHostToDeviceTransferManager_Device(PJRT_AsyncHostToDeviceTransferManager_Device_Args& args) {
  args.device_out = args.transfer_manager->device;
  return OkStatus();
}

Status AsyncHostToDeviceTransferManager_BufferCount(PJRT_AsyncHostToDeviceTransferManager_BufferCount_Args& args) {
  args.buffer_count = args.transfer_manager->targets.size();
  return OkStatus();
}

Status AsyncHostToDeviceTransferManager_BufferSize(PJRT_AsyncHostToDeviceTransferManager_BufferSize_Args& args) {
  STROP_ASSIGN(Manager::Target * target, TargetOf(args.transfer_manager, args.buffer_index));
  args.buffer_size = static_cast<size_t>(target->storage->size());
  return OkStatus();
}

Status AsyncHostToDeviceTransferManager_SetBufferError(
    PJRT_AsyncHostToDeviceTransferManager_SetBufferError_Args& args) {
  STROP_ASSIGN(Manager::Target * target, TargetOf(args.transfer_manager, args.buffer_index));
  STROP_TRY(Finish(args.transfer_manager, target));
  target->definition->Set(StatusFrom(args.error_code, args.error_message, args.error_message_size));
  return OkStatus();
}

// Metadata is for profilers; there is none to give it to.
Status AsyncHostToDeviceTransferManager_AddMetadata(PJRT_AsyncHostToDeviceTransferManager_AddMetadata_Args&) {
  return OkStatus();
}

Status CopyToDeviceStream_Destroy(PJRT_CopyToDeviceStream_Destroy_Args& args) {
  if (args.stream)
    args.stream->definition->Set(Status(StatusCode::kCancelled, "the stream was destroyed before its end"));
  delete args.stream;
  return OkStatus();
}

// The chunk is consumed in any case; what is wrong with it arrives in the event.
Status CopyToDeviceStream_AddChunk(PJRT_CopyToDeviceStream_AddChunk_Args& args) {
  if (!args.chunk) return InvalidArgument("the chunk is null");
  PJRT_CopyToDeviceStream* stream = args.stream;
  const PJRT_Chunk& chunk = *args.chunk;
  const auto size = static_cast<int64_t>(chunk.size);
  Status status;
  bool complete = false;
  {
    std::lock_guard<std::mutex> lock(stream->mutex);
    if (size > stream->target->size() - stream->current) {
      status = InvalidArgument("a chunk of ", size, " bytes after ", stream->current, " of ", stream->target->size());
    } else if (size % stream->granule != 0) {
      status = InvalidArgument("a chunk of ", size, " bytes is no multiple of ", stream->granule);
    } else {
      if (size > 0) std::memcpy(static_cast<char*>(stream->target->data()) + stream->current, chunk.data, chunk.size);
      stream->current += size;
      complete = stream->current == stream->target->size();
    }
  }
  if (chunk.deleter) chunk.deleter(chunk.data, chunk.deleter_arg);
  if (complete) stream->definition->Set(OkStatus());
  args.transfer_complete = NewEvent(Event::ReadyWith(std::move(status)));
  return OkStatus();
}

Status CopyToDeviceStream_TotalBytes(PJRT_CopyToDeviceStream_TotalBytes_Args& args) {
  args.total_bytes = args.stream->target->size();
  return OkStatus();
}

Status CopyToDeviceStream_GranuleSize(PJRT_CopyToDeviceStream_GranuleSize_Args& args) {
  args.granule_size_in_bytes = args.stream->granule;
  return OkStatus();
}

Status CopyToDeviceStream_CurrentBytes(PJRT_CopyToDeviceStream_CurrentBytes_Args& args) {
  std::lock_guard<std::mutex> lock(args.stream->mutex);
  args.current_bytes = args.stream->current;
  return OkStatus();
}

}  // namespace strop::pjrt
