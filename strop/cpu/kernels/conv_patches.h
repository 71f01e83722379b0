// Packs patches of a convolution's input into panels of a product: what the window of each position covers, gathered
// tap by tap from where it lies.
#pragma once
#include <algorithm>
#include <cstring>

#include "strop/cpu/kernels/accumulator_type.h"
#include "strop/cpu/kernels/conv_positions.h"
#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {

template <class T>
class PatchPacker {
 public:
  // The features of a tap take `tap_k` elements, all that kernels take at a time; `of_a`: positions are the rows of the
  // product. Refers to all of them.
  PatchPacker(const ConvProblem& p, const ConvPositions& positions, const MicroTable<T>& micro, int64_t tap_k,
              bool of_a)
      : p_(p), positions_(positions), micro_(micro), tap_k_(tap_k), of_a_(of_a) {
    // Taps that follow each other in a row of the kernel read neighbours, all features of one after those of the other.
    const ConvSpatialDim* row = p.spatial.empty() ? nullptr : &p.spatial.back();
    if (row && p.in_features % micro_.Quantum() == 0 && p.input_feature_stride == 1 &&
        row->input_stride == p.in_features && row->window_dilation == 1 && row->base_dilation == 1 && !row->reversal)
      row_taps_ = row->kernel;
  }

  // dst[k][v]: element k = (tap, in_feature) of the patch of position first + v.
  void Pack(const uint8_t* input, int64_t base, int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width,
            T* dst) const {
    ConvPositions::Panel panel;
    positions_.Describe(first, count, panel);
    if (micro_.pack_lines && of_a_ && p_.input_feature_stride == 1)
      return PackLines(input, base, panel, k0, kc, width, dst);
    const PackPanel<T> pack = PackerOf(micro_, p_.input_type, of_a_);
    for (int64_t k = 0; k < kc;) {
      const int64_t tap = (k0 + k) / tap_k_, feature = (k0 + k) % tap_k_;
      int64_t elements = std::min(tap_k_ - feature, kc - k);
      if (pack && row_taps_ > 1) elements = std::min((row_taps_ - tap % row_taps_) * tap_k_ - feature, kc - k);
      // Pieces that the first-level cache holds, of whole steps.
      const int64_t whole = std::max<int64_t>(16, micro_.Quantum());
      elements = std::min(elements, std::max<int64_t>(whole, kPieceElements / count / whole * whole));
      T* to = dst + micro_.UnitAt(k) * width;
      if (pack) {
        const int64_t real = row_taps_ > 1 ? elements : std::min(elements, p_.in_features - feature);
        PackTap(pack, input, base, panel, tap, feature, real, width, to);
      } else {
        for (int64_t v = 0; v < width; ++v) {
          const int64_t offset = v < count ? positions_.Offset(panel, v, tap) : kOutside;
          const int64_t from = base + offset + feature * p_.input_feature_stride;
          for (int64_t c = 0; c < elements; ++c)
            StoreInPanel(micro_, to, width, c, v,
                         offset < 0 || feature + c >= p_.in_features
                             ? T(0)
                             : LoadAs<T>(p_.input_type, input, from + c * p_.input_feature_stride));
        }
      }
      k += elements;
    }
  }

 private:
  static constexpr int kPieceElements = 2048;  // of a piece of a panel

  // Features side by side, of each position from wherever it lies.
  void PackLines(const uint8_t* input, int64_t base, const ConvPositions::Panel& panel, int64_t k0, int64_t kc,
                 int64_t width, T* dst) const {
    const int64_t size = Bytes(p_.input_type);
    const uint8_t* rows[ConvPositions::kMostVectors] = {};
    for (int64_t k = 0, elements; k < kc; k += elements) {
      const int64_t tap = (k0 + k) / tap_k_, feature = (k0 + k) % tap_k_;
      elements = std::min(tap_k_ - feature, kc - k);
      for (int64_t v = 0; v < panel.count; ++v) {
        const int64_t offset = positions_.Offset(panel, v, tap);
        rows[v] = offset < 0 ? nullptr : input + (base + offset + feature) * size;
      }
      const int64_t real = std::min(elements, p_.in_features - feature);
      micro_.pack_lines(rows, width, real * size, dst + micro_.UnitAt(k) * width);
    }
  }

