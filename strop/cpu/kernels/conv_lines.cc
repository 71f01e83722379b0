// Convolutions of few input features and many outputs that lie side by side (NHWC): the first layer of an image
// network. For a row of positions, all that its windows cover is copied into a line in which the rows of the window
// alternate element by element, padding included: [along the row][row of the window][feature]. There a whole window is
// one run of memory, and the next one begins a few elements further, so that the line is a matrix whose rows overlap.
// It is multiplied with the kernel where it lies, in the first-level cache, and sums go straight to the output.
//
// Planar copies (conv_planar.cc) took half of their time for turning sums of 32 features into the output's order: of
// 16x32x32x2 by 3x3 into 64 1.0 ms on one thread (AVX2), and now 0.6.
#include <algorithm>
#include <cstring>

#include "strop/base/strings.h"
#include "strop/cpu/kernels/conv_positions.h"
#include "strop/cpu/kernels/conv_taps.h"
#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {
namespace {

constexpr int64_t kMostFeatures = 16, kMostOfNarrow = 32;  // more are read where they lie, a tap at a time
constexpr int64_t kFewestPositions = 48;                   // or packing the kernel takes as long
constexpr int64_t kSumElements = 320;                      // summed in registers, as in conv_indirect.cc
constexpr int64_t kTogether = 48;                          // positions; of narrow images, rows are taken together
constexpr int64_t kLinesBytes = 1 << 15;                   // of lines that are taken together
constexpr int64_t kHeldBytes = 1 << 18;                    // of the kernel
constexpr int64_t kTaskProducts = 1 << 19;
constexpr int64_t kTaskPositions = 96;     // several times what packing the kernel takes
constexpr int64_t kTasks = 32;             // for which the rows are cut
constexpr int64_t kCachedBytes = 1 << 20;  // of the output, that may still lie in the second-level cache
constexpr int64_t kMostRows = 16;          // of a tile
constexpr int64_t kMostAlternating = 64;   // rows of a window that are copied together,
constexpr int64_t kMostApart = 64;         // if so many elements, at most, are between neighbours of a row

bool IsF32OrHalf(ElementType type) {
  return type == ElementType::F32 || type == ElementType::BF16 || type == ElementType::F16;
}

class LinesConv final : public Conv {
 public:
  static bool Suits(const ConvProblem& p, const MicroTable<float>& micro) {
    if (!IsF32OrHalf(p.input_type) || !IsF32OrHalf(p.kernel_type) || !IsF32OrHalf(p.output_type)) return false;
    if (p.spatial.empty() || p.batch == 0 || p.feature_groups != 1 || p.batch_groups != 1 || !micro.indirect[0] ||
        p.in_features == 0 || p.in_features > (HasNarrowVectors(micro) ? kMostOfNarrow : kMostFeatures) ||
        p.out_features < micro.nr || (p.in_features > 1 && p.input_feature_stride != 1) || p.output_feature_stride != 1)
      return false;
    int64_t k = p.in_features, positions = p.batch;
    for (const ConvSpatialDim& s : p.spatial) {
      if (s.base_dilation != 1 || s.kernel == 0 || s.output == 0) return false;
      if (s.kernel > s.input) return false;  // much of it padding
      k *= s.kernel, positions *= s.output;
    }
    if (positions < kFewestPositions) return false;
    const ConvSpatialDim& row = p.spatial.back();
    if (p.in_features > kMostFeatures && row.stride > 1) return false;
    // What windows share is copied once, and no window is copied for nothing.
    const bool dense = p.input_type == ElementType::F32 || row.input_stride == p.in_features;
    return dense && row.window_dilation == 1 && row.stride < row.kernel &&
           k * RoundUp(p.out_features, micro.nr) * static_cast<int64_t>(sizeof(float)) <= kHeldBytes;
  }

