#include "strop/spmd/local_op.h"

#include <algorithm>

#include "strop/spmd/custom_call.h"
#include "strop/spmd/exchange.h"

namespace strop::spmd {
namespace {

bool Has(const Dims& dims, int64_t d) { return std::find(dims.begin(), dims.end(), d) != dims.end(); }

// The axes along which dimension d of operand k is cut.
Axes AxesOf(const LocalOp& op, int64_t k, int64_t d) {
  return SpecOf(op.values.mesh(), op.rule, op.rule.operands[k], op.axes).dims[d];
}

bool IsUneven(const LocalOp& op, int64_t k, int64_t d) {
  return op.wholes[k].dim(d) % op.values.mesh().SizeOf(AxesOf(op, k, d)) != 0;
}

// Padding of these dimensions of operand k becomes `fill`.
void MaskDims(LocalOp& op, int64_t k, const Dims& dims, Instruction* fill) {
  for (int64_t d : dims)
    if (op.operands[k] && IsUneven(op, k, d))
      op.operands[k] = op.values.resharder().Mask(op.b, op.operands[k], op.wholes[k], AxesOf(op, k, d), d, fill);
}

Axes ReducedAxes(const LocalOp& op) {
  Axes out;
  for (size_t f = 0; f < op.axes.size(); ++f)
    if (op.rule.factors[f].kind == FactorKind::Reduction)
      for (uint8_t axis : op.axes[f]) out.push_back(axis);
  return out;
}

void LocalDot(LocalOp& op) {
  const auto& a = op.i.attrs<DotAttrs>();
  MaskDims(op, 0, a.lhs_contracting, op.b.Scalar(op.wholes[0].type(), 0));
  MaskDims(op, 1, a.rhs_contracting, op.b.Scalar(op.wholes[1].type(), 0));
}

bool IsJoined(const Instruction& i, const Rule& rule, size_t factor) {
  return i.op() == Op::Reduce && rule.factors[factor].kind == FactorKind::NeedReplication;
}

Axes JoinedAxes(const Instruction& i, const Rule& rule, const FactorAxes& axes) {
  Axes out;
  for (size_t f = 0; f < axes.size(); ++f)
    if (IsJoined(i, rule, f))
      for (uint8_t axis : axes[f]) out.push_back(axis);
  return out;
}

// Where no collective knows the combiner (argmax), devices reduce what they have, send that to all, and reduce again.
void JoinReductions(LocalOp& op, const Axes& axes) {
  Builder& b = op.b;
  Computation* called[] = {op.i.to_apply()};
  Instruction* local = b.Make(Op::Reduce, op.operands, DimensionsAttrs{op.i.dimensions()}, called, nullptr);
  if (!local) return;
  const size_t inputs = op.operands.size() / 2;
  std::vector<Instruction*> operands;
  for (size_t k = 0; k < inputs; ++k) {
    Instruction* part = inputs == 1 ? local : b.GetTupleElement(local, static_cast<int64_t>(k));
    if (!part) return;
    Int64Vector dims = part->shape().dims();
    dims.insert(dims.begin(), 1);
    operands.push_back(op.values.resharder().Gather(b, b.Reshape(part, dims), axes, 0));
    if (!operands.back()) return;
  }
  operands.insert(operands.end(), op.operands.begin() + static_cast<int64_t>(inputs), op.operands.end());
  op.instead = b.Make(Op::Reduce, operands, DimensionsAttrs{Dims{0}}, called, nullptr);
}

// Parts begin with what changes nothing. Of minimum, maximum, and, or the init value itself may come in several times.
void LocalReduce(LocalOp& op) {
  if (const Axes joined = JoinedAxes(op.i, op.rule, op.axes); !joined.empty()) return JoinReductions(op, joined);
  const Axes reduced = ReducedAxes(op);
  if (reduced.empty()) return;  // padding stays in padding
  const Dims& dims = op.i.dimensions();
  op.combiner = CombinerOf(op.i);
  Instruction*& init = op.operands[1];
  if (op.combiner == Op::Add || op.combiner == Op::Multiply) {
    const double nothing = op.combiner == Op::Add ? 0 : 1;
    if (!init->IsSplat(nothing)) {
      op.joined_after = init;
      init = op.b.Scalar(op.wholes[0].type(), nothing);
    }
  }
  MaskDims(op, 0, dims, init);
}

// Groups are the first factor of a convolution that has them.
void LocalConvolution(LocalOp& op) {
  ConvolutionAttrs attrs = op.i.attrs<ConvolutionAttrs>();
  int64_t& groups = attrs.batch_group_count > 1 ? attrs.batch_group_count : attrs.feature_group_count;
  if (groups == 1 || op.axes[0].empty()) return;
  const int64_t pieces = op.values.mesh().SizeOf(op.axes[0]);
  groups = (groups + pieces - 1) / pieces;
  op.i.set_attrs(std::move(attrs));
}

void LocalSlice(LocalOp& op) {
  SliceAttrs attrs = op.i.attrs<SliceAttrs>();
  for (int64_t d = 0; d < op.wholes[0].rank(); ++d)
    if (!AxesOf(op, 0, d).empty()) attrs.slice[d].limit = op.operands[0]->shape().dim(d);
  op.i.set_attrs(std::move(attrs));
}

Instruction* FirstOf(LocalOp& op, int64_t k, int64_t d) {
  return op.b.Make(Op::Multiply,
                   {op.values.resharder().Coordinate(op.b, AxesOf(op, k, d)),
                    op.b.Constant(Literal::ScalarOfInt(ElementType::S32, op.operands[k]->shape().dim(d)))});
}

// Where a slice of `size` elements of dimension d lies, s32[]: `start` is where its first one does in the device's
// piece and may be outside, `window` is the nearest place that is not.
struct SliceInPiece {
  Instruction *start, *window;
};

SliceInPiece FindSlice(LocalOp& op, Instruction* index, int64_t d, int64_t size) {
  auto number = [&](int64_t n) { return op.b.Constant(Literal::ScalarOfInt(ElementType::S32, n)); };
  const ElementType type = index->shape().type();
  // As the op does with the whole dimension. Sizes fit in s32, an index may not, before.
  Instruction* clamped = op.b.Make(Op::Clamp, {op.b.Constant(Literal::ScalarOfInt(type, 0)), index,
                                               op.b.Constant(Literal::ScalarOfInt(type, op.wholes[0].dim(d) - size))});
  Instruction* start = op.b.Make(Op::Subtract, {op.b.Convert(clamped, ElementType::S32), FirstOf(op, 0, d)});
  return {start, op.b.Make(Op::Clamp, {number(0), start, number(op.operands[0]->shape().dim(d) - size)})};
}

// pred of `dims`: is element (first + i, along dimension d) at least zero and below `limit`?
Instruction* IsWithin(Builder& b, Instruction* first, int64_t limit, int64_t d, const Int64Vector& dims) {
  auto all = [&](int64_t n) { return b.Broadcast(b.Constant(Literal::ScalarOfInt(ElementType::S32, n)), dims, {}); };
  Instruction* index = b.Make(Op::Add, {b.Iota(Shape::Array(ElementType::S32, dims), d), b.Broadcast(first, dims, {})});
  return b.Make(Op::And,
                {b.Compare(index, all(0), CompareDirection::Ge), b.Compare(index, all(limit), CompareDirection::Lt)});
}

// value[.., i + by, ..] along dimension d, anything outside; `by` is s32[], not beyond the dimension's size.
Instruction* Shift(Builder& b, Instruction* value, Instruction* by, int64_t d) {
  const Int64Vector dims = value->shape().dims();
  if (dims[d] == 1) return value;
  PadAttrs pad;
  pad.padding.resize(dims.size());
  pad.padding[d] = {.low = dims[d], .high = dims[d]};
  auto number = [&](int64_t n) { return b.Constant(Literal::ScalarOfInt(ElementType::S32, n)); };
  std::vector<Instruction*> operands = {b.Make(Op::Pad, {value, b.Scalar(value->shape().type(), 0)}, std::move(pad))};
  for (int64_t k = 0; k < static_cast<int64_t>(dims.size()); ++k)
    operands.push_back(k == d ? b.Make(Op::Add, {by, number(dims[d])}) : number(0));
  return b.Make(Op::DynamicSlice, operands, DynamicSliceAttrs{Dims(dims.begin(), dims.end())}, {}, nullptr);
}

// A dimension that is cut and not read from end to end: each device reads what it has of the slice, of one dimension
// at most (CanCut); the others are whole.
void LocalDynamicSlice(LocalOp& op) {
  DynamicSliceAttrs attrs = op.i.attrs<DynamicSliceAttrs>();
  const Dims wanted = attrs.sizes;
  int64_t along = -1;
  for (int64_t d = 0; d < op.wholes[0].rank(); ++d) {
    if (AxesOf(op, 0, d).empty()) continue;
    if (wanted[d] != op.wholes[0].dim(d)) {
      along = d;
      continue;
    }
    attrs.sizes[d] = op.operands[0]->shape().dim(d);
    op.operands[1 + d] = op.b.Constant(Literal::ScalarOfInt(op.operands[1 + d]->shape().type(), 0));
  }
  op.i.set_attrs(attrs);
  if (along < 0) return;
  const auto [start, window] = FindSlice(op, op.operands[1 + along], along, wanted[along]);
  if (!start || !window) return;
  std::vector<Instruction*> operands = op.operands;
  operands[1 + along] = op.b.Convert(window, op.operands[1 + along]->shape().type());
  Instruction* read = op.b.Make(Op::DynamicSlice, operands, std::move(attrs), {}, nullptr);
  if (!read) return;
  op.instead = Shift(op.b, read, op.b.Make(Op::Subtract, {start, window}), along);
  op.kept = IsWithin(op.b, start, op.operands[0]->shape().dim(along), along, read->shape().dims());
}

// Each device writes what of the update falls into its piece.
void LocalDynamicUpdateSlice(LocalOp& op) {
  const Shape update = op.wholes[1];
  std::vector<std::pair<int64_t, Instruction*>> moved;  // (dimension, by how much the update lies off the window)
  for (int64_t d = 0; d < op.wholes[0].rank(); ++d) {
    if (AxesOf(op, 0, d).empty()) continue;
    Instruction*& index = op.operands[2 + d];
    const ElementType type = index->shape().type();
    if (update.dim(d) == op.wholes[0].dim(d)) {
      index = op.b.Constant(Literal::ScalarOfInt(type, 0));
      continue;
    }
    const auto [start, window] = FindSlice(op, index, d, update.dim(d));
    if (!start || !window) return;
    index = op.b.Convert(window, type);
    moved.push_back({d, op.b.Make(Op::Subtract, {window, start})});
  }
  if (moved.empty()) return;
  // What is there already stays, where nothing of the update comes.
  std::vector<Instruction*> operands = {op.operands[0]};
  operands.insert(operands.end(), op.operands.begin() + 2, op.operands.end());
  const Int64Vector dims = op.operands[1]->shape().dims();
  Instruction* present =
      op.b.Make(Op::DynamicSlice, operands, DynamicSliceAttrs{Dims(dims.begin(), dims.end())}, {}, nullptr);
  Instruction* written = op.operands[1];
  Instruction* kept = nullptr;
  for (const auto& [d, by] : moved) {
    if (!present || !written || !by) return;
    written = Shift(op.b, written, by, d);
    Instruction* within = IsWithin(op.b, by, dims[d], d, dims);
    kept = kept ? op.b.Make(Op::And, {kept, within}) : within;
  }
  op.operands[1] = op.b.Make(Op::Select, {kept, written, present});
}

// The component of index vectors that names dimension d of the array; -1 if none does.
int64_t ComponentOf(const Dims& map, int64_t d) {
  const auto found = std::find(map.begin(), map.end(), d);
  return found == map.end() ? -1 : found - map.begin();
}

// Of indices [.., n] along `vector_dim`: component c less `offset`, the others as they are.
Instruction* Shifted(Builder& b, Instruction* indices, int64_t vector_dim, int64_t c, Instruction* offset) {
  const Int64Vector& dims = indices->shape().dims();
  Instruction* by = b.Broadcast(b.Convert(offset, indices->shape().type()), dims, {});
  if (vector_dim < indices->shape().rank() && dims[vector_dim] > 1) {
    Instruction* component = b.Iota(Shape::Array(ElementType::S32, dims), vector_dim);
    Instruction* chosen = b.Compare(
        component, b.Broadcast(b.Constant(Literal::ScalarOfInt(ElementType::S32, c)), dims, {}), CompareDirection::Eq);
    by = b.Make(Op::Select, {chosen, by, b.Splat(indices->shape().type(), 0, dims)});
  }
  return b.Make(Op::Subtract, {indices, by});
}

// Rows of a table that lies in pieces: each device gives the rows that it has, zeros for the others.
void GatherFromPieces(LocalOp& op, int64_t d) {
  const auto& a = op.i.attrs<GatherAttrs>();
  Instruction*& indices = op.operands[1];
  if (Bits(indices->shape().type()) < 32) indices = op.b.Convert(indices, ElementType::S32);
  const ElementType type = indices->shape().type();
  auto number = [&](int64_t n) { return op.b.Constant(Literal::ScalarOfInt(type, n)); };
  // An index beyond the table means its last row, one below zero the first.
  indices = op.b.Make(Op::Clamp, {number(0), indices, number(op.wholes[0].dim(d) - 1)});
  indices = Shifted(op.b, indices, a.index_vector_dim, 0, FirstOf(op, 0, d));
  if (!indices) return;
  // The index vectors have one component: without it they have the batch dimensions of the result.
  Int64Vector batch;
  for (int64_t k = 0; k < indices->shape().rank(); ++k)
    if (k != a.index_vector_dim) batch.push_back(indices->shape().dim(k));
  const Shape result = op.values.mesh().ShardShape(op.i.shape(), ResultSpec(op.values.mesh(), op.rule, 0, op.axes));
  Dims spread;
  for (int64_t k = 0; k < result.rank(); ++k)
    if (!Has(a.offset_dims, k)) spread.push_back(k);
  Instruction* row = op.b.Reshape(indices, batch);
  auto spread_number = [&](int64_t n) { return op.b.Broadcast(number(n), batch, {}); };
  Instruction* inside =
      op.b.Make(Op::And, {op.b.Compare(row, spread_number(0), CompareDirection::Ge),
                          op.b.Compare(row, spread_number(op.operands[0]->shape().dim(d)), CompareDirection::Lt)});
  op.kept = op.b.Broadcast(inside, result.dims(), std::move(spread));
}

void LocalGather(LocalOp& op) {
  GatherAttrs attrs = op.i.attrs<GatherAttrs>();
  for (int64_t d = 0; d < op.wholes[0].rank(); ++d) {
    if (AxesOf(op, 0, d).empty() || Has(attrs.operand_batching_dims, d)) continue;
    if (Has(attrs.collapsed_slice_dims, d)) {
      GatherFromPieces(op, d);
    } else {
      attrs.slice_sizes[d] = op.operands[0]->shape().dim(d);
    }
  }
  attrs.indices_are_sorted = false;
  op.i.set_attrs(std::move(attrs));
}

// Updates of rows that a device has not fall outside of its piece. Where updates lie apart, each device adds its own,
// one of them to the array and the others to zeros.
void LocalScatter(LocalOp& op) {
  ScatterAttrs attrs = op.i.attrs<ScatterAttrs>();
  const int64_t arrays = (op.i.operand_count() - 1) / 2;
  Instruction*& indices = op.operands[arrays];
  for (int64_t d : attrs.inserted_window_dims) {
    if (AxesOf(op, 0, d).empty()) continue;
    const ElementType type = indices->shape().type();
    if (Bits(type) < 32) indices = op.b.Convert(indices, ElementType::S32);
    indices = Shifted(op.b, indices, attrs.index_vector_dim, ComponentOf(attrs.scatter_dims_to_operand_dims, d),
                      FirstOf(op, 0, d));
  }
  attrs.indices_are_sorted = false;
  op.i.set_attrs(std::move(attrs));
  const Axes reduced = ReducedAxes(op);
  if (reduced.empty()) return;
  op.combiner = CombinerOf(op.i);
  Instruction*& array = op.operands[0];
  const double nothing = op.combiner == Op::Multiply ? 1 : 0;
  const bool idempotent = op.combiner != Op::Add && op.combiner != Op::Multiply;
  if (idempotent || array->IsSplat(nothing)) return;
  const Int64Vector dims = array->shape().dims();
  Instruction* first = op.b.Broadcast(op.values.resharder().IsFirst(op.b, reduced), dims, {});
  array = op.b.Make(Op::Select, {first, array, op.b.Splat(array->shape().type(), nothing, dims)});
}

bool IsIn(const std::vector<TensorFactors>& tensors, int64_t factor) {
  for (const TensorFactors& dims : tensors)
    for (const auto& factors : dims)
      if (std::find(factors.begin(), factors.end(), factor) != factors.end()) return true;
  return false;
}

// Is a dimension of the array, cut along this factor, one that is not read or written from end to end, and that no
// index names?
bool IsAtZero(const Rule& rule, int64_t factor, const Dims& collapsed, const Dims& named) {
  for (int64_t d : collapsed) {
    const auto& factors = rule.operands[0][d];
    if (std::find(factors.begin(), factors.end(), factor) != factors.end() && ComponentOf(named, d) < 0) return true;
  }
  return false;
}

bool IsOnlyReduction(const Rule& rule, int64_t factor) {
  for (size_t f = 0; f < rule.factors.size(); ++f)
    if (static_cast<int64_t>(f) != factor && rule.factors[f].kind == FactorKind::Reduction) return false;
  return true;
}

}  // namespace

bool CanCut(const Instruction& i, const Rule& rule, const Values& values, int64_t factor, int64_t pieces) {
  const Factor& f = rule.factors[factor];
  if (IsExchanged(i, rule, factor)) return CanExchange(i, rule, values, factor, pieces);
  if (i.op() == Op::DynamicUpdateSlice && f.kind == FactorKind::NeedReplication) {
    const Shape &array = values.Of(*i.operand(0)).whole, &update = values.Of(*i.operand(1)).whole;
    const int64_t d = factor;  // the rule has one a dimension
    return array.dim(d) % pieces == 0 && update.dim(d) <= array.dim(d) / pieces;
  }
  if (IsJoined(i, rule, factor)) return f.size % pieces == 0;
  if (i.op() == Op::DynamicSlice && f.kind == FactorKind::Reduction)
    return f.size % pieces == 0 && i.shape().dim(factor) <= f.size / pieces && IsOnlyReduction(rule, factor);
  if (f.kind != FactorKind::PassThrough && f.kind != FactorKind::Reduction) return false;
  // Where sizes of a reshape diverge, a factor is on one side only.
  if (i.op() == Op::Reshape && !(IsIn(rule.operands, factor) && IsIn(rule.results, factor))) return false;
  if (i.op() == Op::Gather) {
    const auto& a = i.attrs<GatherAttrs>();
    if (IsAtZero(rule, factor, a.collapsed_slice_dims, a.start_index_map)) return false;
  } else if (i.op() == Op::Scatter) {
    const auto& a = i.attrs<ScatterAttrs>();
    if (IsAtZero(rule, factor, a.inserted_window_dims, a.scatter_dims_to_operand_dims)) return false;
  }
  // A gather whose index vectors name several dimensions would have to clamp each before it is shifted.
  if (i.op() == Op::Gather && f.kind == FactorKind::Reduction) {
    const auto& a = i.attrs<GatherAttrs>();
    const Shape &array = values.Of(*i.operand(0)).whole, &indices = values.Of(*i.operand(1)).whole;
    if (a.index_vector_dim < indices.rank() && indices.dim(a.index_vector_dim) != 1) return false;
    if (i.shape().type() == ElementType::Pred) return false;
    for (int64_t d = 0; d < array.rank(); ++d)
      if (!Has(a.collapsed_slice_dims, d) && !Has(a.operand_batching_dims, d) && a.slice_sizes[d] != array.dim(d))
        return false;
  }
  if (f.size % pieces == 0) return true;
  // Padding must not reach what is not padding: of what is reduced, that is seen to for these.
  const bool masked = i.op() == Op::Dot || i.op() == Op::Reduce || i.op() == Op::Gather;
  if (i.op() == Op::CustomCall || (f.kind == FactorKind::Reduction && !masked)) return false;
  auto alone = [&](const std::vector<TensorFactors>& tensors) {
    for (const TensorFactors& dims : tensors)
      for (const auto& factors : dims)
        if (factors.size() > 1 && std::find(factors.begin(), factors.end(), factor) != factors.end()) return false;
    return true;
  };
  return alone(rule.operands) && alone(rule.results);
}

double BytesToJoin(const Instruction& i, const Rule& rule, const Mesh& mesh, const FactorAxes& axes) {
  const auto n = static_cast<double>(mesh.SizeOf(JoinedAxes(i, rule, axes)));
  double bytes = 0;
  const std::vector<Shape> leaves = i.shape().Leaves();
  for (size_t k = 0; k < leaves.size() && n > 1; ++k)
    bytes += static_cast<double>(mesh.ShardShape(leaves[k], ResultSpec(mesh, rule, k, axes)).byte_size()) * (n - 1);
  return bytes;
}

Status MakeLocal(LocalOp& op) {
  ExchangeOperands(op);
  STROP_TRY(op.b.status());
  switch (op.i.op()) {
    case Op::Dot: LocalDot(op); break;
    case Op::Reduce: LocalReduce(op); break;
    case Op::Convolution: LocalConvolution(op); break;
    case Op::Slice: LocalSlice(op); break;
    case Op::DynamicSlice: LocalDynamicSlice(op); break;
    case Op::DynamicUpdateSlice: LocalDynamicUpdateSlice(op); break;
    case Op::Gather: LocalGather(op); break;
    case Op::Scatter: LocalScatter(op); break;
    case Op::CustomCall: ResizeConstraints(op.i, op.operands); break;
    default: break;
  }
  return op.b.status();
}

}  // namespace strop::spmd
