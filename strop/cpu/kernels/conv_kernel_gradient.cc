// The gradient of a convolution's kernel, which is a convolution as well: its images are the kernel's channels, its
// features the batch, and its taps the positions of the gradient that comes in.
//
//   C[tap][in channel][out channel] = sum over (image, position) of input[position at tap][in] *
//   gradient[position][out]
//
// With channels contiguous in both, this is a product of columns by rows for each tap, along the rows of the images:
// runs of positions at one distance, of which padding is no part. Nothing is packed or copied. A task owns some
// channels of some taps; the sums run over all positions in order, in pieces that the near caches hold while
// they are multiplied for all of the task's taps: one tap at a time, both images would come from afar for each.
#include <algorithm>
#include <cstring>

#include "strop/base/host_limits.h"
#include "strop/cpu/kernels/accumulator_type.h"
#include "strop/cpu/kernels/conv_taps.h"
#include "strop/cpu/kernels/gemm.h"
#include "strop/cpu/kernels/rounding.h"

namespace strop::cpu {
namespace {

constexpr int64_t kMostRuns = 32;                    // of a piece
constexpr int64_t kPiecePositions = 384;             // of a piece
constexpr int64_t kTaskProducts = int64_t{1} << 20;  // of a task, at least
constexpr int64_t kTasks = 32;                       // enough to be even among threads
constexpr int64_t kTasksOfProcessor = 3;             // enough where each reads both images, of uneven tasks
constexpr int64_t kMostTaps = 64;                    // of a task

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
    // Heights as even as can be. Each task reads both images: one for each processor, if all can have as many panels.
    static const int64_t cpus = UsableCpus();
    int64_t panels = CeilDiv(p.batch, micro_.mr);
    const bool nearly_full = 6 * CeilDiv(p.batch, RoundUp(panels, cpus)) >= 5 * micro_.mr;
    const bool even = nearly_full || panels % cpus == 0;
    if (even) panels = RoundUp(panels, cpus);
    height_ = CeilDiv(p.batch, panels);
    // As few tasks as there have to be for the processors, none too small; a tap's channels are divided first.
    const int64_t products = p.batch * cols_ * sums_ * outputs_;  // of a group
    const int64_t worth = std::max<int64_t>(products / kTaskProducts, 1);
    const int64_t wanted = (even ? 1 : kTasksOfProcessor) * cpus;
    const int64_t tasks = std::min(worth, CeilDiv(std::min(wanted, kTasks), groups_));
    blocks_ = std::min(panels, tasks);
    panels_a_task_ = CeilDiv(panels, blocks_);
    blocks_ = CeilDiv(panels, panels_a_task_);
    tap_blocks_ = std::min(std::max(CeilDiv(tasks, blocks_), CeilDiv(outputs_, kMostTaps)), outputs_);
    num_tasks_ = groups_ * tap_blocks_ * blocks_;
    scratch_bytes_ = CeilDiv(outputs_, tap_blocks_) * static_cast<int64_t>(sizeof(Tap));
    tiles_ = StrCat("columns by rows where they lie, ", p.batch, "x", cols_, "x", sums_, " for ", outputs_, " taps, ",
                    std::min(panels_a_task_ * height_, p.batch), " rows of ", CeilDiv(outputs_, tap_blocks_),
                    " taps a task, ", height_, "x", micro_.nr, " in registers");
  }

  void Run(const ConvCall& call, int64_t begin, int64_t end, void* scratch) const override {
    for (; begin < end; ++begin) Task(call, begin, static_cast<Tap*>(scratch));
  }

 private:
  struct Piece {
    int64_t count = 0;
    ProductRun runs[kMostRuns];
    // There is room for it.
    void Add(const ProductRun& run, int64_t a_step, int64_t b_step) {
      ProductRun* last = count > 0 ? &runs[count - 1] : nullptr;
      if (last && last->a + last->length * a_step == run.a && last->b + last->length * b_step == run.b)
        last->length += run.length;
      else
        runs[count++] = run;
    }
  };

  struct Tap {
    int64_t at[8];
    T* c;      // of the task's first channel
    bool any;  // sums are there
    Piece piece;
  };

