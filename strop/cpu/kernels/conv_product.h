// A convolution as a product of matrices: rows are the positions of the output, columns its features, and k runs over
// (tap, in_feature). Where a group has few features the roles are swapped, and positions are the columns: then they
// must lie at a constant distance, and the outer dimensions that do not fit are a loop around.
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "strop/base/strings.h"
#include "strop/cpu/kernels/accumulator_type.h"
#include "strop/cpu/kernels/conv_patches.h"
#include "strop/cpu/kernels/conv_positions.h"
#include "strop/cpu/kernels/conv_weights.h"
#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/gemm_panels.h"
#include "strop/cpu/kernels/rounding.h"

namespace strop::cpu {

// What is multiplied, however it is cut.
template <class T>
class ConvProduct {
 public:
  ConvProduct(const ConvProblem& problem, const MicroTable<T>& micro)
      : p_(problem),
        micro_(micro),
        positions_(problem),
        groups_(std::max(problem.feature_groups, problem.batch_groups)),
        features_(problem.out_features / groups_),
        // Units do not reach over taps, nor what kernels take at a time: the features of a tap are rounded up to it.
        tap_k_(RoundUp(problem.in_features, micro.Quantum())),
        swapped_(IsSwapped()),
        weights_(p_, positions_.taps(), micro, tap_k_, swapped_),
        patches_(p_, positions_, micro, tap_k_, !swapped_) {
    MergeDims();
  }
  ConvProduct(const ConvProduct&) = delete;

  const ConvProblem& problem() const { return p_; }
  const MicroTable<T>& micro() const { return micro_; }
  const ConvPositions& positions() const { return positions_; }
  const Taps& taps() const { return positions_.taps(); }
  const WeightPacker<T>& weights() const { return weights_; }
  bool swapped() const { return swapped_; }
  int64_t groups() const { return groups_; }
  int64_t features() const { return features_; }  // of a group
  int64_t outer() const { return outer_; }
  int64_t count() const { return count_; }  // positions, of one of the outer ones
  int64_t m() const { return swapped_ ? features_ : count_; }
  int64_t n() const { return swapped_ ? count_ : features_; }
  int64_t k() const { return taps().count * tap_k_; }
  // The type of what is packed as A, and as B.
  ElementType a_type() const { return swapped_ ? p_.kernel_type : p_.input_type; }
  ElementType b_type() const { return swapped_ ? p_.input_type : p_.kernel_type; }

  PanelProblem ForPanels() const;
  // For reports; continued by how it is cut.
  std::string ToString() const {
    return StrCat("implicit product of ", m(), "x", n(), "x", k(), swapped_ ? ", features down, " : ", ");
  }

  // Where a group's input begins.
  int64_t InputOffset(int64_t group) const {
    return p_.batch_groups > 1 ? group * p_.batch * p_.input_batch_stride
                               : group * p_.in_features * p_.input_feature_stride;
  }
  // Of rows [first_row, first_row + rows); `offsets` is memory for as many.
  StoreTarget Target(uint8_t* output, int64_t product, int64_t first_row, int64_t rows, int64_t* offsets) const;

  void PackWeights(const void* kernel, int64_t product, int64_t first, int64_t count, int64_t k0, int64_t kc,
                   int64_t width, T* dst) const {
    const int64_t base = (product / outer_ * features_ + first) * p_.kernel_out_stride;
    weights_.Pack(static_cast<const uint8_t*>(kernel), base, count, k0, kc, width, dst);
  }
  void PackPatches(const void* input, int64_t product, int64_t first, int64_t count, int64_t k0, int64_t kc,
                   int64_t width, T* dst) const {
    patches_.Pack(static_cast<const uint8_t*>(input), InputOffset(product / outer_), product % outer_ * count_ + first,
                  count, k0, kc, width, dst);
  }

