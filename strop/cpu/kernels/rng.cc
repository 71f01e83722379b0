#include "strop/cpu/kernels/rng.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "strop/base/isa.h"
#include "strop/cpu/kernels/parallel.h"

namespace strop::cpu {
namespace {

constexpr int64_t kLanes = 16;  // counters in flight; the compiler turns loops over them into vectors
// Keeps a loop over lanes rolled until the vectoriser has seen it.
#define STROP_LANES _Pragma("GCC unroll 1") _Pragma("GCC ivdep")
constexpr int64_t kPieceBlocks = 1 << 13;  // counters per task

// ---- ThreeFry2x32 ---------------------------------------------------------------------------------------------------

inline uint32_t RotateLeft(uint32_t v, int by) { return (v << by) | (v >> (32 - by)); }

struct ThreeFryKey {
  explicit ThreeFryKey(uint64_t key)
      : k{static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32),
          static_cast<uint32_t>(key) ^ static_cast<uint32_t>(key >> 32) ^ 0x1BD11BDAu} {}
  uint32_t k[3];
};

// Encrypts kLanes consecutive 64-bit counters from `counter` on.
inline void ThreeFryLanes(const ThreeFryKey& key, uint64_t counter, uint32_t* __restrict x0, uint32_t* __restrict x1) {
  constexpr int kRotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
  STROP_LANES for (int64_t l = 0; l < kLanes; ++l) {
    uint64_t c = counter + static_cast<uint64_t>(l);
    x0[l] = static_cast<uint32_t>(c) + key.k[0];
    x1[l] = static_cast<uint32_t>(c >> 32) + key.k[1];
  }
  for (int group = 0; group < 5; ++group) {
    const uint32_t add0 = key.k[(group + 1) % 3], add1 = key.k[(group + 2) % 3] + static_cast<uint32_t>(group + 1);
    for (int r = 0; r < 4; ++r) {
      const int by = kRotations[(group % 2) * 4 + r];
      STROP_LANES for (int64_t l = 0; l < kLanes; ++l) {
        x0[l] += x1[l];
        x1[l] = RotateLeft(x1[l], by) ^ x0[l];
      }
    }
    STROP_LANES for (int64_t l = 0; l < kLanes; ++l) {
      x0[l] += add0;
      x1[l] += add1;
    }
  }
}

// ---- Philox4x32 -----------------------------------------------------------------------------------------------------

struct Counter128 {
  uint64_t low = 0, high = 0;
  Counter128 operator+(uint64_t delta) const {
    uint64_t sum = low + delta;
    return {sum, high + (sum < delta)};
  }
};

// Encrypts kLanes consecutive counters; x[w][l] is word w of counter l.
inline void PhiloxLanes(uint64_t key, Counter128 counter, uint32_t (*__restrict x)[kLanes]) {
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  STROP_LANES for (int64_t l = 0; l < kLanes; ++l) {
    Counter128 c = counter + static_cast<uint64_t>(l);
    x[0][l] = static_cast<uint32_t>(c.low);
    x[1][l] = static_cast<uint32_t>(c.low >> 32);
    x[2][l] = static_cast<uint32_t>(c.high);
    x[3][l] = static_cast<uint32_t>(c.high >> 32);
  }
  for (int round = 0; round < 10; ++round) {
    STROP_LANES for (int64_t l = 0; l < kLanes; ++l) {
      uint64_t p0 = uint64_t{x[0][l]} * 0xD2511F53u, p1 = uint64_t{x[2][l]} * 0xCD9E8D57u;
      uint32_t y0 = static_cast<uint32_t>(p1 >> 32) ^ x[1][l] ^ k0;
      uint32_t y2 = static_cast<uint32_t>(p0 >> 32) ^ x[3][l] ^ k1;
      x[1][l] = static_cast<uint32_t>(p1);
      x[3][l] = static_cast<uint32_t>(p0);
      x[0][l] = y0;
      x[2][l] = y2;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
}

// words[4*i + w] = word w of counter + i, for i in [0, blocks).
void PhiloxWords(uint64_t key, Counter128 counter, int64_t blocks, uint32_t* words) {
  auto body = [&] {
    uint32_t x[4][kLanes];
    for (int64_t i = 0; i < blocks; i += kLanes) {
      PhiloxLanes(key, counter + static_cast<uint64_t>(i), x);
      int64_t count = std::min(kLanes, blocks - i);
      for (int64_t l = 0; l < count; ++l) {
        for (int w = 0; w < 4; ++w) words[4 * (i + l) + w] = x[w][l];
      }
    }
  };
  WithVectors(body);
}

// ---- element widths -------------------------------------------------------------------------------------------------

// Stores 32-bit draws as elements of less than 32 bits; sub-byte types keep their low bits, signed ones extended.
struct Narrow {
  explicit Narrow(ElementType type) : bytes(Bytes(type)), unused(8 * bytes - Bits(type)), is_signed(IsSigned(type)) {}
  void Store(void* out, int64_t i, uint32_t draw) const {
    if (bytes == 4) {
      static_cast<uint32_t*>(out)[i] = draw;
    } else if (bytes == 2) {
      static_cast<uint16_t*>(out)[i] = static_cast<uint16_t>(draw);
    } else {
      uint8_t raw = static_cast<uint8_t>(draw << unused);
      static_cast<uint8_t*>(out)[i] =
          is_signed ? static_cast<uint8_t>(static_cast<int8_t>(raw) >> unused) : static_cast<uint8_t>(raw >> unused);
    }
  }
  void StoreRun(void* out, int64_t first, const uint32_t* draws, int64_t count) const {
    if (bytes == 4) {
      for (int64_t i = 0; i < count; ++i) static_cast<uint32_t*>(out)[first + i] = draws[i];
    } else {
      for (int64_t i = 0; i < count; ++i) Store(out, first + i, draws[i]);
    }
  }
  int bytes, unused;
  bool is_signed;
};

int64_t Product(std::span<const int64_t> dims) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  return n;
}

void ThreeFry64(const ThreeFryKey& key, uint64_t counter, int64_t n, uint64_t* out, ThreadPool* pool) {
  ForEachPiece(pool, n, kPieceBlocks, [&](int64_t begin, int64_t end) {
    auto body = [&] {
      uint32_t x0[kLanes], x1[kLanes];
      for (int64_t i = begin; i < end; i += kLanes) {
        ThreeFryLanes(key, counter + static_cast<uint64_t>(i), x0, x1);
        int64_t count = std::min(kLanes, end - i);
        for (int64_t l = 0; l < count; ++l) out[i + l] = x0[l] | uint64_t{x1[l]} << 32;
      }
    };
    WithVectors(body);
  });
}

// The array seen as [outer][split][inner] with the split dimension halved.
struct Halves {
  explicit Halves(std::span<const int64_t> dims) {
    size_t at = dims.size();
    for (size_t i = 0; i < dims.size() && at == dims.size(); ++i) {
      if (dims[i] % 2 == 0) at = i;
    }
    if (at == dims.size() && !dims.empty()) {
      at = 0;
      for (size_t i = 1; i < dims.size(); ++i) {
        if (dims[i] > dims[at]) at = i;
      }
    }
    for (size_t i = 0; i < dims.size(); ++i) (i < at ? outer : i > at ? inner : split) *= dims[i];
    half = (split + 1) / 2;
  }
  int64_t outer = 1, split = 1, inner = 1, half = 1;
};

void ThreeFryNarrow(const ThreeFryKey& key, uint64_t counter, const Halves& h, Narrow narrow, void* out,
                    ThreadPool* pool) {
  uint32_t* words = narrow.bytes == 4 ? static_cast<uint32_t*>(out) : nullptr;
  ForEachPiece(pool, h.outer * h.half * h.inner, kPieceBlocks, [&](int64_t begin, int64_t end) {
    auto body = [&] {
      uint32_t x0[kLanes], x1[kLanes];
      int64_t i = begin % h.inner, row = begin / h.inner;  // row = o * half + c
      int64_t c = row % h.half, o = row / h.half;
      for (int64_t at = begin; at < end; at += kLanes) {
        ThreeFryLanes(key, counter + static_cast<uint64_t>(at), x0, x1);
        int64_t count = std::min(kLanes, end - at);
        if (words && h.inner == 1 && h.split % 2 == 0) {  // the two words of a counter are neighbours throughout
          uint32_t* to = words + 2 * at;
          for (int64_t l = 0; l < count; ++l) {
            to[2 * l] = x0[l];
            to[2 * l + 1] = x1[l];
          }
          continue;
        }
        for (int64_t l = 0; l < count;) {
          const int64_t run = std::min(count - l, h.inner - i);  // counters until the end of the row
          const int64_t first = (o * h.split + 2 * c) * h.inner + i;
          narrow.StoreRun(out, first, x0 + l, run);
          if (2 * c + 1 < h.split) narrow.StoreRun(out, first + h.inner, x1 + l, run);
          l += run;
          if ((i += run) < h.inner) continue;
          i = 0;
          if (++c < h.half) continue;
          c = 0;
          ++o;
        }
      }
    };
    WithVectors(body);
  });
}

void Philox(uint64_t key, Counter128 counter, ElementType type, int64_t n, void* out, ThreadPool* pool) {
  static_assert(std::endian::native == std::endian::little);
  const int64_t per_block = Bytes(type) == 8 ? 2 : 4;
  const Narrow narrow(type);
  ForEachPiece(pool, (n + per_block - 1) / per_block, kPieceBlocks, [&](int64_t begin, int64_t end) {
    // The 128 bits of a block are two or four elements in order (little endian): they need no conversion.
    const int64_t whole = narrow.bytes >= 4 ? std::min(end, n / per_block) : begin;
    if (whole > begin)
      PhiloxWords(key, counter + static_cast<uint64_t>(begin), whole - begin, static_cast<uint32_t*>(out) + 4 * begin);
    uint32_t words[4 * 256];
    for (int64_t block = whole; block < end; block += 256) {
      int64_t blocks = std::min<int64_t>(256, end - block);
      PhiloxWords(key, counter + static_cast<uint64_t>(block), blocks, words);
      int64_t first = block * per_block, count = std::min(blocks * per_block, n - first);
      if (narrow.bytes == 8)
        std::memcpy(static_cast<uint64_t*>(out) + first, words, 8 * count);
      else
        narrow.StoreRun(out, first, words, count);
    }
  });
}

// ---- distributions --------------------------------------------------------------------------------------------------

constexpr uint64_t kStreamKey = 0x243F6A8885A308D3u;  // digits of pi: the `rng` op has a counter, but no key
constexpr int64_t kPieceDraws = 1 << 13;              // a multiple of the draws per block

double LoadFloat(ElementType type, const void* p) {
  if (type == ElementType::F64) return *static_cast<const double*>(p);
  if (type == ElementType::F32) return *static_cast<const float*>(p);
  uint16_t code;
  std::memcpy(&code, p, 2);
  return DecodeFloat(type, code);
}
void StoreFloat(ElementType type, void* out, int64_t i, double value) {
  if (type == ElementType::F64)
    static_cast<double*>(out)[i] = value;
  else if (type == ElementType::F32)
    static_cast<float*>(out)[i] = static_cast<float>(value);
  else
    static_cast<uint16_t*>(out)[i] = static_cast<uint16_t>(EncodeFloat(type, value));
}
bool IsDrawableFloat(ElementType type) {
  return type == ElementType::F64 || type == ElementType::F32 || type == ElementType::F16 || type == ElementType::BF16;
}

// Calls fn(i, draw) for each of n draws of 32 (or, for 64-bit types, 64) random bits.
template <class Fn>
void ForEachDraw(ElementType type, std::span<const uint64_t, 2> counter, int64_t n, ThreadPool* pool, Fn fn) {
  const int64_t per_block = Bytes(type) == 8 ? 2 : 4;
  ForEachPiece(pool, n, kPieceDraws, [&](int64_t begin, int64_t end) {
    uint32_t words[4 * 256];
    for (int64_t at = begin; at < end; at += 256 * per_block) {
      int64_t count = std::min(end - at, 256 * per_block);
      PhiloxWords(kStreamKey, Counter128{counter[0], counter[1]} + static_cast<uint64_t>(at / per_block),
                  (count + per_block - 1) / per_block, words);
      for (int64_t i = 0; i < count; ++i) {
        fn(at + i, per_block == 4 ? words[i] : words[2 * i] | uint64_t{words[2 * i + 1]} << 32);
      }
    }
  });
}

// Bits of precision of a uniform draw: as many as the type can tell apart just below one.
int SignificandBits(ElementType type) {
  switch (type) {
    case ElementType::F64: return 53;
    case ElementType::F32: return 24;
    case ElementType::F16: return 11;
    default: return 8;
  }
}

void UniformFloat(ElementType type, std::span<const uint64_t, 2> counter, int64_t n, double low, double high, void* out,
                  ThreadPool* pool) {
  const int shift = (type == ElementType::F64 ? 64 : 32) - SignificandBits(type);
  const double unit = std::ldexp(1.0, -SignificandBits(type));
  ForEachDraw(type, counter, n, pool, [&](int64_t i, uint64_t draw) {
    double u = static_cast<double>(draw >> shift) * unit;
    StoreFloat(type, out, i, low + u * (high - low));
    // Rounding to the type may reach `high`, which the range excludes: take the low end of the range instead.
    if (low < high && LoadFloat(type, static_cast<char*>(out) + i * Bytes(type)) >= high) StoreFloat(type, out, i, low);
  });
}

uint64_t LoadBits(ElementType type, const void* p) {
  uint64_t bits = 0;
  std::memcpy(&bits, p, Bytes(type));
  if (IsSigned(type)) {
    int unused = 64 - 8 * Bytes(type);
    bits = static_cast<uint64_t>(static_cast<int64_t>(bits << unused) >> unused);
  }
  return bits;
}

void UniformInt(ElementType type, std::span<const uint64_t, 2> counter, int64_t n, uint64_t low, uint64_t high,
                void* out, ThreadPool* pool) {
  const uint64_t range = high - low;  // modulo 2^64, so right for signed values as well
  const bool empty = IsSigned(type) ? static_cast<int64_t>(high) <= static_cast<int64_t>(low) : high <= low;
  const int bits = Bytes(type) == 8 ? 64 : 32, bytes = Bytes(type);
  ForEachDraw(type, counter, n, pool, [&](int64_t i, uint64_t draw) {
    // The high part of draw * range: uniform to within range / 2^bits, without a division.
    uint64_t offset = empty ? 0 : static_cast<uint64_t>((static_cast<unsigned __int128>(draw) * range) >> bits);
    uint64_t value = low + offset;
    std::memcpy(static_cast<char*>(out) + i * bytes, &value, bytes);
  });
}

}  // namespace

Status RngBitGenerator(RngAlgorithm algorithm, ElementType type, std::span<const int64_t> dims,
                       std::span<const uint64_t> state, std::span<uint64_t> new_state, void* out, ThreadPool* pool) {
  if (algorithm == RngAlgorithm::kDefault) algorithm = RngAlgorithm::kPhilox;
  if (!IsArrayType(type) || IsComplex(type) || IsPred(type)) {
    return Unimplemented("rng-bit-generator: no random bits of type ", Name(type));
  }
  const bool three_fry = algorithm == RngAlgorithm::kThreeFry;
  if (new_state.size() != state.size() || !(state.size() == 2 || (state.size() == 3 && !three_fry))) {
    return InvalidArgument("rng-bit-generator: a state of ", state.size(), " words does not fit the algorithm");
  }
  const int64_t n = Product(dims);
  const uint64_t key = state[0];
  if (three_fry) {
    const uint64_t counter = state[1];
    Halves halves(dims);
    const int64_t used = Bytes(type) == 8 ? n : halves.outer * halves.half * halves.inner;
    if (Bytes(type) == 8)
      ThreeFry64(ThreeFryKey(key), counter, n, static_cast<uint64_t*>(out), pool);
    else
      ThreeFryNarrow(ThreeFryKey(key), counter, halves, Narrow(type), out, pool);
    new_state[0] = key;
    new_state[1] = counter + static_cast<uint64_t>(used);
    return OkStatus();
  }
  const Counter128 counter = state.size() == 3 ? Counter128{state[1], state[2]} : Counter128{state[1], key};
  Philox(key, counter, type, n, out, pool);
  const Counter128 next = counter + static_cast<uint64_t>(RngCountersUsed(type, n));
  new_state[0] = key;
  new_state[1] = next.low;
  if (state.size() == 3) new_state[2] = next.high;
  return OkStatus();
}

int64_t RngCountersUsed(ElementType type, int64_t n) { return Bytes(type) == 8 ? (n + 1) / 2 : (n + 3) / 4; }

Status RngUniform(ElementType type, std::span<const uint64_t, 2> counter, int64_t n, const void* low, const void* high,
                  void* out, ThreadPool* pool) {
  if (IsPred(type)) {
    ForEachDraw(type, counter, n, pool, [&](int64_t i, uint64_t draw) { static_cast<uint8_t*>(out)[i] = draw >> 31; });
  } else if (IsInteger(type)) {
    UniformInt(type, counter, n, LoadBits(type, low), LoadBits(type, high), out, pool);
  } else if (IsDrawableFloat(type)) {
    UniformFloat(type, counter, n, LoadFloat(type, low), LoadFloat(type, high), out, pool);
  } else {
    return Unimplemented("rng: no uniform distribution of type ", Name(type));
  }
  return OkStatus();
}

Status RngNormal(ElementType type, std::span<const uint64_t, 2> counter, int64_t n, const void* mu, const void* sigma,
                 void* out, ThreadPool* pool) {
  if (!IsDrawableFloat(type)) return Unimplemented("rng: no normal distribution of type ", Name(type));
  const double mean = LoadFloat(type, mu), deviation = LoadFloat(type, sigma);
  const double unit = std::ldexp(1.0, type == ElementType::F64 ? -64 : -32);
  const int64_t pairs = (n + 1) / 2;
  // Draws 2p and 2p+1 give elements 2p and 2p+1. Pieces are even, so that a pair never falls apart.
  ForEachPiece(pool, pairs, kPieceDraws / 2, [&](int64_t begin, int64_t end) {
    double radius = 0;
    Counter128 start = Counter128{counter[0], counter[1]} + static_cast<uint64_t>(RngCountersUsed(type, 2 * begin));
    std::array<uint64_t, 2> from = {start.low, start.high};
    ForEachDraw(type, from, 2 * (end - begin), nullptr, [&](int64_t i, uint64_t draw) {
      if (i % 2 == 0) {
        radius = deviation * std::sqrt(-2.0 * std::log((static_cast<double>(draw) + 1.0) * unit));  // log of (0, 1]
        return;
      }
      double angle = 2 * M_PI * (static_cast<double>(draw) * unit);
      int64_t first = 2 * begin + i - 1;
      StoreFloat(type, out, first, mean + radius * std::cos(angle));
      if (first + 1 < n) StoreFloat(type, out, first + 1, mean + radius * std::sin(angle));
    });
  });
  return OkStatus();
}

}  // namespace strop::cpu
