// Convolutions whose windows lie side by side are products of matrices: windows as wide as their stride (the patches of
// a vision transformer), and their mirror image, where each element of the input makes a patch of the output of its own
// (the gradient of those, transposed convolutions that scale an image up).
//
//   conv(f32[2,3,64,48] %x, f32[100,3,8,8] %w), window={size=8x8 stride=8x8}, dim_labels=bf01_oi01->bf01
//   ->  %p = f32[2,8,6,3,8,8] transpose(f32[2,3,8,8,6,8] reshape(%x))
//       transpose(f32[2,8,6,100] dot(%p, %w))
//
//   conv(f32[2,8,6,100] %y, f32[8,8,3,100] %w), window={size=8x8 pad=7_7x7_7 lhs_dilate=8x8 rhs_reversal=1x1}
//   ->  %p = f32[2,8,6,8,8,3] dot(%y, %w)
//       f32[2,64,48,3] reshape(f32[2,8,8,6,8,3] transpose(%p))
//
// Padding that is another leaves something of the edges out, or adds zeros; a dilation beyond the window, zeros between
// patches. The first not where features are innermost
// and a window's rows fill vectors: a kernel that reads images of them as they lie is as fast.
#include <algorithm>

#include "strop/ir/builder.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

constexpr int64_t kLeastTaps = 2;  // of a window; of one, it is a product already

class Rewriter {
 public:
  explicit Rewriter(Instruction* conv)
      : conv_(conv), attrs_(conv->attrs<ConvolutionAttrs>()), l_(attrs_.dim_labels), b_(conv->parent()) {}

  // Whether the convolution was replaced.
  Result<bool> Run() {
    if (!IsPlain()) return false;
    const bool gathers = Taps() >= kLeastTaps && ReadsPatches() && KernelIsOneMatrix() &&
                         !(FeaturesAreInnermost() && ReadsWholeVectors());
    if (!gathers && !WritesPatches()) return false;
    b_.set_insert_before(conv_);
    if (conv_->has_metadata()) b_.set_metadata(conv_->shared_metadata());
    Instruction* result = gathers ? ProductOfPatches() : PatchesOfProduct();
    STROP_TRY(b_.status());
    conv_->parent()->Replace(conv_, result);
    return true;
  }

 private:
  bool IsPlain() const {
    const Shape& out = conv_->shape();
    if (conv_->operand_count() != 2 || !out.IsStatic() || out.num_elements() == 0 || !IsFloat(out.type())) return false;
    if (conv_->HasControlEdges() || conv_->sharding()) return false;
    if (!l_.input_unknown.empty() || !l_.kernel_unknown.empty() || !l_.output_unknown.empty()) return false;
    if (attrs_.batch_group_count != 1 || attrs_.feature_group_count != 1) return false;
    if (attrs_.window.dims.empty() || attrs_.window.dims.size() != l_.input_spatial.size()) return false;
    for (const Instruction* operand : conv_->operands())
      if (!operand->shape().IsStatic() || operand->shape().type() != out.type()) return false;
    return std::ranges::all_of(attrs_.window.dims, [](const WindowDim& w) { return w.window_dilation == 1; });
  }
  int64_t Taps() const {
    int64_t taps = 1;
    for (const WindowDim& w : attrs_.window.dims) taps = SaturatingMultiply(taps, w.size);
    return taps;
  }

  bool ReadsPatches() const {
    for (size_t d = 0; d < attrs_.window.dims.size(); ++d) {
      const WindowDim& w = attrs_.window.dims[d];
      if (w.stride != w.size || w.base_dilation != 1 || w.pad_low != 0 || w.pad_high != 0 || w.reversal ||
          Size(0, l_.input_spatial[d]) < conv_->shape().dim(l_.output_spatial[d]) * w.size)
        return false;
    }
    return true;
  }
  // At every so manieth place, if they lie further apart than a window is wide.
  bool WritesPatches() const {
    bool dilated = false;
    for (const WindowDim& w : attrs_.window.dims) {
      if (w.stride != 1 || w.base_dilation < w.size) return false;
      dilated |= w.base_dilation > 1;
    }
    return dilated;
  }
  bool FeaturesAreInnermost() const {
    const int64_t last = conv_->shape().rank() - 1;
    return l_.input_feature == last && l_.output_feature == last;
  }
  // Are the rows of a window as long as vectors, with nothing behind the last one, and the output's features whole
  // ones?
  bool ReadsWholeVectors() const {
    constexpr int64_t kRow = 12, kFeatures = 32;
    const WindowDim& w = attrs_.window.dims.back();
    const bool whole = Size(0, l_.input_spatial.back()) == conv_->shape().dim(l_.output_spatial.back()) * w.size;
    if (!whole || Bits(conv_->shape().type()) < 32) return false;  // halves are gathered one by one
    return w.size * Size(0, l_.input_feature) >= kRow && conv_->shape().dim(l_.output_feature) % kFeatures == 0;
  }
  // Output features first or last: what is summed over lies together.
  bool KernelIsOneMatrix() const {
    return l_.kernel_output_feature == 0 || l_.kernel_output_feature == conv_->shape().rank() - 1;
  }
  int64_t Size(int64_t operand, int64_t dim) const { return conv_->operand(operand)->shape().dim(dim); }

