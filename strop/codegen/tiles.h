// Tiles: a result cut along two of its digits, so that what is read and written in turns lies near each other.
#pragma once
#include <functional>

#include "strop/codegen/kernel_frame.h"

namespace strop {

struct Tiles {
  Int64Vector sizes;                        // digits of the result
  size_t across = 0, along = 0;             // those that are cut; `along` lies behind `across`
  int64_t tile_across = 0, tile_along = 0;  // elements of these digits in a tile
  bool across_first = false;                // tiles follow each other along `across`
  int64_t task_bytes = int64_t{256} << 10;  // read and written by a task
};

inline int64_t RoundUp(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Position of a tile: the digits `across` and `along` are numbers of tiles.
using TileFn = std::function<void(const ArrayIndex& tile, const std::function<ArrayIndex()>& next)>;

// Walks the tiles that the tasks of the frame cover; sets how many tasks there are. `next` gives the tile that comes
// after one (the last one: itself).
void WalkTiles(KernelFrame& frame, const Tiles& tiles, const KernelCost& cost, int64_t* num_tasks, const TileFn& fn);

}  // namespace strop
