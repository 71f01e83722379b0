// XXH64 (Collet, "xxHash fast digest algorithm", 2016): 64 bits of a large run of bytes at the speed of memory, the
// same in every build and process. It finds damage; it does not stop somebody who makes bytes to fit.
#pragma once
#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace strop {

namespace internal {
inline constexpr uint64_t kXxPrimes[] = {0x9E3779B185EBCA87u, 0xC2B2AE3D27D4EB4Fu, 0x165667B19E3779F9u,
                                         0x85EBCA77C2B2AE63u, 0x27D4EB2F165667C5u};
inline uint64_t XxRound(uint64_t sum, uint64_t word) { return std::rotl(sum + word * kXxPrimes[1], 31) * kXxPrimes[0]; }
template <class T>
T XxRead(const char* at) {
  T word;
  std::memcpy(&word, at, sizeof word);
  return word;
}
}  // namespace internal

inline uint64_t ContentHash(std::string_view bytes, uint64_t seed = 0) {
  using internal::kXxPrimes;
  using internal::XxRead;
  using internal::XxRound;
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  uint64_t hash = seed + kXxPrimes[4];
  if (bytes.size() >= 32) {
    uint64_t sums[] = {seed + kXxPrimes[0] + kXxPrimes[1], seed + kXxPrimes[1], seed, seed - kXxPrimes[0]};
    for (; end - at >= 32; at += 32)
      for (int lane = 0; lane < 4; ++lane) sums[lane] = XxRound(sums[lane], XxRead<uint64_t>(at + 8 * lane));
    hash = std::rotl(sums[0], 1) + std::rotl(sums[1], 7) + std::rotl(sums[2], 12) + std::rotl(sums[3], 18);
    for (uint64_t sum : sums) hash = (hash ^ XxRound(0, sum)) * kXxPrimes[0] + kXxPrimes[3];
  }
  hash += bytes.size();
  for (; end - at >= 8; at += 8)
    hash = std::rotl(hash ^ XxRound(0, XxRead<uint64_t>(at)), 27) * kXxPrimes[0] + kXxPrimes[3];
  if (end - at >= 4) {
    hash = std::rotl(hash ^ XxRead<uint32_t>(at) * kXxPrimes[0], 23) * kXxPrimes[1] + kXxPrimes[2];
    at += 4;
  }
  for (; at < end; ++at) hash = std::rotl(hash ^ static_cast<unsigned char>(*at) * kXxPrimes[4], 11) * kXxPrimes[0];
  hash = (hash ^ hash >> 33) * kXxPrimes[1];
  hash = (hash ^ hash >> 29) * kXxPrimes[2];
  return hash ^ hash >> 32;
}

}  // namespace strop
