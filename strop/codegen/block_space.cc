#include "strop/codegen/block_space.h"

#include <algorithm>
#include <bit>

#include "strop/codegen/dim_groups.h"

namespace strop {
namespace {

using V = llvm::Value*;

constexpr int kMinLanes = 4;          // shorter sides are not worth turning
constexpr int64_t kShort = 8;         // sides that strided reads and interleaved stores do better
constexpr int kMaxLanes = 32;         // vectors of a block: all registers
constexpr int kMaxLanesOfBytes = 16;  // turning more takes longer than it saves
constexpr int64_t kLine = 64;         // bytes of a cache line
constexpr int64_t kTile = 64;         // elements of a tile's side
constexpr int64_t kTileAcross = 128;  // and along the rows that are read, of those that are stored past the caches
// Rows that are a multiple of a page apart find few places in the caches: 2048x2048 floats took half the time, and
// 1024x1024 two thirds of it, when they were stored past them. 1536x1536 took more.
constexpr int64_t kPage = 4096, kStreamedBytesOfPages = int64_t{8} << 20;
constexpr int64_t kTaskBytes = int64_t{256} << 10;
constexpr int64_t kMaxTasks = 4096;

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

// Each stage rotates the bits of (row, column) by one: after log2(lanes) of them rows and columns have changed places.
void Turn(VectorBuilder& b, std::vector<V>& rows) {
  const size_t n = rows.size();
  const bool bits = rows[0]->getType()->getScalarType()->isIntegerTy(1);
  if (bits)
    for (V& v : rows) v = b.ZExtOrTrunc(v, 8);
  for (size_t stage = 1; stage < n; stage *= 2) {
    std::vector<V> next;
    for (size_t i = 0; i < n / 2; ++i) {
      next.push_back(b.Zip(rows[i], rows[i + n / 2], false));
      next.push_back(b.Zip(rows[i], rows[i + n / 2], true));
    }
    rows = std::move(next);
  }
  if (bits)
    for (V& v : rows) v = b.ZExtOrTrunc(v, 1);
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
  if (side <= kShort && side < PreferredLanes(body, vector_bytes)) return space;
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
  // A tile writes whole cache lines, and no more than one beside another: the rows that are read are few, and each is
  // read far, as the processor expects it. (Square tiles of 2048x2048 took twice as long: strides of a power of two
  // leave a tile few places in the caches.)
  const int64_t row = space.sizes.back() * bytes;
  const KernelCost cost = CostOf(body);
  space.streams = lanes * bytes >= kLine && row % kLine == 0 &&
                  (KernelFrame::PaysToStream(cost) || (row % kPage == 0 && cost.bytes >= kStreamedBytesOfPages));
  const auto tile_of = [&](int64_t tile, int64_t size) { return std::min(tile, (size + lanes - 1) / lanes * lanes); };
  space.tile_across = tile_of(space.streams ? kTileAcross : kTile, space.sizes[space.across]);
  space.tile_along = tile_of(space.streams ? lanes : kTile, space.sizes.back());
  return space;
}

Status WalkBlocks(KernelFrame& frame, const BlockSpace& space, const KernelCost& cost,
                  const KernelFrame::PointFn& point, int64_t* num_tasks) {
  VectorBuilder& b = frame.b();
  LoopScopes& scopes = frame.scopes();
  ElementalEmitter& e = frame.Emitter(space.lanes);
  IndexBuilder& indices = e.indices();
  const int64_t across = space.sizes[space.across], along = space.sizes.back();
  // One tile after the other along the rows that are written, or along those that are read.
  std::vector<size_t> order;
  for (size_t d = 0; d < space.sizes.size(); ++d)
    if (d != space.across || !space.streams) order.push_back(d);
  if (space.streams) order.push_back(space.across);
  Int64Vector sizes = space.sizes, tiles;
  sizes[space.across] = (across + space.tile_across - 1) / space.tile_across;
  sizes.back() = (along + space.tile_along - 1) / space.tile_along;
  for (size_t d : order) tiles.push_back(sizes[d]);
  int64_t units = 1;
  for (int64_t n : tiles) units *= n;
  const int64_t wanted = std::clamp<int64_t>(cost.bytes / kTaskBytes, 1, std::min(units, kMaxTasks));
  const int64_t units_per_task = (units + wanted - 1) / wanted;
  *num_tasks = (units + units_per_task - 1) / units_per_task;

  Status status;
  // The blocks of a tile along one digit; fn gets where a block begins.
  const auto along_digit = [&](const char* name, const LaneIndex& tile, int64_t tile_size, int64_t size,
                               const std::function<void(const LaneIndex&)>& fn) {
    const LaneIndex first = indices.Mul(tile, tile_size);
    V end = b.ir().CreateAdd(first.base, b.I64(tile_size));
    if (size % tile_size != 0) end = b.Binary(llvm::Intrinsic::smin, end, b.I64(size));
    scopes.Loop(name, first.base, end, space.lanes, [&](V i) {
      LaneIndex begin = indices.Counter(i, scopes.current(), 0, space.lanes);
      if (size % space.lanes != 0)
        begin = indices.Counter(b.Binary(llvm::Intrinsic::smin, i, b.I64(size - space.lanes)), scopes.current(), 0, 1);
      fn(begin);
    });
  };
  V begin = b.ir().CreateMul(frame.task_begin(), b.I64(units_per_task));
  V end = b.Binary(llvm::Intrinsic::smin, b.ir().CreateMul(frame.task_end(*num_tasks), b.I64(units_per_task)),
                   b.I64(units));
  scopes.Loop("tiles", begin, end, 1, [&](V unit) {
    const ArrayIndex flat{{indices.Counter(unit, scopes.current(), 0, 1)}, {units}};
    const ArrayIndex tile = indices.Refactor(flat, tiles);
    ArrayIndex at;
    at.sizes = space.sizes;
    at.digits.resize(order.size());
    for (size_t k = 0; k < order.size(); ++k) at.digits[order[k]] = tile.digits[k];
    const LaneIndex tile_across = at.digits[space.across], tile_along = at.digits.back();
    along_digit("across", tile_across, space.tile_across, across, [&](const LaneIndex& row) {
      along_digit("along", tile_along, space.tile_along, along, [&](const LaneIndex& column) {
        std::vector<ArrayIndex> rows, columns;
        LaneIndex lanes_across = row, lanes_along = column;
        lanes_across.stride = lanes_along.stride = 1;
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
