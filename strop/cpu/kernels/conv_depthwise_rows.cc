// Depthwise convolution of channels that are contiguous, and the gradient of its kernel: no sum over features, so that
// both are a matter of memory. A vector of channels is summed over all taps in registers, for eight positions of a row
// at a time; the gradient is summed over runs of positions (ProductRun), in parts of the images that are added in
// order.
#include <algorithm>
#include <cstring>

#include "strop/cpu/kernels/accumulator_type.h"
#include "strop/cpu/kernels/conv_taps.h"
#include "strop/cpu/kernels/gemm.h"

namespace strop::cpu {
namespace {

constexpr int64_t kTaskProducts = int64_t{1} << 17;

template <class T>
class DepthwiseRowsConv final : public Conv {
 public:
  DepthwiseRowsConv(const ConvProblem& p, const GemmIsa& isa) : p_(p), taps_(p), micro_(MicroOf<T>(isa)) {
    const ConvSpatialDim& row = p.spatial.back();
    rows_ = row.output > 0 ? p.batch : 0;
    for (size_t d = 0; d + 1 < p.spatial.size(); ++d) rows_ *= p.spatial[d].output;
    // Positions between two of these find the same taps of their row inside.
    std::vector<int64_t> bounds = {0, row.output};
    for (int64_t w = 0; w < row.kernel; ++w) {
      const Range inside = InsideOf(w);
      bounds.push_back(inside.begin);
      bounds.push_back(inside.end);
    }
    std::sort(bounds.begin(), bounds.end());
    bounds.erase(std::unique(bounds.begin(), bounds.end()), bounds.end());
    bounds_ = std::move(bounds);
    const int64_t row_products = std::max<int64_t>(1, row.output * p.out_features * taps_.count);
    rows_a_task_ = std::max<int64_t>(1, kTaskProducts / row_products);
    num_tasks_ = CeilDiv(rows_, rows_a_task_);
    scratch_bytes_ = 2 * taps_.count * static_cast<int64_t>(sizeof(T*)) + 64;
    tiles_ = StrCat("depthwise, ", p.out_features, " channels in vectors, ", rows_a_task_, " rows of ", row.output,
                    " a task");
  }

  void Run(const ConvCall& call, int64_t begin, int64_t end, void* scratch) const override {
    const T** x = reinterpret_cast<const T**>((reinterpret_cast<uintptr_t>(scratch) + 63) / 64 * 64);
    for (int64_t row = begin * rows_a_task_; row < std::min(rows_, end * rows_a_task_); ++row)
      Row(call, row, x, x + taps_.count);
  }

 private:
  struct Range {
    int64_t begin, end;
  };

  // Where tap w of the last dimension finds output 0; the outputs for which it lies inside.
  int64_t StartOf(int64_t w) const {
    const ConvSpatialDim& row = p_.spatial.back();
    return (row.reversal ? row.kernel - 1 - w : w) * row.window_dilation - row.pad_low;
  }
  Range InsideOf(int64_t w) const {
    const ConvSpatialDim& row = p_.spatial.back();
    const int64_t start = StartOf(w);
    const int64_t begin = start < 0 ? std::min(CeilDiv(-start, row.stride), row.output) : 0;
    const int64_t end = start < row.input ? std::min(CeilDiv(row.input - start, row.stride), row.output) : 0;
    return {begin, std::max(begin, end)};
  }

  void Row(const ConvCall& call, int64_t rest, const T** x, const T** w) const {
    const size_t last = p_.spatial.size() - 1;
    const ConvSpatialDim& row = p_.spatial[last];
    int64_t at[8], out = 0;
    for (size_t d = last; d-- > 0;) {
      at[d] = rest % p_.spatial[d].output;
      rest /= p_.spatial[d].output;
      out += at[d] * p_.spatial[d].output_stride;
    }
    const T* input = static_cast<const T*>(call.input) + rest * p_.input_batch_stride;
    T* output = static_cast<T*>(call.output) + out + rest * p_.output_batch_stride;
    for (size_t b = 0; b + 1 < bounds_.size(); ++b) {
      int64_t count = 0;
      for (int64_t tap = 0; tap < taps_.count; ++tap) {
        const int64_t* index = taps_.index.data() + tap * (last + 1);
        const Range inside = InsideOf(index[last]);
        if (inside.begin > bounds_[b] || inside.end < bounds_[b + 1]) continue;
        int64_t from = (StartOf(index[last]) + bounds_[b] * row.stride) * row.input_stride;
        bool outside = false;
        for (size_t d = 0; d < last; ++d) {
          const int64_t i = InputIndex(p_.spatial[d], at[d], index[d]);
          outside |= i < 0;
          from += i * p_.spatial[d].input_stride;
        }
        if (outside) continue;
        x[count] = input + from;
        w[count++] = static_cast<const T*>(call.kernel) + taps_.kernel_offset[tap];
      }
      micro_.taps(count, x, w, bounds_[b + 1] - bounds_[b], row.stride * row.input_stride, p_.out_features,
                  output + bounds_[b] * row.output_stride, row.output_stride);
    }
  }

