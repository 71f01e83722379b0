// ragged-dot: a dot whose lhs has one dimension cut into groups of given sizes, one after the other. With m, k and b a
// free, a contracting and a batch dimension and g the groups:
//   ragged m:  [b,m,k] x [g,b,k,n] -> [b,m,n]   each row uses the rhs of its group; rows past the last group are zero
//   ragged k:  [b,m,k] x [b,k,n]   -> [g,b,m,n] each group sums over its own part of k
//   ragged b:  [b,m,k] x [b,k,n]   -> [b,m,n]   an ordinary dot
// group_sizes is [g], or [x...,g] with one row of sizes for each index of the dimensions x that come before the ragged
// one (batch dimensions, then those of its own kind).
#include <algorithm>

#include "strop/interp/ops.h"
#include "strop/interp/ops/contraction.h"

namespace strop::interp {

namespace {

class Groups {
 public:
  explicit Groups(const Literal& sizes) : sizes_(LoadInts(sizes)), dims_(sizes.shape().dims()) {
    count_ = dims_.empty() ? 0 : dims_.back();
  }
  int64_t count() const { return count_; }
  bool shared() const { return dims_.size() == 1; }
  size_t prefix_rank() const { return dims_.size() - 1; }
  // The group that holds `position` of the ragged dimension, or -1 past the last one. `prefix`: index of the row of
  // sizes.
  int64_t Find(std::span<const int64_t> prefix, int64_t position) const {
    int64_t row = 0;
    for (size_t i = 0; i < prefix_rank() && i < prefix.size(); ++i) row = row * dims_[i] + prefix[i];
    for (int64_t g = 0; g < count_; ++g) {
      position -= sizes_[static_cast<size_t>(row * count_ + g)];
      if (position < 0) return g;
    }
    return -1;
  }

 private:
  std::vector<int64_t> sizes_;
  Int64Vector dims_;
  int64_t count_;
};

// The group of every (batch, index of the ragged kind): [b * size + i].
std::vector<int64_t> GroupTable(const Groups& groups, const Int64Vector& batch_dims, const Int64Vector& kind_dims,
                                size_t ragged) {
  std::vector<int64_t> table;
  for (IndexWalk b(batch_dims); !b.done(); b.Next())
    for (IndexWalk i(kind_dims); !i.done(); i.Next()) {
      Int64Vector prefix = b.index();
      for (size_t d = 0; d < ragged; ++d) prefix.push_back(i.index()[d]);
      table.push_back(groups.Find(prefix, i.index()[ragged]));
    }
  return table;
}

size_t Position(const Dims& list, int64_t d) {
  return static_cast<size_t>(std::find(list.begin(), list.end(), d) - list.begin());
}

template <class T, class Sum>
class RaggedDot {
 public:
  RaggedDot(OpCall& call, Literal& result)
      : call_(call), a_(call.attrs<RaggedDotAttrs>()), groups_(call.in(2)), result_(result) {}

  Status Run() {
    const Shape &lhs = call_.in(0).shape(), &rhs = call_.in(1).shape();
    const Dims lhs_free = FreeDimensions(lhs.rank(), a_.lhs_batch, a_.lhs_contracting);
    left_ = PackOperand(LoadAs<T>(call_.in(0)), lhs.dims(), a_.lhs_batch, lhs_free, a_.lhs_contracting);
    const int64_t ragged = a_.lhs_ragged[0];
    if (const size_t at = Position(lhs_free, ragged); at < lhs_free.size()) return RaggedFree(at);
    const Dims rhs_free = FreeDimensions(rhs.rank(), a_.rhs_batch, a_.rhs_contracting);
    const PackedOperand<T> right =
        PackOperand(LoadAs<T>(call_.in(1)), rhs.dims(), a_.rhs_batch, a_.rhs_contracting, rhs_free);
    if (const size_t at = Position(a_.lhs_contracting, ragged); at < a_.lhs_contracting.size())
      return RaggedContracting(at, right);
    for (int64_t b = 0; b < left_.batch; ++b)
      for (int64_t i = 0; i < left_.rows; ++i) PutRow(left_.Row(b, i), right, b);
    return OkStatus();
  }

