// SelectAndScatter: for each window of `input`, finds the element that a comparison selects, and combines the window's
// `source` element into the output there; the output starts as `init` everywhere. The gradient of max pooling.
//
// Of two candidates the earlier one (row-major order in the window) stays if compare(earlier, later) holds. Padding is
// no candidate; a window that lies in the padding altogether scatters nothing.
#pragma once
#include <cstdint>
#include <vector>

#include "strop/base/status.h"
#include "strop/cpu/kernels/scatter.h"
#include "strop/types/element_type.h"

namespace strop::cpu {

enum class SelectCompare : uint8_t { kGe, kGt, kLe, kLt };

struct SelectAndScatterDim {
  int64_t input = 1, source = 1;
  int64_t window = 1, stride = 1, pad_low = 0;
  int64_t window_dilation = 1;
};

struct SelectAndScatterProblem {
  ElementType type = ElementType::F32;
  SelectCompare select = SelectCompare::kGe;
  CombineKind combine = CombineKind::kAdd;
  std::vector<SelectAndScatterDim> dims;
};

Status CheckSelectAndScatter(const SelectAndScatterProblem& problem);
// Slices along the first dimension that share no window: 1 if that dimension has windows.
int64_t SelectAndScatterTasks(const SelectAndScatterProblem& problem);
void RunSelectAndScatter(const SelectAndScatterProblem& problem, const void* input, const void* source,
                         const void* init, void* output, int64_t task_begin, int64_t task_end);

}  // namespace strop::cpu
