// Host data to buffers: PJRT_Client_BufferFromHostBuffer and the ways to make a buffer without copying.
//
// Zero copy: where the caller promises that the memory stays (semantics 2 and 3), it is dense, 64-byte aligned (kernels
// rely on that; numpy's memory often is not) and large enough to be worth an event, the buffer is a view and the
// caller's event comes when the last user is gone. Everything else is copied during the call, and the event is ready at
// once.
#include "strop/pjrt/buffer.h"
#include "strop/pjrt/slots.h"
#include "strop/pjrt/strided_copy.h"

struct PJRT_FulfillAliasBufferCallback {
  PJRT_Buffer* alias = nullptr;  // until fulfilled
  strop::Ref<strop::Storage> storage;
  strop::EventRef definition;
};

namespace strop::pjrt {
namespace {

constexpr int64_t kLeastZeroCopyBytes = 4096;

bool MayAlias(const PJRT_Client_BufferFromHostBuffer_Args& args, const Shape& shape) {
  return args.host_buffer_semantics >= PJRT_HostBufferSemantics_kImmutableZeroCopy && !IsSubByte(shape.type()) &&
         shape.byte_size() >= kLeastZeroCopyBytes && reinterpret_cast<uintptr_t>(args.data) % kBufferAlignment == 0;
}

PJRT_Buffer* BufferOf(Ref<Storage> storage, Shape shape, PJRT_Memory* memory, EventRef definition = Event::Ready()) {
  return NewBuffer(Buffer(std::move(storage), std::move(shape), memory->device->description->id, memory->kind,
                          std::move(definition)),
                   memory);
}

}  // namespace

Status Client_BufferFromHostBuffer(PJRT_Client_BufferFromHostBuffer_Args& args) {
  STROP_ASSIGN(PJRT_Memory * memory, MemoryFrom(args.client, args.memory, args.device));
  STROP_ASSIGN(Shape shape, ShapeFrom(args.type, args.dims, args.num_dims));
  if (args.host_buffer_semantics < 0 || args.host_buffer_semantics > PJRT_HostBufferSemantics_kMutableZeroCopy)
    return InvalidArgument("unknown host buffer semantics ", static_cast<int>(args.host_buffer_semantics));
  STROP_TRY(SetDeviceLayout(args.device_layout, shape));
  if (shape.IsToken()) shape = Shape::Array(ElementType::Pred, {0}).WithDefaultLayout();
  if (!args.data && shape.byte_size() > 0) return InvalidArgument("the host data is null");
  Int64Vector strides;
  if (args.num_byte_strides > 0) {
    if (static_cast<int64_t>(args.num_byte_strides) != shape.rank() || !args.byte_strides)
      return InvalidArgument(args.num_byte_strides, " byte strides for ", shape.ToString());
    strides.assign(args.byte_strides, args.byte_strides + args.num_byte_strides);
  } else {
    strides = DenseStrides(shape, Layout::RowMajor(shape.rank()).minor_to_major);
  }
  const bool dense = shape.num_elements() == 0 || SameStrides(shape, strides, DeviceStrides(shape));
  if (dense && MayAlias(args, shape)) {
    EventRef done = Make<Event>();
    const bool writable = args.host_buffer_semantics == PJRT_HostBufferSemantics_kMutableZeroCopy;
    Ref<Storage> view =
        Storage::View(const_cast<void*>(args.data), shape.byte_size(), [done] { done->Set(OkStatus()); }, writable);
    args.buffer = BufferOf(std::move(view), std::move(shape), memory);
    args.done_with_host_buffer = NewEvent(std::move(done));
    return OkStatus();
  }
  STROP_ASSIGN(Ref<Storage> storage, AllocateFor(shape, memory));
  ThreadPool& pool = args.client->device_set->pool();
  if (dense) {
    DenseCopy(args.data, storage->data(), shape.byte_size(), pool);
  } else {
    StridedCopy(shape, args.data, strides, storage->data(), DeviceStrides(shape), pool);
  }
  NormalizeSubByte(shape.type(), storage->data(), shape.num_elements());
  args.buffer = BufferOf(std::move(storage), std::move(shape), memory);
  args.done_with_host_buffer = NewEvent(Event::Ready());
  return OkStatus();
}

Status Client_CreateViewOfDeviceBuffer(PJRT_Client_CreateViewOfDeviceBuffer_Args& args) {
  PJRT_Memory* given = STROP_PJRT_HAS(args, memory) ? args.memory : nullptr;
  STROP_ASSIGN(PJRT_Memory * memory, MemoryFrom(args.client, given, args.device));
  STROP_ASSIGN(Shape shape, ShapeFrom(args.element_type, args.dims, args.num_dims));
  STROP_TRY(SetDeviceLayout(args.layout, shape));
  if (!args.device_buffer_ptr && shape.byte_size() > 0) return InvalidArgument("the device buffer is null");
  std::function<void()> on_delete;
  if (args.on_delete_callback)
    on_delete = [callback = args.on_delete_callback, data = args.device_buffer_ptr,
                 user = args.on_delete_callback_arg] { callback(data, user); };
  if (reinterpret_cast<uintptr_t>(args.device_buffer_ptr) % kBufferAlignment != 0 && shape.byte_size() > 0) {
    // Kernels rely on the alignment: memory that lacks it is copied, and given back at once. (A refusal would be no
    // help: jaxlib then asks for a way to copy that the C API does not have.)
    STROP_ASSIGN(Ref<Storage> copy, AllocateFor(shape, memory));
    DenseCopy(args.device_buffer_ptr, copy->data(), shape.byte_size(), args.client->device_set->pool());
    if (on_delete) on_delete();
    args.buffer = BufferOf(std::move(copy), std::move(shape), memory);
    return OkStatus();
  }
  const int64_t bytes = shape.byte_size();
  args.buffer = BufferOf(Storage::View(args.device_buffer_ptr, bytes, std::move(on_delete), /*writable=*/true),
                         std::move(shape), memory);
  return OkStatus();
}

Status Client_CreateUninitializedBuffer(PJRT_Client_CreateUninitializedBuffer_Args& args) {
  STROP_ASSIGN(PJRT_Memory * memory, MemoryFrom(args.client, args.memory, args.device));
  STROP_ASSIGN(Shape shape, ShapeFrom(args.shape_element_type, args.shape_dims, args.shape_num_dims));
  STROP_TRY(SetDeviceLayout(args.shape_layout, shape));
  STROP_ASSIGN(Ref<Storage> storage, AllocateFor(shape, memory));
  args.buffer = BufferOf(std::move(storage), std::move(shape), memory);
  return OkStatus();
}

Status Client_CreateErrorBuffer(PJRT_Client_CreateErrorBuffer_Args& args) {
  STROP_ASSIGN(PJRT_Memory * memory, MemoryFrom(args.client, args.memory, nullptr));
  STROP_ASSIGN(Shape shape, ShapeFrom(args.shape_element_type, args.shape_dims, args.shape_num_dims));
  Status status = StatusFrom(args.error_code, args.error_message, args.error_message_size);
  args.buffer = NewBuffer(
      Buffer::Error(std::move(shape), memory->device->description->id, memory->kind, std::move(status)), memory);
  return OkStatus();
}

// An alias has memory of its own; fulfilling it copies. Whoever fulfils keeps the right to its buffer.
Status Client_CreateAliasBuffer(PJRT_Client_CreateAliasBuffer_Args& args) {
  STROP_ASSIGN(PJRT_Memory * memory, MemoryFrom(args.client, args.memory, nullptr));
  STROP_ASSIGN(Shape shape, ShapeFrom(args.shape_element_type, args.shape_dims, args.shape_num_dims));
  STROP_TRY(SetDeviceLayout(args.shape_layout, shape));
  auto callback = std::make_unique<PJRT_FulfillAliasBufferCallback>();
  callback->definition = Make<Event>();
  STROP_ASSIGN(callback->alias, PendingBuffer(shape, memory, callback->definition, callback->storage));
  args.alias_buffer = callback->alias;
  args.fulfill_alias_buffer_cb = callback.release();
  return OkStatus();
}

// Consumes the callback, whether it succeeds or not.
Status Client_FulfillAliasBuffer(PJRT_Client_FulfillAliasBuffer_Args& args) {
  if (!args.fulfill_alias_buffer_cb) return InvalidArgument("the fulfil callback is null");
  std::unique_ptr<PJRT_FulfillAliasBufferCallback> callback(args.fulfill_alias_buffer_cb);
  if (args.status_code != PJRT_Error_Code_OK) {
    callback->definition->Set(StatusFrom(args.status_code, args.error_message, args.error_message_size));
    return OkStatus();
  }
  Status mismatch;
  if (!args.buffer) {
    mismatch = InvalidArgument("the buffer that fulfils an alias is null");
  } else if (args.buffer->buffer.byte_size() != callback->storage->size()) {
    mismatch = InvalidArgument("an alias of ", callback->storage->size(), " bytes is fulfilled by a buffer of ",
                               args.buffer->buffer.byte_size());
  }
  if (!mismatch.ok()) {
    callback->definition->Set(mismatch);
    return mismatch;
  }
  EventRef copied = WhenDefined(args.buffer, [to = callback->storage](const void* from, int64_t bytes) {
    std::copy_n(static_cast<const char*>(from), bytes, static_cast<char*>(to->data()));
    return OkStatus();
  });
  copied->OnReady([definition = callback->definition](const Status& status) { definition->Set(status); });
  return OkStatus();
}

}  // namespace strop::pjrt
