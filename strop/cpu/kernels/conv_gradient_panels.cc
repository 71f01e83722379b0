// The gradient of a convolution's kernel where channels are not contiguous (NCHW), or few (the first layer of a network
// of images): the sum of conv_kernel_gradient.cc,
//
//   C[tap][in channel][out channel] = sum over (image, position) of input[position at tap][in] *
//   gradient[position][out]
//
// on copies that all threads make first: panels of a few channels, [channels / height][image][position][height], which
// hold all that a task reads, in its order. (The patches of an implicit product are taps times as large as the input,
// and are packed element by element where their channels lie apart: 4x64x56x56 by 64x3x3 ran at 40 % of the processor's
// peak, 4x3x224x224 by 7x7 at 28 %.) A task owns a panel of input channels and one of output channels, goes through the
// positions in pieces that the first-level cache holds, for each tap in turn, and stores its sums in the order of the
// result.
//
// Fewer input channels than rows of registers are merged with the taps of a row: those are neighbours in memory too,
//   x[(position * stride + tap) * channels + channel]
// once the rows of the copy are padded, so that (tap, channel) are the rows of the product.
#include <algorithm>
#include <cstring>

#include "strop/cpu/kernels/accumulator_type.h"
#include "strop/cpu/kernels/conv_taps.h"
#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/gemm_blocks.h"

namespace strop::cpu {
namespace {

constexpr int64_t kPiecePositions = 192;  // of a piece
constexpr int64_t kWholePositions = 256;  // so few are one piece
constexpr int64_t kMostRuns = 64;         // of a piece
constexpr int64_t kEnoughTasks = 32;
constexpr int64_t kCopied = 2048;  // positions of the gradient that a task copies
constexpr int64_t kMostShared = int64_t{64} << 20;
constexpr int64_t kMostLines = 1 << 18;  // of the table

// The distance of neighbouring positions if all of them follow each other at one, else 0.
template <class Size, class Stride>
int64_t PositionDistance(const std::vector<ConvSpatialDim>& dims, Size size, Stride stride) {
  int64_t distance = 0, positions = 1;
  for (size_t d = dims.size(); d-- > 0;) {
    if (size(dims[d]) == 1) continue;
    if (distance == 0) distance = stride(dims[d]);
    if (stride(dims[d]) != distance * positions) return 0;
    positions *= size(dims[d]);
  }
  return std::max<int64_t>(distance, positions == 1 ? 1 : 0);
}

template <class T>
class GradientPanels final : public Conv {
 public:
  GradientPanels(const ConvProblem& p, const GemmIsa& isa) : p_(p), micro_(MicroOf<T>(isa)) {
    const ConvSpatialDim& row = p.spatial.back();
    merged_ = p.batch < micro_.mr && row.stride == 1;
    for (size_t d = 0; d + 1 < p.spatial.size(); ++d) {
      outer_taps_ *= p.spatial[d].output;
      lines_ *= p.spatial[d].kernel;
      input_lines_ *= p.spatial[d].input;
    }
    positions_ = lines_ * row.kernel;
    rows_ = p.batch * (merged_ ? row.output : 1);
    taps_ = outer_taps_ * (merged_ ? 1 : row.output);
    const int64_t panels = CeilDiv(rows_, micro_.mr);
    height_ = CeilDiv(rows_, panels);
    x_panels_ = CeilDiv(rows_, height_);
    y_panels_ = CeilDiv(p.out_features, micro_.nr);
    pitch_ = merged_ ? p.batch : height_;
    line_ = merged_ ? row.output + (row.kernel - 1) * row.window_dilation : row.input;
    x_image_ = RoundUp(input_lines_ * line_ * pitch_ + kPanelSlack, kPanelSlack);
    y_image_ = positions_ * micro_.nr;
    x_copies_ = merged_ ? 1 : x_panels_;
    y_chunks_ = CeilDiv(positions_, kCopied);
    prepare_tasks_ = (x_copies_ + y_panels_ * y_chunks_) * p.in_features;
    shared_bytes_ = (x_copies_ * x_image_ + y_panels_ * y_image_) * p.in_features * kSize + 2 * kCarverSlack;
    CutPieces();
    const int64_t pairs = x_panels_ * y_panels_;
    task_taps_ = CeilDiv(taps_, std::min(taps_, CeilDiv(kEnoughTasks, pairs)));
    tap_groups_ = CeilDiv(taps_, task_taps_);
    num_tasks_ = pairs * tap_groups_;
    const int64_t sums = height_ * task_taps_ * micro_.nr;
    scratch_bytes_ = 2 * sums * kSize + height_ * task_taps_ * static_cast<int64_t>(sizeof(int64_t)) +
                     kPanelSlack * kSize + 3 * kCarverSlack;
    tiles_ =
        StrCat("columns by rows from panels, ", rows_, "x", p.out_features, "x", p.in_features * positions_, " for ",
               taps_, merged_ ? " rows of taps, " : " taps, ", height_, "x", micro_.nr, " for ", task_taps_, " a task");
  }