 private:
  bool IsSwapped() const {
    int64_t all = 1;
    for (const ConvPositions::Dim& d : positions_.dims()) all *= d.size;
    return features_ < micro_.nr / 2 && all >= features_;
  }
  // The innermost dimensions whose positions lie at a constant distance are one.
  void MergeDims() {
    const auto& dims = positions_.dims();
    first_merged_ = static_cast<int>(dims.size()) - 1;
    while (first_merged_ > 0 &&
           (dims[first_merged_ - 1].size == 1 ||
            dims[first_merged_ - 1].stride == dims[first_merged_].stride * dims[first_merged_].size))
      --first_merged_;
    even_ = first_merged_ == 0;
    if (!swapped_) first_merged_ = 0;
    for (int d = 0; d < static_cast<int>(dims.size()); ++d) (d < first_merged_ ? outer_ : count_) *= dims[d].size;
  }

  const ConvProblem p_;
  const MicroTable<T>& micro_;
  const ConvPositions positions_;
  const int64_t groups_, features_, tap_k_;
  const bool swapped_;
  const WeightPacker<T> weights_;
  const PatchPacker<T> patches_;
  int first_merged_ = 0;
  bool even_ = false;  // all positions of the output lie at a constant distance
  int64_t outer_ = 1, count_ = 1;
};

template <class T>
PanelProblem ConvProduct<T>::ForPanels() const {
  PanelProblem problem;
  problem.batch = groups_, problem.outer = outer_, problem.m = m(), problem.n = n(), problem.k = k();
  problem.c = p_.output_type;
  problem.shared = swapped_ ? SharedOperand::A : SharedOperand::B;
  (swapped_ ? problem.a_across : problem.b_across) = p_.kernel_out_stride == 1;
  problem.bias = micro_.bias;
  problem.target_bytes_per_row = swapped_ ? 0 : static_cast<int64_t>(sizeof(int64_t));
  return problem;
}

template <class T>
StoreTarget ConvProduct<T>::Target(uint8_t* output, int64_t product, int64_t first_row, int64_t rows,
                                   int64_t* offsets) const {
  const auto& dims = positions_.dims();
  int64_t outer = product % outer_, at = product / outer_ * features_ * p_.output_feature_stride;
  for (int d = first_merged_ - 1; d >= 0; --d) {
    at += outer % dims[d].size * dims[d].stride;
    outer /= dims[d].size;
  }
  StoreTarget target{p_.output_type, output + at * Bytes(p_.output_type), dims.back().stride, p_.output_feature_stride};
  if (swapped_) {
    std::swap(target.row_stride, target.col_stride);
    return target;
  }
  if (even_) return target;
  positions_.OutputOffsets(first_row, rows, offsets);
  target.rows = offsets;
  target.first_row = first_row;
  return target;
}

// The matrices of a group and of one of its outer positions: product group * outer + outer position.
template <class T>
class ConvOperands : public PanelOperands<T> {
 public:
  // `finite` becomes false where a weight that is packed is not.
  ConvOperands(const ConvProduct<T>& conv, const ConvCall& call, bool* finite = nullptr)
      : conv_(conv), call_(call), finite_(finite) {}
  void PackA(int64_t product, int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width,
             T* dst) const override {
    Pack(conv_.swapped(), product, first, count, k0, kc, width, dst);
  }
  void PackB(int64_t product, int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width,
             T* dst) const override {
    Pack(!conv_.swapped(), product, first, count, k0, kc, width, dst);
  }
  StoreTarget Target(int64_t product, int64_t first_row, int64_t rows, void* memory) const override {
    return conv_.Target(static_cast<uint8_t*>(call_.output), product, first_row, rows, static_cast<int64_t*>(memory));
  }

 private:
  void Pack(bool kernel, int64_t product, int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width,
            T* dst) const {
    if (!kernel) return conv_.PackPatches(call_.input, product, first, count, k0, kc, width, dst);
    conv_.PackWeights(call_.kernel, product, first, count, k0, kc, width, dst);
    if (finite_) *finite_ &= conv_.micro().all_finite(conv_.micro().Units(kc) * width, dst);
  }
  const ConvProduct<T>& conv_;
  const ConvCall& call_;
  bool* finite_;
};

}  // namespace strop::cpu