  // `length` elements from (tap, feature) on, of all positions. Where these lie at one distance, straight from the
  // input; else from a copy, with zeros for what is outside.
  [[gnu::always_inline]] void PackTap(PackPanel<T> pack, const uint8_t* input, int64_t base,
                                      const ConvPositions::Panel& panel, int64_t tap, int64_t feature, int64_t length,
                                      int64_t width, T* to) const {
    const int64_t size = Bytes(p_.input_type), stride = p_.input_feature_stride, count = panel.count;
    const int64_t last = tap + (feature + length - 1) / p_.in_features;
    const uint8_t* elements = input + (base + feature * stride) * size;
    int64_t from[ConvPositions::kMostVectors];
    from[0] = from[1] = 0;
    bool inside = panel.interior, even = panel.even;
    if (inside && even) {
      from[0] = panel.origin[0] + positions_.TapOffset(tap);
      from[1] = from[0] + panel.distance;
    } else {
      inside = even = true;
      for (int64_t v = 0; v < count; ++v) {
        from[v] = positions_.Offset(panel, v, tap);
        inside &= from[v] >= 0 && (last == tap || positions_.Offset(panel, v, last) >= 0);
        even &= v < 2 || from[v] - from[v - 1] == from[1] - from[0];
      }
    }
    if (inside && even)
      return pack(elements + from[0] * size, count > 1 ? from[1] - from[0] : stride, stride, count, length, width, to);
    if (p_.input_type == ElementTypeOf<T>() && micro_.group == 1 && length <= 8 &&
        last == tap) {  // too little for a copy
      const T* typed = reinterpret_cast<const T*>(elements);
      for (int64_t v = 0; v < width; ++v) {
        const bool zero = v >= count || from[v] < 0;
        for (int64_t c = 0; c < length; ++c) to[c * width + v] = zero ? T(0) : typed[from[v] + c * stride];
      }
      return;
    }
    alignas(64) uint8_t copy[kPieceElements * 8 + 16 * ConvPositions::kMostVectors * 8];
    if (stride == 1) {
      for (int64_t v = 0; v < count; ++v)
        CopyTaps(input, base, panel, v, from[v], tap, last, feature, length, copy + v * length * size);
      return pack(copy, length, 1, count, length, width, to);
    }
    switch (size) {
      case 1: Gather<uint8_t>(elements, from, count, length, copy); break;
      case 2: Gather<uint16_t>(elements, from, count, length, copy); break;
      case 4: Gather<uint32_t>(elements, from, count, length, copy); break;
      default: Gather<uint64_t>(elements, from, count, length, copy); break;
    }
    pack(copy, 1, count, count, length, width, to);
  }

  // For short runs: GCC writes memcpy as a string instruction here, which takes longer to start than these to copy.
  static void CopyBytes(uint8_t* to, const uint8_t* from, int64_t n) {
    if (n < 16) {
      for (int64_t i = 0; i < n; ++i) to[i] = from[i];
      return;
    }
    for (int64_t i = 0; i + 16 < n; i += 16) __builtin_memcpy(to + i, from + i, 16);
    __builtin_memcpy(to + n - 16, from + n - 16, 16);
  }

  // `length` contiguous elements of one position from (tap, feature) on; more than one tap only along a row of taps.
  [[gnu::always_inline]] void CopyTaps(const uint8_t* input, int64_t base, const ConvPositions::Panel& panel, int64_t v,
                                       int64_t from, int64_t tap, int64_t last, int64_t feature, int64_t length,
                                       uint8_t* copy) const {
    const int64_t size = Bytes(p_.input_type);
    for (int64_t c = 0; c < length; ++tap, feature = 0) {
      const int64_t n = tap == last ? length - c : std::min(length - c, p_.in_features - feature);
      if (from < 0)
        std::memset(copy + c * size, 0, n * size);
      else
        CopyBytes(copy + c * size, input + (base + from + feature) * size, n * size);
      c += n;
      if (c < length) from = positions_.Offset(panel, v, tap + 1);
    }
  }

  // copy[feature][position], by codes.
  template <class Code>
  void Gather(const uint8_t* elements, const int64_t* from, int64_t count, int64_t length, uint8_t* copy) const {
    const Code* codes = reinterpret_cast<const Code*>(elements);
    Code* to = reinterpret_cast<Code*>(copy);
    for (int64_t c = 0; c < length; ++c, codes += p_.input_feature_stride)
      for (int64_t v = 0; v < count; ++v) *to++ = from[v] < 0 ? Code(0) : codes[from[v]];
  }

  const ConvProblem& p_;
  const ConvPositions& positions_;
  const MicroTable<T>& micro_;
  int64_t tap_k_ = 1, row_taps_ = 1;
  bool of_a_ = false;
};

}  // namespace strop::cpu
