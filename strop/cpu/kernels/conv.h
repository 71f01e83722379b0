// Convolution as an implicit matrix product: C[position, out_feature] = sum over (tap, in_feature) of patch * kernel.
//
// Patches are never laid out in memory: they are gathered while GEMM packs its panels (gemm.h), so padding, strides,
// window dilations, reversal and any dimension order cost nothing but index arithmetic in the packing. Where features
// lie side by side they are read where they lie, and taps that a tile of positions finds only in padding are left out
// (conv_tiles.h) as long as all weights are finite. A dilated input is taken apart into one convolution for each
// remainder of the output position, without holes. The kernel is packed once for all tasks (gemm_panels.h). Where a
// group has few output features the roles are swapped and positions run along the vectors. Depthwise convolutions (one
// input feature a group) have no sum over features to block for: they go through a direct loop over channels or over a
// row of positions. Many groups of few features side by side are multiplied in turn at each tile of positions
// (conv_groups.cc). bf16 is multiplied by pairs where no subnormal number can come of it (conv_bf16.cc), f32 in three
// parts of bf16 where processors multiply squares of these (conv_thirds.cc). Convolutions of few features, and the
// gradients of their kernels, are computed on planar copies (conv_planar.cc, conv_planar_sums.cc); those of few
// features into many that lie side by side, on lines in which whole windows are runs (conv_lines.cc).
//
// Infinity times the zeros of padding is NaN, at all positions alike, in the implicit product and on planar copies. The
// direct loops leave padding out, at all positions alike: depthwise ones (conv_depthwise.cc, conv_depthwise_rows.cc)
// and those of kernel gradients (conv_kernel_gradient.cc; conv_gradient_panels.cc, but along rows that it pads).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "strop/base/status.h"
#include "strop/cpu/kernels/gemm_micro.h"
#include "strop/types/element_type.h"

namespace strop::cpu {

struct ConvSpatialDim {
  int64_t input = 1, kernel = 1, output = 1;  // sizes
  int64_t stride = 1, pad_low = 0;
  int64_t base_dilation = 1, window_dilation = 1;
  bool reversal = false;
  int64_t input_stride = 0, kernel_stride = 0, output_stride = 0;  // in elements
};

struct ConvProblem {
  ElementType input_type = ElementType::F32, kernel_type = ElementType::F32, output_type = ElementType::F32;
  int64_t batch = 1;                             // of the output
  int64_t in_features = 1;                       // per feature group: the kernel's
  int64_t out_features = 1;                      // all
  int64_t feature_groups = 1, batch_groups = 1;  // at most one of them above 1
  int64_t input_batch_stride = 0, input_feature_stride = 0;
  int64_t kernel_in_stride = 0, kernel_out_stride = 0;
  int64_t output_batch_stride = 0, output_feature_stride = 0;
  std::vector<ConvSpatialDim> spatial;
};

struct ConvCall {
  const void* input;
  const void* kernel;
  void* output;
  int64_t round = 0;
  void* shared = nullptr;
};

class Conv {
 public:
  // Unimplemented for complex types.
  static Result<std::shared_ptr<const Conv>> Create(const ConvProblem& problem, const GemmIsa& isa = BestGemmIsa());
  virtual ~Conv() = default;
  int64_t num_tasks() const { return num_tasks_; }
  int64_t scratch_bytes() const { return scratch_bytes_; }
  const std::string& tiles() const { return tiles_; }  // how it is cut, for reports
  // As Gemm's.
  int64_t rounds() const { return rounds_; }
  int64_t prepare_tasks() const { return prepare_tasks_; }
  int64_t shared_bytes() const { return shared_bytes_; }
  virtual void Prepare(const ConvCall&, int64_t /*begin*/, int64_t /*end*/) const {}
  virtual void Run(const ConvCall& call, int64_t begin, int64_t end, void* scratch) const = 0;

 protected:
  int64_t num_tasks_ = 0;
  int64_t scratch_bytes_ = 0;
  int64_t rounds_ = 1, prepare_tasks_ = 0, shared_bytes_ = 0;
  std::string tiles_;
};

}  // namespace strop::cpu
