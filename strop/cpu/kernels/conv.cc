#include "strop/cpu/kernels/conv.h"

#include <algorithm>
#include <climits>
#include <cstring>

#include "strop/cpu/kernels/accumulator_type.h"
#include "strop/cpu/kernels/gemm.h"

namespace strop::cpu {
namespace {

int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Index of the input element that tap `w` of output `o` reads along a dimension, or -1 for padding and dilation holes.
int64_t InputIndex(const ConvSpatialDim& d, int64_t o, int64_t w) {
  const int64_t at = o * d.stride - d.pad_low + (d.reversal ? d.kernel - 1 - w : w) * d.window_dilation;
  if (at < 0) return -1;
  if (d.base_dilation != 1) {
    if (at % d.base_dilation != 0) return -1;
    const int64_t i = at / d.base_dilation;
    return i < d.input ? i : -1;
  }
  return at < d.input ? at : -1;
}

// The taps of the kernel as one list.
struct Taps {
  int64_t count = 1;
  std::vector<int64_t> index;          // [tap][dim]
  std::vector<int64_t> kernel_offset;  // [tap]
  explicit Taps(const ConvProblem& p) {
    const size_t rank = p.spatial.size();
    for (const ConvSpatialDim& d : p.spatial) count *= d.kernel;
    for (int64_t t = 0; t < count; ++t) {
      int64_t rest = t, offset = 0;
      std::vector<int64_t> at(rank);
      for (size_t n = rank; n-- > 0;) {
        at[n] = rest % p.spatial[n].kernel;
        rest /= p.spatial[n].kernel;
        offset += at[n] * p.spatial[n].kernel_stride;
      }
      index.insert(index.end(), at.begin(), at.end());
      kernel_offset.push_back(offset);
    }
  }
};

// ---- implicit GEMM
// ------------------------------------------------------------------------------------------------------

// Where the taps of a dimension find their input: [output][tap], in elements; kOutside in padding and dilation holes.
// Sums of offsets with a kOutside among them stay negative.
constexpr int64_t kOutside = -(int64_t{1} << 56);
constexpr int64_t kLargestTable = int64_t{1} << 20;

class DimOffsets {
 public:
  explicit DimOffsets(const ConvSpatialDim& d) : dim_(d) {
    if (d.output > kLargestTable / std::max<int64_t>(1, d.kernel)) return;  // computed at each use
    for (int64_t o = 0; o < d.output; ++o)
      for (int64_t w = 0; w < d.kernel; ++w) table_.push_back(Compute(o, w));
  }
  int64_t At(int64_t o, int64_t w) const { return table_.empty() ? Compute(o, w) : table_[o * dim_.kernel + w]; }