  LinesConv(const ConvProblem& p, const MicroTable<float>& micro)
      : p_(p), row_(p_.spatial.back()), micro_(micro), outer_rank_(static_cast<int>(p.spatial.size()) - 1) {
    int64_t rows = p.batch;
    for (int d = 0; d < outer_rank_; ++d) {
      rows *= p.spatial[d].output;
      alternating_ *= p.spatial[d].kernel;
      offsets_.emplace_back(p.spatial[d]);
    }
    step_ = alternating_ * p.in_features;
    k_ = row_.kernel * step_;
    kb_ = CeilDiv(k_, CeilDiv(k_, kSumElements));
    columns_ = p.out_features / micro.nr * micro.nr;
    if (columns_ < p.out_features) columns_ += TileKernelsOf<float>(micro, 1, p.out_features - columns_).width;
    direct_ = p.output_type == ElementType::F32 && columns_ == p.out_features;
    // Rows that are neighbours in the output, and lie in one image, or parts of a row.
    if (outer_rank_ > 0 && p.spatial[outer_rank_ - 1].output_stride == row_.output * row_.output_stride)
      neighbours_ = p.spatial[outer_rank_ - 1].output;
    const int64_t most =
        std::max<int64_t>(kLinesBytes / (step_ * row_.stride * static_cast<int64_t>(sizeof(float))), 1);
    across_ = CeilDiv(row_.output, std::max(most, kTogether));
    width_ = CeilDiv(row_.output, across_);
    across_ = CeilDiv(row_.output, width_);
    line_ = ((width_ - 1) * row_.stride + row_.kernel) * step_;
    if (across_ == 1)
      together_ = std::clamp<int64_t>(std::min(CeilDiv(kTogether, width_), most / width_), 1, neighbours_);
    pieces_ = CeilDiv(neighbours_, together_);
    groups_ = rows / neighbours_ * pieces_ * across_;
    if (p.input_type == ElementType::F32 && alternating_ <= kMostAlternating && row_.input_stride <= kMostApart)
      zeros_.resize(row_.input * row_.input_stride + kMostOfNarrow);
    const int64_t positions = rows * row_.output;
    const int64_t worth = std::min(positions * k_ * columns_ / kTaskProducts, positions / kTaskPositions);
    per_task_ = CeilDiv(groups_, std::clamp<int64_t>(worth, 1, std::min(kTasks, groups_)));
    num_tasks_ = CeilDiv(groups_, per_task_);
    fetches_ = direct_ && positions * p.out_features * static_cast<int64_t>(sizeof(float)) > kCachedBytes;
    scratch_bytes_ =
        (k_ * columns_ + together_ * line_ + HeldSums() + Widened()) * static_cast<int64_t>(sizeof(float)) +
        4 * kCarverSlack;
    tiles_ = StrCat("lines of windows, product of ", positions, "x", p.out_features, "x", k_, ", ",
                    per_task_ * together_ * width_, " a task, ", micro.mr, "x", micro.nr, " in registers");
  }

  void Run(const ConvCall& call, int64_t begin, int64_t end, void* scratch) const override {
    Carver carver(scratch);
    Work work;
    work.kernel = carver.Take<float>(k_ * columns_);
    work.lines = carver.Take<float>(together_ * line_);
    work.sums = carver.Take<float>(HeldSums());
    work.row = carver.Take<float>(Widened());
    Pack(static_cast<const uint8_t*>(call.kernel), work.kernel);
    const int64_t last = std::min(end * per_task_, groups_);
    for (int64_t group = begin * per_task_; group < last; ++group) RunGroup(call, group, work);
  }

 private:
  using At = int64_t[8];
  // A thread's memory: the packed kernel; lines; sums until they are stored; a row of the image as f32.
  struct Work {
    float *kernel, *lines, *sums, *row;
  };

  int64_t HeldSums() const { return direct_ ? 0 : together_ * width_ * columns_; }
  int64_t Widened() const { return p_.input_type == ElementType::F32 ? 0 : row_.input * p_.in_features; }

  // Blocks along k, and in each the tiles of features side by side; along k as in a line.
  void Pack(const uint8_t* kernel, float* to) const {
    for (int64_t k0 = 0; k0 < k_; k0 += kb_) {
      const int64_t k1 = std::min(k0 + kb_, k_);
      for (int64_t f = 0; f < p_.out_features; f += micro_.nr) {
        const int64_t some = std::min<int64_t>(micro_.nr, p_.out_features - f);
        const int64_t width = TileKernelsOf<float>(micro_, 1, some).width;
        for (int64_t k = k0, n; k < k1; k += n, to += n * width) {
          const int64_t feature = k % p_.in_features;
          n = std::min(p_.in_features - feature, k1 - k);
          PackStrided<float>(
              micro_, p_.kernel_type, kernel,
              KernelOffset(k / p_.in_features) + feature * p_.kernel_in_stride + f * p_.kernel_out_stride,
              p_.kernel_out_stride, p_.kernel_in_stride, some, n, width, to);
        }
      }
    }
  }
  // Of the `n`-th element of a window in a line, feature 0.
  int64_t KernelOffset(int64_t n) const {
    int64_t outer = n % alternating_, along = n / alternating_;
    if (row_.reversal) along = row_.kernel - 1 - along;
    int64_t offset = along * row_.kernel_stride;
    for (int d = outer_rank_; d-- > 0; outer /= p_.spatial[d].kernel)
      offset += outer % p_.spatial[d].kernel * p_.spatial[d].kernel_stride;
    return offset;
  }

