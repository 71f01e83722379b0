// Where patches lie whose features are contiguous, for products that read them there: the positions of a task in tiles
// (conv_tiles.h), and for each tile the address of each tap of each position.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "strop/cpu/kernels/conv_positions.h"
#include "strop/cpu/kernels/conv_tiles.h"
#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {

template <class T>
class PatchTables {
 public:
  // Of tasks of about `per_task` positions. Refers to both. What is outside has zeros for the features of all groups.
  PatchTables(const ConvProblem& p, const ConvPositions& positions, int rows, int64_t per_task)
      : p_(p), positions_(positions), zeros_(static_cast<size_t>(p.in_features * p.feature_groups)) {
    const auto& dims = positions.dims();
    const ConvSpatialDim* row = positions.ReachingRow();
    const int64_t height = HeightAt(positions.StepOf(dims.back()), rows);
    tiles_ = row ? PositionTiles(*row, per_task, height, HeightAt(positions.StepOf(dims[dims.size() - 2]), rows))
                 : PositionTiles(height);
  }

  // As PositionTiles::Cut.
  int64_t Cut(int64_t m0, int64_t rows, PositionTile* tiles) const { return tiles_.Cut(m0, rows, tiles); }
  // The tables of all tiles, one after the other; returns whether one leaves out a tap. What all would leave out the
  // last one multiplies, so that each weight meets a position.
  bool FillAll(int64_t m0, std::span<const PositionTile> tiles, const T* input, bool skips, const T** table) const {
    const Taps& taps = positions_.taps();
    const T** at = table;
    for (const PositionTile& tile : tiles) {
      Fill(m0, tile, input, skips, at);
      at += tile.count * taps.count;
    }
    bool skipped = false;
    for (int64_t tap = 0; skips && tap < taps.count; ++tap) {
      size_t missing = 0;
      at = table;
      for (const PositionTile& tile : tiles) {
        missing += at[tap * tile.count] == nullptr;
        at += tile.count * taps.count;
      }
      skipped |= missing > 0;
      const int64_t last = tiles.back().count;
      if (missing == tiles.size()) std::fill_n(at - (taps.count - tap) * last, last, zeros_.data());
    }
    return skipped;
  }

  // table[tap][v]: the features of that tap at the v-th position of the tile. Where all are outside, the first is null
  // if it `skips` such taps.
  void Fill(int64_t m0, const PositionTile& tile, const T* input, bool skips, const T** table) const {
    if (FillRow(m0, tile, input, skips, table)) return;
    const Taps& taps = positions_.taps();
    const int64_t count = tile.count;
    ConvPositions::Panel panel;
    positions_.Describe(m0 + tile.first, count, panel, tile.step != 1);
    bool all_reach_out = true;
    for (int64_t v = 0; v < count; ++v) {
      const int64_t origin = panel.origin[v];
      const T** to = table + v;
      if (origin >= 0) {
        all_reach_out = false;
        for (int64_t tap = 0; tap < taps.count; ++tap, to += count) *to = input + origin + positions_.TapOffset(tap);
        continue;
      }
      // Row by row of the window.
      const ConvPositions::Position& at = panel.at[v];
      const int64_t row_taps = p_.spatial.empty() ? 1 : p_.spatial.back().kernel;
      for (int64_t tap = 0; tap < taps.count; tap += row_taps) {
        const int64_t row = positions_.RowOffset(at, tap);
        for (int64_t w = 0; w < row_taps; ++w, to += count) {
          const int64_t offset = row + positions_.AlongRow(at, w);
          *to = offset < 0 ? zeros_.data() : input + offset;
        }
      }
    }
    if (!all_reach_out || !skips) return;
    for (int64_t tap = 0; tap < taps.count; ++tap, table += count)
      if (std::all_of(table, table + count, [&](const T* at) { return at == zeros_.data(); })) *table = nullptr;
  }

 private:
  static constexpr int64_t kMostRowTaps = 64;

  // Rows of registers that read at distances of a page meet in a few lines of the first-level cache: fewer then.
  static int64_t HeightAt(int64_t elements, int rows) {
    return MeetInSets(elements * static_cast<int64_t>(sizeof(T))) ? rows / 2 : rows;
  }

  // The same of positions in a row that each find the same of its taps, at one distance; false if they are not.
  bool FillRow(int64_t m0, const PositionTile& tile, const T* input, bool skips, const T** table) const {
    const int rank = static_cast<int>(p_.spatial.size());
    if (tile.step != 1 || rank == 0 || positions_.dims().back().slot != rank) return false;
    const ConvSpatialDim& s = p_.spatial.back();
    if (s.base_dilation != 1 || s.kernel > kMostRowTaps) return false;
    const Taps& taps = positions_.taps();
    ConvPositions::Position at;
    positions_.Decode(m0 + tile.first, at);
    const int64_t distance = s.stride * s.input_stride, reach = (tile.count - 1) * s.stride;
    if (at[rank] + tile.count > s.output) return false;
    int64_t along[kMostRowTaps];
    for (int64_t w = 0; w < s.kernel; ++w) {
      const int64_t x = at[rank] * s.stride - s.pad_low + (s.reversal ? s.kernel - 1 - w : w) * s.window_dilation;
      const bool outside = x + reach < 0 || x >= s.input;
      if (!outside && (x < 0 || x + reach >= s.input)) return false;
      along[w] = outside ? kOutside : x * s.input_stride;
    }
    for (int64_t tap = 0; tap < taps.count; tap += s.kernel) {
      const int64_t row = positions_.RowOffset(at, tap);
      for (int64_t w = 0; w < s.kernel; ++w, table += tile.count) {
        if (row + along[w] < 0) {
          std::fill_n(table, tile.count, skips ? nullptr : zeros_.data());
          continue;
        }
        const T* from = input + row + along[w];
        for (int64_t v = 0; v < tile.count; ++v, from += distance) table[v] = from;
      }
    }
    return true;
  }

  const ConvProblem& p_;
  const ConvPositions& positions_;
  PositionTiles tiles_;
  const std::vector<T> zeros_;  // what is outside
};

}  // namespace strop::cpu
