#include "strop/cpu/kernels/scatter.h"

#include <algorithm>

#include "strop/cpu/kernels/combine.h"
#include "strop/cpu/kernels/gemm.h"

namespace strop::cpu {
namespace {

// Steps through a box of sizes in row-major order; false after the last.
bool Next(std::vector<int64_t>& at, const std::vector<int64_t>& sizes, size_t dims) {
  for (size_t d = dims; d-- > 0;) {
    if (++at[d] < sizes[d]) return true;
    at[d] = 0;
  }
  return false;
}

}  // namespace

Status CheckScatter(const ScatterProblem& p) {
  if (!FindCombine(p.type, p.combine)) return Unimplemented("scatter that combines ", Name(p.type), " so");
  return OkStatus();
}

void RunScatter(const ScatterProblem& p, void* operand, const void* indices, const void* updates) {
  const CombineFn combine = FindCombine(p.type, p.combine);
  const size_t rank = p.operand_dims.size(), windows = p.window_dims.size(), scatters = p.scatter_dims.size();
  std::vector<int64_t> operand_strides(rank, 1);
  for (size_t d = rank; d-- > 1;) operand_strides[d - 1] = operand_strides[d] * p.operand_dims[d];
  for (int64_t s : p.scatter_dims)
    if (s == 0) return;
  for (int64_t w : p.window_dims)
    if (w == 0) return;
  std::vector<int64_t> s(scatters, 0), w(windows, 0), start(rank);
  do {
    std::fill(start.begin(), start.end(), 0);
    int64_t index_at = 0, update_base = 0;
    for (size_t d = 0; d < scatters; ++d) {
      index_at += s[d] * p.scatter_index_strides[d];
      update_base += s[d] * p.scatter_update_strides[d];
    }
    for (size_t c = 0; c < p.index_operand_dims.size(); ++c)
      start[p.index_operand_dims[c]] =
          LoadAs<int64_t>(p.index_type, indices, index_at + static_cast<int64_t>(c) * p.index_component_stride);
    for (size_t b = 0; b < p.batch_scatter_dims.size(); ++b)
      start[p.batch_operand_dims[b]] = s[p.batch_scatter_dims[b]];
    // Dimensions that no window walks along are checked once, the innermost window dimension by cutting its run.
    std::fill(w.begin(), w.end(), 0);
    const size_t outer = windows == 0 ? 0 : windows - 1;
    do {
      int64_t to = 0, from = update_base;
      std::vector<int64_t>& at = start;
      bool inside = true;
      for (size_t d = 0; d < outer; ++d) from += w[d] * p.window_update_strides[d];
      for (size_t d = 0; d < rank && inside; ++d) {
        int64_t i = at[d];
        if (i < -(int64_t{1} << 62) || i > (int64_t{1} << 62)) {
          inside = false;
          break;
        }
        for (size_t v = 0; v < outer; ++v)
          if (p.window_operand_dims[v] == static_cast<int64_t>(d)) i += w[v];
        // The innermost window dimension is cut to its part inside, below; indices can be any 64-bit number.
        const bool innermost = windows > 0 && p.window_operand_dims[outer] == static_cast<int64_t>(d);
        inside = i > (innermost ? -p.window_dims[outer] : -1) && i < p.operand_dims[d];
        if (inside) to += i * operand_strides[d];
      }
      if (inside) {
        if (windows == 0) {
          combine(operand, to, 1, updates, from, 1, 1);
        } else {
          const int64_t d = p.window_operand_dims[outer];
          const int64_t first = std::max<int64_t>(0, -at[d]),
                        end = std::min(p.window_dims[outer], p.operand_dims[d] - at[d]);
          if (first < end)
            combine(operand, to + first * operand_strides[d], operand_strides[d], updates,
                    from + first * p.window_update_strides[outer], p.window_update_strides[outer], end - first);
        }
      }
    } while (Next(w, p.window_dims, outer));
  } while (Next(s, p.scatter_dims, scatters));
}

}  // namespace strop::cpu
