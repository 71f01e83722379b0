// The taps of a convolution's window, and where they read: for the ways to convolve (conv.cc, conv_depthwise.cc).
#pragma once
#include <algorithm>
#include <vector>

#include "strop/cpu/kernels/conv.h"
#include "strop/cpu/kernels/rounding.h"

namespace strop::cpu {

// Index of the input element that tap `w` of output `o` reads along a dimension, or -1 for padding and dilation holes.
inline int64_t InputIndex(const ConvSpatialDim& d, int64_t o, int64_t w) {
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

// Of row `line` of the taps, (in_feature, outer dimensions) in order: those that output `at` finds inside the input, as
// offsets of input and kernel; false if there are none. For problems without reversal and dilated inputs.
inline bool PositionsInside(const ConvProblem& p, const int64_t* at, int64_t line, ProductRun& run) {
  const size_t last = p.spatial.size() - 1;
  run = {0, 0, 0};
  for (size_t d = last; d-- > 0;) {
    const ConvSpatialDim& s = p.spatial[d];
    const int64_t w = line % s.kernel, i = InputIndex(s, at[d], w);
    line /= s.kernel;
    if (i < 0) return false;
    run.a += i * s.input_stride;
    run.b += w * s.kernel_stride;
  }
  const ConvSpatialDim& row = p.spatial[last];
  const int64_t start = at[last] * row.stride - row.pad_low;
  const int64_t begin = start < 0 ? CeilDiv(-start, row.window_dilation) : 0;
  const int64_t end = start < row.input ? std::min(row.kernel, CeilDiv(row.input - start, row.window_dilation)) : 0;
  run.a += line * p.input_feature_stride + (start + begin * row.window_dilation) * row.input_stride;
  run.b += line * p.kernel_in_stride + begin * row.kernel_stride;
  run.length = end - begin;
  return begin < end;
}

// The dimension whose dilated input can be taken apart (conv_phases.cc), or -1; and the convolution that does so, by
// parts that `make` makes.
int DilatedDim(const ConvProblem& problem);
using MakeConv = Result<std::shared_ptr<const Conv>> (*)(const ConvProblem& problem, const GemmIsa& isa);
Result<std::shared_ptr<const Conv>> MakePhasedConv(const ConvProblem& problem, int dim, const GemmIsa& isa,
                                                   MakeConv make);

// One input feature and one output feature a group: no sum over features to block for.
bool IsDepthwise(const ConvProblem& problem);
// Of a depthwise problem of real types with at most 8 spatial dimensions.
Result<std::shared_ptr<const Conv>> MakeDepthwiseConv(const ConvProblem& problem, const GemmIsa& isa);

// The gradient of a kernel: few outputs, sums over the positions of images whose channels are contiguous.
bool SumsOverImages(const ConvProblem& problem);
// Of a problem for which SumsOverImages().
Result<std::shared_ptr<const Conv>> MakeKernelGradientConv(const ConvProblem& problem, const GemmIsa& isa);

// The same where channels are few, or lie apart (conv_gradient_panels.cc): null where that does not suit.
std::shared_ptr<const Conv> MakeGradientPanels(const ConvProblem& problem, const GemmIsa& isa);

// Depthwise, with contiguous channels and of the sums' own type everywhere.
bool IsDepthwiseByRows(const ConvProblem& problem);
Result<std::shared_ptr<const Conv>> MakeDepthwiseRowsConv(const ConvProblem& problem, const GemmIsa& isa);
// And the gradient of its kernel.
bool IsDepthwiseGradient(const ConvProblem& problem);
Result<std::shared_ptr<const Conv>> MakeDepthwiseGradientConv(const ConvProblem& problem, const GemmIsa& isa);

// The implicit product of f32 (conv_product.h), whose Prepare reads the kernel and not the input if features lie side
// by side; of a dilated input, in parts.
Result<std::shared_ptr<const Conv>> MakeProductConv(const ConvProblem& problem, const GemmIsa& isa);
// Windows of one element over planes (conv_points.cc): null where that does not suit.
std::shared_ptr<const Conv> MakePointsConv(const ConvProblem& problem, const GemmIsa& isa);
// Many features that lie apart, copied side by side (conv_channels_last.cc): null where that does not suit.
std::shared_ptr<const Conv> MakeChannelsLastConv(const ConvProblem& problem, const GemmIsa& isa);
// Few features side by side, by rows of the window (conv_runs.cc): null where that does not suit.
std::shared_ptr<const Conv> MakeRunsConv(const ConvProblem& problem, const GemmIsa& isa);
// Few features into many side by side, by lines of windows (conv_lines.cc): null where that does not suit.
std::shared_ptr<const Conv> MakeLinesConv(const ConvProblem& problem, const GemmIsa& isa);

// Of bf16 or f16, as f32 (conv_widened.cc): null where f32 has no better way.
std::shared_ptr<const Conv> MakeWidenedConv(const ConvProblem& problem, const GemmIsa& isa);

// Many groups of few features side by side (conv_groups.cc): null where that does not suit.
std::shared_ptr<const Conv> MakeGroupsConv(const ConvProblem& problem, const GemmIsa& isa);

// Convolutions of few features, on planar copies (conv_planes.h): null where they do not suit.
std::shared_ptr<const Conv> MakePlanarConv(const ConvProblem& problem, const GemmIsa& isa);
// The same for windows that are larger than the output, as in the gradient of the kernel.
std::shared_ptr<const Conv> MakePlanarSums(const ConvProblem& problem, const GemmIsa& isa);

}  // namespace strop::cpu
