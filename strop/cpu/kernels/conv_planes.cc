#include "strop/cpu/kernels/conv_planes.h"

#include <algorithm>
#include <cstring>

#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {

Planes::Planes(std::vector<Dim> dims) : dims_(std::move(dims)) {
  const int rank = static_cast<int>(dims_.size());
  kept_.resize(rank);
  pitch_.resize(rank);
  for (int d = rank; d-- > 0;) {
    Kept& kept = kept_[d];
    for (int64_t shift : dims_[d].shifts) {
      kept.remainders.push_back(shift % dims_[d].step);
      kept.most_shift = std::max(kept.most_shift, shift / dims_[d].step);
    }
    std::sort(kept.remainders.begin(), kept.remainders.end());
    kept.remainders.erase(std::unique(kept.remainders.begin(), kept.remainders.end()), kept.remainders.end());
    kept.extent = dims_[d].count + kept.most_shift;
    pitch_[d] = size_;
    size_ *= kept.extent;
  }
  for (int d = rank; d-- > 0;) {
    kept_[d].distance = size_;
    size_ *= static_cast<int64_t>(kept_[d].remainders.size());
  }
  for (int d = 0; d + 1 < rank; ++d) outer_ *= kept_[d].extent * static_cast<int64_t>(kept_[d].remainders.size());
}

int64_t Planes::ShiftOffset(int d, int64_t n) const {
  const Kept& kept = kept_[d];
  const int64_t shift = dims_[d].shifts[n], step = dims_[d].step;
  const auto at = std::lower_bound(kept.remainders.begin(), kept.remainders.end(), shift % step);
  return (at - kept.remainders.begin()) * kept.distance + shift / step * pitch_[d];
}

int64_t Planes::temporary(int64_t features) const {
  return features * kept_.back().extent + kPanelSlack / static_cast<int64_t>(sizeof(float));
}

namespace {
// Every `step`-th element. Of every second one the compiler makes vectors.
template <class T>
void CopyEvery(int64_t step, const T* from, int64_t count, T* to) {
  if (step == 2) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[2 * i];
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = from[step * i];
  }
}
}  // namespace

bool Planes::LineAt(int64_t number, int64_t first, int64_t rows, int64_t& from, int64_t& to) const {
  bool inside = true;
  for (int d = static_cast<int>(dims_.size()) - 1; d-- > 0;) {
    const Dim& dim = dims_[d];
    const int64_t e = number % kept_[d].extent;
    number /= kept_[d].extent;
    const int64_t n = static_cast<int64_t>(kept_[d].remainders.size()), remainder = number % n;
    number /= n;
    const int64_t at = dim.step * (e + (d == 0 ? first : 0)) + kept_[d].remainders[remainder] + dim.origin;
    inside &= at >= 0 && at < dim.image && (d > 0 || e < rows + kept_[d].most_shift);
    from += at * dim.stride;
    to += remainder * kept_[d].distance + e * pitch_[d];
  }
  return inside;
}

Planes::Piece Planes::PieceOf(size_t remainder, int64_t first, int64_t rows) const {
  const Dim& row = dims_.back();
  const Kept& kept = kept_.back();
  const bool alone = dims_.size() == 1;
  // Elements e with 0 <= step * e + begin < image.
  Piece piece;
  piece.begin = kept.remainders[remainder] + row.origin + (alone ? first * row.step : 0);
  const int64_t extent = alone ? rows + kept.most_shift : kept.extent;
  piece.low = piece.begin >= 0 ? 0 : CeilDiv(-piece.begin, row.step);
  const int64_t high = piece.begin >= row.image ? 0 : std::min(extent, CeilDiv(row.image - piece.begin, row.step));
  piece.count = std::max<int64_t>(high - piece.low, 0);
  return piece;
}

// Rows that lie in memory as they do in planes: a feature's together, which are neighbours there. All that no row
// covers is set to zero.
template <class T>
void Planes::CopyRows(const T* data, int64_t base, int64_t feature_stride, int64_t features, int64_t first,
                      int64_t rows, T* planes) const {
  constexpr int64_t kLines = 32;
  const int64_t extent = kept_.back().extent;
  const Piece piece = PieceOf(0, first, rows);
  for (int64_t line = 0; line < outer_; line += kLines) {
    const int64_t lines = std::min(kLines, outer_ - line);
    int64_t from[kLines] = {}, to[kLines] = {}, counts[kLines];
    for (int64_t l = 0; l < lines; ++l) counts[l] = LineAt(line + l, first, rows, from[l], to[l]) ? piece.count : 0;
    for (int64_t f = 0; f < features; ++f) {
      const int64_t begin = base + f * feature_stride + piece.begin + piece.low;
      for (int64_t l = 0; l < lines; ++l) {
        T* const to_row = planes + f * size_ + to[l];
        const int64_t low = counts[l] > 0 ? piece.low : 0, high = low + counts[l];
        std::fill(to_row, to_row + low, T(0));
        if (counts[l] > 0) std::memcpy(to_row + low, data + begin + from[l], counts[l] * sizeof(T));
        std::fill(to_row + high, to_row + extent, T(0));
      }
    }
  }
}

template <class T>
void Planes::Copy(const MicroTable<T>& micro, ElementType type, const void* data, int64_t base, int64_t feature_stride,
                  int64_t features, int64_t first, int64_t rows, T* planes, T* temporary) const {
  const Dim& row = dims_.back();
  const int64_t distance = row.step * row.stride;
  if (distance == 1 && type == ElementTypeOf<T>()) {
    CopyRows(static_cast<const T*>(data), base, feature_stride, features, first, rows, planes);
    return;
  }
  std::memset(planes, 0, features * size_ * sizeof(T));
  for (int64_t line = 0; line < outer_; ++line) {
    int64_t from = base, to = 0;
    if (!LineAt(line, first, rows, from, to)) continue;
    for (size_t n = 0; n < kept_.back().remainders.size(); ++n) {
      const Piece piece = PieceOf(n, first, rows);
      if (piece.count == 0) continue;
      const int64_t count = piece.count, offset = from + (piece.begin + piece.low * row.step) * row.stride;
      T* to_row = planes + to + static_cast<int64_t>(n) * kept_.back().distance + piece.low;
      if (feature_stride != 1 && type == ElementTypeOf<T>()) {
        const T* from_row = static_cast<const T*>(data) + offset;
        for (int64_t f = 0; f < features; ++f)
          CopyEvery(distance, from_row + f * feature_stride, count, to_row + f * size_);
        continue;
      }
      PackStrided<T>(micro, type, static_cast<const uint8_t*>(data), offset, distance, feature_stride, count, features,
                     count, temporary);
      for (int64_t f = 0; f < features; ++f) std::memcpy(to_row + f * size_, temporary + f * count, count * sizeof(T));
    }
  }
}

template void Planes::Copy(const MicroTable<float>&, ElementType, const void*, int64_t, int64_t, int64_t, int64_t,
                           int64_t, float*, float*) const;
template void Planes::Copy(const MicroTable<double>&, ElementType, const void*, int64_t, int64_t, int64_t, int64_t,
                           int64_t, double*, double*) const;

}  // namespace strop::cpu
