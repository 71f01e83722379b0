// What the files about buffers share.
#pragma once
#include <span>
#include <vector>

#include "strop/pjrt/event.h"
#include "strop/pjrt/objects.h"

namespace strop::pjrt {

// Byte strides of a layout from C. Null means the shape's own.
struct HostLayout {
  Int64Vector byte_strides;
};
// InvalidArgument if the lists do not fit the shape, Unimplemented for tiles.
Result<HostLayout> LayoutFrom(const PJRT_Buffer_MemoryLayout* layout, const Shape& shape);
// Device buffers are dense, in any order of dimensions: the shape gets that order (null: row-major). Unimplemented for
// tiles and strides with gaps.
Status SetDeviceLayout(const PJRT_Buffer_MemoryLayout* layout, Shape& shape);
// Byte strides of a device buffer of this shape.
Int64Vector DeviceStrides(const Shape& shape);

// Memory of `memory`'s device for a buffer of this shape.
Result<Ref<Storage>> AllocateFor(const Shape& shape, PJRT_Memory* memory);

// Calls fn(data, bytes) with the contents of a buffer once they are there, on the thread that defines them (at once if
// ready); returns the event of its end. An error of the buffer passes it by.
EventRef WhenDefined(PJRT_Buffer* buffer, std::function<Status(const void* data, int64_t bytes)> fn);

// A buffer with memory of its own that `fulfil` fills later.
Result<PJRT_Buffer*> PendingBuffer(const Shape& shape, PJRT_Memory* memory, EventRef definition, Ref<Storage>& storage);

}  // namespace strop::pjrt
