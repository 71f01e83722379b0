// gather and scatter in all their forms. Both read, for each position of the index array outside its vector dimension,
// a start index; the window there is copied out (gather: starts are clamped so that it fits) or combined with the
// updates (scatter: an update whose whole window does not fit is skipped).
#include <algorithm>

#include "strop/interp/ops.h"
#include "strop/interp/strided.h"

namespace strop::interp {

namespace {

// Reads the start index vectors, position by position.
class StartIndices {
 public:
  StartIndices(const Literal& indices, int64_t index_vector_dim, const Dims& map, const Dims& operand_batching,
               const Dims& indices_batching, int64_t operand_rank)
      : values_(LoadInts(indices)),
        strides_(RowMajorStrides(indices.shape().dims())),
        map_(map),
        operand_batching_(operand_batching),
        operand_rank_(operand_rank) {
    const int64_t rank = indices.shape().rank();
    vector_stride_ = index_vector_dim < rank ? strides_[static_cast<size_t>(index_vector_dim)] : 0;
    for (int64_t d = 0; d < rank; ++d) {
      if (d == index_vector_dim) continue;
      position_strides_.push_back(strides_[static_cast<size_t>(d)]);
    }
    for (int64_t d : indices_batching) batching_position_.push_back(d - (index_vector_dim < d ? 1 : 0));
    unsigned_ = IsUnsigned(indices.type());
  }

  // `position`: index into the index array without its vector dimension.
  Int64Vector At(const Int64Vector& position) const {
    int64_t at = 0;
    for (size_t i = 0; i < position.size(); ++i) at += position[i] * position_strides_[i];
    Int64Vector start(static_cast<size_t>(operand_rank_), 0);
    for (size_t k = 0; k < map_.size(); ++k) {
      int64_t v = values_[static_cast<size_t>(at + static_cast<int64_t>(k) * vector_stride_)];
      start[static_cast<size_t>(map_[k])] = unsigned_ && v < 0 ? INT64_MAX : v;
    }
    for (size_t k = 0; k < operand_batching_.size(); ++k)
      start[static_cast<size_t>(operand_batching_[k])] = position[static_cast<size_t>(batching_position_[k])];
    return start;
  }

 private:
  std::vector<int64_t> values_;
  Int64Vector strides_, position_strides_;
  const Dims& map_;
  const Dims& operand_batching_;
  int64_t operand_rank_;
  int64_t vector_stride_ = 0;
  Dims batching_position_;  // where each batching dimension is found in a position
  bool unsigned_ = false;
};

// Splits the dimensions of the result (gather) or updates (scatter) into those that walk the positions and those that
// walk the window; window dimensions correspond in order to the operand dimensions that are neither collapsed nor
// batching.
struct WindowMap {
  Int64Vector position_dims, position_strides;  // in the result or updates
  Int64Vector window_dims, window_strides;      // in the result or updates
  Int64Vector operand_strides;                  // of the window dimensions, in the operand

