#include "strop/cpu/kernels/conv_positions.h"

#include <cstring>

#include "strop/cpu/kernels/rounding.h"

namespace strop::cpu {
namespace {

constexpr int64_t kLargestTable = int64_t{1} << 20;

}  // namespace

DimOffsets::DimOffsets(const ConvSpatialDim& d) : dim_(d) {
  if (d.output > kLargestTable / std::max<int64_t>(1, d.kernel)) return;
  for (int64_t o = 0; o < d.output; ++o)
    for (int64_t w = 0; w < d.kernel; ++w) table_.push_back(Compute(o, w));
}

ConvPositions::ConvPositions(const ConvProblem& p)
    : spatial_(p.spatial), batch_(p.batch), batch_stride_(p.input_batch_stride), taps_(p) {
  rank_ = static_cast<int>(p.spatial.size());
  dims_.push_back({p.batch, p.output_batch_stride, 0});
  for (int d = 0; d < rank_; ++d) {
    dims_.push_back({p.spatial[d].output, p.spatial[d].output_stride, d + 1});
    offsets_.emplace_back(p.spatial[d]);
  }
  // Dimensions of one element have no distance: they go first, out of the way.
  std::stable_sort(dims_.begin(), dims_.end(), [](const Dim& a, const Dim& b) {
    return (a.size == 1 ? INT64_MAX : a.stride) > (b.size == 1 ? INT64_MAX : b.stride);
  });
  FindInside();
  FindTaps();
}

void ConvPositions::FindInside() {
  inside_.push_back({0, batch_, 0, batch_stride_});
  for (const ConvSpatialDim& s : spatial_) {
    const int64_t reach = s.input - (s.kernel - 1) * s.window_dilation + s.pad_low;  // windows begin before it
    Inside inside{std::max<int64_t>(CeilDiv(s.pad_low, s.stride), 0), std::max<int64_t>(CeilDiv(reach, s.stride), 0),
                  -s.pad_low * s.input_stride, s.stride * s.input_stride};
    if (s.base_dilation != 1) inside.end = 0;
    inside_.push_back(inside);
  }
}

void ConvPositions::FindTaps() {
  for (int64_t tap = 0; tap < taps_.count; ++tap) {
    int64_t offset = 0;
    for (int d = 0; d < rank_; ++d) {
      const ConvSpatialDim& s = spatial_[d];
      const int64_t w = taps_.index[tap * rank_ + d];
      offset += (s.reversal ? s.kernel - 1 - w : w) * s.window_dilation * s.input_stride;
    }
    tap_offsets_.push_back(offset);
  }
}

void ConvPositions::Describe(int64_t first, int64_t count, Panel& panel, bool down) const {
  panel.count = count;
  Decode(first, panel.at[0]);
  const int last = dims_.back().slot;
  int64_t others = 0;  // of the dimensions that stay as they are from one position to the next
  for (int64_t v = 0; v < count; ++v) {
    Position& at = panel.at[v];
    if (v > 0) {
      std::memcpy(at, panel.at[v - 1], sizeof(Position));
      Advance(at, dims_.size() - 1 - down);
    }
    if (v == 0 || at[last] == 0 || down) {
      others = 0;
      for (int slot = 0; slot <= rank_; ++slot)
        if (slot != last) others += Origin(slot, at[slot]);
    }
    const int64_t origin = others + Origin(last, at[last]);
    panel.origin[v] = origin;
    panel.interior &= origin >= 0;
    if (v == 1) panel.distance = origin - panel.origin[0];
    panel.even &= v < 2 || origin - panel.origin[v - 1] == panel.distance;
  }
}

void ConvPositions::OutputOffsets(int64_t first, int64_t count, int64_t* offsets) const {
  const Dim& row = dims_.back();
  for (int64_t done = 0; done < count;) {
    int64_t rest = (first + done) / row.size, offset = 0;
    for (size_t d = dims_.size() - 1; d-- > 0; rest /= dims_[d].size) offset += rest % dims_[d].size * dims_[d].stride;
    for (int64_t at = (first + done) % row.size; at < row.size && done < count; ++at)
      offsets[done++] = offset + at * row.stride;
  }
}

const ConvSpatialDim* ConvPositions::ReachingRow() const {
  bool reaches_out = false;
  for (int d = 1; d <= rank_; ++d) reaches_out |= inside_[d].begin > 0 || inside_[d].end < spatial_[d - 1].output;
  return reaches_out && dims_.back().slot > 0 ? &spatial_[dims_.back().slot - 1] : nullptr;
}

int64_t ConvPositions::StepOf(const Dim& dim) const {
  if (dim.slot == 0) return batch_stride_;
  return spatial_[dim.slot - 1].stride * spatial_[dim.slot - 1].input_stride;
}

}  // namespace strop::cpu
