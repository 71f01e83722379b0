// Operands of a convolution whose elements lie densely, in whatever order: they may be read as one vector.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "strop/cpu/kernels/conv.h"

namespace strop::cpu {

// How many elements an operand has if they lie densely, in whatever order, else 0. `dims` are sizes and strides.
inline int64_t DenseElements(std::vector<std::pair<int64_t, int64_t>> dims) {
  std::sort(dims.begin(), dims.end(), [](const auto& x, const auto& y) { return x.second < y.second; });
  int64_t elements = 1;
  for (const auto& [size, stride] : dims) {
    if (size != 1 && stride != elements) return 0;
    elements *= size;
  }
  return elements;
}

inline int64_t DenseInputElements(const ConvProblem& p) {
  std::vector<std::pair<int64_t, int64_t>> dims = {{p.batch * p.batch_groups, p.input_batch_stride},
                                                   {p.in_features * p.feature_groups, p.input_feature_stride}};
  for (const ConvSpatialDim& d : p.spatial) dims.emplace_back(d.input, d.input_stride);
  return DenseElements(std::move(dims));
}

inline int64_t DenseKernelElements(const ConvProblem& p) {
  std::vector<std::pair<int64_t, int64_t>> dims = {{p.in_features, p.kernel_in_stride},
                                                   {p.out_features, p.kernel_out_stride}};
  for (const ConvSpatialDim& d : p.spatial) dims.emplace_back(d.kernel, d.kernel_stride);
  return DenseElements(std::move(dims));
}

inline int64_t DenseOutputElements(const ConvProblem& p) {
  std::vector<std::pair<int64_t, int64_t>> dims = {{p.batch, p.output_batch_stride},
                                                   {p.out_features, p.output_feature_stride}};
  for (const ConvSpatialDim& d : p.spatial) dims.emplace_back(d.output, d.output_stride);
  return DenseElements(std::move(dims));
}

}  // namespace strop::cpu
