// Buffers to host memory, to other memories and devices, and under other names (bitcast, donation).
#include <algorithm>

#include "strop/pjrt/buffer.h"
#include "strop/pjrt/slots.h"
#include "strop/pjrt/strided_copy.h"

namespace strop::pjrt {
namespace {

// Bytes from the lowest to one past the highest that an array with these strides takes; InvalidArgument for negative
// strides.
Result<int64_t> Span(const Shape& shape, std::span<const int64_t> byte_strides) {
  if (shape.num_elements() == 0) return 0;
  int64_t bytes = Bytes(shape.type());
  for (int64_t i = 0; i < shape.rank(); ++i) {
    if (byte_strides[i] < 0) return InvalidArgument("host layouts with negative strides are not supported");
    bytes = SaturatingAdd(bytes, SaturatingMultiply(shape.dim(i) - 1, byte_strides[i]));
  }
  return bytes;
}

// What the host takes of a buffer, and how it lies there.
struct Meant {
  Shape shape;
  Int64Vector strides;
};

// Of a value of bounded size no more than its size, which comes with the contents.
Result<Meant> MeantOf(const PJRT_Buffer* buffer) {
  Meant meant{buffer->shape(), DeviceStrides(buffer->shape())};
  if (meant.shape.IsStatic()) return meant;
  STROP_TRY(EventRef(buffer->buffer.definition())->Await());
  const Layout device = meant.shape.layout_or_default();
  meant.shape = Shape::Array(meant.shape.type(), buffer->buffer.dynamic_dims());
  meant.shape.set_layout(device);
  if (buffer->client()->options.synchronous) meant.strides = DeviceStrides(meant.shape);  // LaunchArgs::actual_sizes
  return meant;
}

Status CheckRange(const PJRT_Buffer* buffer, int64_t offset, int64_t size) {
  const int64_t bytes = buffer->buffer.byte_size();
  if (offset < 0 || size < 0 || offset > bytes || size > bytes - offset)
    return InvalidArgument("bytes [", offset, ", +", size, ") lie outside of a buffer of ", bytes, " bytes");
  return OkStatus();
}

// Copies to memory `to` of the same client; asynchronous where the source is not ready.
Result<PJRT_Buffer*> CopyTo(PJRT_Buffer* from, PJRT_Memory* to) {
  EventRef definition = Make<Event>();
  Ref<Storage> storage;
  STROP_ASSIGN(PJRT_Buffer * copy, PendingBuffer(from->shape(), to, definition, storage));
  EventRef copied =
      WhenDefined(from, [storage, pool = &from->device_set->pool(), size = from->buffer.dynamic_dims_cell(),
                         size_of_copy = copy->buffer.dynamic_dims_cell()](const void* data, int64_t bytes) {
        DenseCopy(data, storage->data(), bytes, *pool);
        if (size) *size_of_copy = *size;
        return OkStatus();
      });
  copied->OnReady([definition](const Status& status) { definition->Set(status); });
  return copy;
}

// A raw copy that waits for its destination as well.
struct RawCopy {
  Ref<Storage> source;  // null if the buffer was no more
  EventRef defined, done;
  int64_t offset = 0, size = 0;
};

void FutureReady(PJRT_Buffer_CopyRawToHostFuture_Callback_Args* args) {
  std::unique_ptr<RawCopy> copy(static_cast<RawCopy*>(args->callback_data));
  if (args->error_code != PJRT_Error_Code_OK) {
    copy->done->Set(StatusFrom(args->error_code, args->error_message, args->error_message_size));
    return;
  }
  EventRef defined = copy->defined;
  defined->OnReady([copy = std::shared_ptr<RawCopy>(std::move(copy)), dst = args->dst](const Status& status) {
    if (status.ok())
      std::copy_n(static_cast<const char*>(copy->source->data()) + copy->offset, copy->size, static_cast<char*>(dst));
    copy->done->Set(status);
  });
}

void DependencyReady(PJRT_Buffer_DonateWithControlDependency_Callback_Args* args) {
  EventRef dependency = EventRef::Adopt(static_cast<Event*>(args->callback_data));
  dependency->Set(args->error_code == PJRT_Error_Code_OK
                      ? OkStatus()
                      : StatusFrom(args->error_code, args->error_message, args->error_message_size));
}

}  // namespace

Status Buffer_ToHostBuffer(PJRT_Buffer_ToHostBuffer_Args& args) {
  PJRT_Buffer* buffer = args.src;
  STROP_ASSIGN(const Meant meant, MeantOf(buffer));
  STROP_ASSIGN(HostLayout layout, LayoutFrom(args.host_layout, meant.shape));
  STROP_ASSIGN(int64_t needed, Span(meant.shape, layout.byte_strides));
  if (!args.dst) {
    args.dst_size = static_cast<size_t>(needed);
    args.event = nullptr;
    return OkStatus();
  }
  if (args.dst_size < static_cast<size_t>(needed))
    return InvalidArgument("the host buffer has ", args.dst_size, " bytes, ", needed, " are needed");
  STROP_ASSIGN(Ref<Storage> alive, buffer->buffer.Acquire());  // a deleted buffer is told at once
  buffer->buffer.definition()->NoteAwaited();
  EventRef done = WhenDefined(
      buffer, [meant, layout, needed, dst = args.dst, pool = &buffer->device_set->pool()](const void* data, int64_t) {
        if (meant.shape.num_elements() == 0 || SameStrides(meant.shape, meant.strides, layout.byte_strides)) {
          DenseCopy(data, dst, needed, *pool);
        } else {
          StridedCopy(meant.shape, data, meant.strides, dst, layout.byte_strides, *pool);
        }
        return OkStatus();
      });
  args.event = NewEvent(std::move(done));
  return OkStatus();
}

Status Buffer_CopyRawToHost(PJRT_Buffer_CopyRawToHost_Args& args) {
  STROP_TRY(CheckRange(args.buffer, args.offset, args.transfer_size));
  if (!args.dst && args.transfer_size > 0) return InvalidArgument("the host memory is null");
  args.event = NewEvent(WhenDefined(args.buffer, [dst = args.dst, offset = args.offset, size = args.transfer_size,
                                                  pool = &args.buffer->device_set->pool()](const void* data, int64_t) {
    DenseCopy(static_cast<const char*>(data) + offset, dst, size, *pool);
    return OkStatus();
  }));
  return OkStatus();
}

Status Buffer_CopyRawToHostFuture(PJRT_Buffer_CopyRawToHostFuture_Args& args) {
  STROP_TRY(CheckRange(args.buffer, args.offset, args.transfer_size));
  STROP_ASSIGN(Ref<Storage> source, args.buffer->buffer.Acquire());
  EventRef done = Make<Event>();
  source->AddUse(done);
  args.callback_data =
      new RawCopy{std::move(source), args.buffer->buffer.definition(), done, args.offset, args.transfer_size};
  args.future_ready_callback = FutureReady;
  args.event = NewEvent(std::move(done));
  return OkStatus();
}

Status Buffer_CopyToDevice(PJRT_Buffer_CopyToDevice_Args& args) {
  STROP_ASSIGN(PJRT_Memory * to, MemoryFrom(args.buffer->client(), nullptr, args.dst_device));
  to = args.dst_device->memories[static_cast<int>(args.buffer->memory->kind)];
  STROP_ASSIGN(Ref<Storage> alive, args.buffer->buffer.Acquire());
  STROP_ASSIGN(args.dst_buffer, CopyTo(args.buffer, to));
  return OkStatus();
}

Status Buffer_CopyToMemory(PJRT_Buffer_CopyToMemory_Args& args) {
  STROP_ASSIGN(PJRT_Memory * to, MemoryFrom(args.buffer->client(), args.dst_memory, nullptr));
  STROP_ASSIGN(Ref<Storage> alive, args.buffer->buffer.Acquire());
  STROP_ASSIGN(args.dst_buffer, CopyTo(args.buffer, to));
  return OkStatus();
}

// The same bytes as another type or shape, in the same memory.
Status Buffer_Bitcast(PJRT_Buffer_Bitcast_Args& args) {
  STROP_ASSIGN(Shape shape, ShapeFrom(args.element_type, args.dims, args.num_dims));
  STROP_TRY(SetDeviceLayout(args.device_layout, shape));
  if (shape.byte_size() != args.buffer->buffer.byte_size())
    return InvalidArgument("cannot bitcast ", args.buffer->shape().ToString(), " to ", shape.ToString(),
                           ": the sizes differ");
  STROP_ASSIGN(Ref<Storage> storage, args.buffer->buffer.Acquire());
  args.out_buffer = NewBuffer(Buffer(std::move(storage), std::move(shape), args.buffer->device()->description->id,
                                     args.buffer->memory->kind, args.buffer->buffer.definition()),
                              args.buffer->memory);
  return OkStatus();
}

// The new buffer has the contents of the old one, which is donated, and is ready when both the contents and the
// dependency are.
Status Buffer_DonateWithControlDependency(PJRT_Buffer_DonateWithControlDependency_Args& args) {
  Shape shape = args.buffer->shape();
  EventRef dependency = Make<Event>();
  const EventRef both[] = {args.buffer->buffer.definition(), dependency};
  STROP_ASSIGN(Buffer::Donation donation, args.buffer->buffer.Donate());
  args.out_buffer =
      NewBuffer(Buffer(std::move(donation.storage), std::move(shape), args.buffer->device()->description->id,
                       args.buffer->memory->kind, Event::WhenAll(both)),
                args.buffer->memory);
  args.callback_data = dependency.Release();
  args.dependency_ready_callback = DependencyReady;
  return OkStatus();
}

}  // namespace strop::pjrt
