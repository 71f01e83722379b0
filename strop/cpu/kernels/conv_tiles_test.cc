// Tiles of positions: each position is in one of them, none is too high, all of one miss the same taps of the row.
#include "strop/cpu/kernels/conv_tiles.h"

#include <gtest/gtest.h>

namespace strop::cpu {
namespace {

void Check(const ConvSpatialDim& row, const PositionTiles& tiles, int64_t begin, int64_t count, int64_t height,
           int64_t column_height, bool same_taps) {
  std::vector<PositionTile> cut(count);
  const int64_t n = tiles.Cut(begin, count, cut.data());
  ASSERT_LE(n, count);
  std::vector<int> seen(count);
  for (int64_t i = 0; i < n; ++i) {
    const PositionTile& tile = cut[i];
    EXPECT_GE(tile.count, 1);
    EXPECT_LE(tile.count, tile.step == 1 ? height : column_height);
    for (int64_t r = 0; r < tile.count; ++r) {
      const int64_t at = tile.first + r * tile.step;
      ASSERT_TRUE(at >= 0 && at < count);
      ++seen[at];
      if (!same_taps) continue;
      for (int64_t w = 0; w < row.kernel; ++w)
        EXPECT_EQ(InputIndex(row, (begin + at) % row.output, w) < 0,
                  InputIndex(row, (begin + tile.first) % row.output, w) < 0);
    }
  }
  for (int times : seen) EXPECT_EQ(times, 1);
}

ConvSpatialDim Row(int64_t input, int64_t kernel, int64_t output, int64_t stride, int64_t pad_low, int64_t dilation) {
  ConvSpatialDim row;
  row.input = input, row.kernel = kernel, row.output = output, row.stride = stride;
  row.pad_low = pad_low, row.window_dilation = dilation;
  return row;
}

TEST(PositionTiles, CutByTheTapsThatAreMissed) {
  for (const ConvSpatialDim& row :
       {Row(14, 3, 14, 1, 1, 1), Row(28, 5, 28, 1, 2, 1), Row(28, 3, 28, 1, 4, 4), Row(4, 3, 4, 1, 1, 1),
        Row(30, 7, 15, 2, 3, 1), Row(5, 9, 5, 1, 4, 1), Row(3, 3, 20, 1, 9, 1), Row(20, 2, 19, 1, 0, 1)}) {
    const PositionTiles tiles(row, 4 * row.output, 12, 6);
    for (int64_t begin : {int64_t{0}, row.output - 1, 3 * row.output + 2})
      for (int64_t count : {int64_t{1}, row.output, 4 * row.output, 9 * row.output + 3})
        Check(row, tiles, begin, count, 12, 6, true);
  }
}

TEST(PositionTiles, FewRowsAreTakenWhole) {
  const ConvSpatialDim row = Row(56, 3, 56, 1, 1, 1);
  const PositionTiles rows(row, 2 * 56, 12, 12), part(row, 40, 12, 12), plain(12);
  for (const PositionTiles* tiles : {&rows, &part, &plain}) Check(row, *tiles, 56, 2 * 56, 12, 12, false);
  PositionTile cut[112];
  EXPECT_EQ(rows.Cut(0, 112, cut), 10);
  EXPECT_EQ(plain.Cut(0, 112, cut), 10);
  EXPECT_EQ(cut[9].count, 4);
}

}  // namespace
}  // namespace strop::cpu
