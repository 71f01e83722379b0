// reduce, map and scan: ops that apply a computation along dimensions. Elements are combined in row-major order.
#include <algorithm>

#include "strop/interp/ops.h"
#include "strop/interp/strided.h"

namespace strop::interp {

namespace {

// The shape of result number k of an op with one or several results.
const Shape& ResultShape(const Shape& shape, size_t k) {
  return shape.IsTuple() ? shape.element(static_cast<int64_t>(k)) : shape;
}

Result<Literal> Pack(const Shape& shape, std::vector<Literal> results) {
  if (!shape.IsTuple()) return std::move(results[0]);
  return Literal::Tuple(std::move(results));
}

}  // namespace

// Operands: n arrays, n initial values. One pass over the arrays; each element goes to the accumulator of its result
// element.
Result<Literal> EvalReduce(OpCall& call) {
  const size_t n = call.operands.size() / 2;
  const Dims& dimensions = call.instruction.dimensions();
  const Int64Vector& dims = call.in(0).shape().dims();
  STROP_ASSIGN(ScalarFunction * function, call.evaluator.Scalar(*call.instruction.to_apply()));

  // Strides of the result along the operand's dimensions: zero where it is reduced.
  Int64Vector kept;
  for (size_t d = 0; d < dims.size(); ++d)
    if (std::find(dimensions.begin(), dimensions.end(), static_cast<int64_t>(d)) == dimensions.end())
      kept.push_back(dims[d]);
  const Int64Vector result_strides = RowMajorStrides(kept);
  Int64Vector strides(dims.size(), 0);
  for (size_t d = 0, k = 0; d < dims.size(); ++d)
    if (std::find(dimensions.begin(), dimensions.end(), static_cast<int64_t>(d)) == dimensions.end())
      strides[d] = result_strides[k++];

  const int64_t count = Product(kept);
  std::vector<Cell> accumulated(static_cast<size_t>(count) * n);  // the n values of a result element side by side
  for (size_t k = 0; k < n; ++k) {
    const Cell init = LoadCell(call.operands[n + k], 0);
    for (int64_t i = 0; i < count; ++i) accumulated[static_cast<size_t>(i) * n + k] = init;
  }
  const int64_t total = Product(dims);
  Accumulator accumulator(function);
  constexpr int64_t kChunk = 512;
  std::vector<Cell> chunk(static_cast<size_t>(kChunk) * n), line(kChunk);
  IndexWalk walk(dims, {strides});
  for (int64_t begin = 0; begin < total; begin += kChunk) {
    const int64_t m = std::min(kChunk, total - begin);
    for (size_t k = 0; k < n; ++k) {
      LoadCells(call.operands[k].type(), call.operands[k].bytes().data(), begin, m, line.data());
      for (int64_t i = 0; i < m; ++i) chunk[static_cast<size_t>(i) * n + k] = line[static_cast<size_t>(i)];
    }
    for (int64_t i = 0; i < m; ++i, walk.Next())
      STROP_TRY(accumulator.Combine(std::span(accumulated).subspan(static_cast<size_t>(walk.offset(0)) * n, n),
                                    std::span<const Cell>(chunk).subspan(static_cast<size_t>(i) * n, n)));
  }
  std::vector<Literal> results;
  for (size_t k = 0; k < n; ++k) {
    STROP_ASSIGN(Literal result, Literal::Zeros(ResultShape(call.shape, k)));
    results.push_back(std::move(result));
  }
  for (int64_t i = 0; i < count; ++i) {
    const std::span<Cell> cells = std::span(accumulated).subspan(static_cast<size_t>(i) * n, n);
    accumulator.Finish(cells);
    for (size_t k = 0; k < n; ++k) StoreCells(results[k].type(), &cells[k], 1, results[k].mutable_bytes().data(), i);
  }
  return Pack(call.shape, std::move(results));
}

Result<Literal> EvalMap(OpCall& call) {
  STROP_ASSIGN(ScalarFunction * function, call.evaluator.Scalar(*call.instruction.to_apply()));
  STROP_ASSIGN(Literal result, call.NewResult());
  std::vector<Cell> inputs(call.operands.size()), outputs(1);
  for (int64_t i = 0; i < result.num_elements(); ++i) {
    for (size_t k = 0; k < inputs.size(); ++k) inputs[k] = LoadCell(call.operands[k], i);
    STROP_TRY(function->Call(inputs, outputs));
    StoreCells(result.type(), outputs.data(), 1, result.mutable_bytes().data(), i);
  }
  return result;
}

namespace {

// The slab at position t of `dimension`, without that dimension; and the way back.
Literal TakeSlab(const Literal& array, int64_t dimension, int64_t t, const Shape& slab_shape) {
  Literal slab = *Literal::Zeros(slab_shape);
  Int64Vector dims = array.shape().dims(), strides = RowMajorStrides(dims);
  const int64_t width = Bytes(array.type());
  const uint8_t* from = array.bytes().data() + t * strides[static_cast<size_t>(dimension)] * width;
  dims.erase(dims.begin() + dimension);
  strides.erase(strides.begin() + dimension);
  CopyStrided(width, dims, slab.mutable_bytes().data(), RowMajorStrides(dims), from, strides);
  return slab;
}
void PutSlab(const Literal& slab, int64_t dimension, int64_t t, Literal& array) {
  Int64Vector dims = array.shape().dims(), strides = RowMajorStrides(dims);
  const int64_t width = Bytes(array.type());
  uint8_t* to = array.mutable_bytes().data() + t * strides[static_cast<size_t>(dimension)] * width;
  dims.erase(dims.begin() + dimension);
  strides.erase(strides.begin() + dimension);
  CopyStrided(width, dims, to, strides, slab.bytes().data(), RowMajorStrides(dims));
}

}  // namespace

// Operands: inputs, then initial carries. For each position t along the dimension: (outputs..., carries...) =
// to_apply(inputs[t]..., carries...). Results: the outputs stacked, then the last carries.
Result<Literal> EvalScan(OpCall& call) {
  const auto& a = call.attrs<ScanAttrs>();
  const Computation& body = *call.instruction.to_apply();
  const int64_t operands = static_cast<int64_t>(call.operands.size()), inputs = operands - a.num_carries;
  const Shape& root = body.root()->shape();
  const int64_t results = root.IsTuple() ? root.tuple_size() : 1, outputs = results - a.num_carries;
  if (a.dimensions.size() != 1 || inputs < 1 || outputs < 0)
    return InvalidArgument("scan needs one dimension, an input, and a body that returns every carry");
  const int64_t dimension = a.dimensions[0], length = call.in(0).shape().dim(dimension);
  std::vector<Literal> stacked, carries(call.operands.begin() + inputs, call.operands.end());
  for (int64_t k = 0; k < outputs; ++k) {
    STROP_ASSIGN(Literal output, Literal::Zeros(ResultShape(call.shape, static_cast<size_t>(k))));
    stacked.push_back(std::move(output));
  }
  for (int64_t step = 0; step < length; ++step) {
    const int64_t t = a.is_reverse ? length - 1 - step : step;
    std::vector<Literal> arguments;
    for (int64_t i = 0; i < inputs; ++i)
      arguments.push_back(TakeSlab(call.in(i), dimension, t, body.parameter(i)->shape()));
    for (Literal& carry : carries) arguments.push_back(std::move(carry));
    STROP_ASSIGN(Literal value, call.evaluator.Run(body, std::move(arguments)));
    std::vector<Literal> parts;
    if (root.IsTuple())
      parts = std::move(value.mutable_elements());
    else
      parts.push_back(std::move(value));
    for (int64_t k = 0; k < outputs; ++k)
      PutSlab(parts[static_cast<size_t>(k)], dimension, t, stacked[static_cast<size_t>(k)]);
    carries.assign(std::make_move_iterator(parts.begin() + outputs), std::make_move_iterator(parts.end()));
  }
  for (Literal& carry : carries) stacked.push_back(std::move(carry));
  return Pack(call.shape, std::move(stacked));
}

}  // namespace strop::interp