 private:
  int64_t Compute(int64_t o, int64_t w) const {
    const int64_t i = InputIndex(dim_, o, w);
    return i < 0 ? kOutside : i * dim_.input_stride;
  }
  ConvSpatialDim dim_;
  std::vector<int64_t> table_;
};

// The rows of the product are the output positions of all images, in the order in which they lie in memory, so that
// neighbours read neighbours. Where a group has few features the roles are swapped, and positions are the columns: then
// they must lie at a constant distance, and the outer dimensions that do not fit are a loop around.
template <class T>
class GemmConv final : public Conv {
 public:
  explicit GemmConv(const ConvProblem& p) : p_(p), taps_(p), micro_(MicroOf<T>(BestGemmIsa())) {
    groups_ = std::max(p.feature_groups, p.batch_groups);
    features_ = p.out_features / groups_;
    rank_ = static_cast<int>(p.spatial.size());
    dims_.push_back({p.batch, p.output_batch_stride, 0});
    for (int d = 0; d < rank_; ++d) {
      dims_.push_back({p.spatial[d].output, p.spatial[d].output_stride, d + 1});
      offsets_.emplace_back(p.spatial[d]);
    }
    // Dimensions of one element have no distance: they go first, out of the way.
    std::stable_sort(dims_.begin(), dims_.end(), [](const Dim& a, const Dim& b) {
      return (a.size == 1 ? INT64_MAX : a.stride) > (b.size == 1 ? INT64_MAX : b.stride);
    });
    int64_t all = 1;
    for (const Dim& d : dims_) all *= d.size;
    swapped_ = features_ < micro_.nr / 2 && all >= features_;
    first_merged_ = static_cast<int>(dims_.size()) - 1;
    while (first_merged_ > 0 &&
           (dims_[first_merged_ - 1].size == 1 ||
            dims_[first_merged_ - 1].stride == dims_[first_merged_].stride * dims_[first_merged_].size))
      --first_merged_;
    if (!swapped_) first_merged_ = 0;
    for (int d = 0; d < static_cast<int>(dims_.size()); ++d) (d < first_merged_ ? outer_ : positions_) *= dims_[d].size;
    k_ = taps_.count * p.in_features;
    // Taps that follow each other in a row of the kernel read neighbours, all features of one after those of the other.
    const ConvSpatialDim* row = rank_ > 0 ? &p.spatial.back() : nullptr;
    if (row && p.input_feature_stride == 1 && row->input_stride == p.in_features && row->window_dilation == 1 &&
        row->base_dilation == 1 && !row->reversal)
      row_taps_ = row->kernel;
    const int64_t m = swapped_ ? features_ : positions_, n = swapped_ ? positions_ : features_;
    block_ = ChooseBlocks(m, n, k_, micro_.mr, micro_.nr, sizeof(T), groups_ * outer_);
    down_ = CeilDiv(m, block_.mb);
    across_ = CeilDiv(n, block_.nb);
    num_tasks_ = groups_ * outer_ * down_ * across_;
    rows_bytes_ = swapped_ ? 0 : (block_.mb * static_cast<int64_t>(sizeof(int64_t)) + 63) / 64 * 64;
    scratch_bytes_ = rows_bytes_ + BlockScratchBytes(block_, micro_.mr, micro_.nr, sizeof(T));
  }

  void Run(const void* input, const void* kernel, void* output, int64_t begin, int64_t end,
           void* scratch) const override {
    for (int64_t task = begin; task < end; ++task) {
      int64_t rest = task;
      const int64_t across = rest % across_;
      rest /= across_;
      const int64_t down = rest % down_;
      rest /= down_;
      const int64_t outer = rest % outer_, group = rest / outer_;
      Block(static_cast<const uint8_t*>(input), static_cast<const uint8_t*>(kernel), static_cast<uint8_t*>(output),
            group, outer, down, across, scratch);
    }
  }

 private:
  struct Dim {
    int64_t size, stride;
    int slot;  // 0: batch; d + 1: spatial dimension d
  };
  static constexpr int kMostVectors = 64;  // of a panel
  using Position = int64_t[10];            // by slot

  void Block(const uint8_t* input, const uint8_t* kernel, uint8_t* output, int64_t group, int64_t outer, int64_t down,
             int64_t across, void* scratch) const {
    // Offset of this group and of the outer position.
    int64_t input_offset = 0, output_offset = group * features_ * p_.output_feature_stride;
    if (p_.batch_groups > 1)
      input_offset = group * p_.batch * p_.input_batch_stride;
    else
      input_offset = group * p_.in_features * p_.input_feature_stride;
    const int64_t kernel_offset = group * features_ * p_.kernel_out_stride;
    const int64_t first_position = outer * positions_;
    for (int d = first_merged_ - 1; d >= 0; --d) {
      output_offset += outer % dims_[d].size * dims_[d].stride;
      outer /= dims_[d].size;
    }
    StoreTarget target{p_.output_type, output + output_offset * Bytes(p_.output_type), dims_.back().stride,
                       p_.output_feature_stride};
    PackFn<T> patches = [&](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, T* dst) {
      PackPatches(input, input_offset, first_position + first, count, k0, kc, width, dst);
    };
    PackFn<T> weights = [&](int64_t first, int64_t count, int64_t k0, int64_t kc, int64_t width, T* dst) {
      PackWeights(kernel, kernel_offset + first * p_.kernel_out_stride, count, k0, kc, width, dst);
    };
    const int64_t m = swapped_ ? features_ : positions_, n = swapped_ ? positions_ : features_;
    const int64_t m0 = down * block_.mb, n0 = across * block_.nb;
    const int64_t rows = std::min(block_.mb, m - m0);
    if (swapped_) {
      std::swap(target.row_stride, target.col_stride);
    } else {
      int64_t* offsets = static_cast<int64_t*>(scratch);
      for (int64_t r = 0; r < rows; ++r) offsets[r] = OutputOffset(m0 + r);
      target.rows = offsets;
      target.first_row = m0;
      scratch = static_cast<uint8_t*>(scratch) + rows_bytes_;
    }
    RunBlock<T>(micro_, block_, m0, rows, n0, std::min(block_.nb, n - n0), k_, swapped_ ? weights : patches,
                swapped_ ? patches : weights, target, scratch);
  }