  void Task(const ConvCall& call, int64_t task, Tap* taps) const {
    const int64_t m0 = task % blocks_ * panels_a_task_ * height_, block = task / blocks_ % tap_blocks_;
    const int64_t group = task / blocks_ / tap_blocks_, n0 = group * cols_;
    const int64_t rows = std::min(p_.batch - m0, panels_a_task_ * height_);
    const int64_t first = outputs_ * block / tap_blocks_, count = outputs_ * (block + 1) / tap_blocks_ - first;
    const T* x = static_cast<const T*>(call.input) + group * p_.batch + m0;
    const T* y = static_cast<const T*>(call.kernel) + n0;
    for (int64_t t = 0; t < count; ++t) {
      int64_t rest = first + t, out = m0 * p_.output_batch_stride + n0 * p_.output_feature_stride;
      for (size_t d = p_.spatial.size(); d-- > 0;) {
        taps[t].at[d] = rest % p_.spatial[d].output;
        rest /= p_.spatial[d].output;
        out += taps[t].at[d] * p_.spatial[d].output_stride;
      }
      taps[t].c = static_cast<T*>(call.output) + out;
      taps[t].any = false;
    }
    // Lines of positions that make a piece, or pieces of a line.
    const int64_t length = p_.spatial.back().kernel;
    const int64_t lines_a_piece = std::clamp<int64_t>(kPiecePositions / length, 1, kMostRuns);
    const int64_t pieces_a_line = CeilDiv(length, kPiecePositions);
    for (int64_t line = 0; line < lines_; line += lines_a_piece)
      for (int64_t part = 0; part < pieces_a_line; ++part) {
        const int64_t end = std::min(line + lines_a_piece, lines_);
        for (int64_t t = 0; t < count; ++t) Gather(line, end, part, pieces_a_line, taps[t]);
        MultiplyAll(taps, count, x, y, rows);
      }
  }

  int64_t a_step() const { return p_.spatial.back().window_dilation * p_.spatial.back().input_stride; }
  int64_t b_step() const { return p_.spatial.back().kernel_stride; }

  // The runs of lines [line, end) at a tap, the `part`th of so many parts of each.
  void Gather(int64_t line, int64_t end, int64_t part, int64_t parts, Tap& tap) const {
    tap.piece.count = 0;
    for (; line < end; ++line) {
      ProductRun run;
      if (!PositionsInside(p_, tap.at, line, run)) continue;
      const int64_t from = run.length * part / parts, to = run.length * (part + 1) / parts;
      if (from < to) tap.piece.Add({run.a + from * a_step(), run.b + from * b_step(), to - from}, a_step(), b_step());
    }
  }

  // The pieces of all taps, each for all of the task's channels; taps without one, and without sums, are set to zero.
  void MultiplyAll(Tap* taps, int64_t count, const T* x, const T* y, int64_t rows) const {
    for (int64_t j = 0; j < cols_; j += micro_.nr) {
      const int64_t cols = std::min<int64_t>(cols_ - j, micro_.nr);
      for (int64_t i = 0; i < rows; i += height_) {
        const auto kernel = micro_.runs[std::min(height_, rows - i) - 1][cols > micro_.lanes];
        for (const Tap* tap = taps; tap < taps + count; ++tap)
          if (tap->piece.count > 0 || !tap->any)
            kernel(tap->piece.runs, tap->piece.count, x + i, a_step(), y + j, b_step(), cols,
                   tap->c + i * p_.output_batch_stride + j, p_.output_batch_stride, tap->any);
      }
    }
    for (Tap* tap = taps; tap < taps + count; ++tap) tap->any = true;
  }

  ConvProblem p_;
  const MicroTable<T>& micro_;
  int64_t groups_ = 1, cols_ = 1, outputs_ = 1, sums_ = 1, lines_ = 1;
  int64_t height_ = 1, panels_a_task_ = 1;  // rows of a panel; panels of a task
  int64_t blocks_ = 1, tap_blocks_ = 1;     // tasks of a tap; what the taps are cut into
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
