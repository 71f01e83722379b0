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

template <class T>
class RaggedDot {
 public:
  RaggedDot(OpCall& call, Literal& result)
      : call_(call), a_(call.attrs<RaggedDotAttrs>()), groups_(call.in(2)), type_(call.shape.type()), result_(result) {}

  Status Run() {
    const Int64Vector& lhs_dims = call_.in(0).shape().dims();
    const Dims free = FreeDimensions(call_.in(0).shape().rank(), a_.lhs_batch, a_.lhs_contracting);
    left_ = PackOperand(LoadAs<T>(call_.in(0)), lhs_dims, a_.lhs_batch, free, a_.lhs_contracting);
    const int64_t ragged = a_.lhs_ragged[0];
    if (const size_t at = Position(free, ragged); at < free.size()) return RaggedFree(at);
    const Dims rhs_free = FreeDimensions(call_.in(1).shape().rank(), a_.rhs_batch, a_.rhs_contracting);
    const PackedOperand<T> right =
        PackOperand(LoadAs<T>(call_.in(1)), call_.in(1).shape().dims(), a_.rhs_batch, rhs_free, a_.rhs_contracting);
    if (const size_t at = Position(a_.lhs_contracting, ragged); at < a_.lhs_contracting.size())
      return RaggedContracting(at, right);
    for (int64_t b = 0; b < left_.batch; ++b)
      for (int64_t i = 0; i < left_.free; ++i)
        for (int64_t j = 0; j < right.free; ++j)
          Put(SumOfProducts(left_.Row(b, i), right.Row(b, j), left_.contracting, SumsWide(type_)));
    return OkStatus();
  }

 private:
  void Put(Cell sum) { StoreCells(type_, &sum, 1, result_.mutable_bytes().data(), next_++); }

  Status RaggedFree(size_t ragged) {
    const Int64Vector& rhs_dims = call_.in(1).shape().dims();
    const Dims free = FreeDimensions(call_.in(1).shape().rank(), a_.rhs_batch, a_.rhs_contracting, a_.rhs_group);
    const std::vector<T> values = LoadAs<T>(call_.in(1));
    const int64_t group_stride = RowMajorStrides(rhs_dims)[static_cast<size_t>(a_.rhs_group[0])];
    std::vector<PackedOperand<T>> right;
    for (int64_t g = 0; g < groups_.count(); ++g)
      right.push_back(PackOperand(values, rhs_dims, a_.rhs_batch, free, a_.rhs_contracting, g * group_stride));
    if (right.empty()) return OkStatus();  // no group: all zero
    const std::vector<int64_t> table = GroupTable(groups_, left_.batch_dims, left_.free_dims, ragged);
    for (int64_t b = 0; b < left_.batch; ++b)
      for (int64_t i = 0; i < left_.free; ++i) {
        const int64_t g = table[static_cast<size_t>(b * left_.free + i)];
        if (g < 0) {
          next_ += right[0].free;
          continue;
        }
        const PackedOperand<T>& r = right[static_cast<size_t>(g)];
        for (int64_t j = 0; j < r.free; ++j)
          Put(SumOfProducts(left_.Row(b, i), r.Row(b, j), left_.contracting, SumsWide(type_)));
      }
    return OkStatus();
  }

  Status RaggedContracting(size_t ragged, const PackedOperand<T>& right) {
    const std::vector<int64_t> table = GroupTable(groups_, left_.batch_dims, left_.contracting_dims, ragged);
    std::vector<T> part(static_cast<size_t>(left_.contracting));
    for (int64_t g = 0; g < groups_.count(); ++g)
      for (int64_t b = 0; b < left_.batch; ++b)
        for (int64_t i = 0; i < left_.free; ++i) {
          for (int64_t k = 0; k < left_.contracting; ++k)
            part[static_cast<size_t>(k)] =
                table[static_cast<size_t>(b * left_.contracting + k)] == g ? left_.Row(b, i)[k] : T{};
          for (int64_t j = 0; j < right.free; ++j)
            Put(SumOfProducts(part.data(), right.Row(b, j), left_.contracting, SumsWide(type_)));
        }
    return OkStatus();
  }

  OpCall& call_;
  const RaggedDotAttrs& a_;
  Groups groups_;
  ElementType type_;
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
  STROP_TRY(WithSumType(call.shape.type(), [&](auto zero) { return RaggedDot<decltype(zero)>(call, result).Run(); }));
  return result;
}

}  // namespace strop::interp
