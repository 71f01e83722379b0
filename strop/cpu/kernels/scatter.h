// Scatter: operand[start(s) + w] = operand[...] combined with update[s, w], for every scatter position s in row-major
// order and every element w of its window; elements outside the operand are left out. One after the other, so that
// repeated indices combine in a fixed order.
#pragma once
#include <cstdint>
#include <memory>
#include <vector>

#include "strop/base/status.h"
#include "strop/types/element_type.h"

namespace strop::cpu {

enum class CombineKind : uint8_t { kReplace, kAdd, kMultiply, kMinimum, kMaximum, kAnd, kOr };

struct ScatterProblem {
  ElementType type = ElementType::F32, index_type = ElementType::S32;
  CombineKind combine = CombineKind::kReplace;
  std::vector<int64_t> operand_dims;
  // Scatter positions: sizes, and strides into the updates and into the indices.
  std::vector<int64_t> scatter_dims, scatter_update_strides, scatter_index_strides;
  // Window: one entry per update window dimension: size, stride in the updates, operand dimension that it walks along.
  std::vector<int64_t> window_dims, window_update_strides, window_operand_dims;
  // Component c of the index vector moves along operand dimension index_operand_dims[c].
  int64_t index_component_stride = 1;
  std::vector<int64_t> index_operand_dims;
  // Batching: scatter dimension batch_scatter_dims[i] is also the index along operand dimension batch_operand_dims[i].
  std::vector<int64_t> batch_scatter_dims, batch_operand_dims;
};

// Unimplemented for a combination of type and combiner that has no meaning.
Status CheckScatter(const ScatterProblem& problem);
// In place on `operand`.
void RunScatter(const ScatterProblem& problem, void* operand, const void* indices, const void* updates);

}  // namespace strop::cpu
