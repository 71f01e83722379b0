// Arrays of short groups (points, colours, rows that are reduced), a group a lane: their vectors are read as they lie
// in memory, and dealt out to one vector for each place in the group.
//
//   3 lanes, groups of 4:  memory a0 a1 a2 a3 b0 b1 b2 b3 c0 c1 c2 c3   ->   a0 b0 c0, a1 b1 c1, a2 b2 c2, a3 b3 c3
#include <algorithm>
#include <functional>

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

// As DealOut, of rows of any length: quarters of registers are put together of as many rows, and transposed within.
// Elements of less than 32 bits are turned as words; `halves`: they are f16, and turned as what they are in registers.
//
//   16 lanes, row r = r0 r1 r2 ..:  00 01 02 03 40 41 42 43 80 81 82 83 c0 c1 c2 c3     pairs of two rows
//                                   10 11 12 13 50 51 52 53 90 91 92 93 d0 d1 d2 d3  -> 00 01 10 11 40 41 50 51 ..
//   and singles of two of these: 00 10 20 30 40 50 60 70 80 90 a0 b0 c0 d0 e0 f0
std::vector<V> ElementBuilder::TurnRows(const Memory& memory, llvm::Type* type, V offset, int64_t stride, int lanes,
                                        bool halves) {
  IrBuilder& ir = b_.ir();
  const int bits = std::max(32, static_cast<int>(type->getScalarSizeInBits()));
  const int quarter = kQuarterBits / bits, quarters = lanes / quarter, length = std::max(1, quarters / 2) * quarter;
  // `length` elements of a row from a column on, those behind its end as anything: the first of them is the lane that
  // is told of what is read, which ends with the last row.
  const auto read = [&](int row, int64_t column) -> std::pair<V, int> {
    const int64_t wanted = row * stride + column, first = std::min(wanted, lanes * stride - length);
    V part = ReadVector(memory, type, b_.Add(offset, b_.I64(first)), length);
    if (halves)
      part = DecodeFormat(ElementType::F16, part);
    else if (type->getScalarSizeInBits() < 32)
      part = ir.CreateZExt(part, VectorBuilder::WithLanes(b_.Int(32), length));
    return {part, static_cast<int>(wanted - first)};
  };
  const auto both = [&](std::pair<V, int> low, std::pair<V, int> high) {
    llvm::SmallVector<int, 64> from;
    for (const int base : {0, length})
      for (int l = 0; l < length; ++l) {
        const int at = l + (base ? high : low).second;
        from.push_back(at < length ? base + at : -1);
      }
    return ir.CreateShuffleVector(low.first, high.first, from);
  };
  // Of each quarter lanes of the first vector, then of the second one.
  const auto within = [&](V first, V second, std::initializer_list<int> of_first) {
    llvm::SmallVector<int, 64> from;
    for (int q = 0; q < quarters; ++q)
      for (const int base : {0, lanes})
        for (const int l : of_first) from.push_back(base + q * quarter + l);
    return ir.CreateShuffleVector(first, second, from);
  };
  std::vector<V> columns;
  std::vector<V> pairs(static_cast<size_t>(2 * quarter));  // of 256 bits of two rows each, for two quarters
  for (int64_t column = 0; column < stride; column += quarter) {
    std::vector<V> rows;  // a quarter of so many rows, each
    for (int r = 0; r < quarter; ++r) {
      if (quarters == 1) {
        const auto [part, at] = read(r, column);
        llvm::SmallVector<int, 64> from;
        for (int l = 0; l < length; ++l) from.push_back(l + at < length ? l + at : -1);
        rows.push_back(at == 0 ? part : ir.CreateShuffleVector(part, from));
        continue;
      }
      if (quarters == 2) {
        rows.push_back(both(read(r, column), read(r + quarter, column)));
        continue;
      }
      const bool odd = column / quarter % 2 != 0;
      V& low = pairs[static_cast<size_t>(r)];
      V& high = pairs[static_cast<size_t>(quarter + r)];
      if (!odd) {
        low = both(read(r, column), read(r + quarter, column));
        high = both(read(r + 2 * quarter, column), read(r + 3 * quarter, column));
      }
      llvm::SmallVector<int, 64> from;
      for (const int base : {0, lanes})
        for (const int part : {0, 2})
          for (int l = 0; l < quarter; ++l) from.push_back(base + (part + odd) * quarter + l);
      rows.push_back(ir.CreateShuffleVector(low, high, from));
    }
    if (quarter == 2) {
      columns.push_back(within(rows[0], rows[1], {0}));
      columns.push_back(within(rows[0], rows[1], {1}));
      continue;
    }
    for (const std::initializer_list<int>& pair : {std::initializer_list<int>{0, 1}, {2, 3}}) {
      V low = within(rows[0], rows[1], pair), high = within(rows[2], rows[3], pair);
      columns.push_back(within(low, high, {0, 2}));
      columns.push_back(within(low, high, {1, 3}));
    }
  }
  columns.resize(static_cast<size_t>(stride));
  if (type->getScalarSizeInBits() < 32 && !halves)
    for (V& column : columns) column = ir.CreateTrunc(column, VectorBuilder::WithLanes(type, lanes));
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
