// Arrays of short groups (points, colours, rows that are reduced), a group a lane: their vectors are read as they lie
// in memory, and dealt out to one vector for each place in the group.
//
//   3 lanes, groups of 4:  memory a0 a1 a2 a3 b0 b1 b2 b3 c0 c1 c2 c3   ->   a0 b0 c0, a1 b1 c1, a2 b2 c2, a3 b3 c3
#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "strop/codegen/element.h"

namespace strop {

using V = llvm::Value*;

namespace {

constexpr int kQuarterBits = 128;  // within which processors of 256 and 512 bits shuffle pairs and singles

int64_t ShufflesByHalves(int64_t group) {
  if (group == 1) return 0;
  return group % 2 ? group * (group - 1) : group + 2 * ShufflesByHalves(group / 2);
}

// Of TurnRows: where `quarter` elements are in a quarter of a register, of which it has `quarters`.
int64_t ShufflesByRows(int64_t group, int64_t quarter, int64_t quarters) {
  const int64_t columns = (group + quarter - 1) / quarter, pairs = (columns + 1) / 2;
  int64_t shuffles = group;
  if (quarter == 4) shuffles += 2 * ((group + 1) / 2);
  if (quarters == 2) shuffles += quarter * columns;
  if (quarters == 4) shuffles += quarter * (columns + 2 * pairs);
  return shuffles;
}

// The vectors hold groups of as many elements as they are: of each group the first elements, the second ones, and so
// on. By pairs while their number is even, each place for itself where it is not.
std::vector<V> DealOut(VectorBuilder& b, const std::vector<V>& vectors) {
  const int n = static_cast<int>(vectors.size()), lanes = VectorBuilder::Lanes(vectors[0]);
  if (n == 1) return vectors;
  std::vector<V> out(vectors.size());
  if (n % 2 == 0) {
    llvm::SmallVector<int, 64> from[2];
    for (int l = 0; l < lanes; ++l)
      for (int odd : {0, 1}) from[odd].push_back(2 * l + odd);
    for (int odd : {0, 1}) {
      std::vector<V> half;
      for (size_t k = 0; k < vectors.size(); k += 2)
        half.push_back(b.ir().CreateShuffleVector(vectors[k], vectors[k + 1], from[odd]));
      half = DealOut(b, half);
      for (size_t k = 0; k < half.size(); ++k) out[2 * k + static_cast<size_t>(odd)] = half[k];
    }
    return out;
  }
  for (int place = 0; place < n; ++place) {
    V picked = nullptr;
    for (int k = 0; k < n; ++k) {
      llvm::SmallVector<int, 64> from;
      for (int l = 0; l < lanes; ++l) {
        const int at = l * n + place - k * lanes;
        from.push_back(at < lanes ? at : -1);
      }
      picked = b.TakeLanes(picked, vectors[static_cast<size_t>(k)], from);
    }
    out[static_cast<size_t>(place)] = picked;
  }
  return out;
}

// Rows side by side in memory, a row a lane: quarters of registers are put together of as many rows, and transposed
// within.
//
//   16 lanes, row r = r0 r1 r2 ..:  00 01 02 03 40 41 42 43 80 81 82 83 c0 c1 c2 c3     pairs of two rows
//                                   10 11 12 13 50 51 52 53 90 91 92 93 d0 d1 d2 d3  -> 00 01 10 11 40 41 50 51 ..
//   and singles of two of these: 00 10 20 30 40 50 60 70 80 90 a0 b0 c0 d0 e0 f0
class RowTurner {
 public:
  // So many elements from one of those of all rows on.
  using Read = std::function<V(int64_t first, int length)>;

  // `size` elements of `bits` bits (32 or 64) are a row.
  RowTurner(VectorBuilder& b, int bits, int64_t size, int lanes, Read read)
      : b_(b),
        read_(std::move(read)),
        size_(size),
        lanes_(lanes),
        quarter_(kQuarterBits / bits),
        quarters_(lanes / quarter_),
        length_(std::max(1, quarters_ / 2) * quarter_),
        pairs_(static_cast<size_t>(2 * quarter_)) {}

