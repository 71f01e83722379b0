// BlockSpace: how the elements of a result are walked where an operand is read along another dimension than the result
// is written: in square blocks, turned in registers.
//
//   add(x[m,n], transpose(y[n,m])):   for each block of lanes x lanes:
//     read    lanes vectors of y, each along y's rows (the block's columns)
//     turn    log2(lanes) stages that exchange parts of pairs of vectors
//     combine and store lanes vectors along the rows of the result
//
// Blocks are walked in tiles, one beside the other along the rows that are written. In large kernels the lines of the
// next tile are asked for while a tile is turned, row by row: a tile reads few lines of each row, which the processor
// does not expect. (4096x4096 floats in 2.5 ms instead of 7.)
//
// Where the dimensions are no multiples of the lanes, the last block overlaps the one before.
#pragma once
#include "strop/codegen/kernel_frame.h"

namespace strop {

struct BlockSpace {
  Int64Vector sizes;                        // digits of the result; vectors run along the last
  size_t across = 0;                        // the digit along which the turned operands have their elements in a row
  int lanes = 0;                            // of a block's side; 0: no blocks
  int64_t tile_across = 0, tile_along = 0;  // elements of a tile: what is read and written in turns
  bool streams = false;                     // results go past the caches
  bool fetches = false;                     // the lines of the next tile are asked for
  std::vector<const Instruction*> turned;   // transposes that are computed block by block
};

// Transposes that the roots read at their own position.
std::vector<const Instruction*> TransposesAtRoots(const KernelBody& body);

// No blocks where no transpose is read at the result's position, or its dimensions are short.
BlockSpace ChooseBlockSpace(const KernelBody& body, std::span<const int> in_place, int vector_bytes);

// Walks the tiles that the tasks of the frame cover; sets how many tasks there are.
Status WalkBlocks(KernelFrame& frame, const BlockSpace& space, const KernelCost& cost,
                  const KernelFrame::PointFn& point, int64_t* num_tasks);

}  // namespace strop
