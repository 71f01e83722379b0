#include "strop/codegen/block_space.h"

#include <algorithm>
#include <bit>

#include "strop/codegen/dim_groups.h"
#include "strop/codegen/tiles.h"
#include "strop/codegen/turn.h"

namespace strop {
namespace {

using V = llvm::Value*;

constexpr int kMinLanes = 4;          // shorter sides are not worth turning
constexpr int64_t kShort = 8;         // sides that strided reads and interleaved stores do better, if they are near
constexpr int kMaxLanes = 32;         // vectors of a block: all registers
constexpr int kMaxLanesOfBytes = 16;  // turning more takes longer than it saves
constexpr int64_t kLine = 64;         // bytes of a cache line
constexpr int64_t kTile = 64;         // elements of a tile's side
// Sides, in vectors, of tiles that are stored past the caches: along the rows that are read, and that are written.
// (4096x4096 floats take 2.9 ms by 32x2, 3.2 by 8x4, where a copy takes 2.7.)
constexpr int kStreamedAcross = 32, kStreamedAlong = 2;
// What is read and written of kernels that ask for the next tile, and that store past the caches. Rows wait for each
// other's lines there: floats of 1536x1536 took 0.80 of the time of tiles of 64x64, 2048x2048 0.33; on a machine that
// writes 25 GB/s, 1024x1024 1.3 and 1536x1536 0.90.
constexpr int64_t kFetchedBytes = int64_t{8} << 20;
constexpr int64_t kStreamedBytes = int64_t{16} << 20;

// The number of elements behind the result's group that is innermost in the operand: 1 if rows stay rows.
int64_t SuffixAcross(const Instruction& transpose) {
  const std::vector<DimGroup> groups = ResultGroups(transpose);
  std::vector<size_t> order;
  InSourceOrder(groups, &order);
  while (!order.empty() && groups[order.back()].size == 1) order.pop_back();
  if (order.empty()) return 1;
  int64_t suffix = 1;
  for (size_t g = order.back() + 1; g < groups.size(); ++g) suffix *= groups[g].size;
  return suffix;
}

// Computes a transpose for one block, along its operand's rows, and leaves the emitter with its values along the
// result's.
void TurnBlock(ElementalEmitter& e, const Instruction* transpose, std::span<const ArrayIndex> columns,
               std::span<const ArrayIndex> rows) {
  const int lanes = e.lanes();
  std::vector<V> re, im;
  for (const ArrayIndex& at : columns) {
    const Val v = e.elements().Splat(e.Emit(transpose, at), lanes);
    re.push_back(v.re);
    if (v.im) im.push_back(v.im);
  }
  Turn(e.b(), re);
  if (!im.empty()) Turn(e.b(), im);
  for (size_t k = 0; k < rows.size(); ++k)
    e.Provide(transpose, rows[k], {Val{re[k], im.empty() ? nullptr : im[k], transpose->shape().type()}});
}

// Are neighbours along the rows of the result no further apart in the operand than a few elements?
bool NeighboursAreNear(const Instruction& transpose, const Int64Vector& digits) {
  const Int64Vector strides = StridesInOperand(transpose, digits);
  return strides.empty() || strides.back() <= kShort;
}

// Asks for the part of the next tile that is due with a block of this number, of all that a tile has: row by row, or
// where rows are no such part, the block at the same place. `next`: the digits that are cut are numbers of tiles.
void FetchPart(ElementalEmitter& e, const BlockSpace& space, const ArrayIndex& next, const LaneIndex& down,
               const LaneIndex& right) {
  IndexBuilder& indices = e.indices();
  const int64_t lanes = space.lanes, vectors = space.tile_across / lanes, blocks = space.tile_along / lanes;
  const auto fetch = [&](const LaneIndex& vector, const LaneIndex& row) {
    ArrayIndex at = next;
    LaneIndex& across = at.digits[space.across];
    across = indices.Add(indices.Mul(across, space.tile_across), indices.Mul(vector, lanes)).AndNeighbours();
    at.digits.back() = indices.Add(indices.Mul(at.digits.back(), space.tile_along), row);
    for (const Instruction* t : space.turned) e.Fetch(t, at);
  };
  const LaneIndex block = indices.Add(indices.Mul(down, blocks), right);
  if (lanes % vectors == 0) {
    const int64_t rows = lanes / vectors;
    for (int64_t r = 0; r < rows; ++r)
      for (int64_t v = 0; v < vectors; ++v)
        fetch(indices.Constant(v), indices.Add(indices.Mul(block, rows), indices.Constant(r)));
  } else if (vectors % lanes == 0) {
    const auto [row, part] = indices.DivMod(block, vectors / lanes, vectors * blocks);
    for (int64_t v = 0; v < lanes; ++v) fetch(indices.Add(indices.Mul(part, lanes), indices.Constant(v)), row);
  } else {
    for (int64_t r = 0; r < lanes; ++r) fetch(down, indices.Add(indices.Mul(right, lanes), indices.Constant(r)));
  }
}

// Bytes of an element of the results.
int64_t NarrowestResult(const KernelBody& body) {
  int64_t bytes = kLine;
  for (const Instruction* root : body.roots)
    for (const Shape& leaf : root->shape().Leaves()) bytes = std::min<int64_t>(bytes, Bytes(leaf.type()));
  return bytes;
}

}  // namespace

std::vector<const Instruction*> TransposesAtRoots(const KernelBody& body) {
  std::vector<const Instruction*> found, stack(body.roots.begin(), body.roots.end()), seen;
  const auto is_input = [&](const Instruction* i) {
    return i != body.kernel && std::find(body.inputs.begin(), body.inputs.end(), i) != body.inputs.end();
  };
  while (!stack.empty()) {
    const Instruction* i = stack.back();
    stack.pop_back();
    if (is_input(i) || std::find(seen.begin(), seen.end(), i) != seen.end()) continue;
    seen.push_back(i);
    if (i->op() == Op::Transpose) {
      found.push_back(i);
    } else if (IsElementwise(i->op()) || i->op() == Op::Reshape || i->op() == Op::Copy) {
      for (int64_t k = 0; k < i->operand_count(); ++k) {
        const Shape& shape = i->operand(k)->shape();
        if (shape.IsArray() && i->shape().IsArray() && shape.num_elements() == i->shape().num_elements())
          stack.push_back(i->operand(k));
      }
    }
  }
  return found;
}

BlockSpace ChooseBlockSpace(const KernelBody& body, std::span<const int> in_place, int vector_bytes) {
  BlockSpace space;
  // What is computed once a row would be computed once a tile.
  for (const Instruction* i : body.Computed())
    if (i->op() == Op::Reduce) return space;
  const std::vector<const Instruction*> transposes = TransposesAtRoots(body);
  int64_t suffix = 1;
  for (const Instruction* t : transposes) {
    const int64_t s = SuffixAcross(*t);
    if (s == 1) continue;
    if (suffix == 1) suffix = s;
    if (s == suffix) space.turned.push_back(t);
  }
  if (suffix == 1) return space;
  space.sizes = DigitsOf(body);
  int64_t behind = 1;
  size_t across = space.sizes.size();
  while (across > 0 && behind < suffix) behind *= space.sizes[--across];
  if (behind != suffix || across == 0) return space;
  space.across = across - 1;
  const int64_t side = std::min(space.sizes[space.across], space.sizes.back());
  const bool near = side == space.sizes.back() ? space.across + 2 == space.sizes.size()
                                               : NeighboursAreNear(*space.turned[0], space.sizes);
  if (side <= kShort && side < PreferredLanes(body, vector_bytes) && near) return space;
  const bool complex = std::any_of(space.turned.begin(), space.turned.end(),
                                   [](const Instruction* t) { return IsComplex(t->shape().type()); });
  const int64_t bytes = NarrowestResult(body);
  int lanes =
      std::min({PreferredLanes(body, vector_bytes) / (complex ? 2 : 1), bytes == 1 ? kMaxLanesOfBytes : kMaxLanes,
                static_cast<int>(std::bit_floor(static_cast<uint64_t>(std::min<int64_t>(side, 64))))});
  // Overlapping blocks would compute from what they have written.
  if (std::any_of(in_place.begin(), in_place.end(), [](int k) { return k >= 0; }))
    while (lanes > 1 && (space.sizes[space.across] % lanes != 0 || space.sizes.back() % lanes != 0)) lanes /= 2;
  if (lanes < kMinLanes) return space;
  space.lanes = lanes;
  const KernelCost cost = CostOf(body);
  space.fetches = cost.bytes >= kFetchedBytes;
  space.streams = lanes * bytes >= kLine && space.sizes.back() * bytes % kLine == 0 && cost.bytes >= kStreamedBytes;
  const auto tile_of = [&](int64_t tile, int64_t size) { return std::min(tile, (size + lanes - 1) / lanes * lanes); };
  space.tile_across = tile_of(space.streams ? kStreamedAcross * lanes : kTile, space.sizes[space.across]);
  space.tile_along = tile_of(space.streams ? kStreamedAlong * lanes : kTile, space.sizes.back());
  return space;
}

Status WalkBlocks(KernelFrame& frame, const BlockSpace& space, const KernelCost& cost,
                  const KernelFrame::PointFn& point, int64_t* num_tasks) {
  VectorBuilder& b = frame.b();
  LoopScopes& scopes = frame.scopes();
  ElementalEmitter& e = frame.Emitter(space.lanes);
  IndexBuilder& indices = e.indices();
  const int64_t across = space.sizes[space.across], along = space.sizes.back();
  Status status;
  // The blocks of a tile along one digit; fn gets where a block begins, and its number in the tile.
  const auto along_digit = [&](const char* name, const LaneIndex& tile, int64_t tile_size, int64_t size,
                               const std::function<void(const LaneIndex&, const LaneIndex&)>& fn) {
    const LaneIndex first = indices.Mul(tile, tile_size);
    V end = b.ir().CreateAdd(first.base, b.I64(tile_size));
    if (size % tile_size != 0) end = b.Binary(llvm::Intrinsic::smin, end, b.I64(size));
    scopes.Loop(name, first.base, end, space.lanes, [&](V i) {
      LaneIndex begin = indices.Counter(i, scopes.current(), 0, space.lanes);
      if (size % space.lanes != 0)
        begin = indices.Counter(b.Binary(llvm::Intrinsic::smin, i, b.I64(size - space.lanes)), scopes.current(), 0, 1);
      const LaneIndex in_tile = indices.Counter(b.ir().CreateSub(i, first.base), scopes.current(), 0, space.lanes);
      fn(begin, indices.DivMod(in_tile, space.lanes, tile_size).first);
    });
  };
  const Tiles tiles{space.sizes, space.across, space.sizes.size() - 1, space.tile_across, space.tile_along};
  WalkTiles(frame, tiles, cost, num_tasks, [&](const ArrayIndex& tile, const std::function<ArrayIndex()>& next_tile) {
    ArrayIndex at = tile, next;
    if (space.fetches) next = next_tile();
    const LaneIndex tile_across = at.digits[space.across], tile_along = at.digits.back();
    along_digit("across", tile_across, space.tile_across, across, [&](const LaneIndex& row, const LaneIndex& down) {
      along_digit("along", tile_along, space.tile_along, along, [&](const LaneIndex& column, const LaneIndex& right) {
        if (space.fetches) FetchPart(e, space, next, down, right);
        std::vector<ArrayIndex> rows, columns;
        const LaneIndex lanes_across = row.AndNeighbours(), lanes_along = column.AndNeighbours();
        for (int64_t k = 0; k < space.lanes; ++k) {
          at.digits[space.across] = lanes_across;
          at.digits.back() = indices.Add(column, indices.Constant(k));
          columns.push_back(at);
          at.digits[space.across] = indices.Add(row, indices.Constant(k));
          at.digits.back() = lanes_along;
          rows.push_back(at);
        }
        for (const Instruction* t : space.turned) TurnBlock(e, t, columns, rows);
        for (const ArrayIndex& r : rows)
          if (status.ok()) status = point(e, r);
      });
    });
  });
  if (status.ok()) status = e.status();
  return status;
}

}  // namespace strop