  ConvProblem p_;
  Taps taps_;
  const MicroTable<T>& micro_;
  std::vector<int64_t> bounds_;
  int64_t rows_ = 1, rows_a_task_ = 1;
};

template <class T>
class DepthwiseGradientConv final : public Conv {
 public:
  DepthwiseGradientConv(const ConvProblem& p, const GemmIsa& isa) : p_(p), micro_(MicroOf<T>(isa)) {
    const ConvSpatialDim& row = p.spatial.back();
    lines_ = p.in_features;
    for (const ConvSpatialDim& d : p.spatial) outputs_ *= d.output;
    for (size_t d = 0; d + 1 < p.spatial.size(); ++d) lines_ *= p.spatial[d].kernel;
    lines_a_piece_ = std::clamp<int64_t>(kPiecePositions / row.kernel, 1, kMostLines);
    const int64_t pieces = CeilDiv(lines_, lines_a_piece_);
    sums_ = outputs_ * p.out_features;
    const int64_t parts = std::clamp<int64_t>(kMostSums / sums_, 1, kMostParts);
    lines_a_part_ = CeilDiv(pieces, parts) * lines_a_piece_;
    prepare_tasks_ = CeilDiv(lines_, lines_a_part_);
    shared_bytes_ = prepare_tasks_ * sums_ * static_cast<int64_t>(sizeof(T)) + 64;
    num_tasks_ = CeilDiv(sums_, kSumsATask);
    tiles_ = StrCat("depthwise, ", p.out_features, " channels in vectors, ", prepare_tasks_, " parts of ",
                    lines_a_part_, " rows of ", row.kernel);
  }

  void Prepare(const ConvCall& call, int64_t begin, int64_t end) const override {
    for (; begin < end; ++begin) {
      T* sums = Parts(call) + begin * sums_;
      std::memset(sums, 0, sums_ * sizeof(T));
      const int64_t last = std::min((begin + 1) * lines_a_part_, lines_);
      for (int64_t line = begin * lines_a_part_; line < last; line += lines_a_piece_)
        Piece(call, line, std::min(line + lines_a_piece_, last), sums);
    }
  }

  void Run(const ConvCall& call, int64_t begin, int64_t end, void*) const override {
    T* sums = Parts(call);
    for (int64_t i = begin * kSumsATask; i < std::min(end * kSumsATask, sums_);
         i += p_.out_features - i % p_.out_features) {
      const int64_t n = std::min({p_.out_features - i % p_.out_features, end * kSumsATask - i, sums_ - i});
      for (int64_t part = 1; part < prepare_tasks_; ++part)
        for (int64_t c = 0; c < n; ++c) sums[i + c] += sums[part * sums_ + i + c];
      T* output = static_cast<T*>(call.output) + i % p_.out_features * p_.output_feature_stride;
      int64_t rest = i / p_.out_features;
      for (size_t d = p_.spatial.size(); d-- > 0;) {
        output += rest % p_.spatial[d].output * p_.spatial[d].output_stride;
        rest /= p_.spatial[d].output;
      }
      for (int64_t c = 0; c < n; ++c) output[c * p_.output_feature_stride] = sums[i + c];
    }
  }

 private:
  static constexpr int64_t kPiecePositions = 64;  // that the cache holds while all taps go over them
  static constexpr int64_t kMostLines = 64, kMostParts = 32, kMostSums = 1 << 22, kSumsATask = 1 << 12;

  static T* Parts(const ConvCall& call) {
    return reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(call.shared) + 63) / 64 * 64);
  }

  void Piece(const ConvCall& call, int64_t begin, int64_t end, T* sums) const {
    const ConvSpatialDim& row = p_.spatial.back();
    for (int64_t o = 0; o < outputs_; ++o, sums += p_.out_features) {
      int64_t at[8], rest = o, count = 0;
      for (size_t d = p_.spatial.size(); d-- > 0;) {
        at[d] = rest % p_.spatial[d].output;
        rest /= p_.spatial[d].output;
      }
      ProductRun runs[kMostLines];
      for (int64_t line = begin; line < end; ++line) count += PositionsInside(p_, at, line, runs[count]);
      if (count > 0)
        micro_.run_products(runs, count, static_cast<const T*>(call.input), row.window_dilation * row.input_stride,
                            static_cast<const T*>(call.kernel), row.kernel_stride, p_.out_features, sums);
    }
  }

  ConvProblem p_;
  const MicroTable<T>& micro_;
  int64_t outputs_ = 1, sums_ = 0;
  int64_t lines_ = 1, lines_a_piece_ = 1, lines_a_part_ = 1;
};

bool OwnTypes(const ConvProblem& p) {
  return p.input_type == p.kernel_type && p.input_type == p.output_type &&
         (p.input_type == ElementType::F32 || p.input_type == ElementType::F64);
}

template <template <class> class C>
std::shared_ptr<const Conv> Make(const ConvProblem& p, const GemmIsa& isa) {
  if (p.input_type == ElementType::F64) return std::make_shared<C<double>>(p, isa);
  return std::make_shared<C<float>>(p, isa);
}

}  // namespace

bool IsDepthwiseByRows(const ConvProblem& p) {
  if (!OwnTypes(p) || !IsDepthwise(p)) return false;
  for (const ConvSpatialDim& d : p.spatial)
    if (d.base_dilation != 1 || d.kernel == 0) return false;
  return p.input_feature_stride == 1 && p.output_feature_stride == 1 && p.kernel_out_stride == 1;
}

bool IsDepthwiseGradient(const ConvProblem& p) {
  if (!OwnTypes(p) || p.spatial.empty() || p.in_features == 0) return false;
  for (const ConvSpatialDim& d : p.spatial)
    if (d.base_dilation != 1 || d.reversal || d.kernel == 0 || d.output == 0) return false;
  return p.batch_groups > 1 && p.batch == 1 && p.out_features == p.batch_groups && p.input_batch_stride == 1 &&
         p.kernel_out_stride == 1;
}

Result<std::shared_ptr<const Conv>> MakeDepthwiseRowsConv(const ConvProblem& p, const GemmIsa& isa) {
  return Make<DepthwiseRowsConv>(p, isa);
}

Result<std::shared_ptr<const Conv>> MakeDepthwiseGradientConv(const ConvProblem& p, const GemmIsa& isa) {
  return Make<DepthwiseGradientConv>(p, isa);
}

}  // namespace strop::cpu