 private:
  // The next row of the result: lhs (a row of the contracting dimensions) times batch b of rhs.
  void PutRow(const T* lhs, const PackedOperand<T>& right, int64_t b) {
    std::vector<Sum> sums(static_cast<size_t>(right.inner));
    for (int64_t k = 0; k < right.rows; ++k) AddProducts(lhs[k], right.Row(b, k), sums.data(), right.inner);
    for (const Sum& sum : sums) {
      const Cell cell = SumCell(sum, result_.type());
      StoreCells(result_.type(), &cell, 1, result_.mutable_bytes().data(), next_++);
    }
  }

  Status RaggedFree(size_t ragged) {
    const Int64Vector& rhs_dims = call_.in(1).shape().dims();
    const Dims free = FreeDimensions(call_.in(1).shape().rank(), a_.rhs_batch, a_.rhs_contracting, a_.rhs_group);
    const std::vector<T> values = LoadAs<T>(call_.in(1));
    const int64_t group_stride = RowMajorStrides(rhs_dims)[static_cast<size_t>(a_.rhs_group[0])];
    std::vector<PackedOperand<T>> right;
    for (int64_t g = 0; g < groups_.count(); ++g)
      right.push_back(PackOperand(values, rhs_dims, a_.rhs_batch, a_.rhs_contracting, free, g * group_stride));
    if (right.empty()) return OkStatus();  // no group: all zero
    const std::vector<int64_t> table = GroupTable(groups_, left_.batch_dims, left_.row_dims, ragged);
    for (int64_t b = 0; b < left_.batch; ++b)
      for (int64_t i = 0; i < left_.rows; ++i) {
        const int64_t g = table[static_cast<size_t>(b * left_.rows + i)];
        if (g >= 0)
          PutRow(left_.Row(b, i), right[static_cast<size_t>(g)], b);
        else
          next_ += right[0].inner;
      }
    return OkStatus();
  }

  Status RaggedContracting(size_t ragged, const PackedOperand<T>& right) {
    const std::vector<int64_t> table = GroupTable(groups_, left_.batch_dims, left_.inner_dims, ragged);
    std::vector<T> part(static_cast<size_t>(left_.inner));
    for (int64_t g = 0; g < groups_.count(); ++g)
      for (int64_t b = 0; b < left_.batch; ++b)
        for (int64_t i = 0; i < left_.rows; ++i) {
          for (int64_t k = 0; k < left_.inner; ++k)
            part[static_cast<size_t>(k)] =
                table[static_cast<size_t>(b * left_.inner + k)] == g ? left_.Row(b, i)[k] : T{};
          PutRow(part.data(), right, b);
        }
    return OkStatus();
  }

  OpCall& call_;
  const RaggedDotAttrs& a_;
  Groups groups_;
  Literal& result_;
  PackedOperand<T> left_;
  int64_t next_ = 0;
};

}  // namespace

Result<Literal> EvalRaggedDot(OpCall& call) {
  const auto& a = call.attrs<RaggedDotAttrs>();
  if (a.lhs_ragged.size() != 1) return Unimplemented("ragged-dot with ", a.lhs_ragged.size(), " ragged dimensions");
  STROP_TRY(CheckContractionTypes(call.op(), call.in(0).type(), call.in(1).type(), call.shape.type()));
  STROP_ASSIGN(Literal result, call.NewResult());
  STROP_TRY(WithSumTypes(call.in(0).type(), call.in(1).type(), call.shape.type(), kLongSum, [&](auto types) {
    return RaggedDot<typename decltype(types)::Element, typename decltype(types)::Total>(call, result).Run();
  }));
  return result;
}

}  // namespace strop::interp
