// The gradient of a convolution's kernel, which is a convolution as well: its images are the kernel's channels, its
// features the batch, and its taps the positions of the gradient that comes in.
//
//   C[tap][in channel][out channel] = sum over (image, position) of input[position at tap][in] *
//   gradient[position][out]
//
// With channels contiguous in both, this is a product of columns by rows for each tap, along the rows of the images:
// runs of positions at one distance, of which padding is no part. Nothing is packed or copied. A task owns some
// channels of a tap; the sum runs over all positions in order, in pieces that the first-level cache holds.
#include <algorithm>
#include <cstring>

#include "strop/cpu/kernels/accumulator_type.h"
#include "strop/cpu/kernels/conv_taps.h"
#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/rounding.h"

namespace strop::cpu {
namespace {

constexpr int64_t kMostRuns = 64;                    // of a piece
constexpr int64_t kPiecePositions = 192;             // of a piece
constexpr int64_t kTaskProducts = int64_t{1} << 20;  // of a task, at least
constexpr int64_t kTasks = 32;                       // enough to be even among threads

template <class T>
class KernelGradientConv final : public Conv {
 public:
  KernelGradientConv(const ConvProblem& p, const GemmIsa& isa) : p_(p), micro_(MicroOf<T>(isa)) {
    groups_ = std::max(p.feature_groups, p.batch_groups);
    cols_ = p.out_features / groups_;
    const ConvSpatialDim& row = p.spatial.back();
    sums_ = p.in_features;
    for (const ConvSpatialDim& d : p.spatial) {
      outputs_ *= d.output;
      sums_ *= d.kernel;
    }
    lines_ = sums_ / row.kernel;
    // Heights as even as can be.
    const int64_t panels = CeilDiv(p.batch, micro_.mr);
    height_ = CeilDiv(p.batch, panels);
    const int64_t worth = CeilDiv(kTaskProducts, height_ * cols_ * sums_);
    const int64_t even = CeilDiv(panels * outputs_ * groups_, kTasks);
    panels_a_task_ = std::min(std::max(worth, even), panels);
    panels_a_task_ = CeilDiv(panels, CeilDiv(panels, panels_a_task_));
    blocks_ = CeilDiv(panels, panels_a_task_);
    num_tasks_ = groups_ * outputs_ * blocks_;
    tiles_ =
        StrCat("columns by rows where they lie, ", p.batch, "x", cols_, "x", sums_, " for ", outputs_, " taps, ",
               std::min(panels_a_task_ * height_, p.batch), " rows a task, ", height_, "x", micro_.nr, " in registers");
  }

  void Run(const ConvCall& call, int64_t begin, int64_t end, void*) const override {
    for (; begin < end; ++begin) Task(call, begin);
  }

 private:
  void Task(const ConvCall& call, int64_t task) const {
    const int64_t m0 = task % blocks_ * panels_a_task_ * height_;
    const int64_t group = task / blocks_ / outputs_;
    const int64_t rows = std::min(p_.batch - m0, panels_a_task_ * height_), n0 = group * cols_;
    int64_t at[8], out = (m0 * p_.output_batch_stride) + n0 * p_.output_feature_stride;
    int64_t rest = task / blocks_ % outputs_;
    for (size_t d = p_.spatial.size(); d-- > 0;) {
      at[d] = rest % p_.spatial[d].output;
      rest /= p_.spatial[d].output;
      out += at[d] * p_.spatial[d].output_stride;
    }
    const T* x = static_cast<const T*>(call.input) + group * p_.batch + m0;
    const T* y = static_cast<const T*>(call.kernel) + n0;
    T* c = static_cast<T*>(call.output) + out;
    Piece piece;
    bool any = false;
    for (int64_t line = 0; line < lines_; ++line) {
      ProductRun run;
      if (!PositionsInside(p_, at, line, run)) continue;
      while (run.length > 0) {
        if (piece.Add(run, a_step(), b_step())) continue;
        Multiply(piece, x, y, rows, c, any);
        piece = {};
        any = true;
      }
    }
    if (piece.count > 0 || !any) Multiply(piece, x, y, rows, c, any);
  }

  struct Piece {
    int64_t count = 0, positions = 0;
    ProductRun runs[kMostRuns];
    // Takes what it has room for off the run; false if it is full.
    bool Add(ProductRun& run, int64_t a_step, int64_t b_step) {
      const int64_t n = std::min(run.length, kPiecePositions - positions);
      if (n == 0) return false;
      ProductRun* last = count > 0 ? &runs[count - 1] : nullptr;
      if (last && last->a + last->length * a_step == run.a && last->b + last->length * b_step == run.b)
        last->length += n;
      else if (count < kMostRuns)
        runs[count++] = {run.a, run.b, n};
      else
        return false;
      positions += n;
      run = {run.a + n * a_step, run.b + n * b_step, run.length - n};
      return true;
    }
  };

  int64_t a_step() const { return p_.spatial.back().window_dilation * p_.spatial.back().input_stride; }
  int64_t b_step() const { return p_.spatial.back().kernel_stride; }

  void Multiply(const Piece& piece, const T* x, const T* y, int64_t rows, T* c, bool accumulate) const {
    for (int64_t j = 0; j < cols_; j += micro_.nr) {
      const int64_t cols = std::min<int64_t>(cols_ - j, micro_.nr);
      for (int64_t i = 0; i < rows; i += height_)
        micro_.runs[std::min(height_, rows - i) - 1][cols > micro_.lanes](
            piece.runs, piece.count, x + i, a_step(), y + j, b_step(), cols, c + i * p_.output_batch_stride + j,
            p_.output_batch_stride, accumulate);
    }
  }

  ConvProblem p_;
  const MicroTable<T>& micro_;
  int64_t groups_ = 1, cols_ = 1, outputs_ = 1, sums_ = 1, lines_ = 1;
  int64_t height_ = 1, panels_a_task_ = 1, blocks_ = 1;  // rows of a panel; panels of a task; tasks of a tap
};

}  // namespace

bool SumsOverImages(const ConvProblem& p) {
  if (p.input_type != p.kernel_type || p.input_type != p.output_type || p.feature_groups > 1 || p.spatial.empty() ||
      (p.input_type != ElementType::F32 && p.input_type != ElementType::F64))
    return false;
  if (p.input_batch_stride != 1 || p.kernel_out_stride != 1 || p.output_feature_stride != 1) return false;
  int64_t outputs = 1, taps = 1;
  for (const ConvSpatialDim& d : p.spatial) {
    if (d.base_dilation != 1 || d.reversal) return false;
    outputs *= d.output;
    taps *= d.kernel;
  }
  // Fewer channels leave most of a tile of C empty.
  const int64_t cols = p.out_features / p.batch_groups;
  return p.in_features > 0 && outputs > 0 && 4 * taps > outputs && p.batch >= 4 && cols >= 8;
}

Result<std::shared_ptr<const Conv>> MakeKernelGradientConv(const ConvProblem& p, const GemmIsa& isa) {
  std::shared_ptr<const Conv> conv;
  if (p.input_type == ElementType::F64)
    conv = std::make_shared<KernelGradientConv<double>>(p, isa);
  else
    conv = std::make_shared<KernelGradientConv<float>>(p, isa);
  return conv;
}

}  // namespace strop::cpu
