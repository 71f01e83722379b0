// Convolution of a dilated input (a transposed convolution, the gradient of a strided one, resampling by a ratio): such
// an input is holes for the most part. The outputs that agree modulo the dilation, or modulo what it has not in common
// with the stride, see the same taps and no hole: a convolution of its own for each remainder. There may be hundreds
// (frames of a signal become that signal again), but few that differ in more than where they begin.
#include <algorithm>
#include <numeric>

#include "strop/cpu/kernels/conv_taps.h"
#include "strop/cpu/kernels/rounding.h"
#include "strop/types/element_type.h"

namespace strop::cpu {
namespace {

constexpr int64_t kMostParts = 1024;

// Outputs after so many read the same taps again.
int64_t PeriodOf(const ConvSpatialDim& s) { return s.base_dilation / std::gcd(s.base_dilation, s.stride); }

// Of the outputs that are `r` modulo the period.
struct Phase {
  ConvSpatialDim dim;
  int64_t kernel_offset = 0, output_offset = 0;  // in elements
};

Phase PhaseOf(ConvSpatialDim s, int64_t r) {
  Phase phase;
  const int64_t dilation = s.base_dilation, common = std::gcd(dilation, s.window_dilation);
  const int64_t period = PeriodOf(s), begin = r * s.stride - s.pad_low;
  if (s.reversal) {
    phase.kernel_offset = (s.kernel - 1) * s.kernel_stride;
    s.kernel_stride = -s.kernel_stride;
    s.reversal = false;
  }
  // Tap w reads the element at (begin + w * window_dilation) / dilation where that is whole: every `step`th from
  // `first` on, or none.
  const int64_t step = dilation / common;
  int64_t first = 0;
  while (first < step && (begin + first * s.window_dilation) % dilation != 0) ++first;
  if (first >= step) first = s.kernel;
  s.pad_low = first < s.kernel ? -(begin + first * s.window_dilation) / dilation : 0;
  phase.kernel_offset = first < s.kernel ? phase.kernel_offset + first * s.kernel_stride : 0;
  phase.output_offset = r * s.output_stride;
  s.kernel = first < s.kernel ? CeilDiv(s.kernel - first, step) : 0;
  s.kernel_stride *= step;
  s.window_dilation /= common;
  s.output = CeilDiv(s.output - r, period);
  s.output_stride *= period;
  s.stride = period * s.stride / dilation;  // exact
  s.base_dilation = 1;
  phase.dim = s;
  return phase;
}

class PhasedConv final : public Conv {
 public:
  static Result<std::shared_ptr<const Conv>> Create(const ConvProblem& p, int d, const GemmIsa& isa, MakeConv make) {
    auto phased = std::make_shared<PhasedConv>();
    std::vector<std::pair<ConvSpatialDim, std::shared_ptr<const Conv>>> made;
    for (int64_t r = 0; r < std::min(PeriodOf(p.spatial[d]), p.spatial[d].output); ++r) {
      const Phase phase = PhaseOf(p.spatial[d], r);
      auto same = std::ranges::find_if(made, [&](const auto& one) {
        return one.first.kernel == phase.dim.kernel && one.first.output == phase.dim.output &&
               one.first.pad_low == phase.dim.pad_low;
      });
      if (same == made.end()) {
        ConvProblem problem = p;
        problem.spatial[d] = phase.dim;
        STROP_ASSIGN(std::shared_ptr<const Conv> conv, make(problem, isa));
        same = made.insert(made.end(), {phase.dim, conv});
      }
      const std::shared_ptr<const Conv>& conv = same->second;
      const Part part{conv, phase.kernel_offset * Bytes(p.kernel_type), phase.output_offset * Bytes(p.output_type),
                      phased->shared_bytes_};
      phased->num_tasks_ += conv->num_tasks();
      phased->prepare_tasks_ += conv->prepare_tasks();
      phased->scratch_bytes_ = std::max(phased->scratch_bytes_, conv->scratch_bytes());
      phased->shared_bytes_ += RoundUp(conv->shared_bytes(), 64);
      phased->rounds_ = std::max(phased->rounds_, conv->rounds());
      phased->parts_.push_back(part);
    }
    phased->tiles_ = StrCat(phased->parts_.size(), " parts without holes");
    if (!phased->parts_.empty()) StrAppend(phased->tiles_, ", ", phased->parts_[0].conv->tiles());
    return std::shared_ptr<const Conv>(std::move(phased));
  }

  void Prepare(const ConvCall& call, int64_t begin, int64_t end) const override {
    ForEachPart(begin, end, &Conv::prepare_tasks, [&](const Part& part, int64_t from, int64_t to) {
      if (call.round < part.conv->rounds()) part.conv->Prepare(part.Bind(call), from, to);
    });
  }
  void Run(const ConvCall& call, int64_t begin, int64_t end, void* scratch) const override {
    ForEachPart(begin, end, &Conv::num_tasks, [&](const Part& part, int64_t from, int64_t to) {
      if (call.round < part.conv->rounds()) part.conv->Run(part.Bind(call), from, to, scratch);
    });
  }

 private:
  struct Part {
    std::shared_ptr<const Conv> conv;
    int64_t kernel_bytes, output_bytes, shared_bytes;  // where its begin
    ConvCall Bind(ConvCall call) const {
      call.kernel = static_cast<const uint8_t*>(call.kernel) + kernel_bytes;
      call.output = static_cast<uint8_t*>(call.output) + output_bytes;
      call.shared = static_cast<uint8_t*>(call.shared) + shared_bytes;
      return call;
    }
  };

  // The tasks of each part among [begin, end), by the numbers that it gives them.
  template <class Fn>
  void ForEachPart(int64_t begin, int64_t end, int64_t (Conv::*tasks)() const, Fn&& fn) const {
    int64_t first = 0;
    for (const Part& part : parts_) {
      const int64_t count = ((*part.conv).*tasks)();
      const int64_t from = std::max<int64_t>(begin - first, 0), to = std::min(end - first, count);
      if (from < to) fn(part, from, to);
      first += count;
    }
  }

  std::vector<Part> parts_;
};

}  // namespace

int DilatedDim(const ConvProblem& p) {
  for (size_t d = 0; d < p.spatial.size(); ++d) {
    const ConvSpatialDim& s = p.spatial[d];
    if (s.base_dilation > 1 && PeriodOf(s) <= kMostParts) return static_cast<int>(d);
  }
  return -1;
}

Result<std::shared_ptr<const Conv>> MakePhasedConv(const ConvProblem& p, int d, const GemmIsa& isa, MakeConv make) {
  return PhasedConv::Create(p, d, isa, make);
}

}  // namespace strop::cpu
