#include "strop/codegen/staged_space.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "strop/codegen/block_space.h"
#include "strop/codegen/dim_groups.h"
#include "strop/codegen/turn.h"

namespace strop {
namespace {

using V = llvm::Value*;
using Way = StagedSpace::Way;

constexpr int64_t kLine = 64;                      // bytes of a cache line
constexpr int64_t kPiece = 16;                     // bytes, within which processors turn fastest
constexpr int64_t kTileBytes = int64_t{16} << 10;  // of runs: half of the nearest cache
constexpr int64_t kTileRow = 1024;                 // bytes of a row of a tile of runs
constexpr int64_t kStreamedTile = int64_t{64} << 10, kStreamedRow = 2048;  // the same past the caches
constexpr int64_t kBlockAcross = 256;                // bytes of a tile of blocks along the rows that are read
constexpr int64_t kLeastOfBytes = int64_t{4} << 20;  // of kernels; in less, lines are written in parts as fast
constexpr int64_t kVectorsPicked = 4;                // from so many, lanes are picked instead (loop_space.cc)
constexpr int64_t kMostParts = 8;
constexpr int64_t kShortRow = 128;       // bytes
constexpr int64_t kMostInterleaved = 8;  // elements of rows whose vectors are interleaved as well
constexpr int64_t kMostVectorsOfRun = 4;
constexpr int64_t kPartBytes = int64_t{16} << 10;
constexpr int64_t kMostCodeOfRuns = 64;                // instructions that an element needs, were they for one lane
constexpr int64_t kFetchedBytes = int64_t{1} << 20;    // of kernels whose operands come from afar
constexpr int64_t kStreamedBytes = int64_t{16} << 20;  // see block_space.cc
constexpr int64_t kOrderedBytes = int64_t{20} << 20;   // whose rows go past the caches, see row_order.h
constexpr int64_t kLongRow = 4096;                     // bytes, of which any order makes streams

// What stays together in a transpose, and which digit of the result is innermost but for that in the operand.
struct Order {
  int64_t run = 1;     // elements; 1: rows of the result are columns of the operand
  int64_t behind = 0;  // elements of the result behind the digit; 0: nothing moves
  bool operator==(const Order&) const = default;
};

Order OrderOf(const Instruction& transpose) {
  const std::vector<DimGroup> groups = ResultGroups(transpose);
  std::vector<size_t> order;
  InSourceOrder(groups, &order);
  std::erase_if(order, [&](size_t g) { return groups[g].size == 1; });
  if (order.size() < 2) return {};
  const auto behind = [&](size_t g) {
    int64_t elements = 1;
    for (size_t k = g + 1; k < groups.size(); ++k) elements *= groups[k].size;
    return elements;
  };
  const size_t inner = order.back();
  if (behind(inner) > 1) return {.run = 1, .behind = behind(inner)};
  return {.run = groups[inner].size, .behind = behind(order[order.size() - 2])};
}

// Bytes of an element of what is moved.
int64_t WidestMoved(const StagedSpace& space) {
  int64_t bytes = 1;
  for (const Instruction* t : space.moved) bytes = std::max<int64_t>(bytes, Bytes(t->shape().type()));
  return bytes;
}

int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// A side of at most about `wanted` elements, so that the tiles of `size` are even, in multiples of `grain`.
int64_t EvenSide(int64_t size, int64_t wanted, int64_t grain) {
  const int64_t count = std::max<int64_t>(1, (size + wanted / 2) / std::max<int64_t>(wanted, 1));
  return RoundUp((size + count - 1) / count, grain);
}

// Where a staged value lies in the memory of a thread: rows of a tile, with room in front of each row and of the first,
// for what tiles overlap and for what a run writes too much.
struct Stage {
  int64_t offset = 0;         // bytes
  int64_t pitch = 0;          // elements between rows
  int64_t rows_in_front = 0;  // of the tile's first
  int64_t in_front = 0;       // elements in front of a row
  int64_t end = 0;            // bytes
};

std::vector<Stage> StagesOf(const StagedSpace& space) {
  std::vector<Stage> stages;
  int64_t offset = 0;
  for (const Instruction* t : space.staged) {
    const int64_t bytes = Bytes(t->shape().type());
    Stage s{.offset = offset, .in_front = space.contiguous ? 0 : kLine / bytes};
    s.pitch = s.in_front + RoundUp(space.tiles.tile_along * space.run * bytes, kLine) / bytes;
    if (space.contiguous) s.pitch = space.tiles.sizes[space.tiles.along] * space.run;
    if (space.way == Way::kBlocks) s.rows_in_front = space.block_lanes;
    s.end = offset + RoundUp((s.rows_in_front + space.tiles.tile_across) * s.pitch * bytes, kLine) + kLine;
    offset = s.end;
    stages.push_back(s);
  }
  return stages;
}

bool Among(const std::vector<const Instruction*>& list, const Instruction* i) {
  return std::find(list.begin(), list.end(), i) != list.end();
}

// Do users at the roots compute from what the operands have at the same place, whatever its dimensions?
bool OnlySamePlace(const KernelBody& body, const std::vector<const Instruction*>& moved) {
  std::vector<const Instruction*> stack(body.roots.begin(), body.roots.end()), seen;
  while (!stack.empty()) {
    const Instruction* i = stack.back();
    stack.pop_back();
    const bool input = i != body.kernel && Among(body.inputs, i);
    if (input || Among(moved, i) || Among(seen, i)) continue;
    seen.push_back(i);
    const bool spread = i->op() == Op::Broadcast && i->operand(0)->shape().num_elements() == 1;
    if (!IsElementwise(i->op()) && i->op() != Op::Reshape && i->op() != Op::Copy && i->op() != Op::Constant && !spread)
      return false;
    for (const Instruction* operand : i->operands())
      if (!spread) stack.push_back(operand);
  }
  return true;
}

void SetBlocks(const KernelCost& cost, StagedSpace& space) {
  Tiles& tiles = space.tiles;
  const int64_t across = tiles.sizes[tiles.across], along = tiles.sizes[tiles.along];
  const int64_t bytes = Bytes(space.moved[0]->shape().type());
  const bool alike = std::all_of(space.moved.begin(), space.moved.end(), [&](const Instruction* t) {
    return Bytes(t->shape().type()) == bytes && !IsComplex(t->shape().type());
  });
  const int64_t lanes =
      std::min<int64_t>(space.lanes, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(across))));
  const int64_t piece = kPiece / bytes;
  space.contiguous =
      space.flat && tiles.across + 1 == tiles.along && along < 2 * space.lanes && along % space.lanes != 0;
  const bool large = bytes == 1 && lanes >= 2 * piece && cost.bytes >= kLeastOfBytes;
  const bool narrow = space.contiguous && along > kMostInterleaved;
  if (!alike || lanes < piece || along < piece || (!large && !narrow)) return;
  space.way = Way::kBlocks;
  space.staged = space.moved;
  space.block_lanes = static_cast<int>(lanes);
  space.block_rows = static_cast<int>(piece);
  tiles.tile_across = EvenSide(across, std::max<int64_t>(lanes, kBlockAcross / bytes), lanes);
  tiles.tile_along = space.contiguous ? along : kLine / bytes;
}

