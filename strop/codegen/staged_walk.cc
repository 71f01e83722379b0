#include <algorithm>
#include <bit>
#include <numeric>

#include "strop/codegen/dim_groups.h"
#include "strop/codegen/staged_space.h"
#include "strop/codegen/turn.h"

namespace strop {
namespace {

using V = llvm::Value*;
using Way = StagedSpace::Way;

constexpr int64_t kLine = 64;       // bytes of a cache line
constexpr int64_t kLongRow = 4096;  // bytes, of which any order makes streams

// Where a staged value lies in the memory of a thread: rows of a tile, with room in front of each row and of the first,
// for what tiles overlap and for what a run writes too much.
struct StagedPlace {
  int64_t offset = 0;         // bytes
  int64_t pitch = 0;          // elements between rows
  int64_t rows_in_front = 0;  // of the tile's first
  int64_t in_front = 0;       // elements in front of a row
  int64_t end = 0;            // bytes
};

std::vector<StagedPlace> PlacesOf(const StagedSpace& space) {
  std::vector<StagedPlace> places;
  int64_t offset = 0;
  for (const Instruction* t : space.staged) {
    const int64_t bytes = Bytes(t->shape().type());
    // A row's last run writes as much too much as its vector is longer (CopyRuns).
    const auto run = static_cast<uint64_t>(space.run);
    const int64_t surplus = static_cast<int64_t>(std::bit_ceil(run) - run) * bytes;
    const int64_t room = std::max(kLine, RoundUp(surplus, kLine));
    StagedPlace s{.offset = offset, .in_front = space.contiguous ? 0 : room / bytes};
    s.pitch = s.in_front + RoundUp(space.tiles.tile_along * space.run * bytes, kLine) / bytes;
    if (space.contiguous) s.pitch = space.tiles.sizes[space.tiles.along] * space.run;
    if (space.way == Way::kBlocks) s.rows_in_front = space.block_lanes;
    s.end = offset + RoundUp((s.rows_in_front + space.tiles.tile_across) * s.pitch * bytes, kLine) + room;
    offset = s.end;
    places.push_back(s);
  }
  return places;
}

// The steps of a walk over one tile.
class TileWalk {
 public:
  TileWalk(KernelFrame& frame, const StagedSpace& space, const KernelFrame::PointFn& point, const ArrayIndex& tile)
      : frame_(frame), space_(space), point_(point), at_(tile), places_(PlacesOf(space)) {
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
      case Way::kTurns: StoreTurned(); break;
      case Way::kStreams: StoreStreams(); break;
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
        b().ir().CreateConstInBoundsGEP1_64(b().Int(8), frame_.scratch(), static_cast<uint64_t>(places_[k].offset));
    return {.pointer = pointer, .alignment = static_cast<int>(kLine)};
  }
  // Where element 0 of row 0 of the result would be; nothing moves what is computed in a loop out of it.
  V OriginOf(size_t k) {
    const StagedPlace& s = places_[k];
    V rows = b().Sub(b().I64(s.rows_in_front), across_.begin.base);
    V columns = b().Sub(b().I64(s.in_front), b().Mul(along_.begin.base, b().I64(space_.run)));
    return b().Add(b().Mul(rows, b().I64(s.pitch)), columns);
  }
  V RowIn(size_t k, V origin, V row) { return b().Add(origin, b().Mul(row, b().I64(places_[k].pitch))); }

  void CopyRuns(size_t k) {
    const Instruction* t = space_.staged[k];
    const int lanes = static_cast<int>(std::bit_ceil(static_cast<uint64_t>(space_.run)));
    ElementalEmitter& e = frame_.Emitter(lanes);
    IndexBuilder& indices = e.indices();
    const ElementBuilder::Memory memory = MemoryOf(k);
    ArrayIndex at = at_;
    at.digits.back() = indices.Constant(0).AndNeighbours().Within(0, space_.run - 1);
    const auto copy_all = [&](V to) {
      const Val v = e.elements().Splat(e.Emit(t, at), lanes);
      e.elements().Store(memory, v, to, 1, lanes, nullptr, 1);
    };
    const auto copy_run = [&](V to) {
      const ElementalEmitter::Condition inside{
          b().ULt(b().LaneNumbers(lanes, 32), b().I32(static_cast<int32_t>(space_.run))), scopes().current(), true};
      e.WithMask(inside, [&] {
        copy_all(to);
        return Vals();
      });
    };
    // Counts along a side, and with it where runs are copied to.
    const auto over = [&](const char* name, V begin, V end, size_t digit, V to, int64_t step,
                          const std::function<void(V)>& fn) {
      const V init[] = {to};
      scopes().Loop(name, begin, end, 1, init, [&](V i, std::span<const V> carried) {
        at.digits[digit] = indices.Counter(i, scopes().current(), 0, 1);
        fn(carried[0]);
        return std::vector<V>{b().Add(carried[0], b().I64(step))};
      });
    };
    const size_t across = space_.tiles.across, along = space_.tiles.along;
    const int64_t pitch = places_[k].pitch;
    // In the order in which each run's surplus is overwritten.
    const auto copy_part = [&](V begin, V end, V to, const std::function<void(V)>& copy) {
      if (space_.contiguous) {
        over("across", begin, end, across, to, pitch,
             [&](V row) { over("along", along_.begin.base, along_.end, along, row, space_.run, copy); });
      } else {
        over("along", begin, end, along, to, space_.run, [&](V column) {
          Fetch(e, t, at, across_.begin, space_.tiles.tile_across * space_.run);
          over("across", across_.begin.base, across_.end, across, column, pitch, copy);
        });
      }
    };
    const Side& outer = space_.contiguous ? across_ : along_;
    V start = b().I64(places_[k].in_front), begin = outer.begin.base;
    if (lanes != space_.run && LiesInMemory(t)) {
      // A surplus is read too, but behind the last run of all.
      V last = b().Binary(llvm::Intrinsic::smin, outer.end, b().I64(outer.size - 1));
      copy_part(begin, last, start, copy_all);
      start = b().Add(start, b().Mul(b().Sub(last, begin), b().I64(space_.contiguous ? pitch : space_.run)));
      begin = last;
    }
    copy_part(begin, outer.end, start, lanes == space_.run ? std::function<void(V)>(copy_all) : copy_run);
    Note(e);
  }