  std::vector<V> Columns() {
    std::vector<V> columns;
    for (int64_t column = 0; column < size_; column += quarter_) {
      const std::vector<V> rows = QuartersOfRows(column);
      if (quarter_ == 2) {
        for (const int place : {0, 1}) columns.push_back(Within(rows[0], rows[1], {place}));
        continue;
      }
      for (const int first : {0, 2}) {
        V low = Within(rows[0], rows[1], {first, first + 1}), high = Within(rows[2], rows[3], {first, first + 1});
        columns.push_back(Within(low, high, {0, 2}));
        columns.push_back(Within(low, high, {1, 3}));
      }
    }
    columns.resize(static_cast<size_t>(size_));
    return columns;
  }

 private:
  // A part of a row, whose first element is the lane `first` of what was read, which ends with the last row.
  struct Part {
    V elements;
    int first;
  };
  Part PartOf(int row, int64_t column) {
    const int64_t wanted = row * size_ + column, first = std::min(wanted, lanes_ * size_ - length_);
    return {read_(first, length_), static_cast<int>(wanted - first)};
  }

  // Quarters of the rows r, r + quarter_, ..., for each r below quarter_: elements from a column on.
  std::vector<V> QuartersOfRows(int64_t column) {
    std::vector<V> rows;
    for (int r = 0; r < quarter_; ++r) {
      if (quarters_ < 4) {
        const Part low = PartOf(r, column);
        rows.push_back(quarters_ == 1 ? Together(low, std::nullopt) : Together(low, PartOf(r + quarter_, column)));
        continue;
      }
      const int odd = column / quarter_ % 2;
      V& low = pairs_[static_cast<size_t>(r)];
      V& high = pairs_[static_cast<size_t>(quarter_ + r)];
      if (odd == 0) {  // of two quarters' columns at once
        low = Together(PartOf(r, column), PartOf(r + quarter_, column));
        high = Together(PartOf(r + 2 * quarter_, column), PartOf(r + 3 * quarter_, column));
      }
      llvm::SmallVector<int, 64> from;
      for (const int base : {0, lanes_})
        for (const int part : {odd, 2 + odd})
          for (int l = 0; l < quarter_; ++l) from.push_back(base + part * quarter_ + l);
      rows.push_back(b_.ir().CreateShuffleVector(low, high, from));
    }
    return rows;
  }

  V Together(const Part& low, const std::optional<Part>& high) {
    llvm::SmallVector<int, 64> from;
    const auto add = [&](int base, int first) {
      for (int l = first; l < first + length_; ++l) from.push_back(l < length_ ? base + l : -1);
    };
    add(0, low.first);
    if (high) add(length_, high->first);
    return b_.ir().CreateShuffleVector(low.elements, high ? high->elements : low.elements, from);
  }

  // Of each quarter some lanes of the first vector, then the same of the second one.
  V Within(V first, V second, std::initializer_list<int> some) {
    llvm::SmallVector<int, 64> from;
    for (int q = 0; q < quarters_; ++q)
      for (const int base : {0, lanes_})
        for (const int l : some) from.push_back(base + q * quarter_ + l);
    return b_.ir().CreateShuffleVector(first, second, from);
  }

