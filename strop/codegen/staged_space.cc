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
constexpr int64_t kBlockAcross = 256;         // bytes of a tile of blocks along the rows that are read
constexpr int64_t kLeastPartOfStream = 1024;  // bytes of rows of parts of lines that go past the caches one by one
constexpr int64_t kLongestPutTogether = 8 << 10, kMostPutTogether = 128 << 10;  // rows, and tiles of them
constexpr int64_t kStreamedAlong = 512;              // the same along the rows that are written past the caches
constexpr int64_t kStreamedTask = int64_t{1} << 20;  // bytes: each begins with a tile that nobody asked for
constexpr int64_t kLeastOfBytes = int64_t{4} << 20;  // of kernels; in less, lines are written in parts as fast
constexpr int64_t kVectorsPicked = 4;                // from so many, lanes are picked instead (loop_space.cc)
constexpr int64_t kMostParts = 8;
constexpr int64_t kShortRow = 128;       // bytes
constexpr int64_t kMostInterleaved = 8;  // elements of rows whose vectors are interleaved as well
constexpr int64_t kMostVectorsOfRun = 4;
constexpr int64_t kPartBytes = int64_t{16} << 10;
constexpr int64_t kMostCodeOfRuns = 64;                  // instructions that an element needs, were they for one lane
constexpr int64_t kBlocksAcross = 4, kTurnedAlong = 64;  // of a tile of runs that are turned: blocks, and runs
// Runs of so many bytes are stored to as many rows at a time: 8 streams are in the nearest cache whatever is between
// them.
constexpr int64_t kShortRun = 12, kLongRun = 128, kMostStreams = 8, kPage = 4096;
constexpr int64_t kMostCodeOfStream = 8;               // instructions of an element that are repeated for each
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

// A side of at most about `wanted` elements, so that the tiles of `size` are even, in multiples of `grain`.
int64_t EvenSide(int64_t size, int64_t wanted, int64_t grain) {
  const int64_t count = std::max<int64_t>(1, (size + wanted / 2) / std::max<int64_t>(wanted, 1));
  return RoundUp((size + count - 1) / count, grain);
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

void SetBlocks(const KernelCost& cost, int vector_bytes, StagedSpace& space) {
  Tiles& tiles = space.tiles;
  const int64_t across = tiles.sizes[tiles.across], along = tiles.sizes[tiles.along];
  const int64_t bytes = Bytes(space.moved[0]->shape().type());
  const bool alike = std::all_of(space.moved.begin(), space.moved.end(), [&](const Instruction* t) {
    return Bytes(t->shape().type()) == bytes && !IsComplex(t->shape().type());
  });
  const int64_t lanes =
      std::min<int64_t>(space.lanes, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(across))));
  const int64_t piece = kPiece / bytes;
  const bool adjacent = space.flat && tiles.across + 1 == tiles.along;
  space.contiguous = adjacent && along < 2 * space.lanes && along % space.lanes != 0;
  const bool large = bytes == 1 && lanes >= 2 * piece && cost.bytes >= kLeastOfBytes;
  const bool narrow = space.contiguous && along > kMostInterleaved;
  // Vectors of less than a line write lines in parts, each of which is fetched before, and evicted in between where
  // rows are multiples of a page apart. Whole lines go past the caches. (2048x2048 floats: 0.9 ms by 32-byte vectors,
  // 1.6 in blocks of 8x8, where a copy takes 0.8.)
  const bool parts = vector_bytes < kLine && cost.bytes >= kStreamedBytes;
  space.contiguous |= parts && adjacent && along * bytes % kLine != 0 && along * bytes <= kLongestPutTogether;
  if (!alike || lanes < piece || along < piece || (!large && !narrow && !parts)) return;
  space.way = Way::kBlocks;
  space.staged = space.moved;
  space.block_lanes = static_cast<int>(lanes);
  space.block_rows = static_cast<int>(piece);
  int64_t wanted = kBlockAcross / bytes;
  if (space.contiguous)
    while (wanted * bytes > kLine && wanted * along * bytes > kMostPutTogether) wanted /= 2;
  tiles.tile_across = EvenSide(across, std::max<int64_t>(lanes, wanted), lanes);
  tiles.tile_along = space.contiguous ? along
                     : parts          ? EvenSide(along, kStreamedAlong / bytes, kLine / bytes)
                                      : kLine / bytes;
  if (parts) tiles.task_bytes = kStreamedTask;
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

// Does a vector hold several runs?
bool SetTurns(const VectorTarget& target, StagedSpace& space) {
  Tiles& tiles = space.tiles;
  const int64_t across = tiles.sizes[tiles.across], along = tiles.sizes[tiles.along];
  const bool complex = std::any_of(space.moved.begin(), space.moved.end(),
                                   [](const Instruction* t) { return IsComplex(t->shape().type()); });
  const int64_t lanes = space.lanes / (complex ? 2 : 1), most = std::min({lanes / space.run, across, along});
  // Odd runs of bytes are no longer elements.
  const bool bytes = std::any_of(space.moved.begin(), space.moved.end(), [&](const Instruction* t) {
    return ElementBuilder::RegisterBits(t->shape().type()) == 8 && space.run % 4 != 0;
  });
  if (most < 2 || (bytes && target.shuffled_bits != 8)) return false;
  auto side = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(most)));
  if (!space.overlaps)  // they would compute from what they have written
    while (across % side != 0 || along % side != 0) side /= 2;
  if (side < 2 || (side * space.run < lanes && !target.masked_memory)) return false;
  space.way = Way::kTurns;
  space.lanes = static_cast<int>(lanes);
  space.block_rows = static_cast<int>(side);
  tiles.tile_across = EvenSide(across, kBlocksAcross * side, side);
  tiles.tile_along = EvenSide(along, space.fetches ? 2 * kTurnedAlong : kTurnedAlong, side);
  return true;
}

