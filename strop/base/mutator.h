// For tests of parsers: texts and bytes with mistakes in them, the same ones in every run.
//
//   Mutator mutate(kTextBytes);
//   for (int64_t n = mutate.Rounds(3000); n > 0; --n) Parse(mutate(good));     // must not crash; a sanitizer watches
//
// STROP_FUZZ_FACTOR=50 in the environment makes fifty times as many, for a run of minutes.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

namespace strop {

class Mutator {
 public:
  // `alphabet`: what is written over and between the good bytes; empty for any byte, and the ends of its range often.
  explicit Mutator(std::string_view alphabet = {}, uint64_t seed = 12345) : alphabet_(alphabet), state_(seed) {}

  static int64_t Rounds(int64_t usual) {
    const char* factor = std::getenv("STROP_FUZZ_FACTOR");
    return factor ? usual * std::strtoll(factor, nullptr, 10) : usual;
  }

  // A number below `bound` (xorshift).
  size_t Next(size_t bound) {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    state_ ^= state_ << 17;
    return static_cast<size_t>(state_ % bound);
  }

  // `good` with one to three mistakes: a byte changed, some left out, one put in, or a piece of it said again.
  std::string operator()(std::string_view good) {
    std::string bad(good);
    for (size_t edits = 1 + Next(3); edits > 0 && !bad.empty(); --edits) {
      const size_t at = Next(bad.size());
      switch (Next(4)) {
        case 0: bad[at] = Byte(); break;
        case 1: bad.erase(at, 1 + Next(8)); break;
        case 2: bad.insert(at, 1, Byte()); break;
        default: bad.insert(at, good.substr(Next(good.size()), Next(40)));
      }
    }
    return bad;
  }

  // `good` with one to three bytes changed, at or behind `first`: lengths and offsets stay what they were.
  std::string Overwrite(std::string_view good, size_t first = 0) {
    std::string bad(good);
    for (size_t edits = 1 + Next(3); edits > 0; --edits) bad[first + Next(bad.size() - first)] = Byte();
    return bad;
  }

 private:
  char Byte() {
    if (!alphabet_.empty()) return alphabet_[Next(alphabet_.size())];
    constexpr unsigned char kEnds[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    const size_t k = Next(10);
    return static_cast<char>(k < 5 ? kEnds[k] : Next(256));
  }

  std::string_view alphabet_;
  uint64_t state_;
};

}  // namespace strop