  static size_t IndexIn(const Dims& dims, int64_t dim) {
    return static_cast<size_t>(std::ranges::find(dims, dim) - dims.begin());
  }

  // The dot's dimensions go to where the output has them: `from[d]` is where output dimension d comes from.
  Instruction* Permuted(Instruction* x, const Dims& from) {
    for (size_t d = 0; d < from.size(); ++d)
      if (from[d] != static_cast<int64_t>(d)) return b_.Transpose(x, from);
    return x;
  }

  // The input without what is left behind the last window of a row.
  Instruction* WholePatches() {
    Instruction* x = conv_->operand(0);
    Dims limit(x->shape().dims().begin(), x->shape().dims().end());
    for (size_t d = 0; d < attrs_.window.dims.size(); ++d)
      limit[static_cast<size_t>(l_.input_spatial[d])] =
          conv_->shape().dim(l_.output_spatial[d]) * attrs_.window.dims[d].size;
    if (std::ranges::equal(limit, x->shape().dims())) return x;
    return b_.Slice(x, Dims(limit.size(), 0), limit, Dims(limit.size(), 1));
  }

  // Positions of the output by elements of a window in the kernel's order.
  Instruction* ProductOfPatches() {
    Instruction* x = WholePatches();
    Int64Vector sizes;
    std::vector<int64_t> at(static_cast<size_t>(x->shape().rank()));  // where each dimension of x begins
    for (int64_t d = 0; d < x->shape().rank(); ++d) {
      at[static_cast<size_t>(d)] = static_cast<int64_t>(sizes.size());
      const size_t window = IndexIn(l_.input_spatial, d);
      const int64_t size = window < l_.input_spatial.size() ? attrs_.window.dims[window].size : 1;
      sizes.push_back(x->shape().dim(d) / size);
      if (window < l_.input_spatial.size()) sizes.push_back(size);
    }
    Dims order = {at[static_cast<size_t>(l_.input_batch)]};
    for (int64_t d : l_.input_spatial) order.push_back(at[static_cast<size_t>(d)]);
    DotAttrs dot{.operand_precision = attrs_.operand_precision};
    for (int64_t d = 0; d < x->shape().rank(); ++d) {
      if (d == l_.kernel_output_feature) continue;
      dot.lhs_contracting.push_back(static_cast<int64_t>(order.size()));
      dot.rhs_contracting.push_back(d);
      const size_t window = IndexIn(l_.kernel_spatial, d);
      order.push_back(window < l_.kernel_spatial.size() ? at[static_cast<size_t>(l_.input_spatial[window])] + 1
                                                        : at[static_cast<size_t>(l_.input_feature)]);
    }
    Instruction* patches = b_.Transpose(b_.Reshape(x, sizes), order);
    Instruction* product = b_.Dot(patches, conv_->operand(1), dot, conv_->shape().type());
    Dims from(static_cast<size_t>(conv_->shape().rank()));
    from[static_cast<size_t>(l_.output_batch)] = 0;
    for (size_t d = 0; d < l_.output_spatial.size(); ++d)
      from[static_cast<size_t>(l_.output_spatial[d])] = static_cast<int64_t>(d + 1);
    from[static_cast<size_t>(l_.output_feature)] = conv_->shape().rank() - 1;
    return b_.status().ok() ? Permuted(product, from) : nullptr;
  }

