// Where sums go: tiles of C, converted to its type and along its memory.
#include <cstring>
#include <type_traits>

#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {
namespace {
// Rows of a tile, of four bytes an element or eight, are too short for a call.
void CopyRow(const void* from, int64_t bytes, void* to) {
  const auto copy = [&](int64_t at, auto size) {
    std::memcpy(static_cast<uint8_t*>(to) + at, static_cast<const uint8_t*>(from) + at, size.value);
  };
  if (bytes >= 16) {
    for (int64_t i = 0; i + 16 <= bytes; i += 16) copy(i, std::integral_constant<int, 16>{});
    copy(bytes - 16, std::integral_constant<int, 16>{});
  } else if (bytes >= 8) {
    copy(0, std::integral_constant<int, 8>{}), copy(bytes - 8, std::integral_constant<int, 8>{});
  } else if (bytes >= 4) {
    copy(0, std::integral_constant<int, 4>{}), copy(bytes - 4, std::integral_constant<int, 4>{});
  }
}

// The low bits of a row of integers, to every stride-th element. False: not of these types.
template <class T>
bool NarrowRow(const T* from, int64_t n, ElementType type, uint8_t* data, int64_t at, int64_t stride) {
  if (!std::is_integral_v<T> || !IsInteger(type) || (Bits(type) != 8 && Bits(type) != 16)) return false;
  auto narrow = [&](auto* to) {
    using To = std::remove_reference_t<decltype(*to)>;
    if (stride == 1)
      for (int64_t j = 0; j < n; ++j) to[at + j] = static_cast<To>(from[j]);
    else
      for (int64_t j = 0; j < n; ++j) to[at + j * stride] = static_cast<To>(from[j]);
  };
  if (Bits(type) == 8)
    narrow(data);
  else
    narrow(reinterpret_cast<uint16_t*>(data));
  return true;
}

// What stores rows of f32 as halves; null: not of this type.
auto HalvesStore(ElementType type) -> void (*)(int64_t, const float*, uint16_t*) {
  if (type == ElementType::BF16) return BestGemmIsa().store_bf16;
  if (type == ElementType::F16) return BestGemmIsa().store_f16;
  return nullptr;
}

// Of C whose rows lie side by side, turned in registers, a square at a time. False: not of these types.
constexpr int64_t kTurned = 256;  // elements that are worth it
template <class T>
bool StoreTurned(const StoreTarget& c, int64_t row, int64_t col, int64_t rows, int64_t cols, const T* tile,
                 int64_t tile_stride) {
  constexpr int64_t kSide = 64;
  const bool same = HoldsSums<T>(c.type);
  const auto halves = std::is_same_v<T, float> ? HalvesStore(c.type) : nullptr;
  const PackPanel<T> pack = PackerOf(MicroOf<T>(BestGemmIsa()), ElementTypeOf<T>());
  if (!pack || (!same && !halves)) return false;
  alignas(64) T turned[kSide * kSide + kPanelSlack];
  for (int64_t r = 0; r < rows; r += kSide) {
    const int64_t height = std::min(kSide, rows - r);
    const int64_t at = (c.rows ? c.rows[row + r - c.first_row] : (row + r) * c.row_stride) + col * c.col_stride;
    for (int64_t j = 0; j < cols; j += kSide) {
      const int64_t width = std::min(kSide, cols - j);
      pack(tile + r * tile_stride + j, tile_stride, 1, height, width, height, turned);
      for (int64_t k = 0; k < width; ++k) {
        const T* const from = turned + k * height;
        const int64_t to = at + (j + k) * c.col_stride;
        if constexpr (std::is_same_v<T, float>) {
          if (halves) {
            halves(height, from, reinterpret_cast<uint16_t*>(c.data) + to);
            continue;
          }
        }
        std::memcpy(reinterpret_cast<T*>(c.data) + to, from, static_cast<size_t>(height) * sizeof(T));
      }
    }
  }
  return true;
}

bool FitS32(int64_t n, const float* numbers) {
  bool fit = true;
  for (int64_t j = 0; j < n; ++j) fit &= numbers[j] >= -0x1p31f && numbers[j] < 0x1p31f;
  return fit;
}
}  // namespace

template <class T>
void StoreTile(const StoreTarget& c, int64_t row, int64_t col, int64_t rows, int64_t cols, const T* tile,
               int64_t tile_stride, bool accumulate) {
  const bool same = HoldsSums<T>(c.type);
  if (!accumulate && c.col_stride != 1 && RowsFollow(c, row, rows)) {  // along memory
    if (rows * cols >= kTurned && StoreTurned<T>(c, row, col, rows, cols, tile, tile_stride)) return;
    T* to = AddressIn<T>(c, row, 0) + col * c.col_stride;
    for (int64_t j = 0; j < cols && same; ++j, to += c.col_stride)
      for (int64_t r = 0; r < rows; ++r) to[r] = tile[r * tile_stride + j];
    if (same) return;
  }
  const auto store = c.col_stride == 1 ? HalvesStore(c.type) : nullptr;
  for (int64_t r = 0; r < rows; ++r) {
    const T* from = tile + r * tile_stride;
    const int64_t base = (c.rows ? c.rows[row + r - c.first_row] : (row + r) * c.row_stride) + col * c.col_stride;
    if constexpr (std::is_same_v<T, float>) {
      if (store) {
        store(cols, from, reinterpret_cast<uint16_t*>(c.data) + base);
        continue;
      }
      if (c.col_stride == 1 && c.type == ElementType::S32 && FitS32(cols, from)) {
        int32_t* to = reinterpret_cast<int32_t*>(c.data) + base;
        for (int64_t j = 0; j < cols; ++j) to[j] = static_cast<int32_t>(from[j]);
        continue;
      }
    }
    if (!same) {
      if (NarrowRow(from, cols, c.type, c.data, base, c.col_stride)) continue;
      for (int64_t j = 0; j < cols; ++j) StoreAs<T>(c.type, c.data, base + j * c.col_stride, from[j]);
      continue;
    }
    T* to = reinterpret_cast<T*>(c.data) + base;
    if (c.col_stride == 1) {
      if (accumulate)
        for (int64_t j = 0; j < cols; ++j) to[j] += from[j];
      else
        CopyRow(from, cols * static_cast<int64_t>(sizeof(T)), to);
    } else {
      for (int64_t j = 0; j < cols; ++j) {
        T& at = to[j * c.col_stride];
        at = accumulate ? at + from[j] : from[j];
      }
    }
  }
}

template void StoreTile<float>(const StoreTarget&, int64_t, int64_t, int64_t, int64_t, const float*, int64_t, bool);
template void StoreTile<double>(const StoreTarget&, int64_t, int64_t, int64_t, int64_t, const double*, int64_t, bool);
template void StoreTile<int32_t>(const StoreTarget&, int64_t, int64_t, int64_t, int64_t, const int32_t*, int64_t, bool);
template void StoreTile<int64_t>(const StoreTarget&, int64_t, int64_t, int64_t, int64_t, const int64_t*, int64_t, bool);

}  // namespace strop::cpu
