#include "strop/passes/dot_sides.h"

#include <algorithm>
#include <numeric>

namespace strop {
namespace {

// Do `dims`, in this order, lie in a row-major array like one dimension? Sizes of one don't count.
bool Merge(const Shape& shape, const Dims& dims) {
  const Int64Vector strides = shape.Strides();
  int64_t size = 1, stride = 0;
  for (size_t i = dims.size(); i-- > 0;) {
    if (shape.dim(dims[i]) == 1) continue;
    if (size == 1)
      stride = strides[dims[i]];
    else if (strides[dims[i]] != SaturatingMultiply(stride, size))
      return false;
    size = SaturatingMultiply(size, shape.dim(dims[i]));
  }
  return true;
}

// Two batch dimensions have a stride each. More of them must be one on both sides, or they would have to be cut at the
// same place.
bool BatchFits(const Shape& shape, const Dims& batch) {
  return std::count_if(batch.begin(), batch.end(), [&](int64_t d) { return shape.dim(d) != 1; }) <= 2 ||
         Merge(shape, batch);
}

int64_t FittingSides(const DotSides& s) { return s[0].Fits() + s[1].Fits(); }

// `side` as dimensions of what a transpose by `permutation` is of.
bool FoldSide(const Dims& permutation, const Shape& operand, FreeOrder order, DotSide& side) {
  const Dims free = FreeDims(side.shape.rank(), side.batch, side.contracting);
  for (size_t k = 1; k < free.size() && order == FreeOrder::kStays; ++k)
    if (permutation[free[k - 1]] > permutation[free[k]]) return false;
  for (Dims* dims : {&side.batch, &side.contracting})
    for (int64_t& d : *dims) d = permutation[d];
  side.shape = operand;
  return true;
}

}  // namespace

Dims FreeDims(int64_t rank, const Dims& batch, const Dims& contracting) {
  Dims free;
  for (int64_t d = 0; d < rank; ++d)
    if (!Contains(batch, d) && !Contains(contracting, d)) free.push_back(d);
  return free;
}

bool DotSide::Fits() const {
  return BatchFits(shape, batch) && Merge(shape, contracting) &&
         Merge(shape, FreeDims(shape.rank(), batch, contracting));
}

DotSides SidesOf(const Instruction& dot) {
  const auto& a = dot.attrs<DotAttrs>();
  return {DotSide{dot.operand(0)->shape(), a.lhs_batch, a.lhs_contracting},
          DotSide{dot.operand(1)->shape(), a.rhs_batch, a.rhs_contracting}};
}

// The order of contracting pairs that suits most sides: as given, sorted by lhs, or sorted by rhs.
DotSides WithBestPairing(const DotSides& given) {
  DotSides best = given;
  for (size_t by = 0; by < 2; ++by) {
    std::vector<size_t> order(given[0].contracting.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::sort(order.begin(), order.end(),
              [&](size_t x, size_t y) { return given[by].contracting[x] < given[by].contracting[y]; });
    DotSides sorted = given;
    for (size_t side = 0; side < 2; ++side)
      for (size_t k = 0; k < order.size(); ++k) sorted[side].contracting[k] = given[side].contracting[order[k]];
    if (FittingSides(sorted) > FittingSides(best)) best = sorted;
  }
  return best;
}

bool FoldTranspose(const Dims& permutation, const Shape& operand, DotSides& sides, size_t k, FreeOrder order) {
  const int64_t fitting = FittingSides(sides);
  if (!FoldSide(permutation, operand, order, sides[k])) return false;
  sides = WithBestPairing(sides);
  return sides[k].Fits() && FittingSides(sides) >= fitting;
}

}  // namespace strop
