// Random numbers that depend on the seed alone: the same module on every machine (splitmix64).
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace strop::fuzz {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0xd1342543de82ef95 + 0x2545f4914f6cdd1d) {}

  uint64_t Bits() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  // In [0, bound); 0 if there is nothing to choose from.
  int64_t Below(int64_t bound) { return bound <= 1 ? 0 : static_cast<int64_t>(Bits() % static_cast<uint64_t>(bound)); }
  // In [low, high].
  int64_t Between(int64_t low, int64_t high) { return low + Below(high - low + 1); }
  bool Chance(int percent) { return Below(100) < percent; }
  double Unit() { return static_cast<double>(Bits() >> 11) * 0x1p-53; }  // [0, 1)
  double Between(double low, double high) { return low + (high - low) * Unit(); }
  template <class T>
  const T& Pick(const std::vector<T>& from) {
    return from[static_cast<size_t>(Below(static_cast<int64_t>(from.size())))];
  }
  template <class T>
  void Shuffle(std::vector<T>& values) {
    for (size_t i = values.size(); i > 1; --i)
      std::swap(values[i - 1], values[static_cast<size_t>(Below(static_cast<int64_t>(i)))]);
  }
  // The position of a weight, with a chance in proportion to it; their sum is positive.
  size_t Weighted(std::span<const int> weights) {
    int64_t sum = 0;
    for (int w : weights) sum += w;
    int64_t at = Below(sum);
    for (size_t i = 0; i < weights.size(); ++i)
      if ((at -= weights[i]) < 0) return i;
    return 0;
  }

 private:
  uint64_t state_;
};

}  // namespace strop::fuzz