  bool Suits() const {
    // Few rows are worth it where images are large; with a small window they are a convolution of few positions, and
    // with a large one, windows that lie side by side.
    constexpr int64_t kLeastRows = 8, kLeastPositions = 64;
    if (!merged_ && rows_ < kLeastRows && p_.input_feature_stride == 1) return false;
    return (merged_ || x_distance() > 0) && y_distance() > 0 &&
           (rows_ >= kLeastRows ? p_.in_features * positions_ : positions_) >= kLeastPositions &&
           shared_bytes_ <= kMostShared && lines_ * outer_taps_ <= kMostLines && PackerOf(micro_, ElementTypeOf<T>());
  }
  // Of what Suits().
  void FillLines() {
    for (int64_t tap = 0; tap < outer_taps_; ++tap)
      for (int64_t line = 0; line < lines_; ++line) {
        int64_t rest = line, taps = tap, at = 0, lines = 1;
        for (size_t d = p_.spatial.size() - 1; d-- > 0;) {
          const ConvSpatialDim& s = p_.spatial[d];
          const int64_t i = InputIndex(s, taps % s.output, rest % s.kernel);
          at = at < 0 || i < 0 ? -1 : at + i * lines;
          taps /= s.output, rest /= s.kernel, lines *= s.input;
        }
        input_line_.push_back(at);
      }
  }

  void Prepare(const ConvCall& call, int64_t begin, int64_t end) const override {
    const Shared shared = Carve(call.shared);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t image = task % p_.in_features, part = task / p_.in_features;
      if (part >= x_copies_)
        CopyGradient(call, image, (part - x_copies_) / y_chunks_, (part - x_copies_) % y_chunks_ * kCopied, shared.y);
      else if (merged_)
        CopyLines(call, image, shared.x + image * x_image_);
      else
        CopyPanel(call, image, part, shared.x + (part * p_.in_features + image) * x_image_);
    }
  }

  void Run(const ConvCall& call, int64_t begin, int64_t end, void* scratch) const override {
    const Shared shared = Carve(call.shared);
    Carver carver(scratch);
    T* sums = carver.Take<T>(height_ * task_taps_ * micro_.nr);
    T* turned = carver.Take<T>(height_ * task_taps_ * micro_.nr + kPanelSlack);
    int64_t* offsets = carver.Take<int64_t>(height_ * task_taps_);
    for (int64_t task = begin; task < end; ++task) {
      const int64_t first_tap = task % tap_groups_ * task_taps_, pair = task / tap_groups_;
      const int64_t x_panel = pair / y_panels_, y_panel = pair % y_panels_;
      const Block block{x_panel * height_,   std::min(height_, rows_ - x_panel * height_),
                        y_panel * micro_.nr, std::min<int64_t>(micro_.nr, p_.out_features - y_panel * micro_.nr),
                        first_tap,           std::min(task_taps_, taps_ - first_tap)};
      const T* x = shared.x + (merged_ ? block.row : x_panel * p_.in_features * x_image_);
      const T* y = shared.y + y_panel * p_.in_features * y_image_;
      std::memset(sums, 0, block.rows * block.taps * micro_.nr * kSize);
      for (int64_t unit = 0; unit < units_; unit += piece_units_)
        for (int64_t t = 0; t < block.taps; ++t) Sum(block, t, unit, x, y, sums + t * micro_.nr);
      Store(block, sums, turned, offsets, static_cast<T*>(call.output));
    }
  }

 private:
  static constexpr int64_t kSize = sizeof(T);
  struct Shared {
    T *x, *y;
  };
  Shared Carve(void* memory) const {
    Carver carver(memory);
    T* x = carver.Take<T>(x_copies_ * p_.in_features * x_image_);
    return {x, carver.Take<T>(y_panels_ * p_.in_features * y_image_)};
  }

  int64_t x_distance() const {
    return PositionDistance(
        p_.spatial, [](const ConvSpatialDim& d) { return d.input; },
        [](const ConvSpatialDim& d) { return d.input_stride; });
  }
  int64_t y_distance() const {
    return PositionDistance(
        p_.spatial, [](const ConvSpatialDim& d) { return d.kernel; },
        [](const ConvSpatialDim& d) { return d.kernel_stride; });
  }

