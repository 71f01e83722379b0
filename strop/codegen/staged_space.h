// StagedSpace: how the elements of a result are walked where an operand has its dimensions in another order, and what
// stays together is less than a line of the cache.
//
//   transpose(x[600,500,7]), dimensions={1,0,2}: 28 bytes stay together
//
// Tiles of the result are put together in memory of the thread's own, from what lies together in the operand, and then
// stored as whole vectors along the rows of the result, with what users compute from them. What stays together is
//   runs     a short last dimension that both have: copied one by one, each over the surplus of the one before;
//   blocks   of bytes, with rows of few elements, or whose vectors are parts of a line, whose rows are columns of the
//            operand: some rows of a whole vector are turned in pieces of 16 bytes.
// Vectors are stored at multiples of their length where users let them, and the lines of the next tile are asked for:
// what lies together in the operand is too short for the processor to expect more of it.
// No such memory, but an order of their own need
//   turns    runs of which a vector holds several: as many vectors are read, along the operand's rows, and turned run
//   by
//            run in registers;
//   streams  longer ones: some that lie together in the operand at a time, each to a row of its own;
//   rows     of a line or more that stay together: they are walked tile by tile;
//   parts    rows of the result that the elements of a short last dimension of the operand are dealt out to (the planes
//            of an image): all of them are walked side by side, so that the operand is read once.
#pragma once
#include "strop/codegen/tiles.h"

namespace strop {

struct StagedSpace {
  enum class Way { kNone, kRuns, kBlocks, kTurns, kStreams, kRows, kParts };
  Way way = Way::kNone;
  Tiles tiles;
  int64_t run = 1;                      // elements that stay together
  int lanes = 0;                        // of the vectors that are stored
  int block_lanes = 0, block_rows = 0;  // of a block: elements (runs) of a vector that is read, and how many are turned
  bool streams = false;                 // results go past the caches
  bool fetches = false;                 // the lines of the next tile are asked for
  bool flat = false;                    // users need no more of a position than its number
  bool overlaps = true;                 // what is stored may be stored again
  bool contiguous = false;              // tiles are whole rows, one behind the other in the result
  std::vector<const Instruction*> moved;   // the transposes
  std::vector<const Instruction*> staged;  // those that are put together tile by tile
  int64_t scratch_bytes = 0;               // of a thread
};

// kNone where no transpose is read at the result's position, or other ways are as good.
// `in_place[r]` is the operand whose buffer result r has, or -1.
StagedSpace ChooseStagedSpace(const KernelBody& body, std::span<const int> in_place, const VectorTarget& target);

// Bytes that a thread needs for what is put together.
int64_t StagedBytes(const StagedSpace& space);

// Walks the tiles that the tasks of the frame cover; sets how many tasks there are. For a function of the kernel's own.
Status WalkStaged(KernelFrame& frame, const StagedSpace& space, const KernelCost& cost,
                  const KernelFrame::PointFn& point, int64_t* num_tasks);

// For reports.
std::string Describe(const StagedSpace& space);

}  // namespace strop