  VectorBuilder& b_;
  const Read read_;
  const int64_t size_;
  const int lanes_, quarter_, quarters_, length_;
  std::vector<V> pairs_;  // of two rows each, for two quarters
};

}  // namespace

// As DealOut. Bytes that are few enough to fill no register are dealt as words: LLVM would take byte by byte.
std::vector<V> ElementBuilder::DealShort(std::vector<V> vectors) {
  llvm::Type* const type = vectors[0]->getType();
  const int lanes = VectorBuilder::Lanes(vectors[0]);
  if (type->getScalarSizeInBits() != 8 || lanes < 4 || lanes * 4 > b_.target().vector_bytes)
    return DealOut(b_, vectors);
  llvm::Type* const words = VectorBuilder::WithLanes(b_.ir().getInt32Ty(), lanes);
  for (V& v : vectors) v = b_.ir().CreateZExt(v, words);
  vectors = DealOut(b_, vectors);
  for (V& v : vectors) v = b_.ir().CreateTrunc(v, type);
  return vectors;
}

// Does TurnRows take no more shuffles than DealOut?
bool ElementBuilder::RowsAreTurned(llvm::Type* type, int64_t stride, int lanes) const {
  const int bits = std::max(32, static_cast<int>(type->getScalarSizeInBits())), quarter = kQuarterBits / bits;
  const int quarters = lanes / quarter;
  if (bits > 64 || stride <= quarter || lanes % quarter || quarters * 16 > b_.target().vector_bytes) return false;
  if (quarters != 1 && quarters != 2 && quarters != 4) return false;
  // Without two registers as a table, what is not within quarters is shuffled twice.
  const int64_t each = b_.target().masked_memory && b_.target().shuffled_bits > 0 ? 1 : 2;
  return ShufflesByRows(stride, quarter, quarters) <= each * ShufflesByHalves(stride);
}

// As DealOut, of rows of any length. Elements of less than 32 bits are turned as words; `halves`: they are f16, and
// turned as what they are in registers.
std::vector<V> ElementBuilder::TurnRows(const Memory& memory, llvm::Type* type, V offset, int64_t stride, int lanes,
                                        bool halves) {
  const bool words = type->getScalarSizeInBits() < 32;
  const int bits = words ? 32 : static_cast<int>(type->getScalarSizeInBits());
  const auto read = [&](int64_t first, int length) {
    V part = ReadVector(memory, type, b_.Add(offset, b_.I64(first)), length);
    if (halves) return DecodeFormat(ElementType::F16, part);
    return words ? b_.ir().CreateZExt(part, VectorBuilder::WithLanes(b_.Int(32), length)) : part;
  };
  std::vector<V> columns = RowTurner(b_, bits, stride, lanes, read).Columns();
  if (words && !halves)
    for (V& column : columns) column = b_.ir().CreateTrunc(column, VectorBuilder::WithLanes(type, lanes));
  return columns;
}

// Groups of `stride` neighbours, a group a lane, that nobody writes meanwhile: read once for all places in a group.
V ElementBuilder::GroupedPart(const Memory& memory, llvm::Type* type, V offset, int64_t stride, int lanes,
                              int64_t phase) {
  Groups key{b_.ir().GetInsertBlock(), memory.pointer, offset, type, stride, lanes};
  const auto [at, fresh] = groups_.try_emplace(std::move(key));
  if (fresh && RowsAreTurned(type, stride, lanes)) {
    at->second = TurnRows(memory, type, offset, stride, lanes);
  } else if (fresh) {
    std::vector<V> vectors;
    for (int64_t k = 0; k < stride; ++k)
      vectors.push_back(ReadVector(memory, type, b_.Add(offset, b_.I64(k * lanes)), lanes));
    at->second = DealShort(vectors);
  }
  return at->second[static_cast<size_t>(phase)];
}

// The same of f16 as f32: whole rows are converted, in fewer steps than what was turned; or null.
V ElementBuilder::GroupedHalves(const Memory& memory, V offset, int64_t stride, int lanes, int64_t phase) {
  llvm::Type* const type = StorageType(ElementType::F16);
  if (codes_ || !memory.invariant || !RowsAreTurned(type, stride, lanes)) return nullptr;
  Groups key{b_.ir().GetInsertBlock(), memory.pointer, offset, b_.F32(), stride, lanes};
  const auto [at, fresh] = groups_.try_emplace(std::move(key));
  if (fresh) at->second = TurnRows(memory, type, offset, stride, lanes, /*halves=*/true);
  return at->second[static_cast<size_t>(phase)];
}

}  // namespace strop
