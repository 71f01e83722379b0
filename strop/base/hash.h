// FNV-1a, 64 bits (Fowler, Noll and Vo; RFC 9923): the same value in every build and process, so that it may be stored.
// Not for keys that an adversary chooses.
#pragma once
#include <cstdint>
#include <string_view>

namespace strop {

class Fnv1a {
 public:
  constexpr void Add(std::string_view bytes) {
    for (char c : bytes) AddStep(static_cast<unsigned char>(c));
  }
  // One step for the whole value.
  constexpr void AddStep(uint64_t value) { hash_ = (hash_ ^ value) * 0x100000001b3u; }
  constexpr uint64_t value() const { return hash_; }

 private:
  uint64_t hash_ = 0xcbf29ce484222325u;
};

}  // namespace strop