  void RunGroup(const ConvCall& call, int64_t group, const Work& work) const {
    const int64_t x = group % across_ * width_, width = std::min(width_, row_.output - x);
    const int64_t first = group / across_ % pieces_ * together_, count = std::min(together_, neighbours_ - first);
    int64_t row = group / across_ / pieces_ * neighbours_ + first, to = x * row_.output_stride;
    At at = {};
    for (int d = outer_rank_; d-- > 0; row /= p_.spatial[d].output) {
      at[d] = row % p_.spatial[d].output;
      to += at[d] * p_.spatial[d].output_stride;
    }
    to += row * p_.output_batch_stride;
    for (int64_t n = 0; n < count; ++n) {
      CopyLine(call, row * p_.input_batch_stride, at, x, width, work.row, work.lines + n * line_);
      if (outer_rank_ > 0) ++at[outer_rank_ - 1];
    }
    Multiply(work, width, count, static_cast<uint8_t*>(call.output) + to * Bytes(p_.output_type));
  }

  // The line of positions [x, x + width) of the row `at`, of the image at `base`.
  void CopyLine(const ConvCall& call, int64_t base, const At& at, int64_t x, int64_t width, float* widened,
                float* line) const {
    const int64_t start = x * row_.stride - row_.pad_low, reach = (width - 1) * row_.stride + row_.kernel;
    const int64_t begin = std::clamp<int64_t>(-start, 0, reach);
    const int64_t end = std::clamp<int64_t>(row_.input - start, begin, reach), count = end - begin;
    std::memset(line, 0, begin * step_ * sizeof(float));
    std::memset(line + end * step_, 0, (reach - end) * step_ * sizeof(float));
    if (count == 0) return;
    float* const to = line + begin * step_;
    if (!zeros_.empty()) {
      const float* rows[kMostAlternating];
      for (int64_t n = 0; n < alternating_; ++n) {
        const int64_t from = RowOffset(base, at, start + begin, n);
        rows[n] = from < 0 ? zeros_.data() : static_cast<const float*>(call.input) + from;
      }
      CopyPixels(rows, count, to);
      return;
    }
    for (int64_t n = 0; n < alternating_; ++n) {
      const int64_t from = RowOffset(base, at, start + begin, n);
      if (from < 0) {
        CopyRow(nullptr, count, to + n * p_.in_features);
      } else if (p_.input_type == ElementType::F32) {
        CopyRow(static_cast<const float*>(call.input) + from, count, to + n * p_.in_features);
      } else {
        const int64_t elements = count * p_.in_features;
        PackStrided<float>(micro_, p_.input_type, static_cast<const uint8_t*>(call.input), from, 1, 1, elements, 1,
                           elements, widened);
        CopyRow(widened, count, to + n * p_.in_features);
      }
    }
  }
  // Where element x of the `n`-th row of the windows at `at` is read; negative: it is padding.
  int64_t RowOffset(int64_t base, const At& at, int64_t x, int64_t n) const {
    int64_t from = base + x * row_.input_stride;
    for (int d = outer_rank_; d-- > 0; n /= p_.spatial[d].kernel)
      from += offsets_[d].At(at[d], n % p_.spatial[d].kernel);
    return from;
  }

