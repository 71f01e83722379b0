// Depthwise convolution: one input feature a group has no sum over features to block for. A task owns a run of lines:
// positions with all their channels where channels are contiguous, rows of one channel otherwise; a tap adds to a whole
// line at once. Elements of other types than the sums' are converted a line at a time.
#include <algorithm>
#include <climits>
#include <cstring>

#include "strop/cpu/kernels/accumulator_type.h"
#include "strop/cpu/kernels/conv_taps.h"
#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/rounding.h"

namespace strop::cpu {
namespace {

constexpr int64_t kSlack = 64;  // converting writes up to a vector beyond a line

template <class T>
class DepthwiseConv final : public Conv {
 public:
  DepthwiseConv(const ConvProblem& p, const GemmIsa& isa) : p_(p), taps_(p), micro_(MicroOf<T>(isa)) {
    channels_last_ = p.input_feature_stride == 1 && p.output_feature_stride == 1 && p.kernel_out_stride == 1;
    for (const ConvSpatialDim& d : p.spatial) positions_ *= d.output;
    const ConvSpatialDim& row = p.spatial.back();
    lines_ = channels_last_ ? p.batch * positions_
                            : p.batch * p.out_features * (positions_ / std::max<int64_t>(1, row.output));
    line_ = channels_last_ ? p.out_features : row.output;
    input_line_ = channels_last_ ? line_ : row.input;
    per_task_ = std::max<int64_t>(1, (int64_t{1} << 17) / std::max<int64_t>(1, line_ * taps_.count));
    num_tasks_ = CeilDiv(lines_, per_task_);
    // Sums, a line of input, and the kernel.
    const int64_t kernel = IsOwn(p.kernel_type) ? 0 : taps_.count * p.out_features;
    scratch_bytes_ = (line_ + input_line_ + kernel) * static_cast<int64_t>(sizeof(T)) + 3 * (64 + kSlack);
    tiles_ = StrCat("depthwise over ", channels_last_ ? "channels" : "rows", ", ", per_task_, " lines of ", line_,
                    " a task");
  }

  void Run(const ConvCall& call, int64_t begin, int64_t end, void* scratch) const override {
    const auto [input, kernel, output, round, shared] = call;
    Lines lines;
    lines.sums = Aligned(scratch);
    lines.input = Aligned(lines.sums + line_ + kSlack / sizeof(T));
    lines.kernel = static_cast<const T*>(kernel);
    if (!IsOwn(p_.kernel_type)) {
      T* converted = Aligned(lines.input + input_line_ + kSlack / sizeof(T));
      for (int64_t tap = 0; tap < taps_.count; ++tap)
        Convert(p_.kernel_type, static_cast<const uint8_t*>(kernel), taps_.kernel_offset[tap], p_.kernel_out_stride,
                p_.out_features, converted + tap * p_.out_features);
      lines.kernel = converted;
    }
    for (int64_t line = begin * per_task_; line < std::min(lines_, end * per_task_); ++line) {
      lines.converted = -1;
      if (channels_last_)
        Position(static_cast<const uint8_t*>(input), lines, static_cast<uint8_t*>(output), line);
      else
        Row(static_cast<const uint8_t*>(input), lines, static_cast<uint8_t*>(output), line);
    }
  }

 private:
  struct Lines {
    T *sums, *input;
    const T* kernel;
    int64_t converted = -1;  // where the line in `input` comes from
  };

  static bool IsOwn(ElementType type) { return type == ElementTypeOf<T>(); }
  static T* Aligned(void* at) { return reinterpret_cast<T*>((reinterpret_cast<uintptr_t>(at) + 63) / 64 * 64); }

  // `n` elements from `first` on, `stride` apart.
  void Convert(ElementType type, const uint8_t* data, int64_t first, int64_t stride, int64_t n, T* to) const {
    if (const PackPanel<T> pack = PackerOf(micro_, type))
      return pack(data + first * Bytes(type), stride, INT_MAX, n, 1, n, to);
    for (int64_t i = 0; i < n; ++i) to[i] = LoadAs<T>(type, data, first + i * stride);
  }

  // The input line that starts at element `first`.
  const T* InputLine(const uint8_t* input, int64_t first, int64_t stride, Lines& lines) const {
    if (IsOwn(p_.input_type) && stride == 1) return reinterpret_cast<const T*>(input) + first;
    if (lines.converted != first) Convert(p_.input_type, input, first, stride, input_line_, lines.input);
    lines.converted = first;
    return lines.input;
  }

  const T* KernelLine(const Lines& lines, int64_t tap) const {
    return lines.kernel + (IsOwn(p_.kernel_type) ? taps_.kernel_offset[tap] : tap * p_.out_features);
  }

  // Where tap `tap` of the outer `rank` dimensions reads; negative outside.
  int64_t Offset(const int64_t* at, int64_t tap, size_t rank) const {
    int64_t from = 0;
    for (size_t d = 0; d < rank; ++d) {
      const int64_t i = InputIndex(p_.spatial[d], at[d], taps_.index[tap * p_.spatial.size() + d]);
      if (i < 0) return -1;
      from += i * p_.spatial[d].input_stride;
    }
    return from;
  }