// Do rows of the result lie between each other in the operand, few of them?
bool SetParts(int64_t bytes, StagedSpace& space) {
  Tiles& tiles = space.tiles;
  const int64_t across = tiles.sizes[tiles.across], along = tiles.sizes[tiles.along];
  const Int64Vector strides = StridesInOperand(*space.moved[0], tiles.sizes);
  if (across > kMostParts || strides.empty() || strides.back() != across || along < 2 * space.lanes) return false;
  space.way = Way::kParts;
  tiles.tile_across = across;
  tiles.tile_along =
      EvenSide(along, std::max<int64_t>(1, kPartBytes / (across * bytes)), std::max<int64_t>(space.lanes, kLine));
  return true;
}

// Is an element of what is moved computed from so much that vectors as short as a run take longer than they save?
bool ComputesRuns(const KernelBody& body, const StagedSpace& space) {
  std::vector<const Instruction*> stack(space.moved.begin(), space.moved.end()), seen;
  while (!stack.empty()) {
    const Instruction* i = stack.back();
    stack.pop_back();
    if (Among(seen, i) || (i != body.kernel && Among(body.inputs, i))) continue;
    seen.push_back(i);
    for (const Instruction* operand : i->operands()) stack.push_back(operand);
  }
  const auto lanes = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(space.run)));
  return CodeOf(seen) * space.lanes > kMostCodeOfRuns * std::min<int64_t>(lanes, space.lanes);
}