  int64_t OutputOffset(int64_t position) const {
    int64_t offset = 0;
    for (size_t d = dims_.size(); d-- > 0;) {
      offset += position % dims_[d].size * dims_[d].stride;
      position /= dims_[d].size;
    }
    return offset;
  }

  void Decode(int64_t position, Position& at) const {
    for (size_t d = dims_.size(); d-- > 0;) {
      at[dims_[d].slot] = position % dims_[d].size;
      position /= dims_[d].size;
    }
  }

  // Where a position finds its tap in the input; negative outside.
  int64_t Offset(const Position& at, int64_t tap) const {
    int64_t offset = at[0] * p_.input_batch_stride;
    const int64_t* w = taps_.index.data() + tap * rank_;
    for (int d = 0; d < rank_; ++d) offset += offsets_[d].At(at[d + 1], w[d]);
    return offset;
  }

  // dst[k][v]: element k = (tap, in_feature) of the patch of position first + v.
  void PackPatches(const uint8_t* input, int64_t base, int64_t first, int64_t count, int64_t k0, int64_t kc,
                   int64_t width, T* dst) const {
    Position at[kMostVectors];
    for (int64_t v = 0; v < count; ++v) Decode(first + v, at[v]);
    const bool typed = p_.input_type == TypeOf<T>();
    const T* elements = reinterpret_cast<const T*>(input) + (typed ? base : 0);
    for (int64_t k = 0; k < kc;) {
      const int64_t tap = (k0 + k) / p_.in_features, feature = (k0 + k) % p_.in_features;
      int64_t length = std::min(p_.in_features - feature, kc - k);
      T* to = dst + k * width;
      if (typed && row_taps_ > 1) {
        length = std::min((row_taps_ - tap % row_taps_) * p_.in_features - feature, kc - k);
        for (int64_t v = 0; v < count; ++v) CopyRowOfTaps(elements, at[v], tap, feature, length, width, to + v);
        ClearColumns(to, count, width, length);
      } else if (typed) {
        CopyTap(elements, at, count, tap, feature, length, width, to);
      } else {
        for (int64_t v = 0; v < width; ++v) {
          const int64_t offset = v < count ? Offset(at[v], tap) : kOutside;
          const int64_t from = base + offset + feature * p_.input_feature_stride;
          for (int64_t c = 0; c < length; ++c)
            to[c * width + v] = offset < 0 ? T(0) : LoadAs<T>(p_.input_type, input, from + c * p_.input_feature_stride);
        }
      }
      k += length;
    }
  }

  static void ClearColumns(T* to, int64_t begin, int64_t width, int64_t length) {
    if (begin == width) return;
    for (int64_t c = 0; c < length; ++c)
      for (int64_t v = begin; v < width; ++v) to[c * width + v] = 0;
  }

  // Elements from (tap, feature) on of one position, to a column.
  void CopyRowOfTaps(const T* elements, const Position& at, int64_t tap, int64_t feature, int64_t length, int64_t width,
                     T* to) const {
    const int64_t last = tap + (feature + length - 1) / p_.in_features;
    const int64_t offset = Offset(at, tap);
    if (offset >= 0 && Offset(at, last) >= 0) {  // all inside
      const T* from = elements + offset + feature;
      for (int64_t c = 0; c < length; ++c) to[c * width] = from[c];
      return;
    }
    for (int64_t c = 0; c < length; ++tap, feature = 0) {
      const int64_t start = Offset(at, tap), end = std::min(length, c + p_.in_features - feature);
      for (; c < end; ++c, ++feature) to[c * width] = start < 0 ? T(0) : elements[start + feature];
    }
  }

