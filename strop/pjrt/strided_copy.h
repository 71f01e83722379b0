// Copies between arrays of any strides: host data of frameworks on one side, dense buffers on the other.
#pragma once
#include <cstdint>

#include "strop/base/thread_pool.h"
#include "strop/types/shape.h"

namespace strop::pjrt {

// Byte strides of a dense array of `shape` whose dimensions lie in memory as `minor_to_major` says.
Int64Vector DenseStrides(const Shape& shape, std::span<const int64_t> minor_to_major);
// Do they place the elements alike? Strides of dimensions of one element do not matter.
bool SameStrides(const Shape& shape, std::span<const int64_t> a, std::span<const int64_t> b);

// For every element: to[index * to_strides] = from[index * from_strides]. Elements are Bytes(shape.type()) bytes. Large
// copies are shared out over the pool.
void StridedCopy(const Shape& shape, const void* from, std::span<const int64_t> from_strides, void* to,
                 std::span<const int64_t> to_strides, ThreadPool& pool);
// A plain copy, large ones over the pool.
void DenseCopy(const void* from, void* to, int64_t bytes, ThreadPool& pool);

// Elements of less than a byte take one: the bits above them are made what the runtime expects (sign-extended if
// signed, else zero), whatever the host had there. Does nothing for other types.
void NormalizeSubByte(ElementType type, void* data, int64_t count);

}  // namespace strop::pjrt
