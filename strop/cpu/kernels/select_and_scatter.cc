#include "strop/cpu/kernels/select_and_scatter.h"

#include <algorithm>
#include <cstring>

#include "strop/cpu/kernels/combine.h"
#include "strop/cpu/kernels/gemm.h"

namespace strop::cpu {
namespace {

bool IndependentAlongFirst(const SelectAndScatterProblem& p) {
  if (p.dims.empty()) return false;
  const SelectAndScatterDim& d = p.dims[0];
  return d.window == 1 && d.stride == 1 && d.pad_low == 0 && d.input == d.source;
}

template <class T>
bool Keeps(SelectCompare select, T earlier, T later) {
  switch (select) {
    case SelectCompare::kGe: return earlier >= later;
    case SelectCompare::kGt: return earlier > later;
    case SelectCompare::kLe: return earlier <= later;
    case SelectCompare::kLt: return earlier < later;
  }
  return true;
}

// Reads elements as T: straight for f32 and f64, converted for the rest.
template <class T, bool kNative>
struct Reader {
  ElementType type;
  const void* data;
  T operator()(int64_t i) const {
    if constexpr (kNative)
      return static_cast<const T*>(data)[i];
    else
      return LoadAs<T>(type, data, i);
  }
};

template <class T, bool kNative>
void Run(const SelectAndScatterProblem& p, const void* input, const void* source, const void* init, void* output,
         int64_t begin, int64_t end) {
  const size_t rank = p.dims.size();
  const CombineFn combine = FindCombine(p.type, p.combine);
  const int64_t width = Bytes(p.type);
  const Reader<T, kNative> read{p.type, input};
  std::vector<int64_t> in_strides(rank, 1), source_strides(rank, 1);
  for (size_t d = rank; d-- > 1;) {
    in_strides[d - 1] = in_strides[d] * p.dims[d].input;
    source_strides[d - 1] = source_strides[d] * p.dims[d].source;
  }
  const bool sliced = IndependentAlongFirst(p);
  const int64_t slice = rank == 0 ? 1 : in_strides[0] * (sliced ? 1 : p.dims[0].input);
  for (int64_t i = begin * slice; i < end * slice; ++i)
    std::memcpy(static_cast<uint8_t*>(output) + i * width, init, width);
  std::vector<int64_t> at(rank, 0), w(rank, 0);
  int64_t first = 0, last = 1;
  if (rank > 0) {
    first = sliced ? begin : 0;
    last = sliced ? end : p.dims[0].source;
    for (size_t d = 1; d < rank; ++d)
      if (p.dims[d].source == 0) return;
    at[0] = first;
  }
  if (first >= last) return;
  for (bool more = true; more;) {
    int64_t best = -1, source_at = 0;
    T best_value{};
    for (size_t d = 0; d < rank; ++d) source_at += at[d] * source_strides[d];
    std::fill(w.begin(), w.end(), 0);
    for (bool window = true; window;) {
      int64_t index = 0;
      bool inside = true;
      for (size_t d = 0; d < rank && inside; ++d) {
        const SelectAndScatterDim& dim = p.dims[d];
        const int64_t i = at[d] * dim.stride - dim.pad_low + w[d] * dim.window_dilation;
        inside = i >= 0 && i < dim.input;
        index += i * in_strides[d];
      }
      if (inside) {
        const T value = read(index);
        if (best < 0 || !Keeps(p.select, best_value, value)) {
          best = index;
          best_value = value;
        }
      }
      window = false;
      for (size_t d = rank; d-- > 0;) {
        if (++w[d] < p.dims[d].window) {
          window = true;
          break;
        }
        w[d] = 0;
      }
    }
    if (best >= 0) combine(output, best, 1, source, source_at, 1, 1);
    more = false;
    for (size_t d = rank; d-- > 0;) {
      if (++at[d] < (d == 0 ? last : p.dims[d].source)) {
        more = true;
        break;
      }
      at[d] = 0;
      if (d == 0) break;
    }
  }
}

}  // namespace

Status CheckSelectAndScatter(const SelectAndScatterProblem& p) {
  if (IsComplex(p.type) || p.type == ElementType::U64 || !FindCombine(p.type, p.combine))
    return Unimplemented("select-and-scatter of ", Name(p.type));
  return OkStatus();
}

int64_t SelectAndScatterTasks(const SelectAndScatterProblem& p) {
  return IndependentAlongFirst(p) ? std::max<int64_t>(1, p.dims[0].input) : 1;
}

void RunSelectAndScatter(const SelectAndScatterProblem& p, const void* input, const void* source, const void* init,
                         void* output, int64_t begin, int64_t end) {
  switch (p.type) {
    case ElementType::F32: return Run<float, true>(p, input, source, init, output, begin, end);
    case ElementType::F64: return Run<double, true>(p, input, source, init, output, begin, end);
    default:
      if (IsFloat(p.type)) return Run<float, false>(p, input, source, init, output, begin, end);
      return Run<int64_t, false>(p, input, source, init, output, begin, end);
  }
}

}  // namespace strop::cpu
