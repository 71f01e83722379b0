// The copy loop walks dimensions in the order of the destination's strides, so that writes are as dense as they can be;
// dimensions that are contiguous on both sides are merged first, and the innermost one is a memcpy where both are
// dense.
#include "strop/pjrt/strided_copy.h"

#include <algorithm>
#include <cstring>

namespace strop::pjrt {
namespace {

constexpr int64_t kParallelBytes = 1 << 20;

struct Dim {
  int64_t size, from, to;  // strides in bytes
};

template <int kBytes>
void CopyRow(const char* from, char* to, const Dim& dim) {
  for (int64_t i = 0; i < dim.size; ++i) std::memcpy(to + i * dim.to, from + i * dim.from, kBytes);
}

void CopyInner(const char* from, char* to, const Dim& dim, int64_t element) {
  if (dim.from == element && dim.to == element) {
    std::memcpy(to, from, dim.size * element);
    return;
  }
  switch (element) {
    case 1: return CopyRow<1>(from, to, dim);
    case 2: return CopyRow<2>(from, to, dim);
    case 4: return CopyRow<4>(from, to, dim);
    case 8: return CopyRow<8>(from, to, dim);
    default: return CopyRow<16>(from, to, dim);
  }
}

// Rows [begin, end) of all dimensions but the last.
void CopyRows(const std::vector<Dim>& dims, const char* from, char* to, int64_t begin, int64_t end, int64_t element) {
  const size_t outer = dims.size() - 1;
  std::vector<int64_t> index(outer, 0);
  int64_t rest = begin;
  for (size_t d = outer; d-- > 0;) {
    index[d] = rest % dims[d].size;
    rest /= dims[d].size;
    from += index[d] * dims[d].from;
    to += index[d] * dims[d].to;
  }
  for (int64_t row = begin; row < end; ++row) {
    CopyInner(from, to, dims.back(), element);
    for (size_t d = outer; d-- > 0;) {
      from += dims[d].from;
      to += dims[d].to;
      if (++index[d] < dims[d].size) break;
      from -= dims[d].size * dims[d].from;
      to -= dims[d].size * dims[d].to;
      index[d] = 0;
    }
  }
}

std::vector<Dim> MergedDims(const Shape& shape, std::span<const int64_t> from, std::span<const int64_t> to) {
  std::vector<Dim> dims;
  for (int64_t i = 0; i < shape.rank(); ++i)
    if (shape.dim(i) != 1) dims.push_back({shape.dim(i), from[i], to[i]});
  std::stable_sort(dims.begin(), dims.end(),
                   [](const Dim& a, const Dim& b) { return std::abs(a.to) > std::abs(b.to); });
  std::vector<Dim> merged;
  for (const Dim& dim : dims) {
    if (!merged.empty() && merged.back().from == dim.size * dim.from && merged.back().to == dim.size * dim.to) {
      merged.back() = {merged.back().size * dim.size, dim.from, dim.to};
    } else {
      merged.push_back(dim);
    }
  }
  return merged;
}

}  // namespace

Int64Vector DenseStrides(const Shape& shape, std::span<const int64_t> minor_to_major) {
  Int64Vector strides(shape.rank(), 0);
  int64_t stride = Bytes(shape.type());
  for (int64_t dim : minor_to_major) {
    strides[dim] = stride;
    stride *= std::max<int64_t>(shape.dim(dim), 1);
  }
  return strides;
}

bool SameStrides(const Shape& shape, std::span<const int64_t> a, std::span<const int64_t> b) {
  for (int64_t i = 0; i < shape.rank(); ++i)
    if (shape.dim(i) != 1 && a[i] != b[i]) return false;
  return true;
}

void DenseCopy(const void* from, void* to, int64_t bytes, ThreadPool& pool) {
  const int64_t pieces = bytes < 2 * kParallelBytes ? 1 : (bytes + kParallelBytes - 1) / kParallelBytes;
  if (pieces == 1) {
    if (bytes > 0) std::memcpy(to, from, bytes);
    return;
  }
  pool.ParallelFor(pieces, [&](int64_t piece) {
    const int64_t at = piece * kParallelBytes;
    std::memcpy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, std::min(kParallelBytes, bytes - at));
  });
}

void StridedCopy(const Shape& shape, const void* from, std::span<const int64_t> from_strides, void* to,
                 std::span<const int64_t> to_strides, ThreadPool& pool) {
  const int64_t element = Bytes(shape.type()), count = shape.num_elements();
  if (count == 0) return;
  std::vector<Dim> dims = MergedDims(shape, from_strides, to_strides);
  if (dims.empty()) dims.push_back({1, element, element});
  if (dims.size() == 1 && dims[0].from == element && dims[0].to == element)
    return DenseCopy(from, to, count * element, pool);
  const int64_t rows = count / dims.back().size;
  const auto* source = static_cast<const char*>(from);
  auto* target = static_cast<char*>(to);
  if (count * element < 2 * kParallelBytes || rows == 1) return CopyRows(dims, source, target, 0, rows, element);
  const int64_t rows_a_task = std::max<int64_t>(1, kParallelBytes / (dims.back().size * element));
  pool.ParallelFor((rows + rows_a_task - 1) / rows_a_task, [&](int64_t task) {
    const int64_t begin = task * rows_a_task;
    CopyRows(dims, source, target, begin, std::min(begin + rows_a_task, rows), element);
  });
}

void NormalizeSubByte(ElementType type, void* data, int64_t count) {
  if (!IsSubByte(type)) return;
  const int shift = 8 - Bits(type);
  auto* bytes = static_cast<uint8_t*>(data);
  for (int64_t i = 0; i < count; ++i) {
    const auto up = static_cast<uint8_t>(bytes[i] << shift);
    bytes[i] =
        IsSigned(type) ? static_cast<uint8_t>(static_cast<int8_t>(up) >> shift) : static_cast<uint8_t>(up >> shift);
  }
}

}  // namespace strop::pjrt
