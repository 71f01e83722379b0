// Random numbers. rng-bit-generator is the counter-based generators Philox4x32-10 and Threefry2x32-20 (Salmon et al.,
// "Parallel random numbers: as easy as 1, 2, 3") with the counters and the order of output words that XLA uses, so that
// the bits are XLA's. `rng` has no defined bits: ours come from Philox as well, keyed by the interpreter's own counter.
#include <array>
#include <cmath>
#include <cstring>

#include "strop/interp/ops.h"
#include "strop/interp/strided.h"

namespace strop::interp {

namespace {

using Words4 = std::array<uint32_t, 4>;

uint32_t RotateLeft(uint32_t v, int n) { return v << n | v >> (32 - n); }

// Ten rounds; counter and key least significant word first.
Words4 Philox(Words4 x, uint64_t key) {
  uint32_t key0 = static_cast<uint32_t>(key), key1 = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t{x[0]} * 0xD2511F53u, p1 = uint64_t{x[2]} * 0xCD9E8D57u;
    x = {static_cast<uint32_t>(p1 >> 32) ^ x[1] ^ key0, static_cast<uint32_t>(p1),
         static_cast<uint32_t>(p0 >> 32) ^ x[3] ^ key1, static_cast<uint32_t>(p0)};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return x;
}

// Twenty rounds: five groups of four, a key word added after each.
std::array<uint32_t, 2> Threefry(uint64_t counter, uint64_t key) {
  static constexpr int kRotation[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  const uint32_t schedule[3] = {k0, k1, k0 ^ k1 ^ 0x1BD11BDAu};
  uint32_t x0 = static_cast<uint32_t>(counter) + schedule[0], x1 = static_cast<uint32_t>(counter >> 32) + schedule[1];
  for (uint32_t group = 0; group < 5; ++group) {
    for (int rotation : kRotation[group % 2]) {
      x0 += x1;
      x1 = RotateLeft(x1, rotation) ^ x0;
    }
    x0 += schedule[(group + 1) % 3];
    x1 += schedule[(group + 2) % 3] + group + 1;
  }
  return {x0, x1};
}

uint64_t Join(uint32_t low, uint32_t high) { return low | uint64_t{high} << 32; }

void PutBits(Literal& out, int64_t i, uint64_t bits) {
  const int64_t width = Bytes(out.type());
  for (int64_t b = 0; b < width; ++b)
    out.mutable_bytes()[static_cast<size_t>(i * width + b)] = static_cast<uint8_t>(bits >> (8 * b));
}
// Narrow elements take the low bits of a 32-bit word; Literals keep sub-byte integers extended to a byte.
void PutWord(Literal& out, int64_t i, uint64_t bits) {
  const ElementType t = out.type();
  if (Bits(t) < 8)
    out.SetInt(i, static_cast<int64_t>(bits));
  else
    PutBits(out, i, bits);
}

// A 128-bit counter counts blocks of four words. In XLA's convention a state of three words is (key, low, high); one of
// two, (key, low), counts from the high word `key`.
struct PhiloxState {
  uint64_t key, low, high;
};

void Advance(PhiloxState& s, uint64_t n) {
  s.low += n;
  if (s.low < n) ++s.high;
}

Words4 PhiloxBlock(PhiloxState s, uint64_t block) {
  Advance(s, block);
  return Philox({static_cast<uint32_t>(s.low), static_cast<uint32_t>(s.low >> 32), static_cast<uint32_t>(s.high),
                 static_cast<uint32_t>(s.high >> 32)},
                s.key);
}

// Four words of a block in turn, or two 64-bit numbers.
void FillPhilox(PhiloxState& state, Literal& out) {
  const int64_t n = out.num_elements();
  const int64_t per_block = Bits(out.type()) == 64 ? 2 : 4;
  const int64_t blocks = (n + per_block - 1) / per_block;
  for (int64_t b = 0; b < blocks; ++b) {
    const Words4 words = PhiloxBlock(state, static_cast<uint64_t>(b));
    for (int64_t i = 0; i < per_block && b * per_block + i < n; ++i) {
      const size_t w = static_cast<size_t>(i);
      const uint64_t bits = per_block == 2 ? Join(words[2 * w], words[2 * w + 1]) : words[w];
      PutWord(out, b * per_block + i, bits);
    }
  }
  Advance(state, static_cast<uint64_t>(blocks));
}

// 64-bit elements: one counter value each. Others: the array is cut in two halves along its first dimension of even
// size (or else its largest one, rounded up), elements 2i and 2i+1 of which are the two words of one counter value; the
// counter walks the halved array in row-major order.
void FillThreefry(uint64_t key, uint64_t& counter, Literal& out) {
  const int64_t n = out.num_elements();
  if (Bits(out.type()) == 64) {
    for (int64_t i = 0; i < n; ++i) {
      const auto words = Threefry(counter + static_cast<uint64_t>(i), key);
      PutBits(out, i, Join(words[0], words[1]));
    }
    counter += static_cast<uint64_t>(n);
    return;
  }
  const Int64Vector dims = out.shape().rank() == 0 ? Int64Vector{1} : Int64Vector(out.shape().dims());
  size_t split = dims.size();
  for (size_t d = 0; d < dims.size() && split == dims.size(); ++d)
    if (dims[d] % 2 == 0) split = d;
  if (split == dims.size()) {
    split = 0;
    for (size_t d = 1; d < dims.size(); ++d)
      if (dims[d] > dims[split]) split = d;
  }
  Int64Vector half = dims;
  half[split] = (dims[split] + 1) / 2;
  const Int64Vector strides = RowMajorStrides(dims);
  for (IndexWalk walk(half, {strides}); !walk.done(); walk.Next()) {
    const auto words = Threefry(counter + static_cast<uint64_t>(walk.count()), key);
    const int64_t at = walk.index()[split] * 2;  // position along the split dimension
    const int64_t base = walk.offset(0) + walk.index()[split] * strides[split];
    PutWord(out, base, words[0]);
    if (at + 1 < dims[split]) PutWord(out, base + strides[split], words[1]);
  }
  counter += static_cast<uint64_t>(Product(half));
}

// Uniform numbers from the interpreter's own generator; every call of it has a stream of its own.
class Uniform {
 public:
  explicit Uniform(uint64_t draw) : state_{0x5D589B65A3F0C1B7u, 0, draw} {}
  double Next() { return std::ldexp(static_cast<double>(NextBits() >> 11), -53); }  // in [0, 1)
  uint64_t NextBits() {
    if (left_ == 0) {
      words_ = PhiloxBlock(state_, block_++);
      left_ = 2;
    }
    --left_;
    return Join(words_[static_cast<size_t>(2 * left_)], words_[static_cast<size_t>(2 * left_ + 1)]);
  }

 private:
  PhiloxState state_;
  uint64_t block_ = 0;
  int left_ = 0;
  Words4 words_{};
};

}  // namespace

Result<Literal> EvalRngBitGenerator(OpCall& call) {
  const Literal& state = call.in(0);
  const Shape& data = call.shape.IsTuple() ? call.shape.element(1) : call.shape;
  if (IsComplex(data.type()) || IsPred(data.type()) || state.shape().rank() != 1 ||
      Bits(state.type()) * state.num_elements() < 128)
    return Unimplemented("rng-bit-generator of ", data.ToString(), " from a state of ", state.shape().ToString());
  std::vector<uint64_t> words(state.bytes().size() / 8);
  std::memcpy(words.data(), state.bytes().data(), words.size() * 8);
  STROP_ASSIGN(Literal out, Literal::Zeros(data));
  if (call.attrs<RngBitGeneratorAttrs>().algorithm == RngAlgorithm::ThreeFry) {
    FillThreefry(words[0], words[1], out);
  } else {  // Philox is the default, as on XLA's CPU and GPU
    PhiloxState s{words[0], words[1], words.size() >= 3 ? words[2] : words[0]};
    FillPhilox(s, out);
    words[1] = s.low;
    if (words.size() >= 3) words[2] = s.high;
  }
  Literal next = state;
  std::memcpy(next.mutable_bytes().data(), words.data(), words.size() * 8);
  if (!call.shape.IsTuple()) return out;
  return Literal::Tuple({std::move(next), std::move(out)});
}

Result<Literal> EvalRngGetAndUpdateState(OpCall& call) {
  auto [it, fresh] = call.evaluator.state().rng_states.try_emplace(call.instruction.id(), State::kFirstRngState, 0);
  STROP_ASSIGN(Literal result, call.NewResult());
  result.SetInt(0, static_cast<int64_t>(it->second.first));
  result.SetInt(1, static_cast<int64_t>(it->second.second));
  const uint64_t delta = static_cast<uint64_t>(call.attrs<RngStateAttrs>().delta);
  it->second.first += delta;
  if (it->second.first < delta) ++it->second.second;
  return result;
}

// uniform: [low, high); integers too. normal: mean and standard deviation, by Box and Muller.
Result<Literal> EvalRng(OpCall& call) {
  const ElementType type = call.shape.type();
  STROP_ASSIGN(Literal result, call.NewResult());
  Uniform uniform(call.evaluator.options().rng_repeats ? 0 : call.evaluator.state().rng_counter++);
  const Cell a = LoadCell(call.in(0), 0), b = LoadCell(call.in(1), 0);
  const bool normal = call.attrs<RngAttrs>().distribution == RngDistribution::Normal;
  const Domain domain = DomainOf(type);
  if (domain == Domain::Complex || (normal && domain != Domain::Real)) return Unimplemented("rng of type ", Name(type));
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    Cell value;
    if (normal) {
      const double radius = std::sqrt(-2 * std::log(1 - uniform.Next())), angle = 2 * M_PI * uniform.Next();
      value = Cell::Real(a.re + b.re * radius * std::cos(angle));
    } else if (domain == Domain::Real) {
      value = Normalize(type, Cell::Real(a.re + uniform.Next() * (b.re - a.re)));
      if (value.re >= b.re) value = a;  // rounding to a narrow type can reach the upper end, which is excluded
    } else if (domain == Domain::Bool) {
      value = Cell::Bool(uniform.NextBits() & 1);
    } else {
      const uint64_t range = b.u - a.u;
      value = Cell::Uint(a.u + (range == 0 ? 0 : uniform.NextBits() % range));
    }
    StoreCells(type, &value, 1, result.mutable_bytes().data(), i);
  }
  return result;
}

}  // namespace strop::interp