  // Decodes the position of a line in the outer `rank` dimensions; returns its place in the output and what is left.
  int64_t Decode(int64_t& rest, size_t rank, int64_t* at) const {
    int64_t out = 0;
    for (size_t d = rank; d-- > 0;) {
      at[d] = rest % p_.spatial[d].output;
      rest /= p_.spatial[d].output;
      out += at[d] * p_.spatial[d].output_stride;
    }
    return out;
  }

  void Position(const uint8_t* input, Lines& lines, uint8_t* output, int64_t rest) const {
    int64_t at[8];
    const size_t rank = p_.spatial.size();
    const int64_t out = Decode(rest, rank, at) + rest * p_.output_batch_stride;
    const bool direct = IsOwn(p_.output_type);
    T* sums = direct ? reinterpret_cast<T*>(output) + out : lines.sums;
    std::memset(sums, 0, line_ * sizeof(T));
    for (int64_t tap = 0; tap < taps_.count; ++tap) {
      const int64_t from = Offset(at, tap, rank);
      if (from < 0) continue;
      micro_.multiply_add(line_, InputLine(input, from + rest * p_.input_batch_stride, 1, lines),
                          KernelLine(lines, tap), sums);
    }
    if (!direct) StoreTile<T>({p_.output_type, output, 0, 1}, 0, out, 1, line_, sums, line_, false);
  }

  void Row(const uint8_t* input, Lines& lines, uint8_t* output, int64_t rest) const {
    const size_t rank = p_.spatial.size();
    const ConvSpatialDim& row = p_.spatial.back();
    int64_t at[8];
    int64_t out = Decode(rest, rank - 1, at);
    const int64_t channel = rest % p_.out_features, batch = rest / p_.out_features;
    out += channel * p_.output_feature_stride + batch * p_.output_batch_stride;
    const bool direct = row.output_stride == 1 && IsOwn(p_.output_type);
    T* sums = direct ? reinterpret_cast<T*>(output) + out : lines.sums;
    std::memset(sums, 0, line_ * sizeof(T));
    const int64_t weight = channel * (IsOwn(p_.kernel_type) ? p_.kernel_out_stride : 1);
    for (int64_t tap = 0; tap < taps_.count; ++tap) {
      const int64_t from = Offset(at, tap, rank - 1);
      if (from < 0) continue;
      const int64_t first = from + batch * p_.input_batch_stride + channel * p_.input_feature_stride;
      TapOfRow(InputLine(input, first, row.input_stride, lines), KernelLine(lines, tap)[weight],
               taps_.index[tap * rank + rank - 1], sums);
    }
    if (!direct) {
      StoreTarget target{p_.output_type, output + out * Bytes(p_.output_type), 0, row.output_stride};
      StoreTile<T>(target, 0, 0, 1, line_, sums, line_, false);
    }
  }

  // sums[o] += input[index(o)] * weight for the outputs of a row whose tap lies inside.
  void TapOfRow(const T* input, T weight, int64_t tap, T* sums) const {
    const ConvSpatialDim& d = p_.spatial.back();
    if (d.base_dilation == 1 && d.stride == 1) {
      const int64_t shift = (d.reversal ? d.kernel - 1 - tap : tap) * d.window_dilation - d.pad_low;
      const int64_t begin = std::max<int64_t>(0, -shift), end = std::min(d.output, d.input - shift);
      if (begin < end) micro_.scale_add(end - begin, input + begin + shift, weight, sums + begin);
      return;
    }
    for (int64_t o = 0; o < d.output; ++o) {
      const int64_t i = InputIndex(d, o, tap);
      if (i >= 0) sums[o] += input[i] * weight;
    }
  }

  ConvProblem p_;
  Taps taps_;
  const MicroTable<T>& micro_;
  bool channels_last_ = false;
  int64_t positions_ = 1, lines_ = 0, line_ = 0, input_line_ = 0, per_task_ = 1;
};

}  // namespace

bool IsDepthwise(const ConvProblem& p) {
  const ElementType sums = GemmAccumulator(p.input_type, p.kernel_type, p.output_type);
  return p.feature_groups > 1 && p.in_features == 1 && p.out_features == p.feature_groups && !p.spatial.empty() &&
         (sums == ElementType::F32 || sums == ElementType::F64 || sums == ElementType::S32);
}

Result<std::shared_ptr<const Conv>> MakeDepthwiseConv(const ConvProblem& p, const GemmIsa& isa) {
  std::shared_ptr<const Conv> conv;
  switch (GemmAccumulator(p.input_type, p.kernel_type, p.output_type)) {
    case ElementType::F64: conv = std::make_shared<DepthwiseConv<double>>(p, isa); break;
    case ElementType::S32: conv = std::make_shared<DepthwiseConv<int32_t>>(p, isa); break;
    default: conv = std::make_shared<DepthwiseConv<float>>(p, isa); break;
  }
  return conv;
}

}  // namespace strop::cpu
