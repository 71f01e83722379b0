// dot and scaled-dot.
#include <algorithm>
#include <cmath>

#include "strop/interp/ops.h"
#include "strop/interp/ops/contraction.h"

namespace strop::interp {

Dims FreeDimensions(int64_t rank, const Dims& batch, const Dims& contracting, const Dims& others) {
  Dims free;
  for (int64_t d = 0; d < rank; ++d) {
    bool taken = false;
    for (const Dims* list : {&batch, &contracting, &others})
      taken = taken || std::find(list->begin(), list->end(), d) != list->end();
    if (!taken) free.push_back(d);
  }
  return free;
}

Status CheckContractionTypes(Op op, ElementType lhs, ElementType rhs, ElementType result) {
  if (!IsComplex(result) && (IsComplex(lhs) || IsComplex(rhs)))
    return Unimplemented(Name(op), " of ", Name(lhs), " and ", Name(rhs), " with a result of type ", Name(result));
  return OkStatus();
}

namespace {

// An algorithm that names a narrow input type without repetitions (x3, x6, ...) sees its operands rounded to that type.
void RoundForAlgorithm(const std::string& algorithm, std::vector<double>& values) {
  if (algorithm == "dot_bf16_bf16_f32" || algorithm == "dot_bf16_bf16_bf16") {
    for (double& v : values) v = DecodeFloat(ElementType::BF16, EncodeFloat(ElementType::BF16, v));
  } else if (algorithm == "dot_f16_f16_f16" || algorithm == "dot_f16_f16_f32") {
    for (double& v : values) v = DecodeFloat(ElementType::F16, EncodeFloat(ElementType::F16, v));
  } else if (algorithm == "dot_tf32_tf32_f32") {
    for (double& v : values) {  // ten mantissa bits, ties to even
      int exponent;
      const double fraction = std::frexp(v, &exponent);
      if (std::isfinite(v) && v != 0) v = std::ldexp(std::nearbyint(std::ldexp(fraction, 11)), exponent - 11);
    }
  }
}
void RoundForAlgorithm(const std::string&, std::vector<int64_t>&) {}
void RoundForAlgorithm(const std::string&, std::vector<std::complex<double>>&) {}

// A tile of the right operand stays in the cache while so many rows of the left one meet it.
constexpr int64_t kTileColumns = 256, kTileInner = 64, kTileRows = 256;

// sums[i, j] of rows [row, row + rows) and columns from `column` on; each takes its products in the order of k.
template <class T, class Sum>
void ContractTile(const PackedOperand<T>& left, const PackedOperand<T>& right, int64_t b, int64_t row, int64_t rows,
                  int64_t column, int64_t columns, std::vector<Sum>& sums) {
  sums.assign(static_cast<size_t>(rows * columns), Sum{});
  for (int64_t first = 0; first < left.inner; first += kTileInner) {
    const int64_t end = std::min(left.inner, first + kTileInner);
    for (int64_t i = 0; i < rows; ++i) {
      const T* a = left.Row(b, row + i);
      Sum* into = sums.data() + i * columns;
      int64_t k = first;
      for (; k + 4 <= end; k += 4) AddFourProducts(a + k, right.Row(b, k) + column, right.inner, into, columns);
      for (; k < end; ++k) AddProducts(a[k], right.Row(b, k) + column, into, columns);
    }
  }
}

// result[b, i, j] = sum over k of lhs[b, i, k] * rhs[b, k, j]
template <class T, class Sum>
Status Contract(OpCall& call, const std::vector<T>& lhs, const std::vector<T>& rhs, Literal& result) {
  const auto& a = call.attrs<DotAttrs>();
  const Shape &lhs_shape = call.in(0).shape(), &rhs_shape = call.in(1).shape();
  const Dims lhs_free = FreeDimensions(lhs_shape.rank(), a.lhs_batch, a.lhs_contracting);
  const Dims rhs_free = FreeDimensions(rhs_shape.rank(), a.rhs_batch, a.rhs_contracting);
  const PackedOperand<T> left = PackOperand(lhs, lhs_shape.dims(), a.lhs_batch, lhs_free, a.lhs_contracting);
  const PackedOperand<T> right = PackOperand(rhs, rhs_shape.dims(), a.rhs_batch, a.rhs_contracting, rhs_free);
  const ElementType type = call.shape.type();
  const int64_t columns = right.inner;
  if (left.batch * left.rows * columns != result.num_elements() || left.inner != right.rows)
    return Internal("interpreter: dot dimensions do not agree");
  uint8_t* out = result.mutable_bytes().data();
  std::vector<Sum> sums;
  std::vector<Cell> cells(kTileColumns);
  for (int64_t b = 0; b < left.batch; ++b)
    for (int64_t column = 0; column < columns; column += kTileColumns) {
      const int64_t width = std::min(kTileColumns, columns - column);
      for (int64_t row = 0; row < left.rows; row += kTileRows) {
        STROP_TRY(call.evaluator.Poll());
        const int64_t rows = std::min(kTileRows, left.rows - row);
        ContractTile(left, right, b, row, rows, column, width, sums);
        for (int64_t i = 0; i < rows; ++i) {
          for (int64_t j = 0; j < width; ++j)
            cells[static_cast<size_t>(j)] = SumCell(sums[static_cast<size_t>(i * width + j)], type);
          StoreCells(type, cells.data(), width, out, (b * left.rows + row + i) * columns + column);
        }
      }
    }
  return OkStatus();
}

// Each element times the scale of its block: a scale dimension of size s covers dim / s neighbours.
Result<std::vector<double>> Scaled(const Literal& operand, const Literal& scale) {
  std::vector<double> values = LoadReals(operand);
  const std::vector<double> scales = LoadReals(scale);
  if (scale.shape().rank() == 0) {
    for (double& v : values) v *= scales[0];
    return values;
  }
  if (scale.shape().rank() != operand.shape().rank())
    return InvalidArgument("scaled-dot: the scale ", scale.shape().ToString(), " has another rank than ",
                           operand.shape().ToString());
  const Int64Vector strides = RowMajorStrides(scale.shape().dims());
  Int64Vector block;
  for (int64_t d = 0; d < operand.shape().rank(); ++d) {
    const int64_t size = operand.shape().dim(d), parts = scale.shape().dim(d);
    if (parts <= 0 || size % parts != 0)
      return InvalidArgument("scaled-dot: dimension ", d, " of ", operand.shape().ToString(),
                             " is not divided evenly by the scale ", scale.shape().ToString());
    block.push_back(size / parts);
  }
  for (IndexWalk walk(operand.shape().dims()); !walk.done(); walk.Next()) {
    int64_t at = 0;
    for (size_t d = 0; d < block.size(); ++d) at += walk.index()[d] / block[d] * strides[d];
    values[static_cast<size_t>(walk.count())] *= scales[static_cast<size_t>(at)];
  }
  return values;
}

}  // namespace

Result<Literal> EvalDot(OpCall& call) {
  const auto& a = call.attrs<DotAttrs>();
  const ElementType type = call.shape.type();
  if (call.operands.size() != 2 || !a.sparsity.text.empty()) return Unimplemented("dot with sparse operands");
  STROP_TRY(CheckContractionTypes(call.op(), call.in(0).type(), call.in(1).type(), type));
  STROP_ASSIGN(Literal result, call.NewResult());
  int64_t terms = 1;
  for (int64_t d : a.lhs_contracting) terms *= call.in(0).shape().dim(d);
  STROP_TRY(WithSumTypes(call.in(0).type(), call.in(1).type(), type, terms, [&](auto types) -> Status {
    using T = typename decltype(types)::Element;
    std::vector<T> lhs = LoadAs<T>(call.in(0)), rhs = LoadAs<T>(call.in(1));
    RoundForAlgorithm(a.algorithm, lhs);
    RoundForAlgorithm(a.algorithm, rhs);
    return Contract<T, typename decltype(types)::Total>(call, lhs, rhs, result);
  }));
  return result;
}

// Operands: lhs, rhs, lhs scale, rhs scale.
Result<Literal> EvalScaledDot(OpCall& call) {
  if (IsComplex(call.shape.type()) || IsPred(call.shape.type()))
    return Unimplemented("scaled-dot with a result of type ", Name(call.shape.type()));
  STROP_ASSIGN(std::vector<double> lhs, Scaled(call.in(0), call.in(2)));
  STROP_ASSIGN(std::vector<double> rhs, Scaled(call.in(1), call.in(3)));
  STROP_ASSIGN(Literal result, call.NewResult());
  STROP_TRY((Contract<double, long double>(call, lhs, rhs, result)));
  return result;
}

}  // namespace strop::interp