  // `length` features of one tap, for all positions.
  void CopyTap(const T* elements, const Position* at, int64_t count, int64_t tap, int64_t feature, int64_t length,
               int64_t width, T* to) const {
    int64_t from[kMostVectors];
    bool neighbours = true;  // in memory, as the positions are
    for (int64_t v = 0; v < count; ++v) {
      from[v] = Offset(at[v], tap);
      neighbours &= from[v] >= 0 && from[v] == from[0] + v;
    }
    const int64_t stride = p_.input_feature_stride;
    const T* start = elements + feature * stride;
    if (neighbours) {
      for (int64_t c = 0; c < length; ++c) std::memcpy(to + c * width, start + from[0] + c * stride, count * sizeof(T));
    } else if (stride == 1) {
      for (int64_t v = 0; v < count; ++v)
        for (int64_t c = 0; c < length; ++c) to[c * width + v] = from[v] < 0 ? T(0) : start[from[v] + c];
    } else {
      for (int64_t c = 0; c < length; ++c)
        for (int64_t v = 0; v < count; ++v) to[c * width + v] = from[v] < 0 ? T(0) : start[from[v] + c * stride];
    }
    ClearColumns(to, count, width, length);
  }

  void PackWeights(const uint8_t* kernel, int64_t base, int64_t count, int64_t k0, int64_t kc, int64_t width,
                   T* dst) const {
    const T* typed = p_.kernel_type == TypeOf<T>() ? reinterpret_cast<const T*>(kernel) : nullptr;
    for (int64_t k = 0; k < kc; ++k) {
      const int64_t tap = (k0 + k) / p_.in_features, feature = (k0 + k) % p_.in_features;
      const int64_t from = base + taps_.kernel_offset[tap] + feature * p_.kernel_in_stride;
      T* to = dst + k * width;
      if (typed && p_.kernel_out_stride == 1) {
        std::memcpy(to, typed + from, count * sizeof(T));
      } else if (typed) {
        for (int64_t v = 0; v < count; ++v) to[v] = typed[from + v * p_.kernel_out_stride];
      } else {
        for (int64_t v = 0; v < count; ++v) to[v] = LoadAs<T>(p_.kernel_type, kernel, from + v * p_.kernel_out_stride);
      }
      for (int64_t v = count; v < width; ++v) to[v] = 0;
    }
  }

  ConvProblem p_;
  Taps taps_;
  const MicroTable<T>& micro_;
  BlockShape block_;
  std::vector<Dim> dims_;
  std::vector<DimOffsets> offsets_;
  int rank_ = 0, first_merged_ = 0;
  int64_t groups_ = 1, features_ = 1, outer_ = 1, positions_ = 1, k_ = 0, down_ = 1, across_ = 1;
  int64_t row_taps_ = 1, rows_bytes_ = 0;
  bool swapped_ = false;
};

// ---- dilated inputs
// -----------------------------------------------------------------------------------------------------

// A dilated input (a transposed convolution, the gradient of a strided one) is holes for the most part. The outputs
// that agree modulo the dilation see the same taps and no hole: a convolution of its own for each remainder.
class PhasedConv final : public Conv {
 public:
  // The dimension to take apart, or -1.
  static int DimOf(const ConvProblem& p) {
    for (size_t d = 0; d < p.spatial.size(); ++d) {
      const ConvSpatialDim& s = p.spatial[d];
      if (s.base_dilation > 1 && s.base_dilation <= 16 && s.stride == 1 && s.window_dilation == 1)
        return static_cast<int>(d);
    }
    return -1;
  }

  static Result<std::shared_ptr<const Conv>> Create(const ConvProblem& p, int d) {
    auto phased = std::make_shared<PhasedConv>();
    for (int64_t r = 0; r < std::min(p.spatial[d].base_dilation, p.spatial[d].output); ++r) {
      ConvProblem phase = p;
      ConvSpatialDim& s = phase.spatial[d];
      const int64_t dilation = s.base_dilation;
      int64_t kernel_offset = 0;
      if (s.reversal) {
        kernel_offset = (s.kernel - 1) * s.kernel_stride;
        s.kernel_stride = -s.kernel_stride;
        s.reversal = false;
      }
      const int64_t first = ((s.pad_low - r) % dilation + dilation) % dilation;  // tap
      kernel_offset += first * s.kernel_stride;
      const int64_t output_offset = r * s.output_stride;
      s.kernel = first < s.kernel ? CeilDiv(s.kernel - first, dilation) : 0;
      s.kernel_stride *= dilation;
      s.output = CeilDiv(s.output - r, dilation);
      s.output_stride *= dilation;
      s.pad_low = (s.pad_low - r - first) / dilation;  // exact
      s.base_dilation = 1;
      STROP_ASSIGN(std::shared_ptr<const Conv> conv, Conv::Create(phase));
      phased->num_tasks_ += conv->num_tasks();
      phased->scratch_bytes_ = std::max(phased->scratch_bytes_, conv->scratch_bytes());
      phased->parts_.push_back({std::move(conv), s.kernel > 0 ? kernel_offset * Bytes(p.kernel_type) : 0,
                                output_offset * Bytes(p.output_type)});
    }
    return std::shared_ptr<const Conv>(std::move(phased));
  }