void SetRuns(int64_t bytes, const KernelCost& cost, StagedSpace& space) {
  Tiles& tiles = space.tiles;
  const int64_t across = tiles.sizes[tiles.across], along = tiles.sizes[tiles.along];
  const int64_t run = space.run * bytes, grain = kLine / std::gcd(kLine, run);  // rows of tiles are whole lines
  space.contiguous = space.flat && tiles.across + 1 == tiles.along && along * run <= kShortRow;
  if (along * space.run < space.lanes && !space.contiguous) return;
  // Past the caches, the lines at the ends of a tile's rows are what it costs.
  const bool streams = cost.bytes >= kStreamedBytes;
  const int64_t tile = streams ? kStreamedTile : kTileBytes, row = streams ? kStreamedRow : kTileRow;
  space.way = Way::kRuns;
  space.staged = space.moved;
  if (space.contiguous) {
    tiles.tile_along = along;
    tiles.tile_across = EvenSide(across, tile / (along * run), 1);
    return;
  }
  tiles.tile_along = EvenSide(along, std::max<int64_t>(1, row / run), grain);
  tiles.tile_across = EvenSide(across, std::max<int64_t>(1, tile / (tiles.tile_along * run)), 1);
  if (tiles.tile_across == across)
    tiles.tile_along = EvenSide(along, std::max<int64_t>(1, tile / (across * run)), grain);
}

void SetRows(int64_t bytes, const KernelCost& cost, StagedSpace& space) {
  const int64_t row = space.run * bytes;
  if (row >= kLongRow || row % kLine != 0 || cost.bytes >= kOrderedBytes) return;
  space.way = Way::kRows;
  space.tiles.tile_across = EvenSide(space.tiles.sizes[space.tiles.across], kLongRow / row, 1);
  space.tiles.tile_along = EvenSide(space.tiles.sizes[space.tiles.along], kLongRow / row, 1);
}

// The steps of a walk over one tile.
class TileWalk {
 public:
  TileWalk(KernelFrame& frame, const StagedSpace& space, const KernelFrame::PointFn& point, const ArrayIndex& tile)
      : frame_(frame), space_(space), point_(point), at_(tile), stages_(StagesOf(space)) {
    IndexBuilder& indices = frame.Emitter(1).indices();
    const Tiles& tiles = space.tiles;
    across_ =
        SideOf(indices.Mul(tile.digits[tiles.across], tiles.tile_across), tiles.tile_across, tiles.sizes[tiles.across]);
    along_ =
        SideOf(indices.Mul(tile.digits[tiles.along], tiles.tile_along), tiles.tile_along, tiles.sizes[tiles.along]);
  }

  Status Run() {
    switch (space_.way) {
      case Way::kRuns:
        for (size_t k = 0; k < space_.staged.size(); ++k) CopyRuns(k);
        StoreRows();
        break;
      case Way::kBlocks:
        for (size_t k = 0; k < space_.staged.size(); ++k) TurnBlocks(k);
        StoreRows();
        break;
      case Way::kRows: StoreRuns(); break;
      case Way::kParts: StoreParts(); break;
      case Way::kNone: break;
    }
    return status_;
  }

 private:
  struct Side {
    LaneIndex begin;
    V end;
    int64_t size;
  };
  Side SideOf(const LaneIndex& begin, int64_t tile, int64_t size) {
    V end = b().ir().CreateAdd(begin.base, b().I64(tile));
    if (size % tile != 0) end = b().Binary(llvm::Intrinsic::smin, end, b().I64(size));
    return {begin, end, size};
  }