  // The kernel as it meets the input: an element of the input makes the window as it is where the window is reversed.
  Instruction* Kernel() {
    Dims turned;
    for (size_t d = 0; d < attrs_.window.dims.size(); ++d)
      if (!attrs_.window.dims[d].reversal && attrs_.window.dims[d].size > 1) turned.push_back(l_.kernel_spatial[d]);
    Instruction* kernel = conv_->operand(1);
    return turned.empty() ? kernel : b_.Make(Op::Reverse, {kernel}, DimensionsAttrs{turned});
  }

  Instruction* PatchesOfProduct() {
    DotAttrs dot{.lhs_contracting = {l_.input_feature},
                 .rhs_contracting = {l_.kernel_input_feature},
                 .operand_precision = attrs_.operand_precision};
    Instruction* product = b_.Dot(conv_->operand(0), Kernel(), dot, conv_->shape().type());
    const int64_t rank = conv_->shape().rank();
    const auto of_input = [&](int64_t d) { return d - (d > l_.input_feature); };
    const auto of_kernel = [&](int64_t d) { return rank - 1 + d - (d > l_.kernel_input_feature); };
    Dims from;
    for (int64_t d = 0; d < rank; ++d) {
      const size_t window = IndexIn(l_.output_spatial, d);
      if (d == l_.output_batch) from.push_back(of_input(l_.input_batch));
      if (d == l_.output_feature) from.push_back(of_kernel(l_.kernel_output_feature));
      if (window >= l_.output_spatial.size()) continue;
      from.push_back(of_input(l_.input_spatial[window]));
      from.push_back(of_kernel(l_.kernel_spatial[window]));
    }
    if (!b_.status().ok()) return nullptr;
    product = Permuted(product, from);
    PadAttrs between;  // windows that lie apart
    between.padding.resize(from.size());
    Dims sizes;  // of the output as far as patches go
    size_t next = 0;
    for (int64_t d = 0; d < rank; ++d, ++next) {
      const size_t window = IndexIn(l_.output_spatial, d);
      sizes.push_back(conv_->shape().dim(d));
      if (window >= l_.output_spatial.size()) continue;
      const WindowDim& w = attrs_.window.dims[window];
      const int64_t pitch = w.size == 1 ? 1 : w.base_dilation;
      between.padding[++next].high = pitch - w.size;
      sizes.back() = Size(0, l_.input_spatial[window]) * pitch;
    }
    return WithEdges(b_.Reshape(Padded(product, std::move(between)), sizes));
  }
  // What the padding leaves of it, or adds to it; and what lies between single elements.
  Instruction* WithEdges(Instruction* whole) {
    PadAttrs pad;
    pad.padding.resize(static_cast<size_t>(conv_->shape().rank()));
    for (size_t d = 0; d < attrs_.window.dims.size(); ++d) {
      const WindowDim& w = attrs_.window.dims[d];
      PaddingDim& edge = pad.padding[static_cast<size_t>(l_.output_spatial[d])];
      edge.low = w.pad_low - (w.size - 1);
      edge.high = w.size == 1 ? w.pad_high : w.pad_high + 1 - w.base_dilation;
      edge.interior = w.size == 1 ? w.base_dilation - 1 : 0;
    }
    return Padded(whole, std::move(pad));
  }
  Instruction* Padded(Instruction* x, PadAttrs pad) {
    if (!x || std::ranges::all_of(pad.padding, [](const PaddingDim& d) { return d == PaddingDim{}; })) return x;
    return b_.Make(Op::Pad, {x, b_.Scalar(conv_->shape().type(), 0)}, std::move(pad));
  }

  Instruction* const conv_;
  const ConvolutionAttrs attrs_;
  const ConvDimLabels& l_;
  Builder b_;
};

struct PatchConvolutions final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t rewritten = 0;
    for (Computation* c : module.computations()) {
      std::vector<Instruction*> convolutions;
      for (Instruction* i : c->instructions())
        if (i->op() == Op::Convolution) convolutions.push_back(i);
      for (Instruction* conv : convolutions) {
        STROP_ASSIGN(const bool replaced, Rewriter(conv).Run());
        rewritten += replaced;
      }
    }
    context.Count("patch-convolutions.rewritten", rewritten);
    return rewritten > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakePatchConvolutions() { return std::make_unique<PatchConvolutions>(); }

}  // namespace strop
