// Stores of elements that lie between each other: (x0 y0 z0 x1 y1 z1 ...) from vectors of x, y and z.
#include "strop/codegen/elemental.h"

namespace strop {

using V = llvm::Value*;

namespace {

// As many vectors, whose lanes are those of the parts in turns: by pairs while their number is even, one part at a time
// where it is not.
std::vector<V> InterleaveLanes(VectorBuilder& b, const std::vector<V>& parts) {
  const int n = static_cast<int>(parts.size()), lanes = VectorBuilder::Lanes(parts[0]);
  if (n == 1 || lanes == 1) return parts;
  std::vector<V> out;
  if (n % 2 == 0) {
    std::vector<V> halves[2];
    for (int k = 0; k < n; ++k) halves[k % 2].push_back(parts[static_cast<size_t>(k)]);
    const std::vector<V> even = InterleaveLanes(b, halves[0]), odd = InterleaveLanes(b, halves[1]);
    for (size_t k = 0; k < even.size(); ++k) {
      out.push_back(b.Zip(even[k], odd[k], false));
      out.push_back(b.Zip(even[k], odd[k], true));
    }
    return out;
  }
  for (int k = 0; k < n; ++k) {
    V vector = nullptr;
    for (int d = 0; d < n; ++d) {
      llvm::SmallVector<int, 64> mask;
      for (int l = 0; l < lanes; ++l) {
        const int at = k * lanes + l;
        const bool here = at % n == d;
        mask.push_back(d == 0 ? (here ? at / n : 0) : here ? lanes + at / n : l);
      }
      V part = parts[static_cast<size_t>(d)];
      vector = d == 0 ? b.ir().CreateShuffleVector(part, mask) : b.ir().CreateShuffleVector(vector, part, mask);
    }
    out.push_back(vector);
  }
  return out;
}

}  // namespace

void ElementalEmitter::StoreInterleaved(const ElementBuilder::Memory& memory, const Vals& parts,
                                        const LaneIndex& first) {
  const int64_t n = static_cast<int64_t>(parts.size());
  const ElementType type = parts[0].type;
  const bool pred = IsPred(type);
  const auto interleave = [&](bool imaginary) {
    std::vector<V> vectors;
    for (const Val& part : parts) {
      V v = b_.Splat(imaginary ? part.im : part.re, lanes());
      vectors.push_back(pred ? b_.ZExtOrTrunc(v, 8) : v);  // bits are not shuffled
    }
    vectors = InterleaveLanes(b_, vectors);
    if (pred)
      for (V& v : vectors) v = b_.ZExtOrTrunc(v, 1);
    return vectors;
  };
  const std::vector<V> re = interleave(false), im = parts[0].im ? interleave(true) : std::vector<V>();
  std::vector<V> masks(parts.size(), nullptr);
  if (mask_.value) {
    V bytes = b_.ZExtOrTrunc(mask_.value, 8);
    masks = InterleaveLanes(b_, std::vector<V>(parts.size(), bytes));
    for (V& m : masks) m = b_.ZExtOrTrunc(m, 1);
  }
  for (int64_t k = 0; k < n; ++k) {
    const LaneIndex at = indices_.Add(first, indices_.Constant(k * lanes()));
    const size_t part = static_cast<size_t>(k);
    const Val value{re[part], im.empty() ? nullptr : im[part], type};
    elements_.Store(memory, value, at.base, lanes() == 1 ? 0 : 1, lanes(), masks[part], at.multiple);
  }
}

}  // namespace strop
