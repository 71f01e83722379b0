// Elements of a line that share their sort keys with others (sort_key.h): zeros of both signs where they are equal, and
// NaNs where all are. They are lost when keys become elements again, so they are set aside, in order, and put back
// where the sorted line has their keys: a stable sort leaves them in that order.
#pragma once
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "strop/cpu/kernels/parallel.h"
#include "strop/cpu/kernels/rounding.h"
#include "strop/cpu/kernels/sort_key.h"

namespace strop::cpu {

template <class K, class Maker>
class TiedElements {
 public:
  explicit TiedElements(const Maker& make_key) : make_key_(make_key) {}

  // Of the line of n elements, `stride` apart, into `set_aside`, memory for n.
  void SetAside(const K* line, int64_t n, int64_t stride, K* set_aside, ThreadPool* pool) {
    set_aside_ = set_aside;
    std::vector<std::array<int64_t, 2>> places(CeilDiv(n, kPiece));  // of a piece's next zero and NaN
    ForEachPiece(pool, n, kPiece, [&](int64_t begin, int64_t end) {
      int64_t zeros = 0, nans = 0;
      for (int64_t r = begin; r < end; ++r) {
        zeros += IsZero(line[r * stride]);
        nans += make_key_.IsNan(line[r * stride]);
      }
      places[begin / kPiece] = {zeros, nans};
    });
    int64_t sum = 0;
    for (int kind = 0; kind < 2; ++kind) {
      for (auto& place : places) sum += std::exchange(place[kind], sum);
      (kind == 0 ? zeros_ : nans_) = kind == 0 ? sum : sum - zeros_;
    }
    ForEachPiece(pool, n, kPiece, [&](int64_t begin, int64_t end) {
      auto [zero, nan] = places[begin / kPiece];
      for (int64_t r = begin; r < end; ++r) {
        const K bits = line[r * stride];
        if (IsZero(bits))
          set_aside[zero++] = bits;
        else if (make_key_.IsNan(bits))
          set_aside[nan++] = bits;
      }
    });
  }

  // Into the sorted line.
  void PutBack(K* line, int64_t n, int64_t stride) const {
    const K zero_key = make_key_(K{0}), nan_key = make_key_.nan_key();
    PutBack(line, stride, LowerBound(line, n, stride, zero_key), zeros_, set_aside_);
    PutBack(line, stride, LowerBound(line, n, stride, nan_key), nans_, set_aside_ + zeros_);
  }

 private:
  static constexpr int64_t kPiece = 1 << 14;

  static bool IsZero(K bits) { return static_cast<K>(bits << 1) == 0; }
  int64_t LowerBound(const K* line, int64_t n, int64_t stride, K key) const {
    int64_t begin = 0;
    for (int64_t size = n; size > 0;) {
      const int64_t half = size / 2;
      const bool before = make_key_(line[(begin + half) * stride]) < key;
      if (before) begin += half + 1;
      size = before ? size - half - 1 : half;
    }
    return begin;
  }
  static void PutBack(K* line, int64_t stride, int64_t begin, int64_t count, const K* elements) {
    for (int64_t i = 0; i < count; ++i) line[(begin + i) * stride] = elements[i];
  }

  Maker make_key_;
  const K* set_aside_ = nullptr;
  int64_t zeros_ = 0, nans_ = 0;
};

}  // namespace strop::cpu
