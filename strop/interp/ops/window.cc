// reduce-window and select-and-scatter. A window position y meets, along each dimension, the operand positions
// x = (y * stride + k * window_dilation - pad_low) / base_dilation for which the division is exact and x is inside;
// padding and the holes of a dilated base contribute nothing beyond the initial value.
#include "strop/interp/ops.h"
#include "strop/interp/strided.h"

namespace strop::interp {

namespace {

// Operand offsets (elements) that the window meets along one dimension, for one output position after the other: of all
// positions they may be more than memory holds.
class OffsetsAlong {
 public:
  OffsetsAlong(const WindowDim& w, int64_t operand_size, int64_t stride)
      : w_(w), operand_size_(operand_size), stride_(stride) {}

  const std::vector<int64_t>& At(int64_t y) {
    if (y == y_) return offsets_;
    y_ = y;
    offsets_.clear();
    for (int64_t k = 0; k < w_.size; ++k) {
      const int64_t dilated = y * w_.stride + (w_.reversal ? w_.size - 1 - k : k) * w_.window_dilation - w_.pad_low;
      if (dilated < 0 || dilated % w_.base_dilation != 0 || dilated / w_.base_dilation >= operand_size_) continue;
      offsets_.push_back(dilated / w_.base_dilation * stride_);
    }
    return offsets_;
  }

 private:
  WindowDim w_;
  int64_t operand_size_, stride_, y_ = -1;
  std::vector<int64_t> offsets_;  // of position y_
};

// Calls f(offsets) with the operand offsets under each window, windows in row-major order, offsets too.
template <class F>
Status ForEachWindow(OpCall& call, const Window& window, const Shape& operand, const Int64Vector& output_dims, F&& f) {
  const Int64Vector strides = RowMajorStrides(operand.dims());
  std::vector<OffsetsAlong> along;
  for (size_t d = 0; d < output_dims.size(); ++d)
    along.emplace_back(d < window.dims.size() ? window.dims[d] : WindowDim{}, operand.dim(static_cast<int64_t>(d)),
                       strides[d]);
  std::vector<int64_t> offsets, next;
  for (IndexWalk y(output_dims); !y.done(); y.Next()) {
    if (y.count() % 1024 == 0) STROP_TRY(call.evaluator.Poll());
    offsets.assign(1, 0);
    for (size_t d = 0; d < along.size(); ++d) {
      next.clear();
      for (int64_t base : offsets)
        for (int64_t offset : along[d].At(y.index()[d])) next.push_back(base + offset);
      offsets.swap(next);
    }
    STROP_TRY(f(y.count(), offsets));
  }
  return OkStatus();
}

int64_t Elements(const Window& window) {
  int64_t n = 1;
  for (const WindowDim& d : window.dims) n *= d.size;
  return n;
}

}  // namespace

// Operands: n arrays, n initial values.
Result<Literal> EvalReduceWindow(OpCall& call) {
  const size_t n = call.operands.size() / 2;
  STROP_ASSIGN(ScalarFunction * function, call.evaluator.Scalar(*call.instruction.to_apply()));
  std::vector<std::vector<Cell>> arrays;
  std::vector<Cell> init;
  std::vector<Literal> results;
  for (size_t k = 0; k < n; ++k) {
    arrays.push_back(LoadAll(call.operands[k]));
    init.push_back(LoadCell(call.operands[n + k], 0));
    STROP_ASSIGN(Literal result,
                 Literal::Zeros(call.shape.IsTuple() ? call.shape.element(static_cast<int64_t>(k)) : call.shape));
    results.push_back(std::move(result));
  }
  Accumulator accumulator(function, Elements(call.attrs<WindowAttrs>().window));
  std::vector<Cell> accumulated(n), values(n);
  STROP_TRY(ForEachWindow(call, call.attrs<WindowAttrs>().window, call.in(0).shape(), results[0].shape().dims(),
                          [&](int64_t at, const std::vector<int64_t>& offsets) -> Status {
                            accumulated = init;
                            for (int64_t offset : offsets) {
                              for (size_t k = 0; k < n; ++k) values[k] = arrays[k][static_cast<size_t>(offset)];
                              STROP_TRY(accumulator.Combine(accumulated, values));
                            }
                            accumulator.Finish(accumulated);
                            for (size_t k = 0; k < n; ++k)
                              StoreCells(results[k].type(), &accumulated[k], 1, results[k].mutable_bytes().data(), at);
                            return OkStatus();
                          }));
  if (!call.shape.IsTuple()) return std::move(results[0]);
  return Literal::Tuple(std::move(results));
}

// Operands: array, source, initial value. In each window the first element that no other one is selected over gets the
// source element of the window added to it.
Result<Literal> EvalSelectAndScatter(OpCall& call) {
  STROP_ASSIGN(ScalarFunction * select, call.evaluator.Scalar(*call.instruction.called(0)));
  STROP_ASSIGN(ScalarFunction * scatter, call.evaluator.Scalar(*call.instruction.called(1)));
  const std::vector<Cell> operand = LoadAll(call.in(0)), source = LoadAll(call.in(1));
  std::vector<Cell> out(operand.size(), LoadCell(call.in(2), 0));
  Accumulator accumulator(scatter, Elements(call.attrs<WindowAttrs>().window));
  const bool commutative = scatter->single_op() != Op::kEnd && Is(scatter->single_op(), kCommutative);
  Cell pair[2], chosen[1];
  STROP_TRY(ForEachWindow(call, call.attrs<WindowAttrs>().window, call.in(0).shape(), call.in(1).shape().dims(),
                          [&](int64_t at, const std::vector<int64_t>& offsets) -> Status {
                            if (offsets.empty()) return OkStatus();
                            int64_t best = offsets[0];
                            for (int64_t offset : offsets) {
                              pair[0] = operand[static_cast<size_t>(best)];
                              pair[1] = operand[static_cast<size_t>(offset)];
                              STROP_TRY(select->Call(pair, chosen));
                              if (!chosen[0].u) best = offset;
                            }
                            Cell& target = out[static_cast<size_t>(best)];
                            if (commutative)
                              return accumulator.Combine({&target, 1}, {&source[static_cast<size_t>(at)], 1});
                            pair[0] = source[static_cast<size_t>(at)];
                            pair[1] = target;
                            return scatter->Call(pair, {&target, 1});
                          }));
  if (commutative)
    for (Cell& cell : out) accumulator.Finish({&cell, 1});
  STROP_ASSIGN(Literal result, call.NewResult());
  StoreCells(result.type(), out.data(), static_cast<int64_t>(out.size()), result.mutable_bytes().data(), 0);
  return result;
}

}  // namespace strop::interp
