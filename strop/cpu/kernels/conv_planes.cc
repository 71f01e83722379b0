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
  if (step == 1) {
    std::memcpy(to, from, count * sizeof(T));
  } else if (step == 2) {
    for (int64_t i = 0; i < count; ++i) to[i] = from[2 * i];
  } else {
    for (int64_t i = 0; i < count; ++i) to[i] = from[step * i];
  }
}
}  // namespace

template <class T>
void Planes::Copy(const MicroTable<T>& micro, ElementType type, const void* data, int64_t base, int64_t feature_stride,
                  int64_t features, int64_t first, int64_t rows, T* planes, T* temporary) const {
  std::memset(planes, 0, features * size_ * sizeof(T));
  const int last = static_cast<int>(dims_.size()) - 1;
  const Dim& row = dims_[last];
  const Kept& kept_row = kept_[last];
  int64_t outer = 1;
  for (int d = 0; d < last; ++d) outer *= kept_[d].extent * static_cast<int64_t>(kept_[d].remainders.size());
  for (int64_t line = 0; line < outer; ++line) {
    int64_t rest = line, from = base, to = 0;
    bool inside = true;
    for (int d = last; d-- > 0;) {
      const Dim& dim = dims_[d];
      const int64_t e = rest % kept_[d].extent;
      rest /= kept_[d].extent;
      const int64_t n = static_cast<int64_t>(kept_[d].remainders.size()), remainder = rest % n;
      rest /= n;
      const int64_t at = dim.step * (e + (d == 0 ? first : 0)) + kept_[d].remainders[remainder] + dim.origin;
      inside &= at >= 0 && at < dim.image && (d > 0 || e < rows + kept_[d].most_shift);
      from += at * dim.stride;
      to += remainder * kept_[d].distance + e * pitch_[d];
    }
    if (!inside) continue;
    for (size_t n = 0; n < kept_row.remainders.size(); ++n) {
      // Elements e with 0 <= step * e + begin < image.
      const int64_t begin = kept_row.remainders[n] + row.origin + (last == 0 ? first * row.step : 0);
      const int64_t extent = last == 0 ? rows + kept_row.most_shift : kept_row.extent;
      const int64_t low = begin >= 0 ? 0 : CeilDiv(-begin, row.step);
      const int64_t high = begin >= row.image ? 0 : std::min(extent, CeilDiv(row.image - begin, row.step));
      if (low >= high) continue;
      const int64_t count = high - low, distance = row.step * row.stride;
      const int64_t offset = from + (begin + low * row.step) * row.stride;
      T* to_row = planes + to + static_cast<int64_t>(n) * kept_row.distance + low;
      if ((distance == 1 || feature_stride != 1) && type == ElementTypeOf<T>()) {
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
