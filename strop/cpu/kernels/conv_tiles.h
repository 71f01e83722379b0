// The positions of a convolution's task in tiles whose windows miss the same taps: a tap that no position of a tile
// finds inside the input is not multiplied. Of 3x3 windows over 14x14 positions these are a tenth, of 5x5 over
// 28x28 a twelfth.
//
// Tiles lie along a row of the image, in segments that miss the same taps of the row. Segments too short for that, as
// at the ends of the row, are taken down the image, column by column.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "strop/cpu/kernels/conv.h"
#include "strop/cpu/kernels/conv_taps.h"
#include "strop/cpu/kernels/rounding.h"

namespace strop::cpu {

// Positions first, first + step, ... of a task, by number.
struct PositionTile {
  int64_t first, step, count;
};

class PositionTiles {
 public:
  static constexpr int64_t kLeastHeight = 4;  // fewer rows do not keep the multipliers busy

  // Tiles of positions as they follow each other.
  explicit PositionTiles(int64_t height = 1) : height_(height) {}

  // Positions run along `row`, and tasks have about `positions` of them. Tiles have up to `height` positions, those
  // down the image `column_height`.
  PositionTiles(const ConvSpatialDim& row, int64_t positions, int64_t height, int64_t column_height)
      : height_(height), column_height_(column_height) {
    if (row.output < kLeastHeight || positions < row.output || row.base_dilation != 1) return;
    width_ = row.output;
    if (positions < kLeastHeight * width_) {  // columns would be too short
      segments_.push_back({0, width_});
      return;
    }
    for (int64_t x = 0, end; x < width_; x = end) {
      for (end = x + 1; end < width_ && SameTaps(row, x, end);) ++end;
      if (end - x >= kLeastHeight)
        segments_.push_back({x, end});
      else
        for (; x < end; ++x) columns_.push_back(x);
    }
  }

  // Writes the tiles of positions [begin, begin + count), numbered from there, and returns how many they are: not more
  // than positions.
  int64_t Cut(int64_t begin, int64_t count, PositionTile* tiles) const {
    PositionTile* const start = tiles;
    if (width_ == 0) {
      for (int64_t i = 0; i < count; i += height_) *tiles++ = {i, 1, std::min(height_, count - i)};
      return tiles - start;
    }
    const int64_t end = begin + count;
    for (int64_t row = begin / width_ * width_; row < end; row += width_)
      for (const Segment& s : segments_) {
        const int64_t first = std::max(row + s.begin, begin), last = std::min(row + s.end, end);
        if (first < last) Divide({first - begin, 1, last - first}, height_, tiles);
      }
    for (int64_t x : columns_) {
      const int64_t first = RoundUp(std::max<int64_t>(begin - x, 0), width_) + x;
      if (first < end) Divide({first - begin, width_, CeilDiv(end - first, width_)}, column_height_, tiles);
    }
    return tiles - start;
  }

 private:
  struct Segment {
    int64_t begin, end;
  };
  static bool SameTaps(const ConvSpatialDim& row, int64_t x, int64_t y) {
    for (int64_t w = 0; w < row.kernel; ++w)
      if ((InputIndex(row, x, w) < 0) != (InputIndex(row, y, w) < 0)) return false;
    return true;
  }
  // Into even parts.
  static void Divide(const PositionTile& all, int64_t height, PositionTile*& tiles) {
    const int64_t parts = CeilDiv(all.count, height);
    for (int64_t i = 0; i < parts; ++i) {
      const int64_t first = all.count * i / parts, last = all.count * (i + 1) / parts;
      *tiles++ = {all.first + first * all.step, all.step, last - first};
    }
  }

  int64_t height_ = 1, column_height_ = 1;
  int64_t width_ = 0;  // of a row that is cut; 0: positions as they follow each other
  std::vector<Segment> segments_;
  std::vector<int64_t> columns_;
};

}  // namespace strop::cpu
