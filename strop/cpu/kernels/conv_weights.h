// Packs the kernel of a convolution into panels of a product: element k = (tap, in_feature) of each output feature.
#pragma once
#include <algorithm>
#include <cstring>

#include "strop/cpu/kernels/accumulator_type.h"
#include "strop/cpu/kernels/conv_taps.h"
#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {

template <class T>
class WeightPacker {
 public:
  // The features of a tap take `tap_k` elements, all that kernels take at a time; `of_a`: weights are the rows of the
  // product. Refers to all of them.
  WeightPacker(const ConvProblem& p, const Taps& taps, const MicroTable<T>& micro, int64_t tap_k, bool of_a)
      : p_(p), taps_(taps), micro_(micro), tap_k_(tap_k), of_a_(of_a) {
    spreads_taps_ = SpreadsTaps();
  }
  // The kernel's taps are what is contiguous in memory: panels should be packed as a whole.
  bool spreads_taps() const { return spreads_taps_; }

  // dst[k][v]: elements [k0, k0 + kc) of `count` features, the first of which begins at `base`.
  void Pack(const uint8_t* kernel, int64_t base, int64_t count, int64_t k0, int64_t kc, int64_t width, T* dst) const {
    const PackPanel<T> pack = PackerOf(micro_, p_.kernel_type, of_a_);
    if (pack && spreads_taps_ && kc == taps_.count * tap_k_) return PackSpread(pack, kernel, base, count, width, dst);
    for (int64_t k = 0; k < kc;) {
      const int64_t tap = (k0 + k) / tap_k_, feature = (k0 + k) % tap_k_;
      const int64_t from = base + taps_.kernel_offset[tap] + feature * p_.kernel_in_stride;
      const int64_t elements = std::min(tap_k_ - feature, kc - k), real = std::min(elements, p_.in_features - feature);
      T* to = dst + micro_.UnitAt(k) * width;
      if (pack) {
        pack(kernel + from * Bytes(p_.kernel_type), p_.kernel_out_stride, p_.kernel_in_stride, count, real, width, to);
      } else {
        for (int64_t c = 0; c < elements; ++c)
          for (int64_t v = 0; v < width; ++v)
            StoreInPanel(micro_, to, width, c, v,
                         v < count && c < real ? LoadAs<T>(p_.kernel_type, kernel,
                                                           from + v * p_.kernel_out_stride + c * p_.kernel_in_stride)
                                               : T(0));
      }
      k += elements;
    }
  }

 private:
  static constexpr int64_t kSpreadElements = 1 << 13;  // that are turned at once

  // Of the sums' own type, so that what is packed is what lies there. The taps may be some of those that lie together.
  bool SpreadsTaps() {
    if (micro_.group != 1 || p_.kernel_type != ElementTypeOf<T>() || taps_.count < 2) return false;
    const auto [low, high] = std::ranges::minmax(taps_.kernel_offset);
    tap_low_ = low, tap_span_ = high - low + 1;
    tap_stride_ = std::min(p_.kernel_in_stride, p_.kernel_out_stride);
    return tap_stride_ > 1 && tap_span_ <= tap_stride_ &&
           tap_stride_ * std::max(micro_.nr, micro_.mr) <= kSpreadElements;
  }

  // All of the panel. The taps of a feature follow each other in memory, so that no tap alone can be read along
  // anything.
  void PackSpread(PackPanel<T> pack, const uint8_t* kernel, int64_t base, int64_t count, int64_t width, T* dst) const {
    const T* from = reinterpret_cast<const T*>(kernel) + base + tap_low_;
    if (p_.kernel_in_stride == tap_stride_) return Turn(pack, from, count, width, dst);
    constexpr int64_t kAhead = 8;  // a feature's kernels lie far from the next one's
    alignas(64) T turned[kSpreadElements + kPanelSlack];
    for (int64_t i = 0; i < p_.in_features; ++i, from += p_.kernel_in_stride) {
      if (i + kAhead < p_.in_features) FetchRows<false>(from + kAhead * p_.kernel_in_stride, 0, 1, tap_stride_ * count);
      pack(from, tap_stride_, 1, count, tap_span_, width, turned);
      for (int64_t tap = 0; tap < taps_.count; ++tap)
        std::memcpy(dst + (tap * p_.in_features + i) * width, turned + (taps_.kernel_offset[tap] - tap_low_) * width,
                    width * sizeof(T));
    }
  }
  // Of OIHW: pieces that are contiguous along features and taps are turned, and their rows dealt out.
  void Turn(PackPanel<T> pack, const T* from, int64_t count, int64_t width, T* dst) const {
    alignas(64) T turned[kSpreadElements + kPanelSlack];
    const int64_t most = std::max<int64_t>(kSpreadElements / (tap_stride_ * width), 1);
    for (int64_t first = 0, n; first < p_.in_features; first += n) {
      n = std::min(most, p_.in_features - first);
      pack(from + first * tap_stride_, p_.kernel_out_stride, 1, count, (n - 1) * tap_stride_ + tap_span_, width,
           turned);
      for (int64_t i = 0; i < n; ++i)
        for (int64_t tap = 0; tap < taps_.count; ++tap)
          std::memcpy(dst + (tap * p_.in_features + first + i) * width,
                      turned + (i * tap_stride_ + taps_.kernel_offset[tap] - tap_low_) * width, width * sizeof(T));
    }
  }

  const ConvProblem& p_;
  const Taps& taps_;
  const MicroTable<T>& micro_;
  int64_t tap_k_ = 1;
  bool of_a_ = false, spreads_taps_ = false;
  int64_t tap_stride_ = 0, tap_low_ = 0, tap_span_ = 0;  // of neighbouring features; the taps among them
};

}  // namespace strop::cpu
