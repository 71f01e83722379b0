// Sources, and ops that move elements.
#include <algorithm>
#include <numeric>

#include "tests/fuzz/scope.h"

namespace strop::fuzz {
namespace {

ElementType IndexType(Scope& scope) {
  static constexpr ElementType kTypes[] = {ElementType::S32, ElementType::S32, ElementType::S64, ElementType::U32,
                                           ElementType::S8,  ElementType::U8,  ElementType::U64, ElementType::S16};
  return kTypes[scope.random().Below(std::size(kTypes))];
}

// The dimensions 0..n-1, each with the given chance, in order.
Dims Subset(Random& random, int64_t n, int percent) {
  Dims dims;
  for (int64_t i = 0; i < n; ++i)
    if (random.Chance(percent)) dims.push_back(i);
  return dims;
}

// Sizes whose product is `count`.
Int64Vector Factors(Random& random, int64_t count) {
  Int64Vector dims;
  if (count == 0) {
    for (int64_t n = random.Between(int64_t{0}, int64_t{2}); n > 0; --n) dims.push_back(random.Below(4));
    dims.push_back(0);
    return dims;
  }
  for (int64_t factor = 2; count > 1 && dims.size() < 5; ++factor) {
    if (factor * factor > count) factor = count;
    while (count % factor == 0 && count > 1 && dims.size() < 5) {
      if (!dims.empty() && random.Chance(50))
        dims.back() *= factor;
      else
        dims.push_back(factor);
      count /= factor;
    }
  }
  if (count > 1) dims.back() *= count;
  if (dims.empty() || random.Chance(20)) dims.push_back(1);
  std::vector<int64_t> order(dims.begin(), dims.end());
  random.Shuffle(order);
  return Int64Vector(order);
}

}  // namespace

Instruction* MakeLeaf(Scope& scope, Op op) {
  const Int64Vector dims = scope.AnyDims();
  Instruction* leaf = scope.Leaf(scope.AnyType(), dims);
  if (leaf) scope.AddValue(leaf);
  return leaf;
}

Instruction* MakeReshaped(Scope& scope, Op op) {
  Instruction* x = scope.AnyArray();
  const Shape result = x->shape().WithDims(Factors(scope.random(), x->shape().num_elements()));
  return scope.Try(op, {x}, DefaultAttrs(op), {}, &result);
}

Instruction* MakeBroadcast(Scope& scope, Op op) {
  Instruction* x = scope.AnyArray();
  const int64_t rank = scope.random().Between(x->shape().rank(), int64_t{5});
  std::vector<int64_t> places(static_cast<size_t>(rank));
  std::iota(places.begin(), places.end(), 0);
  scope.random().Shuffle(places);
  places.resize(static_cast<size_t>(x->shape().rank()));
  if (scope.random().Chance(80)) std::sort(places.begin(), places.end());
  Int64Vector dims(static_cast<size_t>(rank));
  for (int64_t& d : dims) d = scope.AnyDim();
  for (size_t i = 0; i < places.size(); ++i) dims[places[i]] = x->shape().dim(static_cast<int64_t>(i));
  const Shape result = x->shape().WithDims(dims);
  return scope.Try(op, {x}, DimensionsAttrs{places}, {}, &result);
}

Instruction* MakeConcatenate(Scope& scope, Op op) {
  Instruction* x = scope.AnyArray();
  if (x->shape().rank() == 0) return nullptr;
  const int64_t along = scope.random().Below(x->shape().rank());
  std::vector<Instruction*> operands = {x};
  for (int64_t n = scope.random().Between(int64_t{0}, int64_t{3}); n > 0; --n) {
    Int64Vector dims = x->shape().dims();
    if (scope.random().Chance(50)) dims[along] = scope.AnyDim();
    if (!scope.Fits(dims)) return nullptr;
    operands.push_back(scope.Value(x->shape().type(), dims));
  }
  std::swap(operands.front(), operands.back());
  return scope.Try(op, operands, DimensionsAttrs{{along}});
}

Instruction* MakeCopy(Scope& scope, Op op) {
  Instruction* x = scope.AnyArray();
  if (op != Op::CopyDone) return op == Op::Copy ? scope.Try(op, {x}, CopyAttrs{}) : nullptr;
  Instruction* start = scope.Add(Op::CopyStart, {x}, CopyAttrs{});
  return start ? scope.Try(op, {start}) : nullptr;
}

Instruction* MakeBitcastConvert(Scope& scope, Op op) {
  Instruction* x = scope.AnyArray();
  const Shape& shape = x->shape();
  for (int attempt = 0; attempt < 12; ++attempt) {
    const ElementType type = scope.AnyType();
    if (IsPred(type) && !IsPred(shape.type())) continue;  // bits that are neither 0 nor 1 mean nothing
    const int from = Bits(shape.type()), to = Bits(type);
    Int64Vector dims = shape.dims();
    if (from > to)
      dims.push_back(from / to);
    else if (from < to && !dims.empty())
      dims.resize(dims.size() - 1);
    const Shape result = Shape::Array(type, dims);
    if (Instruction* made = scope.Try(op, {x}, NoAttrs{}, {}, &result)) return made;
  }
  return nullptr;
}

namespace {

// Start indices, about half of them beyond the ends.
std::vector<Instruction*> Starts(Scope& scope, const Shape& shape) {
  const ElementType type = IndexType(scope);
  std::vector<Instruction*> starts;
  for (int64_t i = 0; i < shape.rank(); ++i)
    starts.push_back(scope.random().Chance(50) ? scope.ScalarValue(type)
                                               : scope.Constant(type, static_cast<double>(scope.random().Below(6))));
  return starts;
}

}  // namespace

Instruction* MakeDynamicSlice(Scope& scope, Op op) {
  Instruction* x = scope.AnyArray();
  std::vector<Instruction*> operands = Starts(scope, x->shape());
  operands.insert(operands.begin(), x);
  DynamicSliceAttrs attrs;
  for (int64_t d : x->shape().dims())
    attrs.sizes.push_back(scope.random().Chance(30) ? d : scope.random().Between(std::min<int64_t>(d, 1), d));
  return scope.Try(op, operands, attrs);
}

Instruction* MakeDynamicUpdateSlice(Scope& scope, Op op) {
  Instruction* x = scope.AnyArray();
  Int64Vector sizes;
  for (int64_t d : x->shape().dims())
    sizes.push_back(scope.random().Chance(30) ? d : scope.random().Between(int64_t{0}, d));
  std::vector<Instruction*> operands = Starts(scope, x->shape());
  Instruction* part = scope.Value(x->shape().type(), sizes);
  operands.insert(operands.begin(), {x, part});
  if (IsPred(x->shape().type()) || !scope.random().Chance(30)) return scope.Try(op, operands);
  // Gradients of dynamic slices: an update of zeros meets what it is added to.
  static const std::vector<Op> kMeet = {Op::Add, Op::Add, Op::Subtract, Op::Multiply};
  const Op meet = scope.random().Pick(kMeet);
  Builder b(scope.computation());
  operands[0] = b.Splat(x->shape().type(), meet == Op::Multiply ? 1 : 0, x->shape().dims());
  Instruction* updated = scope.Try(op, operands);
  if (!updated) return nullptr;
  return scope.random().Chance(50) ? scope.Try(meet, {x, updated}) : scope.Try(meet, {updated, x});
}

namespace {

// How the dimensions of an operand meet those of an index array: what gather and scatter have in common.
struct Indexing {
  Int64Vector slice_sizes;   // one for each dimension of the operand
  Dims index_map;            // operand dimensions that indices address
  Dims collapsed, batching;  // operand dimensions of slices that are left out
  Dims indices_batching;     // where the batching ones are in the index array
  int64_t index_vector_dim = 0;
  Int64Vector indices_dims;  // with the vector dimension
  Int64Vector batch_sizes;   // indices_dims without it
};

Indexing RandomIndexing(Scope& scope, const Shape& operand, bool full_slices) {
  Random& random = scope.random();
  Indexing x;
  for (int64_t d = random.Between(int64_t{0}, int64_t{2}); d > 0; --d) x.batch_sizes.push_back(scope.AnyDim());
  for (int64_t d = 0; d < operand.rank(); ++d) {
    const int64_t size = operand.dim(d);
    const bool batching = size > 0 && random.Chance(12);
    const bool indexed = !batching && random.Chance(65);
    x.slice_sizes.push_back(batching                  ? 1
                            : !indexed && full_slices ? size
                                                      : random.Between(std::min<int64_t>(size, 1), size));
    if (indexed) x.index_map.push_back(d);
    if (indexed && random.Chance(60)) x.slice_sizes.back() = std::min<int64_t>(size, 1);
    if (batching) {
      x.batching.push_back(d);
      x.indices_batching.push_back(static_cast<int64_t>(x.batch_sizes.size()));
      x.batch_sizes.push_back(size);
    } else if (x.slice_sizes.back() == 1 && random.Chance(70)) {
      x.collapsed.push_back(d);
    }
  }
  random.Shuffle(x.index_map);
  const int64_t rank = static_cast<int64_t>(x.batch_sizes.size());
  x.index_vector_dim = random.Between(int64_t{0}, rank);
  const bool implicit = x.index_map.size() == 1 && random.Chance(40);
  if (implicit) x.index_vector_dim = rank;
  for (int64_t d = 0; d < rank; ++d) {
    if (d == x.index_vector_dim) x.indices_dims.push_back(static_cast<int64_t>(x.index_map.size()));
    x.indices_dims.push_back(x.batch_sizes[d]);
  }
  if (x.index_vector_dim == rank && !implicit) x.indices_dims.push_back(static_cast<int64_t>(x.index_map.size()));
  for (int64_t& d : x.indices_batching)
    if (d >= x.index_vector_dim) ++d;
  return x;
}

// Where the window's dimensions stand among `rank` result dimensions.
Dims WindowPlaces(Random& random, int64_t window, int64_t rank) {
  std::vector<int64_t> places(static_cast<size_t>(rank));
  std::iota(places.begin(), places.end(), 0);
  random.Shuffle(places);
  places.resize(static_cast<size_t>(window));
  std::sort(places.begin(), places.end());
  return places;
}

int64_t WindowRank(const Indexing& x) {
  return static_cast<int64_t>(x.slice_sizes.size() - x.collapsed.size() - x.batching.size());
}

}  // namespace

Instruction* MakeGather(Scope& scope, Op op) {
  Instruction* operand = scope.AnyArray();
  if (operand->shape().rank() == 0) return nullptr;
  const Indexing x = RandomIndexing(scope, operand->shape(), false);
  if (!scope.Fits(x.indices_dims)) return nullptr;
  GatherAttrs attrs;
  attrs.start_index_map = x.index_map;
  attrs.collapsed_slice_dims = x.collapsed;
  attrs.operand_batching_dims = x.batching;
  attrs.start_indices_batching_dims = x.indices_batching;
  attrs.index_vector_dim = x.index_vector_dim;
  attrs.slice_sizes = Dims(x.slice_sizes.begin(), x.slice_sizes.end());
  const int64_t window = WindowRank(x);
  attrs.offset_dims = WindowPlaces(scope.random(), window, window + static_cast<int64_t>(x.batch_sizes.size()));
  return scope.Try(op, {operand, scope.Value(IndexType(scope), x.indices_dims)}, attrs);
}

Instruction* MakeScatter(Scope& scope, Op op) {
  Instruction* operand = scope.AnyArray();
  if (operand->shape().rank() == 0) return nullptr;
  const Indexing x = RandomIndexing(scope, operand->shape(), true);
  if (!scope.Fits(x.indices_dims)) return nullptr;
  ScatterAttrs attrs;
  attrs.scatter_dims_to_operand_dims = x.index_map;
  attrs.inserted_window_dims = x.collapsed;
  attrs.input_batching_dims = x.batching;
  attrs.scatter_indices_batching_dims = x.indices_batching;
  attrs.index_vector_dim = x.index_vector_dim;
  const int64_t rank = WindowRank(x) + static_cast<int64_t>(x.batch_sizes.size());
  attrs.update_window_dims = WindowPlaces(scope.random(), WindowRank(x), rank);
  Int64Vector window, update;
  for (int64_t d = 0; d < operand->shape().rank(); ++d)
    if (std::find(x.collapsed.begin(), x.collapsed.end(), d) == x.collapsed.end() &&
        std::find(x.batching.begin(), x.batching.end(), d) == x.batching.end())
      window.push_back(x.slice_sizes[d]);
  size_t next_window = 0, next_batch = 0;
  for (int64_t d = 0; d < rank; ++d)
    update.push_back(std::find(attrs.update_window_dims.begin(), attrs.update_window_dims.end(), d) !=
                             attrs.update_window_dims.end()
                         ? window[next_window++]
                         : x.batch_sizes[next_batch++]);
  if (!scope.Fits(update)) return nullptr;
  const ElementType type = operand->shape().type();
  Instruction* indices = scope.Value(IndexType(scope), x.indices_dims);
  Instruction* updates = scope.Value(type, update);
  return scope.Try(op, {operand, indices, updates}, attrs, {Combiner(scope, AnyCombiner(scope, type), type)});
}

Instruction* MakePad(Scope& scope, Op op) {
  Instruction* x = scope.AnyArray();
  Random& random = scope.random();
  PadAttrs attrs;
  for (int64_t i = 0; i < x->shape().rank(); ++i) {
    PaddingDim dim;
    if (random.Chance(60)) dim.low = random.Between(int64_t{-2}, int64_t{3});
    if (random.Chance(60)) dim.high = random.Between(int64_t{-2}, int64_t{3});
    if (random.Chance(25)) dim.interior = random.Between(int64_t{1}, int64_t{3});
    attrs.padding.push_back(dim);
  }
  return scope.Try(op, {x, scope.ScalarValue(x->shape().type())}, attrs);
}

Instruction* MakeReverse(Scope& scope, Op op) {
  Instruction* x = scope.AnyArray();
  return scope.Try(op, {x}, DimensionsAttrs{Subset(scope.random(), x->shape().rank(), 60)});
}

Instruction* MakeSlice(Scope& scope, Op op) {
  Instruction* x = scope.AnyArray();
  Random& random = scope.random();
  SliceAttrs attrs;
  for (int64_t size : x->shape().dims()) {
    SliceDim dim{0, size, 1};
    if (random.Chance(60)) dim.start = random.Between(int64_t{0}, size);
    if (random.Chance(60)) dim.limit = random.Between(dim.start, size);
    if (random.Chance(30)) dim.stride = random.Between(int64_t{1}, int64_t{4});
    attrs.slice.push_back(dim);
  }
  return scope.Try(op, {x}, attrs);
}

// Now and then of what has several parts side by side, and with a last dimension that stays.
Instruction* MakeTranspose(Scope& scope, Op op) {
  Random& random = scope.random();
  Instruction* x = scope.AnyArray();
  const int64_t rank = x->shape().rank();
  if (rank > 1 && random.Chance(30)) {
    std::vector<Instruction*> parts = {x};
    for (int64_t n = random.Between(int64_t{1}, int64_t{2}); n > 0; --n)
      parts.push_back(scope.Value(x->shape().type(), x->shape().dims()));
    Instruction* joined = scope.Try(Op::Concatenate, parts, DimensionsAttrs{{rank - 1}});
    if (joined) x = joined;
  }
  std::vector<int64_t> permutation(static_cast<size_t>(rank));
  std::iota(permutation.begin(), permutation.end(), 0);
  random.Shuffle(permutation);
  if (rank > 2 && random.Chance(40))
    std::swap(*std::find(permutation.begin(), permutation.end(), rank - 1), permutation.back());
  return scope.Try(op, {x}, DimensionsAttrs{permutation});
}

Instruction* MakeGetDimensionSize(Scope& scope, Op op) {
  Instruction* x = scope.AnyArray();
  if (x->shape().rank() == 0) return nullptr;
  return scope.Try(op, {x}, DimensionsAttrs{{scope.random().Below(x->shape().rank())}});
}

}  // namespace strop::fuzz