  // Is what is moved an input as it is, whose elements lie behind each other?
  bool LiesInMemory(const Instruction* t) const {
    const auto& inputs = frame_.body().inputs;
    return std::find(inputs.begin(), inputs.end(), t->operand(0)) != inputs.end();
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
            V offset = b().Add(first, b().I64((piece + r) * places_[k].pitch));
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
    const bool whole = row % space_.lanes == 0 && piece % space_.lanes == 0;
    V begin = b().Mul(along_.begin.base, b().I64(space_.run)), end = b().Mul(along_.end, b().I64(space_.run));
    const auto store = [&](V i, V row_begin, V row_end) {
      ArrayIndex at = RowAt(i);
      std::vector<V> first;
      for (size_t k = 0; k < space_.staged.size(); ++k) first.push_back(RowIn(k, origins[k], i));
      if (space_.flat && (space_.contiguous || !whole)) {
        V number = frame_.Emitter(1).indices().Linear(at).base;
        for (V& v : first) v = b().Sub(v, number);
        return StoreLine(first, b().Add(number, row_begin), b().Add(number, row_end));
      }
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

  // May the last vector of a row of a tile begin in the one before, where no instruction leaves lanes out? Vectors past
  // the caches begin at multiples of their length.
  bool StoresOverlap() const {
    const Tiles& tiles = space_.tiles;
    const int64_t rest = along_.size % tiles.tile_along, shortest = (rest > 0 ? rest : tiles.tile_along) * space_.run;
    return !frame_.masked_memory() && space_.overlaps && !space_.streams && space_.lanes > 1 &&
           shortest >= space_.lanes;
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
    if (StoresOverlap()) {
      ElementalEmitter& e = frame_.Emitter(lanes);
      return scopes().Loop("line", begin, end, lanes, [&](V i) {
        V first_of = b().Binary(llvm::Intrinsic::smin, i, b().Sub(end, b().I64(lanes)));
        element(e, e.indices().Counter(first_of, scopes().current(), 1, 1));
      });
    }
    // Past the caches go whole lines: one that is stored so in part, and in part not, is written and fetched in turns.
    int64_t bytes = kLine;
    for (const Instruction* staged : space_.staged) bytes = std::min<int64_t>(bytes, Bytes(staged->shape().type()));
    const int64_t step = space_.streams ? std::max<int64_t>(lanes, kLine / bytes) : lanes;
    V even = b().And(b().Add(begin, b().I64(step - 1)), b().I64(-step));
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

  // As many vectors of runs as each holds, turned in registers; users compute along the rows of the result.
  void StoreTurned() {
    const Tiles& tiles = space_.tiles;
    const int side = space_.block_rows, lanes = space_.lanes;
    const int64_t run = space_.run;
    ElementalEmitter& e = frame_.Emitter(lanes);
    IndexBuilder& indices = e.indices();
    const auto [run_of, in_run] = indices.DivMod(indices.Counter(b().I64(0), 0, 1, 1), run, lanes);
    const LaneIndex &number = run_of, &place = in_run;
    ElementalEmitter::Condition inside;  // lanes that no run fills
    if (side * run < lanes)
      inside = {b().ULt(b().LaneNumbers(lanes, 32), b().I32(static_cast<int32_t>(side * run))), 0};
    Blocks("along", along_, side, [&](V i) {
      const int level = scopes().current();
      const auto row = [&](int r) { return indices.Add(indices.Counter(i, level, 0, 1), indices.Constant(r)); };
      for (const Instruction* t : space_.moved)
        for (int r = 0; r < side; ++r) {
          ArrayIndex at = at_;
          at.digits[tiles.along] = row(r);
          Fetch(e, t, at, across_.begin, tiles.tile_across * run);
        }
      Blocks("across", across_, side, [&](V j) {
        const LaneIndex column = indices.Counter(j, scopes().current(), 0, 1);
        std::vector<ArrayIndex> read(static_cast<size_t>(side), at_), stored(static_cast<size_t>(side), RowAt(j));
        for (int k = 0; k < side; ++k) {
          ArrayIndex &from = read[static_cast<size_t>(k)], &to = stored[static_cast<size_t>(k)];
          from.digits[tiles.across] = indices.Add(number, column);
          from.digits[tiles.along] = row(k);
          from.digits.back() = place;
          to.digits[tiles.across] = indices.Add(column, indices.Constant(k));
          const LaneIndex first = indices.Counter(i, level, 0, along_.size % side == 0 ? side : 1);
          to.digits.back() = indices.Mul(first, run).AndNeighbours();
        }
        const auto block = [&] {
          for (const Instruction* t : space_.moved) TurnBlock(e, t, read, stored);
          for (const ArrayIndex& at : stored) Point(e, at);
          return Vals();
        };
        inside.value ? e.WithMask(inside, block) : block();
      });
    });
  }

  // Vectors of runs of a transpose at the positions `read`, and what is then at those of `stored`.
  void TurnBlock(ElementalEmitter& e, const Instruction* transpose, std::span<const ArrayIndex> read,
                 std::span<const ArrayIndex> stored) {
    const auto run = static_cast<int>(space_.run);
    std::vector<V> re, im;
    for (const ArrayIndex& at : read) {
      const Val v = e.elements().Splat(e.Emit(transpose, at), e.lanes());
      re.push_back(v.re);
      if (v.im) im.push_back(v.im);
    }
    TurnRuns(b(), re, run);
    if (!im.empty()) TurnRuns(b(), im, run);
    for (size_t k = 0; k < stored.size(); ++k)
      e.Provide(transpose, stored[k], {Val{re[k], im.empty() ? nullptr : im[k], transpose->shape().type()}});
  }

  // What lies together in the operand, one piece `along` after the other; the next tile's are asked for meanwhile.
  void Along(const std::function<void(ArrayIndex at)>& fn) {
    const Tiles& tiles = space_.tiles;
    scopes().Loop("along", along_.begin.base, along_.end, 1, [&](V i) {
      ElementalEmitter& e = frame_.Emitter(space_.lanes);
      ArrayIndex at = at_;
      at.digits[tiles.along] = e.indices().Counter(i, scopes().current(), 0, 1);
      for (const Instruction* t : space_.moved) Fetch(e, t, at, across_.begin, tiles.tile_across * space_.run);
      fn(at);
    });
  }

  // Runs in the order of the operand, some to a row of the result each, which rows are so many streams.
  void StoreStreams() {
    Along([&](ArrayIndex at) {
      Blocks("across", across_, space_.block_rows, [&](V j) {
        for (int k = 0; k < space_.block_rows; ++k) {
          IndexBuilder& indices = frame_.Emitter(1).indices();
          at.digits[space_.tiles.across] =
              indices.Add(indices.Counter(j, scopes().current(), 0, 1), indices.Constant(k));
          StoreRun(at);
        }
      });
    });
  }

  // The elements of a run in the longest vectors of a power of two; the last one overlaps the one before if it may.
  void StoreRun(ArrayIndex at) {
    for (int64_t done = 0; done < space_.run;) {
      const int64_t left = space_.run - done;
      int lanes = static_cast<int>(std::bit_floor(static_cast<uint64_t>(std::min<int64_t>(left, space_.lanes))));
      if (lanes < left && left < 2 * lanes && space_.overlaps && done > 0 && left < space_.lanes) lanes *= 2;
      const int64_t first = std::min(done, space_.run - lanes);
      ElementalEmitter& e = frame_.Emitter(lanes);
      at.digits.back() = e.indices().Counter(b().I64(first), 0, 1, std::gcd<int64_t>(first, lanes));
      Point(e, at);
      done = first + lanes;
    }
  }

  // Rows of a line or more, as the operand has them.
  void StoreRuns() {
    Along([&](ArrayIndex at) {
      scopes().Loop("across", across_.begin.base, across_.end, 1, [&](V j) {
        at.digits[space_.tiles.across] = frame_.Emitter(1).indices().Counter(j, scopes().current(), 0, 1);
        const bool whole = space_.run % space_.lanes == 0;
        frame_.AlongRow(space_.lanes, b().I64(0), b().I64(space_.run), whole, space_.lanes,
                        [&](ElementalEmitter& e, const LaneIndex& column) {
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
  const std::vector<StagedPlace> places_;
  Side across_, along_;
  Status status_;
};

}  // namespace

int64_t StagedBytes(const StagedSpace& space) {
  const std::vector<StagedPlace> places = PlacesOf(space);
  return places.empty() ? 0 : places.back().end;
}

Status WalkStaged(KernelFrame& frame, const StagedSpace& space, const KernelCost& cost,
                  const KernelFrame::PointFn& point, int64_t* num_tasks) {
  Status status;
  WalkTiles(frame, space.tiles, cost, num_tasks, [&](const ArrayIndex& tile, const std::function<ArrayIndex()>&) {
    status = TileWalk(frame, space, point, tile).Run();
  });
  return status;
}

}  // namespace strop