  // `count` elements of all rows of the windows, side by side: in whole registers, of which what is too much is written
  // over by the next one. The last element is copied as it is.
  void CopyPixels(const float* const* rows, int64_t count, float* to) const {
    const int64_t features = p_.in_features;
    if (features == 1) return CopyPixels<1>(rows, count, to);
    if (features == 2) return CopyPixels<2>(rows, count, to);
    if (features <= 4) return CopyPixels<4>(rows, count, to);
    if (features <= 8) return CopyPixels<8>(rows, count, to);
    if (features <= 16) return CopyPixels<16>(rows, count, to);
    for (int64_t n = 0; n < alternating_; ++n) CopyRow(rows[n], count, to + n * features);
  }
  template <int kWidth>
  void CopyPixels(const float* const* rows, int64_t count, float* to) const {
    const int64_t stride = row_.input_stride, features = p_.in_features, alternating = alternating_;
    int64_t from = 0;
    for (int64_t x = 1; x < count; ++x, from += stride)
      for (int64_t n = 0; n < alternating; ++n, to += features) std::memcpy(to, rows[n] + from, kWidth * sizeof(float));
    for (int64_t n = 0; n < alternating; ++n, to += features) std::memcpy(to, rows[n] + from, features * sizeof(float));
  }
  // `count` elements of a row of the image, or zeros for them.
  void CopyRow(const float* from, int64_t count, float* to) const {
    const size_t bytes = p_.in_features * sizeof(float);
    for (int64_t x = 0; x < count; ++x, to += step_)
      if (from)
        std::memcpy(to, from + x * row_.input_stride, bytes);
      else
        std::memset(to, 0, bytes);
  }

  // `count` lines, of `width` positions each.
  void Multiply(const Work& work, int64_t width, int64_t count, uint8_t* output) const {
    const int64_t positions = width * count;
    const EvenPanels panels(positions, micro_.mr);
    const int64_t stride = direct_ ? row_.output_stride : columns_, distance = row_.stride * step_;
    int64_t x = 0;
    const float* line = work.lines;
    float* const sums = direct_ ? reinterpret_cast<float*>(output) : work.sums;
    for (int64_t n = 0; n < panels.count; ++n) {
      const int64_t i = panels.First(n), height = panels.First(n + 1) - i;
      const float* windows[kMostRows];
      for (int64_t r = 0; r < height; ++r) {
        windows[r] = line + x * distance;
        if (++x == width) x = 0, line += line_;
      }
      float* const to = sums + i * stride;
      if (fetches_) FetchRows<true>(to, stride, height, p_.out_features);
      // Windows of one line: nothing is read but what is multiplied.
      const bool even =
          micro_.mr <= kSmallRows && k_ == kb_ && windows[height - 1] == windows[0] + (height - 1) * distance;
      const float* panel = work.kernel;
      for (int64_t k0 = 0; k0 < k_; k0 += kb_) {
        const int64_t kc = std::min(kb_, k_ - k0);
        for (int64_t j = 0; j < p_.out_features; j += micro_.nr) {
          const TileKernels<float> kernels =
              TileKernelsOf<float>(micro_, height, std::min<int64_t>(micro_.nr, p_.out_features - j));
          if (even)
            micro_.small[height - 1][kernels.width > micro_.lanes](kc, windows[0], distance, 1, panel, kernels.width,
                                                                   kernels.width, to + j, stride);
          else
            kernels.indirect(1, kc, windows, panel, kernels.width, to + j, stride, k0 > 0);
          panel += kc * kernels.width;
        }
        for (int64_t r = 0; r < height; ++r) windows[r] += kc;
      }
    }
    if (!direct_)
      StoreTile<float>({p_.output_type, output, row_.output_stride, 1}, 0, 0, positions, p_.out_features, sums,
                       columns_, false);
  }

  const ConvProblem p_;
  const ConvSpatialDim& row_;
  const MicroTable<float>& micro_;
  const int outer_rank_;
  std::vector<DimOffsets> offsets_;                     // of the outer dimensions
  int64_t alternating_ = 1, step_ = 1;                  // rows of a window; elements for each step of a line
  int64_t k_ = 1, kb_ = 1, columns_ = 1;                // columns of C with what tiles are filled up with
  int64_t across_ = 1, width_ = 1, line_ = 1;           // parts of a row; positions and elements of each
  int64_t neighbours_ = 1, together_ = 1, pieces_ = 1;  // rows in order; of a group; groups for them
  int64_t groups_ = 1, per_task_ = 1;
  bool direct_ = true, fetches_ = false;  // sums go to the output; its lines are asked for
  std::vector<float> zeros_;              // a row of padding; empty: rows are copied one by one
};

}  // namespace

std::shared_ptr<const Conv> MakeLinesConv(const ConvProblem& p, const GemmIsa& isa) {
  if (isa.bf16.mr > 0 && p.input_type == ElementType::BF16) return nullptr;  // in pairs (conv_bf16.cc)
  if (!LinesConv::Suits(p, isa.f32)) return nullptr;
  return std::make_shared<LinesConv>(p, isa.f32);
}

}  // namespace strop::cpu
