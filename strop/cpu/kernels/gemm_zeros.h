// Zeros that the sums of a product begin or end with: those of bands (weights that resize images), triangles (causal
// masks behind a softmax) and blocks along the diagonal. What packs a panel looks where its numbers lie, which takes a
// look at each end unless there are zeros, and what multiplies leaves the zeros out if everything that they would be
// multiplied with is finite: the sums are the same, in the same order, but for the sign of a zero. Internal to GEMM.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>

#include "strop/cpu/kernels/gemm_micro.h"

namespace strop::cpu {

// Of units along k: what is not in [first, end) is zero.
struct Extent {
  int32_t first = 0, end = 0;
  int64_t size() const { return end - first; }
};

enum class Finite : uint8_t { kUnknown, kYes, kNo };

// What is known of a packed panel.
struct PanelNote {
  Extent extent;
  Finite finite = Finite::kUnknown;
};
template <class T>
struct NotedPanel {
  const T* data;
  int64_t units, width;
  PanelNote* note;
};

// Is leaving out worth asking about the other operand, if so many units are not zeros?
inline bool IsShort(const Extent& extent, int64_t units) { return 4 * extent.size() <= 3 * units; }

inline bool AnyShort(std::span<const PanelNote> notes, int64_t units) {
  return std::any_of(notes.begin(), notes.end(), [&](const PanelNote& note) { return IsShort(note.extent, units); });
}

// Can it be known what is finite? Biased bytes are no zeros. Kernels that take steps would leave out few of them, and
// are done before anything is found.
template <class T>
bool FindsZeros(const MicroTable<T>& micro) {
  return micro.bias == 0 && micro.step == 1 && (micro.all_finite || !std::is_floating_point_v<T>);
}

// How many numbers ZerosFrom() and ZerosBefore() compare at a time.
inline constexpr int64_t kZeros = 32;

// Are these zeros, of either sign? T may be a pair of bf16, at any even address.
template <class T, int64_t kCount>
bool AreZeros(const T* x) {
  constexpr uint64_t kSigns = std::is_same_v<T, float>    ? 0x8000000080000000
                              : std::is_same_v<T, double> ? 0x8000000000000000
                                                          : 0;
  uint64_t words[(kCount * sizeof(T) + sizeof(uint64_t) - 1) / sizeof(uint64_t)] = {}, any = 0;
  std::memcpy(words, x, kCount * sizeof(T));
  for (uint64_t word : words) any |= word;
  return (any & ~kSigns) == 0;
}

// How many zeros lie at the beginning of [x, x + count), and how many at its end.
template <class T>
int64_t ZerosFrom(const T* x, int64_t count) {
  if (count == 0 || !AreZeros<T, 1>(x)) return 0;
  int64_t n = 0;
  while (n + kZeros <= count && AreZeros<T, kZeros>(x + n)) n += kZeros;
  while (n < count && AreZeros<T, 1>(x + n)) ++n;
  return n;
}
template <class T>
int64_t ZerosBefore(const T* x, int64_t count) {
  if (count == 0 || !AreZeros<T, 1>(x + count - 1)) return 0;
  int64_t n = 0;
  while (n + kZeros <= count && AreZeros<T, kZeros>(x + count - n - kZeros)) n += kZeros;
  while (n < count && AreZeros<T, 1>(x + count - n - 1)) ++n;
  return n;
}

template <class T>
Extent ExtentOfPanel(const T* panel, int64_t units, int64_t width) {
  const int64_t first = ZerosFrom(panel, units * width) / width;
  const int64_t end = units - ZerosBefore(panel + first * width, (units - first) * width) / width;
  return {static_cast<int32_t>(first), static_cast<int32_t>(end)};
}

// Of rows of `units` where they lie.
template <class T>
Extent ExtentOfRows(const T* const* rows, int64_t count, int64_t units) {
  int64_t first = units, last = units;  // zeros on either side
  for (int64_t r = 0; r < count && first + last > 0; ++r) {
    first = std::min(first, ZerosFrom(rows[r], first));
    last = std::min(last, ZerosBefore(rows[r] + units - last, last));
  }
  return {static_cast<int32_t>(first), static_cast<int32_t>(std::max(first, units - last))};
}

// Threads may ask at the same time, and find the same.
template <class T>
bool IsFinite(const MicroTable<T>& micro, const NotedPanel<T>& panel) {
  if constexpr (!std::is_floating_point_v<T>) return true;
  std::atomic_ref finite(panel.note->finite);
  if (finite.load(std::memory_order_relaxed) == Finite::kUnknown)
    finite.store(micro.all_finite(panel.units * panel.width, panel.data) ? Finite::kYes : Finite::kNo,
                 std::memory_order_relaxed);
  return finite.load(std::memory_order_relaxed) == Finite::kYes;
}

// What is to be multiplied of x's units, the first of which meets the unit `from` of y; none of it: first >= end.
template <class T>
Extent NeededOf(const MicroTable<T>& micro, const NotedPanel<T>& x, const NotedPanel<T>& y, int64_t from = 0) {
  Extent needed{0, static_cast<int32_t>(x.units)};
  const Extent &of_x = x.note->extent, &of_y = y.note->extent;
  if (IsShort(of_x, x.units) && IsFinite(micro, y)) needed = of_x;
  if (IsShort(of_y, y.units) && IsFinite(micro, x)) {
    needed.first = std::max(needed.first, of_y.first - static_cast<int32_t>(from));
    needed.end = std::min(needed.end, of_y.end - static_cast<int32_t>(from));
  }
  return needed;
}

}  // namespace strop::cpu
