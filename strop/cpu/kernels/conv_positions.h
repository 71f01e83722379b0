// The positions of a convolution's output, numbered in the order in which they lie in memory, so that neighbours read
// neighbours; and where the taps of each find the input.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "strop/cpu/kernels/conv.h"
#include "strop/cpu/kernels/conv_taps.h"

namespace strop::cpu {

// Where the taps of a dimension find their input: [output][tap], in elements; kOutside in padding and dilation holes.
// Sums of offsets with a kOutside among them stay negative.
inline constexpr int64_t kOutside = -(int64_t{1} << 56);

class DimOffsets {
 public:
  explicit DimOffsets(const ConvSpatialDim& d);
  int64_t At(int64_t o, int64_t w) const { return table_.empty() ? Compute(o, w) : table_[o * dim_.kernel + w]; }

 private:
  int64_t Compute(int64_t o, int64_t w) const {
    const int64_t i = InputIndex(dim_, o, w);
    return i < 0 ? kOutside : i * dim_.input_stride;
  }
  ConvSpatialDim dim_;
  std::vector<int64_t> table_;  // empty: computed at each use
};

class ConvPositions {
 public:
  static constexpr int kMostVectors = 64;  // of a panel
  struct Dim {
    int64_t size, stride;
    int slot;  // 0: batch; d + 1: spatial dimension d
  };
  using Position = int64_t[10];  // by slot

  // Some that follow each other. Those whose window lies inside the input find each tap at a fixed distance from its
  // origin.
  struct Panel {
    int64_t count = 0, distance = 0;
    bool interior = true, even = true;  // all of them are; and their origins are `distance` apart
    Position at[kMostVectors];
    int64_t origin[kMostVectors];  // negative: not inside
  };

  explicit ConvPositions(const ConvProblem& p);
  const Taps& taps() const { return taps_; }
  const std::vector<Dim>& dims() const { return dims_; }  // in the order of memory, those of one element first

  // Of positions [first, first + count), in the output.
  void OutputOffsets(int64_t first, int64_t count, int64_t* offsets) const;
  void Decode(int64_t position, Position& at) const {
    for (size_t d = dims_.size(); d-- > 0;) {
      at[dims_[d].slot] = position % dims_[d].size;
      position /= dims_[d].size;
    }
  }
  // Of positions along rows, or down the image.
  void Describe(int64_t first, int64_t count, Panel& panel, bool down = false) const;

  // Where position v finds a tap in the input; negative outside.
  int64_t Offset(const Panel& panel, int64_t v, int64_t tap) const {
    if (panel.origin[v] >= 0) return panel.origin[v] + tap_offsets_[tap];
    const Position& at = panel.at[v];
    int64_t offset = at[0] * batch_stride_;
    const int64_t* w = taps_.index.data() + tap * rank_;
    for (int d = 0; d < rank_; ++d) offset += offsets_[d].At(at[d + 1], w[d]);
    return offset;
  }
  // The parts of it: of the outer dimensions, and of tap w of a row of the window.
  int64_t RowOffset(const Position& at, int64_t tap) const {
    int64_t offset = at[0] * batch_stride_;
    const int64_t* w = taps_.index.data() + tap * rank_;
    for (int d = 0; d + 1 < rank_; ++d) offset += offsets_[d].At(at[d + 1], w[d]);
    return offset;
  }
  int64_t AlongRow(const Position& at, int64_t w) const { return offsets_[rank_ - 1].At(at[rank_], w); }
  // From the origin of a window that lies inside.
  int64_t TapOffset(int64_t tap) const { return tap_offsets_[tap]; }

  // The dimension along which neighbouring positions lie, if some of their windows reach out of the image; else null.
  const ConvSpatialDim* ReachingRow() const;
  // From one position to the next along a dimension, in elements of the input.
  int64_t StepOf(const Dim& dim) const;

 private:
  struct Inside {
    int64_t begin, end;  // positions whose windows lie inside
    int64_t origin, step;
  };
  void FindTaps();
  void FindInside();
  // To the next position of dimension `d` and those outside.
  void Advance(Position& at, size_t d) const {
    for (++d; d-- > 0;) {
      if (++at[dims_[d].slot] < dims_[d].size) return;
      at[dims_[d].slot] = 0;
    }
  }
  // Where a window begins along a dimension; kOutside if it does not lie inside.
  int64_t Origin(int slot, int64_t at) const {
    const Inside& inside = inside_[slot];
    return at >= inside.begin && at < inside.end ? inside.origin + at * inside.step : kOutside;
  }

  std::vector<ConvSpatialDim> spatial_;
  int64_t batch_ = 1, batch_stride_ = 0;
  int rank_ = 0;
  Taps taps_;
  std::vector<Dim> dims_;
  std::vector<DimOffsets> offsets_;  // by spatial dimension
  std::vector<int64_t> tap_offsets_;
  std::vector<Inside> inside_;  // by slot
};

}  // namespace strop::cpu
