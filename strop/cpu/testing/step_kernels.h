// Kernels that take sixteen units along k at a time, as those of AMX do (gemm_micro.h), in plain C++: so that what cuts
// and packs products for them is tested on every processor. What they read as if it were there is not: panels of A end
// where their last row does.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "strop/cpu/kernels/gemm_micro.h"
#include "strop/cpu/kernels/half.h"

namespace strop::cpu::testing {

inline constexpr int kStep = 16;

// The products of a unit: S and R are the elements of A and of B.
template <class T, class S, class R>
T ProductsOf(const T* a, const T* b) {
  constexpr int kGroup = sizeof(T) / sizeof(S);
  S x[kGroup];
  R y[kGroup];
  std::memcpy(x, a, sizeof x), std::memcpy(y, b, sizeof y);
  T sum = 0;
  for (int i = 0; i < kGroup; ++i) {
    if constexpr (std::is_same_v<T, float>) {
      const uint32_t wide[2] = {uint32_t{x[i]} << 16, uint32_t{y[i]} << 16};  // bf16
      float numbers[2];
      std::memcpy(numbers, wide, sizeof numbers);
      sum += numbers[0] * numbers[1];
    } else {
      sum += static_cast<T>(x[i]) * static_cast<T>(y[i]);
    }
  }
  return sum;
}

// Panels of columns of B, or of rows of A.
template <class T, class S, bool kOfA>
void PackSteps(const void* from, int64_t vector_stride, int64_t k_stride, int64_t count, int64_t kc, int64_t width,
               T* dst) {
  constexpr int64_t kGroup = sizeof(T) / sizeof(S);
  const S* const data = static_cast<const S*>(from);
  const int64_t whole = (kc + kGroup * kStep - 1) / (kGroup * kStep) * kGroup * kStep;
  for (int64_t k = 0; k < whole; ++k)
    for (int64_t v = 0; v < width; ++v) {
      const S value = v < count && k < kc ? data[v * vector_stride + k * k_stride] : S(0);
      const int64_t unit = k / kGroup;
      const int64_t at = kOfA ? (unit / kStep * width + v) * kStep + unit % kStep : unit * width + v;
      std::memcpy(reinterpret_cast<uint8_t*>(dst + at) + k % kGroup * static_cast<int64_t>(sizeof(S)), &value,
                  sizeof value);
    }
}

template <class T>
void PackLinesOfSteps(const uint8_t* const* rows, int64_t count, int64_t bytes, T* dst) {
  constexpr int64_t kLine = kStep * static_cast<int64_t>(sizeof(T));
  for (int64_t at = 0; at < bytes; at += kLine)
    for (int64_t v = 0; v < count; ++v, dst += kStep) {
      std::memset(dst, 0, kLine);
      if (rows[v]) std::memcpy(dst, rows[v] + at, static_cast<size_t>(std::min(kLine, bytes - at)));
    }
}

template <class T, class S, class R, int kColumns>
bool MultiplySteps(const StepTile<T>& t) {
  using Sum = std::conditional_t<std::is_same_v<T, float>, float, uint32_t>;  // integers wrap
  const int64_t a_stride = t.a_stride > 0 ? t.a_stride : kStep, a_step = t.a_step > 0 ? t.a_step : t.rows * kStep;
  for (int64_t r = 0; r < t.rows; ++r) {
    T row[kColumns];
    for (int j = 0; j < kColumns; ++j) {
      Sum sum = t.before ? static_cast<Sum>(t.before[r * t.before_stride + j]) : Sum(0);
      for (int64_t u = 0; u < t.units; ++u)
        sum += static_cast<Sum>(
            ProductsOf<T, S, R>(t.a + u / kStep * a_step + r * a_stride + u % kStep, t.b + u * t.b_stride + j));
      row[j] = static_cast<T>(sum);
    }
    if constexpr (std::is_same_v<T, float>) {
      if (t.halves) {
        GemmBaseline().store_bf16(kColumns, row, static_cast<uint16_t*>(t.to) + r * t.stride);
        continue;
      }
    }
    std::memcpy(static_cast<T*>(t.to) + r * t.stride, row, sizeof row);
  }
  return true;
}

template <class T, class S, class R>
MicroTable<T> StepKernels(PackSource a, PackSource b) {
  MicroTable<T> t;
  t.mr = t.nr = 2 * kStep;
  t.lanes = t.step = kStep;
  t.group = sizeof(T) / sizeof(S);
  t.pack_lines = &PackLinesOfSteps<T>;
  t.steps[0] = &MultiplySteps<T, S, R, kStep>;
  t.steps[1] = &MultiplySteps<T, S, R, 2 * kStep>;
  t.pack[static_cast<int>(b)] = &PackSteps<T, R, false>;
  t.pack_a[static_cast<int>(a)] = &PackSteps<T, S, true>;
  return t;
}

// f32 in three parts of bf16 (gemm_thirds.inc): those of 32 elements follow each other, two of a part in a unit.
inline constexpr int kParts = 3, kElementsOfParts = 2 * kStep, kStepOfParts = kParts * kStep;

inline float RoundedTo8Bits(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0x8000u) & 0xFFFF0000u;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// What f16 and bf16 are in f32.
inline float AsFloat(float x) { return x; }
struct Half {
  uint16_t code;
};
struct Brain {
  uint16_t code;
};
inline float AsFloat(Half x) { return HalfToFloat(x.code); }
inline float AsFloat(Brain x) { return Bf16ToFloat(x.code); }

template <bool kOfA, class S = float>
void PackParts(const void* from, int64_t vector_stride, int64_t k_stride, int64_t count, int64_t kc, int64_t width,
               float* dst) {
  const S* const data = static_cast<const S*>(from);
  const int64_t whole = (kc + kElementsOfParts - 1) / kElementsOfParts * kElementsOfParts;
  for (int64_t k = 0; k < whole; ++k)
    for (int64_t v = 0; v < width; ++v) {
      float left = v < count && k < kc ? AsFloat(data[v * vector_stride + k * k_stride]) * 0x1p24f : 0.0f;
      const int64_t step = k / kElementsOfParts, unit = k % kStep, half = k % kElementsOfParts / kStep;
      for (int64_t part = 0; part < kParts; ++part) {
        const float some = part + 1 < kParts ? RoundedTo8Bits(left) : left;
        left -= some;
        const int64_t line = part * kStep + unit;
        const int64_t at = kOfA ? (step * width + v) * kStepOfParts + line : (step * kStepOfParts + line) * width + v;
        uint32_t bits;
        std::memcpy(&bits, &some, sizeof bits);
        const uint16_t code = static_cast<uint16_t>(bits >> 16);
        std::memcpy(reinterpret_cast<uint8_t*>(dst + at) + 2 * half, &code, sizeof code);
      }
    }
}

inline void PackPartsAhead(const PackAhead& p) {
  constexpr int64_t kColumns = 2 * kStep, kRows = 2 * kStep;
  for (int64_t u = p.first; u < p.first + p.count; ++u) {
    if (!p.steps) {
      const int64_t step = u % p.num_steps, row = u / p.num_steps % kRows, panel = u / p.num_steps / kRows;
      PackParts<true>(p.rows + (panel * kRows + row) * p.row_stride + step * kElementsOfParts, 0, 1, 1,
                      kElementsOfParts, 1, p.to + panel * p.distance + (step * kRows + row) * kStepOfParts);
      continue;
    }
    const int64_t row = u % kStep, step = u / kStep % p.num_steps, panel = u / kStep / p.num_steps;
    const float* const from = p.steps[step] + panel * kColumns + row * p.row_stride;
    // A step of two rows, of which the first units of each part are wanted.
    float parts[kStepOfParts * kColumns];
    for (int64_t j = 0; j < kColumns; ++j) {
      float both[kElementsOfParts] = {from[j]};
      both[kStep] = from[kStep * p.row_stride + j];
      PackParts<false>(both, 0, 1, 1, kElementsOfParts, 1, parts + j * kStepOfParts);
    }
    for (int64_t part = 0; part < kParts; ++part)
      for (int64_t j = 0; j < kColumns; ++j)
        p.to[panel * p.distance + (step * kStepOfParts + part * kStep + row) * kColumns + j] =
            parts[j * kStepOfParts + part * kStep];
  }
}

inline float HalfOf(float unit, bool high) {
  uint32_t bits;
  std::memcpy(&bits, &unit, sizeof bits);
  bits = high ? bits & 0xFFFF0000u : bits << 16;
  std::memcpy(&unit, &bits, sizeof unit);
  return unit;
}

template <int kColumns>
bool MultiplyParts(const StepTile<float>& t) {
  PackPartsAhead(t.packs);
  bool numbers = true;
  for (int64_t r = 0; r < t.rows; ++r) {
    float row[kColumns] = {};
    if (t.before) std::memcpy(row, t.before + r * t.before_stride, sizeof row);
    for (int64_t s = 0; s < t.units / kStepOfParts; ++s) {
      const float* const a = t.a + (t.a_offsets ? t.a_offsets[s] : s * t.rows * kStepOfParts) +
                             r * (t.a_stride > 0 ? t.a_stride : kStepOfParts);
      const float* const b = t.b + s * kStepOfParts * t.b_stride;
      for (int64_t x = 0; x < kParts; ++x)
        for (int64_t y = 0; x + y < kParts; ++y)
          for (int64_t u = 0; u < kStep; ++u) {
            const float low = HalfOf(a[x * kStep + u], false), high = HalfOf(a[x * kStep + u], true);
            const float* const units = b + (y * kStep + u) * t.b_stride;
            for (int j = 0; j < kColumns; ++j) row[j] += low * HalfOf(units[j], false) + high * HalfOf(units[j], true);
          }
    }
    for (int j = 0; j < kColumns && t.ends; ++j) {
      numbers = numbers && row[j] - row[j] == 0;
      row[j] *= 0x1p-48f;
    }
    std::memcpy(static_cast<float*>(t.to) + r * t.stride, row, sizeof row);
  }
  return numbers;
}

inline bool AllFiniteParts(int64_t n, const float* x) {
  for (int64_t i = 0; i < n; ++i)
    for (const bool high : {false, true})
      if (HalfOf(x[i], high) - HalfOf(x[i], high) != 0) return false;
  return true;
}

inline MicroTable<float> KernelsOfParts() {
  MicroTable<float> t;
  t.mr = t.nr = 2 * kStep;
  t.lanes = kStep;
  t.group = 2;
  t.step = kStepOfParts, t.quantum = kElementsOfParts;
  t.all_finite = &AllFiniteParts;
  t.steps[0] = &MultiplyParts<kStep>;
  t.steps[1] = &MultiplyParts<2 * kStep>;
  t.pack[static_cast<int>(PackSource::F32)] = &PackParts<false>;
  t.pack_a[static_cast<int>(PackSource::F32)] = &PackParts<true>;
  t.pack[static_cast<int>(PackSource::F16)] = &PackParts<false, Half>;
  t.pack_a[static_cast<int>(PackSource::F16)] = &PackParts<true, Half>;
  t.pack[static_cast<int>(PackSource::BF16)] = &PackParts<false, Brain>;
  t.pack_a[static_cast<int>(PackSource::BF16)] = &PackParts<true, Brain>;
  return t;
}

// The baseline's kernels and these.
inline const GemmIsa& StepIsa() {
  static const GemmIsa kIsa = [] {
    GemmIsa isa = GemmBaseline();
    isa.name = "steps";
    isa.bf16 = StepKernels<float, uint16_t, uint16_t>(PackSource::BF16, PackSource::BF16);
    isa.thirds = KernelsOfParts();
    isa.bytes[0][0] = StepKernels<int32_t, int8_t, int8_t>(PackSource::S8, PackSource::S8);
    isa.bytes[0][1] = StepKernels<int32_t, int8_t, uint8_t>(PackSource::S8, PackSource::U8);
    isa.bytes[1][0] = StepKernels<int32_t, uint8_t, int8_t>(PackSource::U8, PackSource::S8);
    isa.bytes[1][1] = StepKernels<int32_t, uint8_t, uint8_t>(PackSource::U8, PackSource::U8);
    return isa;
  }();
  return kIsa;
}

}  // namespace strop::cpu::testing
