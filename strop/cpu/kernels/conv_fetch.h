// Convolutions that read patches where they lie ask for their input ahead of time.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>

#include "strop/cpu/kernels/conv_positions.h"
#include "strop/cpu/kernels/conv_tiles.h"
#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {

// Asks for the input ahead of time. Images follow each other as positions do, so that each position takes as much of
// the input as any.
template <class T>
class InputFetcher {
 public:
  // Of so many positions, of whose `features` all are read, with panels of `rows` positions.
  InputFetcher(const ConvProblem& p, const ConvPositions& all, int64_t positions, int64_t rows, int64_t features)
      : positions_(positions) {
    int64_t elements = features;
    for (const ConvSpatialDim& s : p.spatial) elements *= s.input;
    const bool in_order = p.batch == 1 || (all.dims()[0].slot == 0 && p.input_batch_stride == elements);
    if (!in_order || elements * p.batch * static_cast<int64_t>(sizeof(T)) <= kCached) return;
    elements_ = elements * p.batch / positions_;
    const int64_t panel = elements_ * rows * static_cast<int64_t>(sizeof(T));
    if (panel == 0) return;
    distance_ = std::clamp<int64_t>(kBytes / panel, 1, kPanels) * elements_ * rows;
    // The last tap of a window is what reads first.
    for (const ConvSpatialDim& s : p.spatial)
      distance_ += std::max<int64_t>((s.kernel - 1) * s.window_dilation - s.pad_low, 0) * s.input_stride;
  }

  // The `part`th of `parts` of what positions [begin, end) will read and those before did not.
  void Fetch(const T* input, int64_t begin, int64_t end, int64_t part, int64_t parts) const {
    const int64_t elements = elements_ * (end - begin);
    const int64_t first = begin * elements_ + distance_ + elements * part / parts;
    const int64_t last = std::min(first + elements / parts, positions_ * elements_);
    if (first < last) FetchRows<false>(input + first, 0, 1, last - first);
  }

 private:
  static constexpr int64_t kCached = 1 << 20;  // bytes that may still lie in the second-level cache
  static constexpr int64_t kBytes = 48 << 10;  // ahead; and panels, at most
  static constexpr int64_t kPanels = 4;

  int64_t positions_ = 1;
  int64_t elements_ = 0, distance_ = 0;  // of the input: for each position; ahead of it
};

// Deals the positions of a task to its tiles along rows, which come first and in order.
class Dealer {
 public:
  Dealer(int64_t m0, int64_t rows, std::span<const PositionTile> tiles) : m0_(m0), rows_(rows) {
    for (const PositionTile& tile : tiles) all_ += tile.step == 1 ? tile.count : 0;
  }
  std::pair<int64_t, int64_t> Next(const PositionTile& tile) {
    if (tile.step != 1) return {0, 0};
    const int64_t begin = done_;
    done_ += tile.count;
    return {m0_ + begin * rows_ / all_, m0_ + done_ * rows_ / all_};
  }

 private:
  int64_t m0_, rows_, all_ = 0, done_ = 0;
};

}  // namespace strop::cpu
