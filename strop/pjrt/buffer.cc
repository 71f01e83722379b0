// PJRT_Buffer: what it is, where it is, whether it still is.
#include "strop/pjrt/buffer.h"

#include "strop/pjrt/slots.h"
#include "strop/pjrt/strided_copy.h"

PJRT_Buffer::~PJRT_Buffer() {
  for (; external_refs > 0; --external_refs) strop::Buffer::DropExternal(external);
}

namespace strop::pjrt {

PJRT_Buffer* NewBuffer(Buffer buffer, PJRT_Memory* memory) {
  auto* made = new PJRT_Buffer;
  made->device_set = memory->device->client->device_set;
  made->buffer = std::move(buffer);
  made->memory = memory;
  return made;
}

Result<HostLayout> LayoutFrom(const PJRT_Buffer_MemoryLayout* layout, const Shape& shape) {
  HostLayout out;
  if (!layout) {
    out.byte_strides = DeviceStrides(shape);
    return out;
  }
  const auto rank = static_cast<size_t>(shape.rank());
  if (layout->type == PJRT_Buffer_MemoryLayout_Type_Strides) {
    const PJRT_Buffer_MemoryLayout_Strides& strides = layout->layout.strides;
    if (strides.num_byte_strides != rank || (rank > 0 && !strides.byte_strides))
      return InvalidArgument("a layout of ", strides.num_byte_strides, " strides for ", shape.ToString());
    out.byte_strides.assign(strides.byte_strides, strides.byte_strides + rank);
    return out;
  }
  if (layout->type != PJRT_Buffer_MemoryLayout_Type_Tiled)
    return InvalidArgument("a memory layout of unknown type ", static_cast<int>(layout->type));
  const PJRT_Buffer_MemoryLayout_Tiled& tiled = layout->layout.tiled;
  if (tiled.num_tiles != 0) return Unimplemented("tiled layouts; the CPU's buffers are dense");
  if (tiled.minor_to_major_size != rank || (rank > 0 && !tiled.minor_to_major))
    return InvalidArgument("a layout of ", tiled.minor_to_major_size, " dimensions for ", shape.ToString());
  std::vector<bool> seen(rank, false);
  for (size_t i = 0; i < rank; ++i) {
    const int64_t dim = tiled.minor_to_major[i];
    if (dim < 0 || dim >= shape.rank() || seen[dim]) return InvalidArgument("a layout that is no permutation");
    seen[dim] = true;
  }
  out.byte_strides = DenseStrides(shape, {tiled.minor_to_major, rank});
  return out;
}

Int64Vector DeviceStrides(const Shape& shape) { return DenseStrides(shape, shape.layout_or_default().minor_to_major); }

Status SetDeviceLayout(const PJRT_Buffer_MemoryLayout* layout, Shape& shape) {
  if (!layout || !shape.IsArray()) return OkStatus();
  STROP_ASSIGN(HostLayout wanted, LayoutFrom(layout, shape));
  if (shape.num_elements() == 0 || SameStrides(shape, wanted.byte_strides, DeviceStrides(shape))) return OkStatus();
  if (layout->type != PJRT_Buffer_MemoryLayout_Type_Tiled)
    return Unimplemented("a device layout of strides other than row-major for ", shape.ToString());
  Layout device;
  const PJRT_Buffer_MemoryLayout_Tiled& tiled = layout->layout.tiled;
  device.minor_to_major.assign(tiled.minor_to_major, tiled.minor_to_major + tiled.minor_to_major_size);
  shape.set_layout(std::move(device));
  return OkStatus();
}

Result<Ref<Storage>> AllocateFor(const Shape& shape, PJRT_Memory* memory) {
  return Storage::Allocate(memory->device->device->allocator(), shape.IsArray() ? shape.byte_size() : 0);
}

EventRef WhenDefined(PJRT_Buffer* buffer, std::function<Status(const void* data, int64_t bytes)> fn) {
  Result<Ref<Storage>> storage = buffer->buffer.Acquire();
  if (!storage.ok()) return Event::ReadyWith(std::move(storage).status());
  const EventRef& definition = buffer->buffer.definition();
  if (definition->IsReady()) {
    Status status = definition->status();
    if (status.ok()) status = fn((*storage)->data(), buffer->buffer.byte_size());
    return Event::ReadyWith(std::move(status));
  }
  EventRef done = Make<Event>();
  (*storage)->AddUse(done);
  definition->OnReady([storage = *storage, bytes = buffer->buffer.byte_size(), fn = std::move(fn),
                       done](const Status& status) { done->Set(status.ok() ? fn(storage->data(), bytes) : status); });
  return done;
}

Result<PJRT_Buffer*> PendingBuffer(const Shape& shape, PJRT_Memory* memory, EventRef definition,
                                   Ref<Storage>& storage) {
  STROP_ASSIGN(storage, AllocateFor(shape, memory));
  return NewBuffer(Buffer(storage, shape, memory->device->description->id, memory->kind, std::move(definition)),
                   memory);
}

Status Buffer_Destroy(PJRT_Buffer_Destroy_Args& args) {
  delete args.buffer;
  return OkStatus();
}

Status Buffer_ElementType(PJRT_Buffer_ElementType_Args& args) {
  // Tokens are kept as pred[0], the form in which frameworks pass them in and expect them out.
  args.type = args.buffer->shape().IsToken() ? PJRT_Buffer_Type_TOKEN : BufferTypeOf(args.buffer->shape().type());
  return OkStatus();
}

Status Buffer_Dimensions(PJRT_Buffer_Dimensions_Args& args) {
  args.dims = args.buffer->shape().dims().data();
  args.num_dims = args.buffer->shape().dims().size();
  return OkStatus();
}

Status Buffer_UnpaddedDimensions(PJRT_Buffer_UnpaddedDimensions_Args& args) {
  PJRT_Buffer* buffer = args.buffer;
  if (buffer->shape().IsStatic()) {
    args.unpadded_dims = buffer->shape().dims().data();
    args.num_dims = buffer->shape().dims().size();
    return OkStatus();
  }
  STROP_TRY(EventRef(buffer->buffer.definition())->Await());  // the sizes are computed with the contents
  std::lock_guard<std::mutex> lock(buffer->mutex);
  Int64Vector dims = buffer->buffer.dynamic_dims();
  if (buffer->unpadded_dims.empty()) buffer->unpadded_dims.assign(dims.begin(), dims.end());
  args.unpadded_dims = buffer->unpadded_dims.data();
  args.num_dims = buffer->unpadded_dims.size();
  return OkStatus();
}

Status Buffer_DynamicDimensionIndices(PJRT_Buffer_DynamicDimensionIndices_Args& args) {
  PJRT_Buffer* buffer = args.buffer;
  std::call_once(buffer->dynamic_once, [&] {
    for (int64_t i = 0; i < buffer->shape().rank(); ++i)
      if (buffer->shape().is_dynamic(i)) buffer->dynamic_dims.push_back(static_cast<size_t>(i));
  });
  args.dynamic_dim_indices = buffer->dynamic_dims.data();
  args.num_dynamic_dims = buffer->dynamic_dims.size();
  return OkStatus();
}

Status Buffer_GetMemoryLayout(PJRT_Buffer_GetMemoryLayout_Args& args) {
  PJRT_Buffer* buffer = args.buffer;
  std::call_once(buffer->layout_once, [&] {
    const Layout layout = buffer->shape().layout_or_default();
    buffer->minor_to_major.assign(layout.minor_to_major.begin(), layout.minor_to_major.end());
  });
  args.layout = {};
  args.layout.struct_size = kStructSize<PJRT_Buffer_MemoryLayout>;
  args.layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  args.layout.layout.tiled = {};
  args.layout.layout.tiled.struct_size = kStructSize<PJRT_Buffer_MemoryLayout_Tiled>;
  args.layout.layout.tiled.minor_to_major = buffer->minor_to_major.data();
  args.layout.layout.tiled.minor_to_major_size = buffer->minor_to_major.size();
  return OkStatus();
}

Status Buffer_OnDeviceSizeInBytes(PJRT_Buffer_OnDeviceSizeInBytes_Args& args) {
  args.on_device_size_in_bytes = static_cast<size_t>(args.buffer->buffer.byte_size());
  return OkStatus();
}

Status Buffer_Device(PJRT_Buffer_Device_Args& args) {
  args.device = args.buffer->device();
  return OkStatus();
}

Status Buffer_Memory(PJRT_Buffer_Memory_Args& args) {
  args.memory = args.buffer->memory;
  return OkStatus();
}

Status Buffer_Delete(PJRT_Buffer_Delete_Args& args) {
  args.buffer->buffer.Delete();
  return OkStatus();
}

Status Buffer_IsDeleted(PJRT_Buffer_IsDeleted_Args& args) {
  args.is_deleted = args.buffer->buffer.IsDeleted();
  return OkStatus();
}

// All of the client's memory can be read by the host: frameworks look at it without a copy.
Status Buffer_IsOnCpu(PJRT_Buffer_IsOnCpu_Args& args) {
  args.is_on_cpu = true;
  return OkStatus();
}

Status Buffer_ReadyEvent(PJRT_Buffer_ReadyEvent_Args& args) {
  const Buffer& buffer = args.buffer->buffer;
  args.event = NewEvent(
      buffer.IsDeleted() ? Event::ReadyWith(InvalidArgument("the buffer was deleted or donated")) : buffer.definition(),
      true);
  return OkStatus();
}

Status Buffer_UnsafePointer(PJRT_Buffer_UnsafePointer_Args& args) {
  STROP_ASSIGN(Ref<Storage> storage, args.buffer->buffer.Acquire());
  args.buffer_pointer = reinterpret_cast<uintptr_t>(storage->data());
  return OkStatus();
}

Status Buffer_OpaqueDeviceMemoryDataPointer(PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args& args) {
  STROP_ASSIGN(Ref<Storage> storage, args.buffer->buffer.Acquire());
  args.device_memory_ptr = storage->data();
  return OkStatus();
}

Status Buffer_IncreaseExternalReferenceCount(PJRT_Buffer_IncreaseExternalReferenceCount_Args& args) {
  STROP_ASSIGN(Ref<Storage> storage, args.buffer->buffer.AcquireExternal());
  std::lock_guard<std::mutex> lock(args.buffer->mutex);
  args.buffer->external = std::move(storage);  // the same each time: a buffer's memory does not change
  ++args.buffer->external_refs;
  return OkStatus();
}

Status Buffer_DecreaseExternalReferenceCount(PJRT_Buffer_DecreaseExternalReferenceCount_Args& args) {
  Ref<Storage> storage;
  {
    std::lock_guard<std::mutex> lock(args.buffer->mutex);
    if (args.buffer->external_refs == 0)
      return InvalidArgument("PJRT_Buffer_DecreaseExternalReferenceCount on a buffer with zero references");
    storage = --args.buffer->external_refs > 0 ? args.buffer->external : std::move(args.buffer->external);
  }
  Buffer::DropExternal(std::move(storage));
  return OkStatus();
}

}  // namespace strop::pjrt
