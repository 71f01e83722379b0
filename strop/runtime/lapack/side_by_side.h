// Small matrices of a batch computed side by side, one in each lane of a vector: what their factorisations share
// (side_by_side_lu.h, and so on).
//
// A matrix of order 16 is too short for vectors along its columns, and a call of the library costs more than its
// arithmetic. Each lane computes what LAPACK's unblocked routine does, in its order, so a matrix's bits do not depend
// on its neighbours.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "strop/base/arrays_in_lanes.h"
#include "strop/base/isa.h"
#include "strop/runtime/lapack/site.h"

namespace strop::lapack {

template <class T>
struct SideBySide {
  using Lanes = ArraysInLanes<T>;
  static constexpr int kLanes = Lanes::kLanes;      // matrices at a time
  static constexpr Int kMaxOrder = 32;              // of square ones; a row is a bit of a lane
  static constexpr int64_t kMaxElements = 32 * 32;  // 32 kB of vectors: the first cache holds them
  using Vec = typename Lanes::Vec;
  using Integer = typename Lanes::Integer;
  using Mask = typename Lanes::Mask;

  static Vec Magnitude(Vec x) {
    return reinterpret_cast<Vec>(reinterpret_cast<Mask>(x) & std::numeric_limits<Integer>::max());
  }
  // The bits of all lanes.
  static uint64_t Union(Mask mask) {
    typedef uint64_t Words __attribute__((vector_size(32)));
    const Words words = reinterpret_cast<Words>(mask);
    const uint64_t all = words[0] | words[1] | words[2] | words[3];
    return sizeof(T) == 4 ? (all | all >> 32) & 0xffffffff : all;
  }
  // The power of two below each of what are no subnormal numbers, the least normal one for those, and 1 for zero and
  // where `bad`: matrices divided by that of their largest element overflow in no square.
  static Vec PowerBelow(Vec largest, Mask bad) {
    const Vec one = Vec{} + T(1), infinite = Vec{} + std::numeric_limits<T>::infinity();
    const Vec power = reinterpret_cast<Vec>(reinterpret_cast<Mask>(largest) & reinterpret_cast<Mask>(infinite));
    const Vec subnormal = largest == Vec{} ? one : Vec{} + std::numeric_limits<T>::min();
    return bad ? one : power == Vec{} ? subnormal : power;
  }
  static bool Any(Mask mask) { return Union(mask) != 0; }
  // Whether 1 / x has all digits, as LAPACK asks before it multiplies by it.
  static Mask HasReciprocal(Vec x) { return Magnitude(x) >= std::numeric_limits<T>::min(); }
  // By way of memory, where the compiler sees a loop for vectors.
  static Vec Root(Vec x) {
    T lanes[kLanes];
    for (int l = 0; l < kLanes; ++l) lanes[l] = x[l];
    for (int l = 0; l < kLanes; ++l) lanes[l] = std::sqrt(lanes[l]);
    Vec root;
    for (int l = 0; l < kLanes; ++l) root[l] = lanes[l];
    return root;
  }
};

}  // namespace strop::lapack