  void Run(const void* input, const void* kernel, void* output, int64_t begin, int64_t end,
           void* scratch) const override {
    int64_t first = 0;
    for (const Part& part : parts_) {
      const int64_t tasks = part.conv->num_tasks();
      const int64_t from = std::max<int64_t>(begin - first, 0), to = std::min(end - first, tasks);
      if (from < to)
        part.conv->Run(input, static_cast<const uint8_t*>(kernel) + part.kernel_bytes,
                       static_cast<uint8_t*>(output) + part.output_bytes, from, to, scratch);
      first += tasks;
    }
  }

 private:
  struct Part {
    std::shared_ptr<const Conv> conv;
    int64_t kernel_bytes, output_bytes;
  };
  std::vector<Part> parts_;
};

// ---- depthwise
// ----------------------------------------------------------------------------------------------------------

// One input feature a group, f32 or f64, channels contiguous: a task owns a run of positions and sums taps over all
// channels.
template <class T>
class DepthwiseConv final : public Conv {
 public:
  static bool Matches(const ConvProblem& p) {
    return p.feature_groups > 1 && p.in_features == 1 && p.out_features == p.feature_groups &&
           p.input_type == TypeOf<T>() && p.kernel_type == TypeOf<T>() && p.output_type == TypeOf<T>() &&
           p.spatial.size() <= 8;
  }

  explicit DepthwiseConv(const ConvProblem& p) : p_(p), taps_(p), micro_(MicroOf<T>(BestGemmIsa())) {
    channels_last_ = p.input_feature_stride == 1 && p.output_feature_stride == 1 && p.kernel_out_stride == 1;
    // A line: one row of positions of one channel (channels first), or one position of all channels.
    for (const ConvSpatialDim& d : p.spatial) positions_ *= d.output;
    const ConvSpatialDim& row = p.spatial.back();
    lines_ = channels_last_ ? p.batch * positions_
                            : p.batch * p.out_features * (positions_ / std::max<int64_t>(1, row.output));
    line_ = channels_last_ ? p.out_features : row.output;
    per_task_ = std::max<int64_t>(1, (int64_t{1} << 17) / std::max<int64_t>(1, line_ * taps_.count));
    num_tasks_ = CeilDiv(lines_, per_task_);
    scratch_bytes_ = line_ * static_cast<int64_t>(sizeof(T)) + 64;
  }

  void Run(const void* input, const void* kernel, void* output, int64_t begin, int64_t end,
           void* scratch) const override {
    for (int64_t line = begin * per_task_; line < std::min(lines_, end * per_task_); ++line) {
      if (channels_last_)
        Position(static_cast<const T*>(input), static_cast<const T*>(kernel), static_cast<T*>(output), line);
      else
        Row(static_cast<const T*>(input), static_cast<const T*>(kernel), static_cast<T*>(output), line,
            static_cast<T*>(scratch));
    }
  }

 private:
  void Position(const T* input, const T* kernel, T* output, int64_t line) const {
    int64_t at[8];
    int64_t rest = line;
    int64_t out = 0;
    for (size_t d = p_.spatial.size(); d-- > 0;) {
      at[d] = rest % p_.spatial[d].output;
      rest /= p_.spatial[d].output;
      out += at[d] * p_.spatial[d].output_stride;
    }
    T* sums = output + out + rest * p_.output_batch_stride;
    std::memset(sums, 0, line_ * sizeof(T));
    for (int64_t tap = 0; tap < taps_.count; ++tap) {
      int64_t from = rest * p_.input_batch_stride;
      bool inside = true;
      for (size_t d = 0; d < p_.spatial.size() && inside; ++d) {
        const int64_t i = InputIndex(p_.spatial[d], at[d], taps_.index[tap * p_.spatial.size() + d]);
        inside = i >= 0;
        from += i * p_.spatial[d].input_stride;
      }
      if (inside) micro_.multiply_add(line_, input + from, kernel + taps_.kernel_offset[tap], sums);
    }
  }