  // A unit is a line of positions, or a part of a long one.
  void CutPieces() {
    const int64_t line = p_.spatial.back().kernel, parts = CeilDiv(line, kPiecePositions);
    part_ = CeilDiv(line, parts);
    line_parts_ = CeilDiv(line, part_);
    units_ = p_.in_features * lines_ * line_parts_;
    const int64_t positions = p_.in_features * positions_ <= kWholePositions ? kWholePositions : kPiecePositions;
    piece_units_ = std::clamp<int64_t>(positions / part_, 1, kMostRuns);
    piece_units_ = CeilDiv(units_, CeilDiv(units_, piece_units_));
  }

  void CopyPanel(const ConvCall& call, int64_t image, int64_t panel, T* to) const {
    const int64_t first = panel * height_;
    const T* from = static_cast<const T*>(call.input) + image * p_.input_feature_stride + first * p_.input_batch_stride;
    PackerOf(micro_, ElementTypeOf<T>())(from, p_.input_batch_stride, x_distance(), std::min(height_, rows_ - first),
                                         input_lines_ * line_, height_, to);
  }

  // [line][position][channel], with the padding of the lines; what packing writes beyond is written again.
  void CopyLines(const ConvCall& call, int64_t image, T* to) const {
    const PackPanel<T> pack = PackerOf(micro_, ElementTypeOf<T>());
    const ConvSpatialDim& row = p_.spatial.back();
    const int64_t low = std::clamp<int64_t>(row.pad_low, 0, line_), begin = std::max<int64_t>(-row.pad_low, 0);
    const int64_t count = std::clamp<int64_t>(std::min(row.input - begin, line_ - low), 0, line_);
    for (int64_t line = 0; line < input_lines_; ++line, to += line_ * pitch_) {
      int64_t rest = line, from = image * p_.input_feature_stride + begin * row.input_stride;
      for (size_t d = p_.spatial.size() - 1; d-- > 0; rest /= p_.spatial[d].input)
        from += rest % p_.spatial[d].input * p_.spatial[d].input_stride;
      std::memset(to, 0, low * pitch_ * kSize);
      if (count > 0)
        pack(static_cast<const T*>(call.input) + from, p_.input_batch_stride, row.input_stride, p_.batch, count, pitch_,
             to + low * pitch_);
      std::memset(to + (low + count) * pitch_, 0, (line_ - low - count) * pitch_ * kSize);
    }
  }

  void CopyGradient(const ConvCall& call, int64_t image, int64_t panel, int64_t first, T* to) const {
    const int64_t nr = micro_.nr, feature = panel * nr, distance = y_distance();
    const T* from = static_cast<const T*>(call.kernel) + image * p_.kernel_in_stride + feature * p_.kernel_out_stride +
                    first * distance;
    PackerOf(micro_, ElementTypeOf<T>())(from, p_.kernel_out_stride, distance, std::min(nr, p_.out_features - feature),
                                         std::min(kCopied, positions_ - first), nr,
                                         to + (panel * p_.in_features + image) * y_image_ + first * nr);
  }

  struct Block {
    int64_t row, rows, feature, features, tap, taps;
  };

  // Of a piece, for one tap.
  void Sum(const Block& block, int64_t tap, int64_t first_unit, const T* x, const T* y, T* sums) const {
    const ConvSpatialDim& row = p_.spatial.back();
    const int64_t all = block.tap + tap, outer = merged_ ? all : all / row.output;
    const int64_t start = merged_ ? 0 : all % row.output * row.stride - row.pad_low, dilation = row.window_dilation;
    int64_t low = 0, high = row.kernel;
    if (!merged_) {
      low = start < 0 ? CeilDiv(-start, dilation) : 0;
      high = start < row.input ? std::min(row.kernel, CeilDiv(row.input - start, dilation)) : 0;
    }
    ProductRun runs[kMostRuns];
    int64_t count = 0;
    const int64_t a_step = dilation * pitch_, nr = micro_.nr;
    for (int64_t unit = first_unit; unit < std::min(units_, first_unit + piece_units_); ++unit) {
      const int64_t line = unit / line_parts_, image = line / lines_;
      const int64_t input = input_line_[outer * lines_ + line % lines_];
      const int64_t part = unit % line_parts_ * part_;
      const int64_t begin = std::max(low, part), end = std::min(high, part + part_);
      if (input < 0 || begin >= end) continue;
      const ProductRun run{image * x_image_ + (input * line_ + start + begin * dilation) * pitch_,
                           (line * row.kernel + begin) * nr, end - begin};
      ProductRun* last = count > 0 ? &runs[count - 1] : nullptr;
      if (last && last->a + last->length * a_step == run.a && last->b + last->length * nr == run.b)
        last->length += run.length;
      else
        runs[count++] = run;
    }
    if (count > 0)
      micro_.runs[block.rows - 1][block.features > micro_.lanes](runs, count, x, a_step, y, nr, block.features, sums,
                                                                 block.taps * nr, true);
  }