  VectorBuilder& b() { return frame_.b(); }
  LoopScopes& scopes() { return frame_.scopes(); }

  ElementBuilder::Memory MemoryOf(size_t k) {
    V pointer =
        b().ir().CreateConstInBoundsGEP1_64(b().Int(8), frame_.scratch(), static_cast<uint64_t>(stages_[k].offset));
    return {.pointer = pointer, .alignment = static_cast<int>(kLine)};
  }
  // Where element 0 of row 0 of the result would be; nothing moves what is computed in a loop out of it.
  V OriginOf(size_t k) {
    const Stage& s = stages_[k];
    V rows = b().Sub(b().I64(s.rows_in_front), across_.begin.base);
    V columns = b().Sub(b().I64(s.in_front), b().Mul(along_.begin.base, b().I64(space_.run)));
    return b().Add(b().Mul(rows, b().I64(s.pitch)), columns);
  }
  V RowIn(size_t k, V origin, V row) { return b().Add(origin, b().Mul(row, b().I64(stages_[k].pitch))); }

  void CopyRuns(size_t k) {
    const Instruction* t = space_.staged[k];
    const int lanes = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(space_.run)));
    ElementalEmitter& e = frame_.Emitter(lanes);
    IndexBuilder& indices = e.indices();
    const ElementBuilder::Memory memory = MemoryOf(k);
    ArrayIndex at = at_;
    at.digits.back() = indices.Counter(b().I64(0), 0, 1, lanes).Within(0, space_.run - 1);
    const auto copy = [&](V to) {
      const auto masked = [&] {
        const Val v = e.elements().Splat(e.Emit(t, at), lanes);
        e.elements().Store(memory, v, to, 1, lanes, nullptr, 1);
        return Vals();
      };
      const ElementalEmitter::Condition inside{
          b().ULt(b().LaneNumbers(lanes, 32), b().I32(static_cast<int32_t>(space_.run))), scopes().current(), true};
      lanes == space_.run ? masked() : e.WithMask(inside, masked);
    };
    // Counts along a side, and with it where runs are copied to.
    const auto over = [&](const char* name, const Side& side, size_t digit, V to, int64_t step,
                          const std::function<void(V)>& fn) {
      const V init[] = {to};
      scopes().Loop(name, side.begin.base, side.end, 1, init, [&](V i, std::span<const V> carried) {
        at.digits[digit] = indices.Counter(i, scopes().current(), 0, 1);
        fn(carried[0]);
        return std::vector<V>{b().Add(carried[0], b().I64(step))};
      });
    };
    const size_t across = space_.tiles.across, along = space_.tiles.along;
    const int64_t pitch = stages_[k].pitch;
    V start = b().I64(stages_[k].in_front);
    // In the order in which each run's surplus is overwritten.
    if (space_.contiguous) {
      over("across", across_, across, start, pitch,
           [&](V row) { over("along", along_, along, row, space_.run, copy); });
    } else {
      over("along", along_, along, start, space_.run, [&](V column) {
        Fetch(e, t, at, across_.begin, space_.tiles.tile_across * space_.run);
        over("across", across_, across, column, pitch, copy);
      });
    }
    Note(e);
  }

  // Asks for what the next tile reads, `elements` along `across`.
  void Fetch(ElementalEmitter& e, const Instruction* t, ArrayIndex at, const LaneIndex& across, int64_t elements) {
    if (!space_.fetches || elements * Bytes(t->shape().type()) > kLongRow) return;  // which the processor expects
    at.digits[space_.tiles.across] = e.indices().Add(across, e.indices().Constant(space_.tiles.tile_across));
    if (space_.run > 1) at.digits.back() = e.indices().Constant(0);
    e.Fetch(t, at, static_cast<int>(elements));
  }

  // Blocks overlap the one before where the side ends inside of one.
  void Blocks(const char* name, const Side& side, int step, const std::function<void(V)>& fn) {
    scopes().Loop(name, side.begin.base, side.end, step, [&](V i) {
      fn(side.size % step == 0 ? i : b().Binary(llvm::Intrinsic::smin, i, b().I64(side.size - step)));
    });
  }

  void TurnBlocks(size_t k) {
    const Instruction* t = space_.staged[k];
    const int lanes = space_.block_lanes, rows = space_.block_rows;
    ElementalEmitter& e = frame_.Emitter(lanes);
    IndexBuilder& indices = e.indices();
    const ElementBuilder::Memory memory = MemoryOf(k);
    V origin = OriginOf(k);
    Blocks("along", along_, rows, [&](V j) {
      const int level = scopes().current();
      V column = b().Add(origin, j);
      Blocks("across", across_, lanes, [&](V i) {
        std::vector<V> vectors;
        ArrayIndex at = at_;
        at.digits[space_.tiles.across] = indices.Counter(i, scopes().current(), 1, 1);
        for (int64_t r = 0; r < rows; ++r) {
          at.digits[space_.tiles.along] = indices.Add(indices.Counter(j, level, 0, 1), indices.Constant(r));
          Fetch(e, t, at, at.digits[space_.tiles.across], lanes);
          vectors.push_back(e.elements().ToStorage(t->shape().type(), e.elements().Splat(e.Emit(t, at), lanes).re));
        }
        TurnPieces(b(), vectors, rows);
        llvm::Type* type = vectors[0]->getType()->getScalarType();
        V first = RowIn(k, column, i);
        for (int piece = 0; piece < lanes; piece += rows)
          for (int r = 0; r < rows; ++r) {
            V offset = b().Add(first, b().I64((piece + r) * stages_[k].pitch));
            b().ir().CreateAlignedStore(b().Slice(vectors[static_cast<size_t>(r)], piece, rows),
                                        b().ir().CreateInBoundsGEP(type, memory.pointer, offset), llvm::Align(1));
          }
      });
    });
    Note(e);
  }

  // The rows of the tile from where they were put together.
  void StoreRows() {
    std::vector<V> origins;
    for (size_t k = 0; k < space_.staged.size(); ++k) origins.push_back(OriginOf(k));
    const int64_t row = along_.size * space_.run, piece = space_.tiles.tile_along * space_.run;
    V begin = b().Mul(along_.begin.base, b().I64(space_.run)), end = b().Mul(along_.end, b().I64(space_.run));
    const auto store = [&](V i, V row_begin, V row_end) {
      ArrayIndex at = RowAt(i);
      std::vector<V> first;
      for (size_t k = 0; k < space_.staged.size(); ++k) first.push_back(RowIn(k, origins[k], i));
      if (space_.flat) {
        V number = frame_.Emitter(1).indices().Linear(at).base;
        for (V& v : first) v = b().Sub(v, number);
        return StoreLine(first, b().Add(number, row_begin), b().Add(number, row_end));
      }
      const bool whole = row % space_.lanes == 0 && piece % space_.lanes == 0;
      frame_.AlongRow(space_.lanes, row_begin, row_end, whole, piece,
                      [&](ElementalEmitter& e, const LaneIndex& column) {
                        at.digits.back() = column;
                        StoreFrom(e, first, at, space_.lanes);
                      });
    };
    if (space_.contiguous) {
      V rows = b().Sub(across_.end, across_.begin.base);
      return store(across_.begin.base, b().I64(0), b().Mul(rows, b().I64(row)));
    }
    scopes().Loop("rows", across_.begin.base, across_.end, 1, [&](V i) { store(i, begin, end); });
  }

  // Position of the first element of a row of the tile, what stays together being part of the last digit.
  ArrayIndex RowAt(V i) {
    const Tiles& tiles = space_.tiles;
    ArrayIndex at = at_;
    at.digits.resize(tiles.along + 1);
    at.sizes.resize(tiles.along + 1);
    at.sizes.back() = along_.size * space_.run;
    at.digits[tiles.across] = frame_.Emitter(1).indices().Counter(i, scopes().current(), 0, 1);
    at.digits.back() = frame_.Emitter(1).indices().Constant(0);
    return at;
  }

  // Elements [begin, end) of the result by their number alone, from the first multiple of the lanes on in whole
  // vectors.
  void StoreLine(const std::vector<V>& first, V begin, V end) {
    const int lanes = space_.lanes;
    int64_t elements = 1;
    for (int64_t size : space_.tiles.sizes) elements *= size;
    const auto element = [&](ElementalEmitter& e, const LaneIndex& number) {
      StoreFrom(e, first, ArrayIndex{{number}, {elements}}, 1);
    };
    V even = b().And(b().Add(begin, b().I64(lanes - 1)), b().I64(-static_cast<int64_t>(lanes)));
    even = b().Binary(llvm::Intrinsic::smin, even, end);
    if (b().target().masked_memory && lanes > 1) {
      scopes().Loop("head", begin, even, lanes, [&](V i) {
        ElementalEmitter& e = frame_.Emitter(lanes);
        V left = b().ZExtOrTrunc(b().Sub(even, i), 32);
        const ElementalEmitter::Condition inside{b().ULt(b().LaneNumbers(lanes, 32), left), scopes().current(), true};
        e.WithMask(inside, [&] {
          element(e, e.indices().Counter(i, scopes().current(), 1, 1));
          return Vals();
        });
      });
    } else if (lanes > 1) {
      ElementalEmitter& e = frame_.Emitter(1);
      scopes().Loop("head", begin, even, 1, [&](V i) { element(e, e.indices().Counter(i, scopes().current(), 0, 1)); });
    }
    frame_.AlongRow(lanes, even, end, false, lanes, element);
  }

  // The roots at a position, from the elements that were put together: its last digit on behind `first`. `even`: that
  // is a multiple of as many elements in memory, but for a lane alone.
  void StoreFrom(ElementalEmitter& e, const std::vector<V>& first, const ArrayIndex& at, int64_t even) {
    for (size_t k = 0; k < space_.staged.size(); ++k) {
      const ElementType type = space_.staged[k]->shape().type();
      const int64_t multiple = e.lanes() > 1 ? std::gcd(even, kLine / Bytes(type)) : 1;
      V offset = b().Add(first[k], at.digits.back().base);
      e.Provide(space_.staged[k], at,
                {e.elements().Load(MemoryOf(k), type, offset, e.lanes() > 1 ? 1 : 0, e.lanes(), nullptr, multiple)});
    }
    Point(e, at);
  }

  // Rows of a line or more, as the operand has them.
  void StoreRuns() {
    const Tiles& tiles = space_.tiles;
    scopes().Loop("along", along_.begin.base, along_.end, 1, [&](V i) {
      const int level = scopes().current();
      for (const Instruction* t : space_.moved) {
        ElementalEmitter& e = frame_.Emitter(space_.lanes);
        ArrayIndex at = at_;
        at.digits[tiles.along] = e.indices().Counter(i, level, 0, 1);
        Fetch(e, t, at, across_.begin, tiles.tile_across * space_.run);
      }
      scopes().Loop("across", across_.begin.base, across_.end, 1, [&](V j) {
        const bool whole = space_.run % space_.lanes == 0;
        frame_.AlongRow(space_.lanes, b().I64(0), b().I64(space_.run), whole, space_.lanes,
                        [&](ElementalEmitter& e, const LaneIndex& column) {
                          ArrayIndex at = at_;
                          at.digits[tiles.along] = e.indices().Counter(i, level, 0, 1);
                          at.digits[tiles.across] = e.indices().Counter(j, level + 1, 0, 1);
                          at.digits.back() = column;
                          Point(e, at);
                        });
      });
    });
  }

  // All rows of the tile side by side.
  void StoreParts() {
    const Tiles& tiles = space_.tiles;
    const bool whole = along_.size % space_.lanes == 0 && tiles.tile_along % space_.lanes == 0;
    frame_.AlongRow(space_.lanes, along_.begin.base, along_.end, whole, tiles.tile_along,
                    [&](ElementalEmitter& e, const LaneIndex& column) {
                      ArrayIndex at = at_;
                      at.digits[tiles.along] = column;
                      for (int64_t part = 0; part < tiles.tile_across; ++part) {
                        at.digits[tiles.across] = e.indices().Constant(part);
                        Point(e, at);
                      }
                    });
  }

  void Point(ElementalEmitter& e, const ArrayIndex& at) {
    if (status_.ok()) status_ = point_(e, at);
    Note(e);
  }
  void Note(const ElementalEmitter& e) {
    if (status_.ok()) status_ = e.status();
  }

  KernelFrame& frame_;
  const StagedSpace& space_;
  const KernelFrame::PointFn& point_;
  const ArrayIndex at_;  // of the tile
  const std::vector<Stage> stages_;
  Side across_, along_;
  Status status_;
};

}  // namespace

