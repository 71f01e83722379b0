#include "strop/codegen/turn.h"

#include <algorithm>

namespace strop {
namespace {

using V = llvm::Value*;

// Elements of a vector, unit by unit: out[k] is unit of(k) of the two vectors one behind the other.
template <class F>
V Units(VectorBuilder& b, V first, V second, int unit, const F& of) {
  constexpr int kWidest = 64;
  const int bits = VectorBuilder::ScalarBits(first);
  if (bits <= 16 && unit > 1 && unit * bits <= kWidest) {  // short masks are quick to compile
    llvm::Type* wide = VectorBuilder::WithLanes(b.Int(unit * bits), VectorBuilder::Lanes(first) / unit);
    V units = Units(b, b.ir().CreateBitCast(first, wide), b.ir().CreateBitCast(second, wide), 1, of);
    return b.ir().CreateBitCast(units, first->getType());
  }
  llvm::SmallVector<int, 64> mask;
  for (int k = 0; k < VectorBuilder::Lanes(first) / unit; ++k)
    for (int e = 0; e < unit; ++e) mask.push_back(of(k) * unit + e);
  return b.Choose(first, second, mask);
}

// Within pieces of 16 bytes first, then the pieces, as processors have instructions for. (Each stage on whole vectors
// needs as many, but slower ones, with masks that take long to compile.)
constexpr int kPieceBits = 128;
constexpr int kWidestUnit = 64;  // bits of a lane

}  // namespace

void TurnPieces(VectorBuilder& b, std::vector<V>& rows, int piece) {
  const int count = static_cast<int>(rows.size()), lanes = VectorBuilder::Lanes(rows[0]);
  // Row i * piece + j becomes, in each piece p, elements i * piece onwards of column p * piece + j.
  for (int unit = 1; unit < piece; unit *= 2) {
    const int half = piece / unit / 2;  // units
    std::vector<V> next(rows.size());
    for (int group = 0; group < count; group += 2 * unit)
      for (int k = 0; k < unit; ++k)
        for (int high = 0; high < 2; ++high)
          next[group + 2 * k + high] = Units(b, rows[group + k], rows[group + k + unit], unit, [&](int at) {
            const int in_piece = at % (2 * half);
            return at - in_piece + high * half + in_piece / 2 + in_piece % 2 * (lanes / unit);
          });
    rows = std::move(next);
  }
}

void Turn(VectorBuilder& b, std::vector<V>& rows) {
  const int n = static_cast<int>(rows.size());
  const bool bits = rows[0]->getType()->getScalarType()->isIntegerTy(1);
  if (bits)
    for (V& v : rows) v = b.ZExtOrTrunc(v, 8);
  const int of_piece = kPieceBits / static_cast<int>(rows[0]->getType()->getScalarSizeInBits());
  const int piece = std::min(n, std::max(1, of_piece));  // elements
  TurnPieces(b, rows, piece);
  // Even and odd pieces of pairs of vectors, as often as halves the number of pieces: piece p comes out at p's bits,
  // the lowest first.
  const int pieces = n / piece;
  for (int j = 0; j < piece; ++j) {
    std::vector<std::vector<V>> sets(1);
    for (int i = 0; i < pieces; ++i) sets[0].push_back(rows[i * piece + j]);
    while (static_cast<int>(sets.size()) < pieces) {
      std::vector<std::vector<V>> next(2 * sets.size());
      for (size_t s = 0; s < sets.size(); ++s)
        for (size_t i = 0; i < sets[s].size(); i += 2)
          for (size_t odd = 0; odd < 2; ++odd)
            next[s + odd * sets.size()].push_back(
                Units(b, sets[s][i], sets[s][i + 1], piece, [&](int at) { return 2 * at + static_cast<int>(odd); }));
      sets = std::move(next);
    }
    for (int p = 0; p < pieces; ++p) rows[p * piece + j] = sets[p][0];
  }
  if (bits)
    for (V& v : rows) v = b.ZExtOrTrunc(v, 1);
}

void TurnRuns(VectorBuilder& b, std::vector<V>& rows, int run) {
  const int n = static_cast<int>(rows.size()), lanes = VectorBuilder::Lanes(rows[0]);
  llvm::Type* const type = rows[0]->getType();
  const int bits = VectorBuilder::ScalarBits(rows[0]);
  if (bits == 1) {
    for (V& v : rows) v = b.ZExtOrTrunc(v, 8);
    TurnRuns(b, rows, run);
    for (V& v : rows) v = b.ZExtOrTrunc(v, 1);
    return;
  }
  if (run == 1 && n == lanes) return Turn(b, rows);
  if (run % 2 == 0 && bits < kWidestUnit && lanes % 2 == 0) {  // fewer and longer lanes
    llvm::Type* wide = VectorBuilder::WithLanes(b.Int(2 * bits), lanes / 2);
    for (V& v : rows) v = b.ir().CreateBitCast(v, wide);
    TurnRuns(b, rows, run / 2);
    for (V& v : rows) v = b.ir().CreateBitCast(v, type);
    return;
  }
  // Runs whose numbers have this bit change places with those of the row whose number differs in it.
  for (int bit = 1; bit < n; bit *= 2)
    for (int i = 0; i < n; ++i) {
      if (i & bit) continue;
      llvm::SmallVector<int, 64> low, high;
      for (int l = 0; l < lanes; ++l) {
        const int r = l / run;
        const bool there = (r & bit) != 0, filled = r < n;
        low.push_back(filled && there ? lanes + l - bit * run : l);
        high.push_back(!filled || there ? lanes + l : l + bit * run);
      }
      V &x = rows[static_cast<size_t>(i)], &y = rows[static_cast<size_t>(i + bit)];
      V first = x;
      x = b.Choose(first, y, low);
      y = b.Choose(first, y, high);
    }
}

}  // namespace strop
