#include "strop/spmd/reshard.h"

#include <algorithm>

#include "strop/spmd/halo.h"

namespace strop::spmd {
namespace {

using Kind = Move::Kind;

Axes From(const Axes& axes, size_t first) { return Axes(axes.begin() + first, axes.end()); }

ElementType UnsignedOf(ElementType type) {
  switch (Bits(type)) {
    case 8: return ElementType::U8;
    case 16: return ElementType::U16;
    case 32: return ElementType::U32;
    default: return ElementType::U64;
  }
}

// Axes that follow each other in the grid are one digit of a place's number.
std::vector<Axis> DigitsOf(const Mesh& mesh, const Axes& axes) {
  std::vector<Axis> digits;
  for (size_t first = 0; first < axes.size();) {
    size_t last = first;
    int64_t size = mesh.axes()[axes[first]].size;
    while (last + 1 < axes.size() && axes[last + 1] == axes[last] + 1) size *= mesh.axes()[axes[++last]].size;
    digits.push_back({size, mesh.axes()[axes[last]].stride});
    first = last + 1;
  }
  return digits;
}

Instruction* PaddedTo(Builder& b, Instruction* value, int64_t d, int64_t size) {
  const Shape& shape = value->shape();
  if (shape.dim(d) >= size) return value;
  PadAttrs pad;
  pad.padding.resize(shape.rank());
  pad.padding[d].high = size - shape.dim(d);
  return b.Make(Op::Pad, {value, b.Scalar(shape.type(), 0)}, std::move(pad));
}

// The first `size` elements of dimension d.
Instruction* Beginning(Builder& b, Instruction* value, int64_t d, int64_t size) {
  const Shape& shape = value->shape();
  if (shape.dim(d) == size) return value;
  Dims start(shape.rank(), 0), limit(shape.dims().begin(), shape.dims().end()), stride(shape.rank(), 1);
  limit[d] = size;
  return b.Slice(value, start, limit, stride);
}

}  // namespace

Instruction* Resharder::Reshard(Builder& b, Instruction* shard, const Shape& whole, const Spec& from, const Spec& to,
                                Op combiner, Trail* trail) {
  Spec before = from;
  for (const Move& move : PlanReshard(mesh_, whole, from, to)) {
    if (shard) shard = Emit(b, shard, whole, before, move, combiner);
    before = move.after;
    if (shard && trail) trail->emplace_back(before, shard);
    ++moves_;
  }
  return shard;
}

Instruction* Resharder::Emit(Builder& b, Instruction* shard, const Shape& whole, const Spec& before, const Move& move,
                             Op combiner) {
  switch (move.kind) {
    case Kind::Slice: return Slice(b, shard, whole, move);
    case Kind::AllGather: return AllGather(b, shard, whole, move);
    case Kind::SumOfPieces: return SumOfPieces(b, shard, whole, before, move);
    case Kind::AllToAll: return AllToAll(b, shard, whole, move);
    case Kind::Permute: return Permute(b, shard, before, move);
    case Kind::FirstPart: return FirstPart(b, shard, move.axes);
    case Kind::Refine: return Refine(b, shard, whole, before, move);
    case Kind::Coarsen: return Coarsen(b, shard, whole, before, move);
    case Kind::Place: return Place(b, shard, move.dim, mesh_.ShardShape(whole, move.after).dim(move.dim), move.axes);
    case Kind::AllReduce:
    case Kind::ReduceScatter: {
      CollectiveAttrs attrs = mesh_.GroupsAlong(move.axes, replicas_);
      Shape shape = shard->shape().WithoutLayout();
      const bool scatter = move.kind == Kind::ReduceScatter;
      if (scatter) {
        attrs.dimensions = {move.dim};
        attrs.has_dimensions = true;
        shape.set_dim(move.dim, shape.dim(move.dim) / mesh_.SizeOf(move.axes));
      }
      Computation* called[] = {Combiner(*b.computation()->module(), combiner, shape.type())};
      return b.Make(scatter ? Op::ReduceScatter : Op::AllReduce, std::span(&shard, 1), std::move(attrs), called,
                    &shape);
    }
  }
  return nullptr;
}

Instruction* Resharder::Slice(Builder& b, Instruction* shard, const Shape& whole, const Move& move) {
  const int64_t d = move.dim, pieces = mesh_.SizeOf(move.axes);
  const Shape after = mesh_.ShardShape(whole, move.after);
  const Shape& shape = shard->shape();
  shard = PaddedTo(b, shard, d, after.dim(d) * pieces);
  if (!shard) return nullptr;
  Dims sizes(shard->shape().dims().begin(), shard->shape().dims().end());
  sizes[d] = after.dim(d);
  Instruction* zero = b.Constant(Literal::ScalarOfInt(ElementType::S32, 0));
  Instruction* start = b.Make(
      Op::Multiply, {Coordinate(b, move.axes), b.Constant(Literal::ScalarOfInt(ElementType::S32, after.dim(d)))});
  std::vector<Instruction*> operands = {shard};
  for (int64_t k = 0; k < shape.rank(); ++k) operands.push_back(k == d ? start : zero);
  return b.Make(Op::DynamicSlice, operands, DynamicSliceAttrs{std::move(sizes)}, {}, nullptr);
}

Instruction* Resharder::Cut(Builder& b, Instruction* value, int64_t d, Instruction* start, int64_t size) {
  Dims sizes(value->shape().dims().begin(), value->shape().dims().end());
  sizes[d] = size;
  std::vector<Instruction*> operands = {value};
  for (int64_t k = 0; k < value->shape().rank(); ++k)
    operands.push_back(k == d ? start : b.Constant(Literal::ScalarOfInt(ElementType::S32, 0)));
  return b.Make(Op::DynamicSlice, operands, DynamicSliceAttrs{std::move(sizes)}, {}, nullptr);
}

Instruction* Resharder::Refine(Builder& b, Instruction* shard, const Shape& whole, const Spec& before,
                               const Move& move) {
  const int64_t d = move.dim, size = mesh_.ShardShape(whole, move.after).dim(d);
  const Span span = SpanToRefine(mesh_, whole, move);
  Instruction* pieces = TakeSpan(b, *this, shard, whole.dim(d), d, before.dims[d], span, nullptr);
  if (!pieces) return nullptr;
  Instruction* start =
      b.Make(Op::Multiply, {Coordinate(b, move.axes), b.Constant(Literal::ScalarOfInt(ElementType::S32, size))});
  return Cut(b, pieces, d, start, size);
}

Instruction* Resharder::Coarsen(Builder& b, Instruction* shard, const Shape& whole, const Spec& before,
                                const Move& move) {
  const int64_t d = move.dim, size = mesh_.ShardShape(whole, before).dim(d);
  const int64_t large = mesh_.ShardShape(whole, move.after).dim(d), more = size * mesh_.SizeOf(move.axes) - large;
  const Span span = SpanToCoarsen(mesh_, whole, before, move);
  if (more > 0) {
    auto number = [&](int64_t n) { return b.Constant(Literal::ScalarOfInt(ElementType::S32, n)); };
    Instruction* around = TakeSpan(b, *this, shard, whole.dim(d), d, before.dims[d], span, nullptr);
    if (!around) return nullptr;
    Instruction* back = b.Make(Op::Multiply, {Coordinate(b, move.after.dims[d]), number(more)});
    shard = Cut(b, around, d, b.Make(Op::Subtract, {number(-span.offset), back}), size);
  }
  Instruction* all = shard ? Gather(b, shard, move.axes, d) : nullptr;
  return all ? Beginning(b, all, d, large) : nullptr;
}

Instruction* Resharder::Gather(Builder& b, Instruction* value, const Axes& axes, int64_t d) {
  CollectiveAttrs attrs = mesh_.GroupsAlong(axes, replicas_);
  attrs.dimensions = {d};
  attrs.has_dimensions = true;
  Shape shape = value->shape().WithoutLayout();
  shape.set_dim(d, shape.dim(d) * mesh_.SizeOf(axes));
  return b.MakeWithShape(Op::AllGather, shape, {value}, std::move(attrs));
}

Instruction* Resharder::AllGather(Builder& b, Instruction* shard, const Shape& whole, const Move& move) {
  Instruction* all = Gather(b, shard, move.axes, move.dim);
  return all ? Beginning(b, all, move.dim, mesh_.ShardShape(whole, move.after).dim(move.dim)) : nullptr;
}

// The device's piece where it belongs among `all` elements, zeros elsewhere.
Instruction* Resharder::Place(Builder& b, Instruction* piece, int64_t d, int64_t all, const Axes& axes) {
  const int64_t size = piece->shape().dim(d);
  auto number = [&](int64_t n) { return b.Constant(Literal::ScalarOfInt(ElementType::S32, n)); };
  // What lies beyond the end comes after it, and is cut off.
  Int64Vector dims = piece->shape().dims();
  dims[d] = all + size;
  Instruction* start = b.Make(Op::Minimum, {b.Make(Op::Multiply, {Coordinate(b, axes), number(size)}), number(all)});
  std::vector<Instruction*> operands = {b.Splat(piece->shape().type(), 0, dims), piece};
  for (size_t k = 0; k < dims.size(); ++k) operands.push_back(k == static_cast<size_t>(d) ? start : number(0));
  Instruction* placed = b.Make(Op::DynamicUpdateSlice, operands, NoAttrs{}, {}, nullptr);
  return placed ? Beginning(b, placed, d, all) : nullptr;
}

Instruction* Resharder::SumOfPieces(Builder& b, Instruction* shard, const Shape& whole, const Spec& before,
                                    const Move& move) {
  const ElementType type = shard->shape().type(), bits = UnsignedOf(type);
  Instruction* part = type == ElementType::Pred ? b.Convert(shard, bits) : b.BitcastConvert(shard, bits);
  const Shape after = mesh_.ShardShape(whole, move.after);
  for (int64_t d = 0; d < whole.rank() && part; ++d)
    if (before.dims[d] != move.after.dims[d])
      part = Place(b, part, d, after.dim(d), From(before.dims[d], move.after.dims[d].size()));
  if (!part) return nullptr;
  Computation* called[] = {Combiner(*b.computation()->module(), Op::Add, bits)};
  const Shape shape = part->shape();
  Instruction* sum =
      b.Make(Op::AllReduce, std::span(&part, 1), mesh_.GroupsAlong(move.axes, replicas_), called, &shape);
  if (!sum) return nullptr;
  return type == ElementType::Pred ? b.Convert(sum, type) : b.BitcastConvert(sum, type);
}

// Dimension `dim2` is cut into pieces for the devices, what comes from them is joined along `dim`:
//   [a, n*b] -> [a, n, b] -> exchange -> [n, a, b] -> [n*a, b]
Instruction* Resharder::AllToAll(Builder& b, Instruction* shard, const Shape& whole, const Move& move) {
  const int64_t n = mesh_.SizeOf(move.axes), i = move.dim, j = move.dim2;
  const Shape after = mesh_.ShardShape(whole, move.after);
  shard = PaddedTo(b, shard, j, after.dim(j) * n);
  if (!shard) return nullptr;
  Int64Vector apart;
  for (int64_t d = 0; d < shard->shape().rank(); ++d) {
    if (d == j) apart.push_back(n);
    apart.push_back(d == j ? shard->shape().dim(d) / n : shard->shape().dim(d));
  }
  Int64Vector joined = shard->shape().dims();
  joined[j] /= n;
  joined[i] *= n;
  Instruction* pieces = b.Reshape(shard, apart);
  if (!pieces) return nullptr;
  CollectiveAttrs attrs = mesh_.GroupsAlong(move.axes, replicas_);
  attrs.dimensions = {j};
  attrs.has_dimensions = true;
  Instruction* exchanged = b.MakeWithShape(Op::AllToAll, pieces->shape(), {pieces}, std::move(attrs));
  // The new dimension goes in front of dimension i.
  Dims permutation;
  for (int64_t d = 0; d < static_cast<int64_t>(apart.size()); ++d) {
    if (d == j) continue;
    if (d == (i < j ? i : i + 1)) permutation.push_back(j);
    permutation.push_back(d);
  }
  Instruction* all = exchanged ? b.Reshape(b.Transpose(exchanged, std::move(permutation)), joined) : nullptr;
  return all ? Beginning(b, all, i, after.dim(i)) : nullptr;
}

Instruction* Resharder::Permute(Builder& b, Instruction* shard, const Spec& before, const Move& move) {
  auto unused = [&](const Spec& spec) {
    Axes out;
    for (size_t i = 0; i < mesh_.axes().size(); ++i)
      if (!spec.Uses(static_cast<uint8_t>(i))) out.push_back(static_cast<uint8_t>(i));
    return out;
  };
  // The place that holds a tile: its coordinates, put where `before` has them.
  std::vector<std::pair<const Line*, const Line*>> digits;  // (of the target, of the source)
  for (size_t d = 0; d < before.dims.size(); ++d)
    digits.emplace_back(&LineAlong(move.after.dims[d]), &LineAlong(before.dims[d]));
  digits.emplace_back(&LineAlong(unused(move.after)), &LineAlong(unused(before)));
  std::vector<int64_t> target(mesh_.num_devices(), -1);
  for (int64_t place = 0; place < mesh_.num_devices(); ++place) {
    int64_t source = 0;
    for (const auto& [to, from] : digits) source += from->place[to->coordinate[place]];
    target[source] = place;
  }
  return Permuted(b, shard, target);
}

Instruction* Resharder::Permuted(Builder& b, Instruction* value, const std::vector<int64_t>& target) {
  PermuteAttrs attrs;
  attrs.channel_id = ChannelId(1);
  attrs.source_target_pairs.reserve(target.size());
  for (size_t place = 0; place < target.size(); ++place)
    if (target[place] >= 0)
      attrs.source_target_pairs.emplace_back(mesh_.DeviceAt(static_cast<int64_t>(place)),
                                             mesh_.DeviceAt(target[place]));
  if (!mesh_.order().empty()) std::sort(attrs.source_target_pairs.begin(), attrs.source_target_pairs.end());
  return b.MakeWithShape(Op::CollectivePermute, value->shape().WithoutLayout(), {value}, std::move(attrs));
}

const Resharder::Line& Resharder::LineAlong(const Axes& axes) {
  auto [found, is_new] = lines_.try_emplace(axes);
  Line& line = found->second;
  if (!is_new) return line;
  line.place.resize(mesh_.SizeOf(axes));
  line.coordinate.assign(mesh_.num_devices(), 0);
  for (const Axis& digit : DigitsOf(mesh_, axes))
    for (int64_t place = 0; place < mesh_.num_devices(); ++place)
      line.coordinate[place] = line.coordinate[place] * digit.size + place / digit.stride % digit.size;
  for (size_t c = 0; c < line.place.size(); ++c) line.place[c] = mesh_.PlaceAt(0, axes, static_cast<int64_t>(c));
  return line;
}

Instruction* Resharder::Send(Builder& b, Instruction* value, const Axes& axes,
                             const std::vector<std::pair<int64_t, int64_t>>& ways) {
  const Line& line = LineAlong(axes);
  std::vector<int64_t> step(line.place.size()), target(line.coordinate.size(), -1);
  std::vector<bool> sends(line.place.size(), false);
  for (const auto& [from, to] : ways) {
    step[from] = line.place[to] - line.place[from];
    sends[from] = true;
  }
  for (size_t place = 0; place < target.size(); ++place)
    if (const int64_t c = line.coordinate[place]; sends[c]) target[place] = static_cast<int64_t>(place) + step[c];
  ++moves_;
  return Permuted(b, value, target);
}

Instruction* Resharder::FirstPart(Builder& b, Instruction* shard, const Axes& axes) {
  const Int64Vector& dims = shard->shape().dims();
  return b.Make(Op::Select, {b.Broadcast(IsFirst(b, axes), dims, {}), shard, b.Splat(shard->shape().type(), 0, dims)});
}

Computation* Resharder::Combiner(Module& module, Op op, ElementType type) {
  if (type == ElementType::Pred && op == Op::Add) op = Op::Or;
  auto [found, is_new] = combiners_.try_emplace({op, type}, nullptr);
  if (!is_new) return found->second;
  Computation* combiner = module.AddComputation(op == Op::Add ? "sum" : std::string(Name(op)));
  Builder inner(combiner);
  Instruction* left = inner.Parameter(0, Shape::Scalar(type));
  combiner->set_root(inner.Make(op, {left, inner.Parameter(1, Shape::Scalar(type))}));
  return found->second = combiner;
}

// The place of this device in the grid, s32[].
Instruction* Resharder::OwnPlace(Builder& b) {
  Instruction*& place = places_[b.computation()];
  if (place) return place;
  Builder front(b.computation());
  front.set_insert_before(b.computation()->first());
  Instruction* device =
      front.Convert(front.MakeWithShape(Op::PartitionId, Shape::Scalar(ElementType::U32), {}), ElementType::S32);
  if (mesh_.order().empty()) return place = device;
  std::vector<int32_t> places(mesh_.order().size());
  for (size_t k = 0; k < places.size(); ++k) places[mesh_.order()[k]] = static_cast<int32_t>(k);
  return place = front.Reshape(front.Make(Op::DynamicSlice, {front.Constant(Literal::Vector<int32_t>(places)), device},
                                          DynamicSliceAttrs{{1}}),
                               {});
}

Instruction* Resharder::Coordinate(Builder& b, const Axes& axes) {
  Instruction*& made = coordinates_[{b.computation(), axes}];
  if (made) return made;
  Instruction* place = OwnPlace(b);
  Builder front(b.computation());
  front.set_insert_before(place->next());
  auto number = [&](int64_t n) { return front.Constant(Literal::ScalarOfInt(ElementType::S32, n)); };
  Instruction* sum = nullptr;
  for (const auto& [size, stride] : DigitsOf(mesh_, axes)) {
    Instruction* digit = place;
    if (stride > 1) digit = front.Make(Op::Divide, {digit, number(stride)});
    if (stride * size < mesh_.num_devices()) digit = front.Make(Op::Remainder, {digit, number(size)});
    sum = sum ? front.Make(Op::Add, {front.Make(Op::Multiply, {sum, number(size)}), digit}) : digit;
  }
  return made = sum ? sum : number(0);
}

Instruction* Resharder::IsFirst(Builder& b, const Axes& axes) {
  return b.Compare(Coordinate(b, axes), b.Constant(Literal::ScalarOfInt(ElementType::S32, 0)), CompareDirection::Eq);
}

Instruction* Resharder::Mask(Builder& b, Instruction* shard, const Shape& whole, const Axes& axes, int64_t d,
                             Instruction* fill) {
  const Int64Vector& dims = shard->shape().dims();
  Instruction* first =
      b.Make(Op::Multiply, {Coordinate(b, axes), b.Constant(Literal::ScalarOfInt(ElementType::S32, dims[d]))});
  Instruction* index = b.Make(Op::Add, {b.Iota(Shape::Array(ElementType::S32, dims), d), b.Broadcast(first, dims, {})});
  Instruction* inside =
      b.Compare(index, b.Broadcast(b.Constant(Literal::ScalarOfInt(ElementType::S32, whole.dim(d))), dims, {}),
                CompareDirection::Lt);
  return b.Make(Op::Select, {inside, shard, b.Broadcast(fill, dims, {})});
}

}  // namespace strop::spmd