  // Where row r of tap t of the block goes, by r and t, for its first feature.
  void FillOffsets(const Block& block, int64_t* offsets) const {
    const ConvSpatialDim& last = p_.spatial.back();
    for (int64_t r = 0; r < block.rows; ++r)
      for (int64_t t = 0; t < block.taps; ++t) {
        int64_t rest = block.tap + t, row = block.row + r;
        int64_t at = (merged_ ? row % p_.batch : row) * p_.output_batch_stride;
        if (merged_)
          at += row / p_.batch * last.output_stride;
        else
          at += rest % last.output * last.output_stride, rest /= last.output;
        for (size_t d = p_.spatial.size() - 1; d-- > 0; rest /= p_.spatial[d].output)
          at += rest % p_.spatial[d].output * p_.spatial[d].output_stride;
        *offsets++ = at + block.feature * p_.output_feature_stride;
      }
  }

  void Store(const Block& block, const T* sums, T* turned, int64_t* offsets, T* output) const {
    const int64_t nr = micro_.nr, count = block.rows * block.taps;
    FillOffsets(block, offsets);
    if (p_.output_feature_stride == 1) {
      for (int64_t n = 0; n < count; ++n) std::memcpy(output + offsets[n], sums + n * nr, block.features * kSize);
      return;
    }
    PackerOf(micro_, ElementTypeOf<T>())(sums, nr, 1, count, block.features, count, turned);
    bool together = true;
    for (int64_t n = 1; n < count; ++n) together &= offsets[n] == offsets[0] + n;
    for (int64_t f = 0; f < block.features; ++f, turned += count, output += p_.output_feature_stride) {
      if (together)
        std::memcpy(output + offsets[0], turned, count * kSize);
      else
        for (int64_t n = 0; n < count; ++n) output[offsets[n]] = turned[n];
    }
  }

  ConvProblem p_;
  const MicroTable<T>& micro_;
  bool merged_ = false;                                              // rows are (tap of a row, channel)
  int64_t outer_taps_ = 1, taps_ = 1, rows_ = 1;                     // of the product
  int64_t lines_ = 1, positions_ = 1;                                // of the gradient, an image
  int64_t input_lines_ = 1, line_ = 1, pitch_ = 1;                   // of the copy: positions, and elements of one
  int64_t height_ = 1, x_panels_ = 1, y_panels_ = 1, x_copies_ = 1;  // rows of a panel; panels; copies of the input
  int64_t x_image_ = 0, y_image_ = 0, y_chunks_ = 1;
  int64_t part_ = 1, line_parts_ = 1, units_ = 1, piece_units_ = 1;
  int64_t task_taps_ = 1, tap_groups_ = 1;
  std::vector<int64_t> input_line_;  // [outer tap][line], -1 outside
};

template <class T>
std::shared_ptr<const Conv> MakeOf(const ConvProblem& p, const GemmIsa& isa) {
  auto conv = std::make_shared<GradientPanels<T>>(p, isa);
  if (!conv->Suits()) return nullptr;
  conv->FillLines();
  return conv;
}

}  // namespace

std::shared_ptr<const Conv> MakeGradientPanels(const ConvProblem& p, const GemmIsa& isa) {
  constexpr int64_t kLeastFeatures = 16, kLargest = int64_t{1} << 40;
  if (p.input_type != p.kernel_type || p.input_type != p.output_type || p.feature_groups > 1 || p.batch_groups > 1 ||
      p.spatial.empty() || p.batch == 0 || p.in_features == 0 || p.out_features < kLeastFeatures)
    return nullptr;
  int64_t outputs = 1, window = 1, pixels = p.in_features * p.batch;
  for (const ConvSpatialDim& d : p.spatial) {
    if (d.base_dilation != 1 || d.reversal || d.kernel == 0 || d.output == 0 || d.input == 0) return nullptr;
    outputs *= d.output;
    window *= d.kernel;
    pixels *= d.input;
    if (outputs > kLargest / d.output || window > kLargest || pixels > kLargest) return nullptr;
  }
  if (4 * window <= outputs) return nullptr;
  switch (p.input_type) {
    case ElementType::F32: return MakeOf<float>(p, isa);
    case ElementType::F64: return MakeOf<double>(p, isa);
    default: return nullptr;
  }
}

}  // namespace strop::cpu