  WindowMap(const Shape& shape, const Dims& window, const Shape& operand, const Dims& collapsed, const Dims& batching) {
    const Int64Vector strides = RowMajorStrides(shape.dims());
    for (int64_t d = 0; d < shape.rank(); ++d) {
      if (Contains(window, d)) continue;
      position_dims.push_back(shape.dim(d));
      position_strides.push_back(strides[static_cast<size_t>(d)]);
    }
    for (int64_t d : window) {
      window_dims.push_back(shape.dim(d));
      window_strides.push_back(strides[static_cast<size_t>(d)]);
    }
    const Int64Vector all = RowMajorStrides(operand.dims());
    for (int64_t d = 0; d < operand.rank(); ++d)
      if (!Contains(collapsed, d) && !Contains(batching, d)) operand_strides.push_back(all[static_cast<size_t>(d)]);
  }
};

}  // namespace

Result<Literal> EvalGather(OpCall& call) {
  STROP_ASSIGN(Literal result, call.NewResult());
  if (result.num_elements() == 0) return result;
  const auto& a = call.attrs<GatherAttrs>();
  const Literal& operand = call.in(0);
  const StartIndices starts(call.in(1), a.index_vector_dim, a.start_index_map, a.operand_batching_dims,
                            a.start_indices_batching_dims, operand.shape().rank());
  const WindowMap map(call.shape, a.offset_dims, operand.shape(), a.collapsed_slice_dims, a.operand_batching_dims);
  const Int64Vector operand_strides = RowMajorStrides(operand.shape().dims());
  const int64_t width = Bytes(operand.type());
  uint8_t* out = result.mutable_bytes().data();
  const uint8_t* in = operand.bytes().data();
  for (IndexWalk walk(map.position_dims, {map.position_strides}); !walk.done(); walk.Next()) {
    const Int64Vector start = starts.At(walk.index());
    int64_t from = 0;
    for (size_t d = 0; d < start.size(); ++d) {
      const int64_t room = operand.shape().dim(static_cast<int64_t>(d)) - a.slice_sizes[d];
      from += std::clamp<int64_t>(start[d], 0, std::max<int64_t>(room, 0)) * operand_strides[d];
    }
    CopyStrided(width, map.window_dims, out + walk.offset(0) * width, map.window_strides, in + from * width,
                map.operand_strides);
  }
  return result;
}

namespace {

// Sizes of the update window along every operand dimension.
Int64Vector ScatterWindow(const ScatterAttrs& a, const Shape& operand, const Shape& updates) {
  Int64Vector sizes(static_cast<size_t>(operand.rank()), 1);
  size_t k = 0;
  for (int64_t d = 0; d < operand.rank() && k < a.update_window_dims.size(); ++d)
    if (!Contains(a.inserted_window_dims, d) && !Contains(a.input_batching_dims, d))
      sizes[static_cast<size_t>(d)] = updates.dim(a.update_window_dims[k++]);
  return sizes;
}

bool Fits(const Int64Vector& start, const Int64Vector& sizes, const Int64Vector& dims) {
  for (size_t d = 0; d < start.size(); ++d)
    if (start[d] < 0 || start[d] > dims[d] - sizes[d]) return false;
  return true;
}

}  // namespace

// Operands: n arrays, the indices, n update arrays. Updates are applied position by position, in row-major order.
Result<Literal> EvalScatter(OpCall& call) {
  const auto& a = call.attrs<ScatterAttrs>();
  const size_t n = (call.operands.size() - 1) / 2;
  const Shape operand_shape = call.in(0).shape();
  const Shape& update_shape = call.in(static_cast<int64_t>(n) + 1).shape();
  const StartIndices starts(call.operands[n], a.index_vector_dim, a.scatter_dims_to_operand_dims, a.input_batching_dims,
                            a.scatter_indices_batching_dims, operand_shape.rank());
  const WindowMap map(update_shape, a.update_window_dims, operand_shape, a.inserted_window_dims, a.input_batching_dims);
  const Int64Vector sizes = ScatterWindow(a, operand_shape, update_shape);
  const Int64Vector operand_strides = RowMajorStrides(operand_shape.dims());
  STROP_ASSIGN(ScalarFunction * combine, call.evaluator.Scalar(*call.instruction.to_apply()));

  std::vector<Literal> results;
  std::vector<uint8_t*> bytes;
  for (size_t k = 0; k < n; ++k) results.push_back(std::move(call.operands[k]));
  for (Literal& result : results) bytes.push_back(result.mutable_bytes().data());
  std::vector<Cell> inputs(2 * n), outputs(n);
  for (IndexWalk walk(map.position_dims, {map.position_strides}); !walk.done(); walk.Next()) {
    const Int64Vector start = starts.At(walk.index());
    if (!Fits(start, sizes, operand_shape.dims())) continue;
    int64_t to = 0;
    for (size_t d = 0; d < start.size(); ++d) to += start[d] * operand_strides[d];
    for (IndexWalk window(map.window_dims, {map.operand_strides, map.window_strides}); !window.done(); window.Next()) {
      const int64_t at = to + window.offset(0), from = walk.offset(0) + window.offset(1);
      for (size_t k = 0; k < n; ++k) {
        LoadCells(results[k].type(), bytes[k], at, 1, &inputs[k]);
        const Literal& update = call.operands[n + 1 + k];
        LoadCells(update.type(), update.bytes().data(), from, 1, &inputs[n + k]);
      }
      STROP_TRY(combine->Call(inputs, outputs));
      for (size_t k = 0; k < n; ++k) StoreCells(results[k].type(), &outputs[k], 1, bytes[k], at);
    }
  }
  if (!call.shape.IsTuple()) return std::move(results[0]);
  return Literal::Tuple(std::move(results));
}

}  // namespace strop::interp
