#include "strop/codegen/tiles.h"

#include <algorithm>

namespace strop {

using V = llvm::Value*;

namespace {

constexpr int64_t kMaxTasks = 4096;

}  // namespace

void WalkTiles(KernelFrame& frame, const Tiles& tiles, const KernelCost& cost, int64_t* num_tasks, const TileFn& fn) {
  VectorBuilder& b = frame.b();
  LoopScopes& scopes = frame.scopes();
  IndexBuilder& indices = frame.Emitter(1).indices();
  std::vector<size_t> order;
  for (size_t d = 0; d < tiles.sizes.size(); ++d)
    if (d != tiles.across || !tiles.across_first) order.push_back(d);
  if (tiles.across_first) order.push_back(tiles.across);
  Int64Vector counts = tiles.sizes, in_order;
  counts[tiles.across] = (counts[tiles.across] + tiles.tile_across - 1) / tiles.tile_across;
  counts[tiles.along] = (counts[tiles.along] + tiles.tile_along - 1) / tiles.tile_along;
  for (size_t d = tiles.along + 1; d < counts.size(); ++d) counts[d] = 1;  // walked inside
  int64_t units = 1;
  for (size_t d : order) in_order.push_back(counts[d]);
  for (int64_t n : in_order) units *= n;
  const int64_t wanted = std::clamp<int64_t>(cost.bytes / tiles.task_bytes, 1, std::min(units, kMaxTasks));
  const int64_t units_per_task = (units + wanted - 1) / wanted;
  *num_tasks = (units + units_per_task - 1) / units_per_task;
  V begin = b.ir().CreateMul(frame.task_begin(), b.I64(units_per_task));
  V end = b.Binary(llvm::Intrinsic::smin, b.ir().CreateMul(frame.task_end(*num_tasks), b.I64(units_per_task)),
                   b.I64(units));
  scopes.Loop("tiles", begin, end, 1, [&](V unit) {
    const auto tile_at = [&](V number) {
      const ArrayIndex flat{{indices.Counter(number, scopes.current(), 0, 1)}, {units}};
      const ArrayIndex tile = indices.Refactor(flat, in_order);
      ArrayIndex at;
      at.sizes = tiles.sizes;
      at.digits.resize(order.size());
      for (size_t k = 0; k < order.size(); ++k) at.digits[order[k]] = tile.digits[k];
      return at;
    };
    fn(tile_at(unit),
       [&] { return tile_at(b.Binary(llvm::Intrinsic::smin, b.Add(unit, b.I64(1)), b.I64(units - 1))); });
  });
}

}  // namespace strop
