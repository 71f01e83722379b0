// The copy loop walks dimensions in the order of the destination's strides, so that writes are as dense as they can be;
// dimensions that are contiguous on both sides are merged first, and the innermost one is a memcpy where both are
// dense. Where the source is dense along another dimension (an array that lies transposed), these two are copied
// square by square, turned in registers, so that what a cache line holds is used while it is there.
#include "strop/pjrt/strided_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

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

// ---- arrays that lie transposed

constexpr int64_t kSquareBytes = 16;  // a side of a square
constexpr int64_t kRowsAtOnce = 32;   // of the source: their lines stay in the cache, whatever their distance
constexpr int64_t kUnitBytes = 64;    // of the source's dense dimension: what is shared out

template <class T>
struct Square {
  static constexpr int kSide = kSquareBytes / sizeof(T);
  typedef T Row __attribute__((vector_size(kSquareBytes)));

  template <int... kLanes>
  static Row Interleave(Row a, Row b, int first, std::integer_sequence<int, kLanes...>) {
    return first == 0 ? __builtin_shufflevector(a, b, (kLanes / 2 + (kLanes % 2) * kSide)...)
                      : __builtin_shufflevector(a, b, (kSide / 2 + kLanes / 2 + (kLanes % 2) * kSide)...);
  }

  // to[j][i] = from[i][j]; distances in bytes.
  static void Copy(const char* from, int64_t from_row, char* to, int64_t to_row) {
    Row rows[kSide], turned[kSide];
    for (int i = 0; i < kSide; ++i) std::memcpy(&rows[i], from + i * from_row, kSquareBytes);
    for (int width = 1; width < kSide; width *= 2) {  // as a deck that is shuffled log2(kSide) times
      constexpr auto kAll = std::make_integer_sequence<int, kSide>();
      for (int i = 0; i < kSide / 2; ++i) {
        turned[2 * i] = Interleave(rows[i], rows[i + kSide / 2], 0, kAll);
        turned[2 * i + 1] = Interleave(rows[i], rows[i + kSide / 2], 1, kAll);
      }
      std::copy(turned, turned + kSide, rows);
    }
    for (int j = 0; j < kSide; ++j) std::memcpy(to + j * to_row, &rows[j], kSquareBytes);
  }
};

// Elements [begin, end) of `dense`, along which the source is, and all of `last`, along which the destination is.
template <class T>
void CopyTurned(const char* from, char* to, const Dim& dense, const Dim& last, int64_t begin, int64_t end) {
  constexpr int64_t kSide = Square<T>::kSide, kSize = sizeof(T);
  for (int64_t first = 0; first < last.size; first += kRowsAtOnce) {
    const int64_t limit = std::min(first + kRowsAtOnce, last.size);
    for (int64_t j = begin; j < end; j += kSide) {
      int64_t i = first;
      if (j + kSide <= end)
        for (; i + kSide <= limit; i += kSide)
          Square<T>::Copy(from + i * last.from + j * kSize, last.from, to + j * dense.to + i * kSize, dense.to);
      for (; i < limit; ++i)
        for (int64_t k = j; k < std::min(j + kSide, end); ++k)
          std::memcpy(to + k * dense.to + i * kSize, from + i * last.from + k * kSize, kSize);
    }
  }
}

// Puts the dimension along which the source is dense before the last, along which the destination is; false: there is
// none, or no element of that size in a register.
bool FindTurned(std::vector<Dim>& dims, int64_t element) {
  if (element > kSquareBytes / 2 || dims.back().to != element || dims.back().from == element) return false;
  for (size_t d = 0; d + 1 < dims.size(); ++d) {
    if (dims[d].from != element) continue;
    std::rotate(dims.begin() + static_cast<int64_t>(d), dims.begin() + static_cast<int64_t>(d) + 1, dims.end() - 1);
    return true;
  }
  return false;
}

// Units [begin, end): pieces of the last dimension but one, for each index of those before.
void CopyUnits(const std::vector<Dim>& dims, const char* from, char* to, int64_t begin, int64_t end, int64_t element) {
  const Dim &dense = dims[dims.size() - 2], &last = dims.back();
  const int64_t unit = kUnitBytes / element, pieces = (dense.size + unit - 1) / unit;
  for (int64_t n = begin; n < end; ++n) {
    const char* source = from;
    char* target = to;
    int64_t rest = n / pieces;
    for (size_t d = dims.size() - 2; d-- > 0;) {
      source += rest % dims[d].size * dims[d].from;
      target += rest % dims[d].size * dims[d].to;
      rest /= dims[d].size;
    }
    const int64_t first = n % pieces * unit, limit = std::min(first + unit, dense.size);
    switch (element) {
      case 1: CopyTurned<uint8_t>(source, target, dense, last, first, limit); break;
      case 2: CopyTurned<uint16_t>(source, target, dense, last, first, limit); break;
      case 4: CopyTurned<uint32_t>(source, target, dense, last, first, limit); break;
      default: CopyTurned<uint64_t>(source, target, dense, last, first, limit); break;
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
  const bool turned = FindTurned(dims, element);
  // Rows of the last dimension, or units of as many as the source has in a line.
  int64_t items = count / dims.back().size;
  if (turned) {
    const int64_t dense = dims[dims.size() - 2].size, unit = kUnitBytes / element;
    items = items / dense * ((dense + unit - 1) / unit);
  }
  const auto copy = [&](int64_t begin, int64_t end) {
    const auto run = turned ? &CopyUnits : &CopyRows;
    run(dims, static_cast<const char*>(from), static_cast<char*>(to), begin, end, element);
  };
  const int64_t tasks = std::min(items, count * element / kParallelBytes);
  if (tasks < 2) return copy(0, items);
  pool.ParallelFor(tasks, [&](int64_t task) { copy(items * task / tasks, items * (task + 1) / tasks); });
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