// Are runs less than two lines, and more than vectors hold several of?
bool SetStreams(const KernelBody& body, int64_t bytes, StagedSpace& space) {
  Tiles& tiles = space.tiles;
  const int64_t across = tiles.sizes[tiles.across], along = tiles.sizes[tiles.along], run = space.run * bytes;
  // What is computed of much is computed in whole vectors.
  if (run < kShortRun || run >= kLongRun || CodeOf(body) > kMostCodeOfStream) return false;
  // Rows that are pages apart share the places of the nearest cache. (f32 of 8x512x16x24: 109 and 88 us.)
  const int64_t most = along * run % kPage == 0 ? kMostStreams / 2 : kMostStreams;
  const int64_t blocks = (across + most - 1) / most, even = (across + blocks - 1) / blocks;
  const int64_t at_a_time = space.overlaps || across % even == 0 ? even : 1;
  space.way = Way::kStreams;
  space.block_rows = static_cast<int>(at_a_time);
  tiles.tile_across = EvenSide(across, even, at_a_time);
  tiles.tile_along = EvenSide(along, std::max<int64_t>(kTurnedAlong, kTileBytes / (kMostStreams * run)), 1);
  return true;
}

void SetRows(int64_t bytes, const KernelCost& cost, StagedSpace& space) {
  const int64_t row = space.run * bytes;
  if (row >= kLongRow || row % kLine != 0 || cost.bytes >= kOrderedBytes) return;
  space.way = Way::kRows;
  space.tiles.tile_across = EvenSide(space.tiles.sizes[space.tiles.across], kLongRow / row, 1);
  space.tiles.tile_along = EvenSide(space.tiles.sizes[space.tiles.along], kLongRow / row, 1);
}

}  // namespace

StagedSpace ChooseStagedSpace(const KernelBody& body, std::span<const int> in_place, const VectorTarget& target) {
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
  space.lanes = PreferredLanes(body, target.vector_bytes);
  space.overlaps = std::all_of(in_place.begin(), in_place.end(), [](int k) { return k < 0; });
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
  // Runs of a line and more are read from a fast last cache in any order (bf16 of 8x512x12x64: 145 and 94 us).
  const bool far = !target.fast_last_cache;
  space.fetches = far && cost.bytes >= kFetchedBytes;
  if (kept == 0) {
    if (!SetParts(bytes, space)) SetBlocks(cost, target.vector_bytes, space);
  } else if (SetTurns(target, space) || SetStreams(body, bytes, space)) {
    tiles.across_first = true;
  } else if (space.run * bytes < kLine || (far && space.run * bytes % kLine != 0 && cost.bytes >= kStreamedBytes &&
                                           space.run <= kMostVectorsOfRun * space.lanes)) {
    if (ComputesRuns(body, space)) return space;
    SetRuns(bytes, cost, space);
  } else if (far) {
    SetRows(bytes, cost, space);
  }
  const bool lines = tiles.sizes[tiles.along] * space.run * bytes % kLine == 0;
  const bool large = space.staged.empty()
                         ? KernelFrame::PaysToStream(cost, KernelFrame::WritesLargeResult(*body.kernel))
                         : cost.bytes >= kStreamedBytes;
  // A line that is written in part is fetched, and by whom writes the rest of it again.
  space.streams = large && (lines || (space.flat && !space.staged.empty() && space.contiguous));
  if (space.way == Way::kTurns)
    space.streams &= space.block_rows * space.run * bytes == kLine && tiles.sizes[tiles.along] % space.block_rows == 0;
  if (space.way == Way::kStreams) space.streams = false;  // whose lines are written in parts
  tiles.across_first |= space.fetches;
  space.scratch_bytes = StagedBytes(space);
  return space;
}

std::string Describe(const StagedSpace& space) {
  const Tiles& tiles = space.tiles;
  std::string out = StrCat("tiles of ", tiles.tile_across, "x", tiles.tile_along);
  switch (space.way) {
    case Way::kRuns: StrAppend(out, " runs of ", space.run, ", put together"); break;
    case Way::kRows: StrAppend(out, " rows of ", space.run); break;
    case Way::kTurns:
      StrAppend(out, " runs of ", space.run, ", turned in blocks of ", space.block_rows, "x", space.block_rows);
      break;
    case Way::kStreams: StrAppend(out, " runs of ", space.run, ", ", space.block_rows, " at a time"); break;
    case Way::kBlocks: StrAppend(out, ", turned in blocks of ", space.block_rows, "x", space.block_lanes); break;
    case Way::kParts: StrAppend(out, ", rows side by side"); break;
    case Way::kNone: break;
  }
  if (space.streams) out += ", stored past the caches";
  return out;
}

}  // namespace strop
