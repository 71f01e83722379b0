#include "strop/interp/strided.h"

#include <cstring>

namespace strop::interp {

Int64Vector RowMajorStrides(std::span<const int64_t> dims) {
  Int64Vector strides(dims.size(), 1);
  for (size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

int64_t Product(std::span<const int64_t> dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

namespace {

// One line along the innermost dimension.
template <class T>
void CopyLine(int64_t n, uint8_t* dst, int64_t dst_stride, const uint8_t* src, int64_t src_stride) {
  for (int64_t i = 0; i < n; ++i)
    std::memcpy(dst + i * dst_stride * static_cast<int64_t>(sizeof(T)),
                src + i * src_stride * static_cast<int64_t>(sizeof(T)), sizeof(T));
}

void CopyLine(int64_t width, int64_t n, uint8_t* dst, int64_t dst_stride, const uint8_t* src, int64_t src_stride) {
  if (dst_stride == 1 && src_stride == 1) {
    std::memcpy(dst, src, static_cast<size_t>(n * width));
    return;
  }
  struct Wide {
    uint64_t v[2];
  };
  switch (width) {
    case 1: return CopyLine<uint8_t>(n, dst, dst_stride, src, src_stride);
    case 2: return CopyLine<uint16_t>(n, dst, dst_stride, src, src_stride);
    case 4: return CopyLine<uint32_t>(n, dst, dst_stride, src, src_stride);
    case 8: return CopyLine<uint64_t>(n, dst, dst_stride, src, src_stride);
    default: return CopyLine<Wide>(n, dst, dst_stride, src, src_stride);
  }
}

}  // namespace

void CopyStrided(int64_t width, std::span<const int64_t> dims, uint8_t* dst, std::span<const int64_t> dst_strides,
                 const uint8_t* src, std::span<const int64_t> src_strides) {
  if (dims.empty()) {
    std::memcpy(dst, src, static_cast<size_t>(width));
    return;
  }
  for (int64_t d : dims)
    if (d <= 0) return;
  const size_t last = dims.size() - 1;
  for (IndexWalk outer(dims.first(last), {dst_strides.first(last), src_strides.first(last)}); !outer.done();
       outer.Next())
    CopyLine(width, dims[last], dst + outer.offset(0) * width, dst_strides[last], src + outer.offset(1) * width,
             src_strides[last]);
}

void Fill(int64_t width, uint8_t* dst, const uint8_t* value, int64_t count) {
  if (width == 1) {
    if (count > 0) std::memset(dst, *value, static_cast<size_t>(count));
    return;
  }
  for (int64_t i = 0; i < count; ++i) std::memcpy(dst + i * width, value, static_cast<size_t>(width));
}

IndexWalk::IndexWalk(std::span<const int64_t> dims, std::initializer_list<std::span<const int64_t>> strides)
    : dims_(dims), index_(dims.size(), 0) {
  for (std::span<const int64_t> s : strides) strides_[arrays_++] = Int64Vector(s);
  for (int64_t d : dims)
    if (d <= 0) done_ = true;
}

void IndexWalk::Next() {
  ++count_;
  for (size_t d = dims_.size(); d-- > 0;) {
    if (++index_[d] < dims_[d]) {
      for (int a = 0; a < arrays_; ++a) offset_[a] += strides_[a][d];
      return;
    }
    for (int a = 0; a < arrays_; ++a) offset_[a] -= strides_[a][d] * (dims_[d] - 1);
    index_[d] = 0;
  }
  done_ = true;
}

}  // namespace strop::interp