  void Row(const T* input, const T* kernel, T* output, int64_t line, T* scratch) const {
    const size_t rank = p_.spatial.size();
    const ConvSpatialDim& row = p_.spatial.back();
    int64_t at[8];
    int64_t rest = line, out = 0;
    for (size_t d = rank - 1; d-- > 0;) {
      at[d] = rest % p_.spatial[d].output;
      rest /= p_.spatial[d].output;
      out += at[d] * p_.spatial[d].output_stride;
    }
    const int64_t channel = rest % p_.out_features, batch = rest / p_.out_features;
    out += channel * p_.output_feature_stride + batch * p_.output_batch_stride;
    const bool direct = row.output_stride == 1;
    T* sums = direct ? output + out : scratch;
    std::memset(sums, 0, line_ * sizeof(T));
    for (int64_t tap = 0; tap < taps_.count; ++tap) {
      int64_t from = batch * p_.input_batch_stride + channel * p_.input_feature_stride;
      bool inside = true;
      for (size_t d = 0; d + 1 < rank && inside; ++d) {
        const int64_t i = InputIndex(p_.spatial[d], at[d], taps_.index[tap * rank + d]);
        inside = i >= 0;
        from += i * p_.spatial[d].input_stride;
      }
      if (inside)
        TapOfRow(input + from, kernel[taps_.kernel_offset[tap] + channel * p_.kernel_out_stride],
                 taps_.index[tap * rank + rank - 1], sums);
    }
    if (!direct)
      for (int64_t o = 0; o < line_; ++o) output[out + o * row.output_stride] = sums[o];
  }

  // sums[o] += input[index(o)] * weight for the outputs of a row whose tap lies inside.
  void TapOfRow(const T* input, T weight, int64_t tap, T* sums) const {
    const ConvSpatialDim& d = p_.spatial.back();
    if (d.base_dilation == 1 && d.stride == 1 && d.input_stride == 1) {
      const int64_t shift = (d.reversal ? d.kernel - 1 - tap : tap) * d.window_dilation - d.pad_low;
      const int64_t begin = std::max<int64_t>(0, -shift), end = std::min(d.output, d.input - shift);
      if (begin < end) micro_.scale_add(end - begin, input + begin + shift, weight, sums + begin);
      return;
    }
    for (int64_t o = 0; o < d.output; ++o) {
      const int64_t i = InputIndex(d, o, tap);
      if (i >= 0) sums[o] += input[i * d.input_stride] * weight;
    }
  }

  ConvProblem p_;
  Taps taps_;
  const MicroTable<T>& micro_;
  bool channels_last_ = false;
  int64_t positions_ = 1, lines_ = 0, line_ = 0, per_task_ = 1;
};

template <class T>
std::shared_ptr<const Conv> Make(const ConvProblem& p) {
  if constexpr (std::is_floating_point_v<T>) {
    if (DepthwiseConv<T>::Matches(p) && !p.spatial.empty()) return std::make_shared<DepthwiseConv<T>>(p);
  }
  return std::make_shared<GemmConv<T>>(p);
}

}  // namespace

Result<std::shared_ptr<const Conv>> Conv::Create(const ConvProblem& p) {
  if (p.spatial.size() > 8)
    return Unimplemented("convolution with ", p.spatial.size(), " spatial dimensions; at most 8");
  const int phased = PhasedConv::DimOf(p);
  if (phased >= 0) return PhasedConv::Create(p, phased);
  switch (GemmAccumulator(p.input_type, p.kernel_type, p.output_type)) {
    case ElementType::F32: return Make<float>(p);
    case ElementType::F64: return Make<double>(p);
    case ElementType::S32: return Make<int32_t>(p);
    case ElementType::S64: return Make<int64_t>(p);
    default:
      return Unimplemented("convolution of ", Name(p.input_type), " and ", Name(p.kernel_type), " to ",
                           Name(p.output_type));
  }
}

}  // namespace strop::cpu
