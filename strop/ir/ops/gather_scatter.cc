// gather and scatter: their dimension numbers, checked in the order of the specification's constraints.
#include <algorithm>

#include "strop/ir/ops/infer.h"

namespace strop::infer {
namespace {

bool IsSorted(const Dims& values) { return std::is_sorted(values.begin(), values.end()); }

Dims Concat(const Dims& a, const Dims& b) {
  Dims all = a;
  all.insert(all.end(), b.begin(), b.end());
  return all;
}

int64_t SizeOf(const Dims& values) { return static_cast<int64_t>(values.size()); }

// What gather and scatter share: how an index vector names a place in the operand.
struct IndexNumbers {
  const Shape& operand;
  const Shape& indices;
  const Dims& dropped;  // collapsed_slice_dims, inserted_window_dims
  const Dims& operand_batching;
  const Dims& indices_batching;
  const Dims& index_map;  // start_index_map, scatter_dims_to_operand_dims
  int64_t index_vector_dim;
};

struct Labels {  // constraint numbers of gather and scatter, in the order of the checks
  int index_vector_dim, unique_dropped, sorted_dropped, range_dropped, sorted_batching, range_batching, unique_indices,
      range_indices, not_vector, same_batching, batching_sizes, map_size, unique_map, range_map;
};

Status CheckIndexNumbers(const Args& args, const IndexNumbers& n, const Labels& label) {
  const int64_t rank = n.operand.rank();
  if (!IsInteger(n.indices.type())) return args.Error("indices must be integers, but are ", n.indices);
  if (n.index_vector_dim < 0 || n.index_vector_dim > n.indices.rank())
    return args.Violates(label.index_vector_dim, "index_vector_dim ", n.index_vector_dim, " does not fit indices ",
                         n.indices);
  if (!IsUnique(Concat(n.dropped, n.operand_batching)))
    return args.Violates(label.unique_dropped, "dimensions ", Braces(n.dropped), " and batching dimensions ",
                         Braces(n.operand_batching), " must be unique");
  if (!IsSorted(n.dropped))
    return args.Violates(label.sorted_dropped, "dimensions ", Braces(n.dropped), " must be sorted");
  if (!InRange(n.dropped, rank))
    return args.Violates(label.range_dropped, Braces(n.dropped), " are not dimensions of the operand ", n.operand);
  if (!IsSorted(n.operand_batching))
    return args.Violates(label.sorted_batching, "batching dimensions ", Braces(n.operand_batching), " must be sorted");
  if (!InRange(n.operand_batching, rank))
    return args.Violates(label.range_batching, "batching dimensions ", Braces(n.operand_batching),
                         " are not dimensions of the operand ", n.operand);
  if (!IsUnique(n.indices_batching))
    return args.Violates(label.unique_indices, "batching dimensions ", Braces(n.indices_batching), " must be unique");
  if (!InRange(n.indices_batching, n.indices.rank()))
    return args.Violates(label.range_indices, "batching dimensions ", Braces(n.indices_batching),
                         " are not dimensions of the indices ", n.indices);
  if (Contains(n.indices_batching, n.index_vector_dim))
    return args.Violates(label.not_vector, "index_vector_dim ", n.index_vector_dim,
                         " must not be a batching dimension");
  if (n.operand_batching.size() != n.indices_batching.size())
    return args.Violates(label.same_batching, "operand and indices must have as many batching dimensions, but have ",
                         Braces(n.operand_batching), " and ", Braces(n.indices_batching));
  for (size_t i = 0; i < n.operand_batching.size(); ++i)
    if (!SizesAgree(n.operand, n.operand_batching[i], n.indices, n.indices_batching[i]))
      return args.Violates(label.batching_sizes, "batching dimension ", n.operand_batching[i], " of ", n.operand,
                           " and ", n.indices_batching[i], " of ", n.indices, " must have the same size");
  const bool implicit = n.index_vector_dim == n.indices.rank();
  if (implicit
          ? n.index_map.size() != 1
          : !n.indices.is_unbounded(n.index_vector_dim) && n.indices.dim(n.index_vector_dim) != SizeOf(n.index_map))
    return args.Violates(label.map_size, "an index has ", implicit ? 1 : n.indices.dim(n.index_vector_dim),
                         " components, but ", Braces(n.index_map), " names ", n.index_map.size(), " dimensions");
  if (!IsUnique(Concat(n.index_map, n.operand_batching)))
    return args.Violates(label.unique_map, "index dimensions ", Braces(n.index_map), " and batching dimensions ",
                         Braces(n.operand_batching), " must be unique");
  if (!InRange(n.index_map, rank))
    return args.Violates(label.range_map, "index dimensions ", Braces(n.index_map),
                         " are not dimensions of the operand ", n.operand);
  return OkStatus();
}

}  // namespace

Result<Shape> Gather(const Args& args) {
  STROP_TRY(args.ExpectArrays());
  const auto& a = args.attrs<GatherAttrs>();
  const Shape& operand = args.operand(0);
  const Shape& indices = args.operand(1);
  const int64_t rank = operand.rank();
  static constexpr Labels kLabels = {2, 6, 7, 8, 10, 11, 13, 14, 15, 16, 17, 3, 18, 19};
  STROP_TRY(CheckIndexNumbers(args,
                              {operand, indices, a.collapsed_slice_dims, a.operand_batching_dims,
                               a.start_indices_batching_dims, a.start_index_map, a.index_vector_dim},
                              kLabels));
  if (rank != SizeOf(a.offset_dims) + SizeOf(a.collapsed_slice_dims) + SizeOf(a.operand_batching_dims))
    return args.Violates(1, "offset_dims=", Braces(a.offset_dims),
                         ", collapsed and batching dimensions must add up to ", "the rank of ", operand);
  if (!IsUnique(a.offset_dims) || !IsSorted(a.offset_dims))
    return args.Violates(4, "offset_dims=", Braces(a.offset_dims), " must be unique and sorted");
  const int64_t batch_rank = indices.rank() - (a.index_vector_dim < indices.rank() ? 1 : 0);
  const int64_t result_rank = batch_rank + SizeOf(a.offset_dims);
  if (!InRange(a.offset_dims, result_rank))
    return args.Violates(5, "offset_dims=", Braces(a.offset_dims), " are not dimensions of the result, which has ",
                         result_rank);
  if (SizeOf(a.slice_sizes) != rank)
    return args.Violates(20, "slice_sizes=", Braces(a.slice_sizes), " must name a size for each dimension of ",
                         operand);
  for (int64_t i = 0; i < rank; ++i) {
    if (a.slice_sizes[i] < 0 || (!operand.is_unbounded(i) && a.slice_sizes[i] > operand.dim(i)))
      return args.Violates(21, "slice size ", a.slice_sizes[i], " does not fit dimension ", i, " of ", operand);
    const bool collapsed = Contains(a.collapsed_slice_dims, i);
    if ((collapsed || Contains(a.operand_batching_dims, i)) && a.slice_sizes[i] > 1)
      return args.Violates(collapsed ? 9 : 12, "slice size of dimension ", i, " must be 1, but is ", a.slice_sizes[i]);
  }

  Shape result = Shape::Array(operand.type(), Int64Vector(static_cast<size_t>(result_rank), 0));
  int64_t next_batch = 0, next_offset = 0;
  for (int64_t i = 0; i < result_rank; ++i) {
    if (Contains(a.offset_dims, i)) {
      while (Contains(a.collapsed_slice_dims, next_offset) || Contains(a.operand_batching_dims, next_offset))
        ++next_offset;
      result.set_dim(i, a.slice_sizes[next_offset]);
      // A slice of the whole of a dynamic dimension is as dynamic.
      result.set_dynamic(i, operand.is_dynamic(next_offset) && a.slice_sizes[next_offset] == operand.dim(next_offset));
      ++next_offset;
    } else {
      if (next_batch == a.index_vector_dim) ++next_batch;
      result.set_dim(i, indices.dim(next_batch));
      result.set_dynamic(i, indices.is_dynamic(next_batch));
      ++next_batch;
    }
  }
  return result;
}

namespace {

// Sizes of one update: scatter dimensions are the indices' batch sizes, window dimensions fit the operand's.
Status CheckUpdate(const Args& args, const ScatterAttrs& a, const Shape& operand, const Shape& indices,
                   const Shape& update) {
  const int64_t batch_rank = indices.rank() - (a.index_vector_dim < indices.rank() ? 1 : 0);
  if (update.rank() != batch_rank + SizeOf(a.update_window_dims))
    return args.Violates(4, "the update ", update, " must have ", batch_rank, " scatter and ",
                         a.update_window_dims.size(), " window dimensions");
  if (!InRange(a.update_window_dims, update.rank()))
    return args.Violates(8, "update_window_dims=", Braces(a.update_window_dims), " are not dimensions of the update ",
                         update);
  int64_t next_batch = 0, next_window = 0;
  for (int64_t i = 0; i < update.rank(); ++i) {
    if (Contains(a.update_window_dims, i)) {
      while (Contains(a.inserted_window_dims, next_window) || Contains(a.input_batching_dims, next_window))
        ++next_window;
      const bool known = !update.is_unbounded(i) && !operand.is_unbounded(next_window);
      if (known && update.dim(i) > operand.dim(next_window))
        return args.Violates(4, "window dimension ", i, " of the update ", update, " exceeds dimension ", next_window,
                             " of the operand ", operand);
      ++next_window;
    } else {
      if (next_batch == a.index_vector_dim) ++next_batch;
      if (!SizesAgree(update, i, indices, next_batch))
        return args.Violates(4, "scatter dimension ", i, " of the update ", update, " must have the size of dimension ",
                             next_batch, " of the indices ", indices);
      ++next_batch;
    }
  }
  return OkStatus();
}

}  // namespace

Result<Shape> Scatter(const Args& args) {
  const int64_t n = args.operand_count() / 2;
  if (args.operand_count() < 3 || args.operand_count() % 2 == 0)
    return args.Violates(5, "needs n operands, the indices and n updates, but got ", args.operand_count(), " operands");
  STROP_TRY(args.ExpectArrays());
  const auto& a = args.attrs<ScatterAttrs>();
  const Shape& indices = args.operand(n);
  std::vector<ElementType> types;
  for (int64_t i = 0; i < n; ++i) {
    types.push_back(args.operand(i).type());
    if (!DimsAgree(args.operand(i), args.operand(0)))
      return args.Violates(1, "operands must have the same dimensions, but are ", args.operand(0), " and ",
                           args.operand(i));
    const Shape& update = args.operand(n + 1 + i);
    if (!DimsAgree(update, args.operand(n + 1)))
      return args.Violates(3, "updates must have the same dimensions, but are ", args.operand(n + 1), " and ", update);
    if (update.type() != args.operand(i).type())
      return args.Violates(6, "update ", update, " must have the element type of its operand ", args.operand(i));
  }
  const Shape& operand = args.operand(0);
  static constexpr Labels kLabels = {22, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21};
  STROP_TRY(CheckIndexNumbers(args,
                              {operand, indices, a.inserted_window_dims, a.input_batching_dims,
                               a.scatter_indices_batching_dims, a.scatter_dims_to_operand_dims, a.index_vector_dim},
                              kLabels));
  if (operand.rank() != SizeOf(a.update_window_dims) + SizeOf(a.inserted_window_dims) + SizeOf(a.input_batching_dims))
    return args.Violates(2, "update_window_dims=", Braces(a.update_window_dims),
                         ", inserted and batching dimensions must add up to the rank of ", operand);
  if (!IsUnique(a.update_window_dims) || !IsSorted(a.update_window_dims))
    return args.Violates(7, "update_window_dims=", Braces(a.update_window_dims), " must be unique and sorted");
  STROP_TRY(CheckUpdate(args, a, operand, indices, args.operand(n + 1)));
  STROP_ASSIGN(std::vector<ElementType> accumulators, CheckReducer(args, 0, types, types, 23));
  std::vector<Shape> results;
  for (int64_t i = 0; i < n; ++i) {
    // StableHLO gives results the reducer's type, XLA the operand's.
    const Shape* declared = !args.declared                    ? nullptr
                            : n == 1                          ? args.declared
                            : i < args.declared->tuple_size() ? &args.declared->element(i)
                                                              : nullptr;
    const bool as_operand = declared && declared->type() == types[i];
    results.push_back(args.operand(i).WithoutLayout().WithType(as_operand ? types[i] : accumulators[i]));
  }
  return OneOrTuple(std::move(results));
}

}  // namespace strop::infer
