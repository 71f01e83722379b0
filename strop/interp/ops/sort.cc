// sort and topk. The sort is a stable merge sort of positions, whatever is_stable says; the comparator may be any
// computation, even one that is no order (a merge sort then still ends and stays inside the array).
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "strop/interp/ops.h"
#include "strop/interp/strided.h"

namespace strop::interp {

namespace {

// Bottom-up merge sort of `order`.
template <class Less>
void MergeSort(std::vector<int64_t>& order, Less&& less) {
  const size_t n = order.size();
  std::vector<int64_t> merged(n);
  for (size_t width = 1; width < n; width *= 2) {
    for (size_t begin = 0; begin < n; begin += 2 * width) {
      const size_t middle = std::min(begin + width, n), end = std::min(begin + 2 * width, n);
      size_t left = begin, right = middle;
      for (size_t out = begin; out < end; ++out) {
        const bool take_right = left == middle || (right < end && less(order[right], order[left]));
        merged[out] = take_right ? order[right++] : order[left++];
      }
    }
    order.swap(merged);
  }
}

// The comparator on positions along one line of the arrays.
class LineLess {
 public:
  LineLess(ScalarFunction& comparator, const std::vector<std::vector<Cell>>& arrays, int64_t stride)
      : comparator_(comparator), arrays_(arrays), stride_(stride), inputs_(2 * arrays.size()) {
    simple_ = comparator.single_op() == Op::Compare;  // of the first array alone
  }
  void set_line(int64_t first) { first_ = first; }
  const Status& error() const { return error_; }

  bool operator()(int64_t a, int64_t b) {
    const size_t left = static_cast<size_t>(first_ + a * stride_), right = static_cast<size_t>(first_ + b * stride_);
    if (simple_) {
      const ScalarInfo& info = comparator_.single().info;
      return CompareCells(DomainOf(info.operand), info.direction, info.order, arrays_[0][left], arrays_[0][right]);
    }
    for (size_t k = 0; k < arrays_.size(); ++k) {
      inputs_[2 * k] = arrays_[k][left];
      inputs_[2 * k + 1] = arrays_[k][right];
    }
    Cell less;
    if (comparator_.compiled()) {
      comparator_.CallCompiled(inputs_.data(), &less);
    } else if (error_.ok()) {
      if (Status status = comparator_.Call(inputs_, {&less, 1}); !status.ok()) error_ = std::move(status);
    }
    return less.u != 0;
  }

 private:
  ScalarFunction& comparator_;
  const std::vector<std::vector<Cell>>& arrays_;
  int64_t stride_, first_ = 0;
  std::vector<Cell> inputs_;
  bool simple_;
  Status error_;
};

}  // namespace

// Operands: n arrays, sorted together. The comparator takes (left, right) of each array in turn.
Result<Literal> EvalSort(OpCall& call) {
  const size_t n = call.operands.size();
  const size_t dimension = static_cast<size_t>(call.attrs<SortAttrs>().dimensions[0]);
  STROP_ASSIGN(ScalarFunction * comparator, call.evaluator.Scalar(*call.instruction.to_apply()));
  Int64Vector dims = call.in(0).shape().dims();
  const int64_t length = dims[dimension], stride = RowMajorStrides(dims)[dimension];
  std::vector<std::vector<Cell>> arrays;
  std::vector<Literal> results;
  for (size_t k = 0; k < n; ++k) {
    arrays.push_back(LoadAll(call.operands[k]));
    STROP_ASSIGN(Literal result,
                 Literal::Zeros(call.shape.IsTuple() ? call.shape.element(static_cast<int64_t>(k)) : call.shape));
    results.push_back(std::move(result));
  }
  const Int64Vector strides = RowMajorStrides(dims);
  dims[dimension] = std::min<int64_t>(length, 1);
  LineLess less(*comparator, arrays, stride);
  std::vector<int64_t> order(static_cast<size_t>(length));
  for (IndexWalk line(dims, {strides}); !line.done(); line.Next()) {
    STROP_TRY(call.evaluator.Poll());
    const int64_t first = line.offset(0);
    std::iota(order.begin(), order.end(), int64_t{0});
    less.set_line(first);
    MergeSort(order, less);
    STROP_TRY(less.error());
    for (size_t k = 0; k < n; ++k) {  // bytes, so that NaN payloads survive
      const int64_t width = Bytes(results[k].type());
      const uint8_t* from = call.operands[k].bytes().data();
      uint8_t* to = results[k].mutable_bytes().data();
      for (int64_t i = 0; i < length; ++i)
        std::copy_n(from + (first + order[static_cast<size_t>(i)] * stride) * width, width,
                    to + (first + i * stride) * width);
    }
  }
  if (!call.shape.IsTuple()) return std::move(results[0]);
  return Literal::Tuple(std::move(results));
}

// The k largest (or smallest) along the last dimension, in order, and their positions; NaN is above everything, equal
// values keep their order.
Result<Literal> EvalTopK(OpCall& call) {
  int64_t k;
  bool largest = true;
  if (call.op() == Op::TopK) {
    k = call.attrs<TopKAttrs>().k;
    largest = call.attrs<TopKAttrs>().largest;
  } else {  // the custom call of that name
    k = call.shape.element(0).dims().back();
  }
  const Literal& operand = call.in(0);
  const Domain domain = DomainOf(operand.type());
  const std::vector<Cell> values = LoadAll(operand);
  STROP_ASSIGN(Literal chosen, Literal::Zeros(call.shape.element(0)));
  STROP_ASSIGN(Literal positions, Literal::Zeros(call.shape.element(1)));
  const int64_t length = operand.shape().dims().back(), width = Bytes(operand.type());
  const int64_t lines = length == 0 ? 0 : operand.num_elements() / length;
  std::vector<int64_t> order(static_cast<size_t>(length));
  const auto code = [&](int64_t i) {
    uint64_t bits = 0;
    std::memcpy(&bits, operand.bytes().data() + i * width, static_cast<size_t>(width));
    return bits;
  };
  const auto before = [&](int64_t i, int64_t j) {
    const Cell a = values[static_cast<size_t>(i)], b = values[static_cast<size_t>(j)];
    // Of two NaNs of one sign, whose bits a cell may not hold, that with the larger bits is farther from zero.
    if (domain == Domain::Real && std::isnan(a.re) && std::isnan(b.re) && std::signbit(a.re) == std::signbit(b.re))
      return largest != std::signbit(a.re) ? code(i) > code(j) : code(i) < code(j);
    const CompareDirection direction = largest ? CompareDirection::Gt : CompareDirection::Lt;
    return CompareCells(domain, direction, CompareOrder::TotalOrder, a, b);
  };
  for (int64_t line = 0; line < lines; ++line) {
    const int64_t first = line * length;
    std::iota(order.begin(), order.end(), first);
    std::stable_sort(order.begin(), order.end(), before);
    for (int64_t i = 0; i < std::min(k, length); ++i) {
      const int64_t from = order[static_cast<size_t>(i)];
      std::copy_n(operand.bytes().data() + from * width, width, chosen.mutable_bytes().data() + (line * k + i) * width);
      positions.SetInt(line * k + i, from - first);
    }
  }
  return Literal::Tuple({std::move(chosen), std::move(positions)});
}

}  // namespace strop::interp