StagedSpace ChooseStagedSpace(const KernelBody& body, int vector_bytes) {
  StagedSpace space;
  for (const Instruction* i : body.Computed())
    if (i->op() == Op::Reduce) return space;  // what is computed once a row
  Order order;
  for (const Instruction* t : TransposesAtRoots(body)) {
    const Order of = OrderOf(*t);
    if (order.behind == 0) order = of;
    if (of.behind > 0 && of == order) space.moved.push_back(t);
  }
  if (space.moved.empty()) return space;
  space.lanes = PreferredLanes(body, vector_bytes);
  if (PermutedTogether(*space.moved[0]) <= kVectorsPicked * space.lanes) return space;
  Tiles& tiles = space.tiles;
  tiles.sizes = DigitsOf(body);
  const size_t digits = tiles.sizes.size(), kept = order.run > 1 ? 1 : 0;
  if (digits < 2 + kept || (kept == 1 && tiles.sizes.back() != order.run)) return space;
  tiles.along = digits - 1 - kept;
  int64_t behind = 1;
  tiles.across = digits;
  while (tiles.across > 0 && behind < order.behind) behind *= tiles.sizes[--tiles.across];
  if (behind != order.behind || tiles.across == 0) return space;
  if (--tiles.across >= tiles.along) return space;

  const KernelCost cost = CostOf(body);
  const int64_t bytes = WidestMoved(space);
  space.run = order.run;
  space.flat = OnlySamePlace(body, space.moved);
  space.fetches = cost.bytes >= kFetchedBytes;
  if (kept == 0) {
    if (!SetParts(bytes, space)) SetBlocks(cost, space);
  } else if (space.run * bytes < kLine || (space.run * bytes % kLine != 0 && cost.bytes >= kStreamedBytes &&
                                           space.run <= kMostVectorsOfRun * space.lanes)) {
    if (ComputesRuns(body, space)) return space;
    SetRuns(bytes, cost, space);
  } else {
    SetRows(bytes, cost, space);
  }
  const bool lines = tiles.sizes[tiles.along] * space.run * bytes % kLine == 0;
  const bool large = space.staged.empty()
                         ? KernelFrame::PaysToStream(cost, KernelFrame::WritesLargeResult(*body.kernel))
                         : cost.bytes >= kStreamedBytes;
  space.streams = large && (lines || (space.flat && !space.staged.empty()));
  tiles.across_first = space.fetches;
  if (!space.staged.empty()) space.scratch_bytes = StagesOf(space).back().end;
  return space;
}

Status WalkStaged(KernelFrame& frame, const StagedSpace& space, const KernelCost& cost,
                  const KernelFrame::PointFn& point, int64_t* num_tasks) {
  Status status;
  WalkTiles(frame, space.tiles, cost, num_tasks, [&](const ArrayIndex& tile, const std::function<ArrayIndex()>&) {
    status = TileWalk(frame, space, point, tile).Run();
  });
  return status;
}

std::string Describe(const StagedSpace& space) {
  const Tiles& tiles = space.tiles;
  std::string out = StrCat("tiles of ", tiles.tile_across, "x", tiles.tile_along);
  switch (space.way) {
    case Way::kRuns: StrAppend(out, " runs of ", space.run, ", put together"); break;
    case Way::kRows: StrAppend(out, " rows of ", space.run); break;
    case Way::kBlocks: StrAppend(out, ", turned in blocks of ", space.block_rows, "x", space.block_lanes); break;
    case Way::kParts: StrAppend(out, ", rows side by side"); break;
    case Way::kNone: break;
  }
  if (space.streams) out += ", stored past the caches";
  return out;
}

}  // namespace strop
