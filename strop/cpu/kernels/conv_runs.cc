// Convolutions of few features that lie side by side (NHWC): what a row of the window covers is one run of memory, all
// features of one position after those of the other, and so are the weights that it is multiplied with (HWIO). The run
// is taken for the features of a window of one column, which the implicit product (conv_indirect.cc) reads where they
// lie.
//
// Taken as such, the first layer of an image network has three features a tap: too few to read them by, and copies in
// planes (conv_planar.cc) cost as much as they save where windows overlap little: 8x224x224x3 by 16x16 in steps of 16
// took 3.1 ms and takes 2.1, by 4x4 in steps of 4 1.4 and 0.7. Rows that reach into padding are copied first, with
// zeros. Windows a step apart are as fast in planes.
#include <cstring>

#include "strop/cpu/kernels/conv_copied.h"
#include "strop/cpu/kernels/conv_taps.h"

namespace strop::cpu {
namespace {

constexpr int64_t kMostFeatures = 16;       // more are read a tap at a time
constexpr int64_t kLeastRun = 12;           // elements
constexpr int64_t kLeastWork = 64;          // multiplications with each element that is copied
constexpr int64_t kTaskElements = 1 << 14;  // that a task copies

int64_t RowsOf(const ConvProblem& p) {
  int64_t rows = p.batch;
  for (size_t d = 0; d + 1 < p.spatial.size(); ++d) rows *= p.spatial[d].input;
  return rows;
}

int64_t RowsOfTask(int64_t width) { return std::max<int64_t>(kTaskElements / width, 1); }

class RunsConv final : public CopiedConv {
 public:
  // `width`: elements of a row with its padding, of which `product` is made.
  RunsConv(const ConvProblem& p, int64_t width, std::shared_ptr<const Conv> product)
      : CopiedConv("rows with their padding", CeilDiv(RowsOf(p), RowsOfTask(width)), RowsOf(p) * width,
                   std::move(product)),
        p_(p),
        width_(width) {}

 private:
  void Copy(const ConvCall& call, int64_t task) const override {
    const int64_t first = task * RowsOfTask(width_), last = std::min(first + RowsOfTask(width_), RowsOf(p_));
    for (int64_t row = first; row < last; ++row) CopyRow(call, row);
  }
  void CopyRow(const ConvCall& call, int64_t row) const {
    const ConvSpatialDim& s = p_.spatial.back();
    float* to = static_cast<float*>(call.shared) + row * width_;
    const float* from = static_cast<const float*>(call.input);
    for (size_t d = p_.spatial.size() - 1; d-- > 0;) {
      from += row % p_.spatial[d].input * p_.spatial[d].input_stride;
      row /= p_.spatial[d].input;
    }
    from += row * p_.input_batch_stride;
    const int64_t low = std::clamp<int64_t>(s.pad_low * p_.in_features, 0, width_);
    const int64_t skipped = std::max<int64_t>(-s.pad_low, 0) * p_.in_features;
    const int64_t inside = std::clamp<int64_t>(s.input * p_.in_features - skipped, 0, width_ - low);
    std::memset(to, 0, low * sizeof(float));
    if (inside > 0) std::memcpy(to + low, from + skipped, inside * sizeof(float));
    std::memset(to + low + inside, 0, (width_ - low - inside) * sizeof(float));
  }

  const ConvProblem p_;
  const int64_t width_;
};

}  // namespace

std::shared_ptr<const Conv> MakeRunsConv(const ConvProblem& p, const GemmIsa& isa) {
  if (p.input_type != ElementType::F32 || p.kernel_type != ElementType::F32 || p.output_type != ElementType::F32)
    return nullptr;
  if (p.spatial.empty() || p.feature_groups != 1 || p.batch_groups != 1 || p.input_feature_stride != 1 ||
      p.in_features >= kMostFeatures || p.out_features < isa.f32.nr)
    return nullptr;
  const ConvSpatialDim& s = p.spatial.back();
  if (s.kernel < 2 || s.stride < 2 || s.output == 0 || s.window_dilation != 1 || s.reversal ||
      s.input_stride != p.in_features || s.kernel_stride != p.in_features * p.kernel_in_stride ||
      s.kernel * p.in_features < kLeastRun)
    return nullptr;
  int64_t inputs = p.batch * p.in_features, work = p.out_features * p.batch * p.in_features;
  for (const ConvSpatialDim& d : p.spatial) {
    if (d.base_dilation != 1 || d.input == 0) return nullptr;
    inputs *= d.input;
    work *= d.output * d.kernel;
  }
  if (inputs == 0 || work / inputs < kLeastWork) return nullptr;

  const int64_t reach = (s.output - 1) * s.stride + s.kernel;  // positions that a row of windows covers
  const bool copies = s.pad_low != 0 || reach > s.input;
  ConvProblem runs = p;
  runs.in_features = s.kernel * p.in_features;
  ConvSpatialDim& row = runs.spatial.back();
  row.kernel = 1;
  row.pad_low = 0;
  row.input = (copies ? reach : s.input) - s.kernel + 1;
  if (copies) {
    int64_t stride = reach * p.in_features;
    for (size_t d = p.spatial.size() - 1; d-- > 0;) {
      runs.spatial[d].input_stride = stride;
      stride *= p.spatial[d].input;
    }
    runs.input_batch_stride = stride;
  }
  Result<std::shared_ptr<const Conv>> product = MakeProductConv(runs, isa);
  if (!product.ok() || !copies) return product.ok() ? *product : nullptr;
  return std::make_shared<RunsConv>(p, reach * p.in_features, *std::move(product));
}

}  // namespace strop::cpu
