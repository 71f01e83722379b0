// Convolutions of few terms a result are sums of products of elements, as one would write a stencil:
//
//   conv(f32[1,1,128,128] %x, f32[1,1,3,3] %k), window={size=3x3 pad=1_1x1_1}
//   ->  %p = f32[130,130] pad(reshape(%x), 0), padding=1_1x1_1
//       %p[0:128,0:128] * broadcast(%k[0,0,0,0]) + %p[0:128,1:129] * broadcast(%k[0,0,0,1]) + ..., reshaped
//
// So in a loop (image filters, cellular automata, steps of differential equations) a convolution becomes a part of the
// kernel that computes the next state. Terms are added in the order of the window, features innermost; floats of less
// than 32 bits as f32. All of them stay, those with weights of zero as well: infinity times zero is NaN. Dimensions of
// one element are left out, so that the input may be read, and overwritten, as the loop has it.
//
// Outside of loops a call of the library costs less than the code to compile; its integers, though, are products of
// matrices of one column, which take a hundred times as long as these sums.
#include <algorithm>
#include <array>

#include "strop/analysis/inside_loops.h"
#include "strop/ir/builder.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

constexpr int64_t kMostTerms = 27;   // of a result
constexpr int64_t kMostOutputs = 4;  // features that read the same input: more share what a product of matrices reads
constexpr int64_t kFewestElements = 16;
constexpr int64_t kVectorOfChannels = 16;  // side by side

ElementType SumsOf(ElementType type) { return IsFloat(type) && Bits(type) < 32 ? ElementType::F32 : type; }

class Expander {
 public:
  explicit Expander(Instruction* conv)
      : conv_(conv),
        attrs_(conv->attrs<ConvolutionAttrs>()),
        labels_(attrs_.dim_labels),
        sums_(SumsOf(conv->shape().type())),
        b_(conv->parent()) {}

  bool Run() {
    if (!IsPlain() || !IsSmall()) return false;
    b_.set_insert_before(conv_);
    if (conv_->has_metadata()) b_.set_metadata(conv_->shared_metadata());
    ChooseDimensions();
    Instruction* input = Padded();
    Instruction* kernel = b_.Convert(conv_->operand(1), sums_);
    Instruction* sum = nullptr;
    Int64Vector tap(attrs_.window.dims.size(), 0);
    for (int64_t t = 0; t < taps_; ++t) {
      for (int64_t f = 0; f < features_; ++f) {
        Instruction* product = b_.Make(Op::Multiply, {Shifted(input, tap, f), Weight(kernel, tap, f)});
        sum = sum ? b_.Make(Op::Add, {sum, product}) : product;
      }
      for (size_t d = tap.size(); d-- > 0;) {
        if (++tap[d] < attrs_.window.dims[d].size) break;
        tap[d] = 0;
      }
    }
    if (!b_.status().ok()) return false;
    sum = b_.Reshape(b_.Convert(sum, conv_->shape().type()), conv_->shape().dims());
    if (!b_.status().ok()) return false;
    conv_->parent()->Replace(conv_, sum);
    return true;
  }

 private:
  bool IsPlain() const {
    const Shape& shape = conv_->shape();
    if (conv_->operand_count() != 2 || !shape.IsStatic() || !(IsFloat(shape.type()) || IsInteger(shape.type())))
      return false;
    if (conv_->HasControlEdges() || conv_->sharding()) return false;
    if (!labels_.input_unknown.empty() || !labels_.kernel_unknown.empty() || !labels_.output_unknown.empty())
      return false;
    if (attrs_.batch_group_count != 1 || attrs_.window.dims.size() != labels_.input_spatial.size()) return false;
    for (Precision p : attrs_.operand_precision)
      if (p == Precision::PackedNibble) return false;
    for (int64_t k = 0; k < 2; ++k) {
      const Shape& operand = conv_->operand(k)->shape();
      if (!operand.IsStatic() || operand.num_elements() == 0 || Bits(operand.type()) > Bits(sums_)) return false;
      if (IsFloat(operand.type()) != IsFloat(sums_) || IsInteger(operand.type()) != IsInteger(sums_)) return false;
    }
    return true;
  }

  bool IsSmall() {
    const Shape &shape = conv_->shape(), &kernel = conv_->operand(1)->shape();
    features_ = kernel.dim(labels_.kernel_input_feature);
    outputs_ = kernel.dim(labels_.kernel_output_feature) / attrs_.feature_group_count;
    taps_ = 1;
    for (const WindowDim& w : attrs_.window.dims) {
      if (w.base_dilation != 1) return false;
      taps_ = SaturatingMultiply(taps_, w.size);
    }
    if (outputs_ > kMostOutputs || (outputs_ > 1 && (features_ > 1 || attrs_.feature_group_count > 1))) return false;
    if (features_ > 1 && attrs_.feature_group_count > 1) return false;
    if (IsFloat(shape.type()) && IsLibrarys()) return false;
    return SaturatingMultiply(taps_, features_) <= kMostTerms && shape.num_elements() >= kFewestElements;
  }

  // What the library computes as fast, or faster: sums over features of a window, and channels that fill vectors.
  bool IsLibrarys() const {
    if (features_ > 1) return taps_ > 1;
    return attrs_.feature_group_count >= kVectorOfChannels && labels_.output_feature == conv_->shape().rank() - 1;
  }

  // Of the input and of the result: those that are left once what has one element everywhere is gone.
  void ChooseDimensions() {
    const Shape &in = conv_->operand(0)->shape(), &out = conv_->shape();
    std::vector<std::array<int64_t, 2>> pairs = {{labels_.input_batch, labels_.output_batch},
                                                 {labels_.input_feature, labels_.output_feature}};
    for (size_t d = 0; d < attrs_.window.dims.size(); ++d)
      pairs.push_back({labels_.input_spatial[d], labels_.output_spatial[d]});
    std::vector<bool> kept_in(static_cast<size_t>(in.rank())), kept_out(static_cast<size_t>(out.rank()));
    to_output_.assign(static_cast<size_t>(in.rank()), -1);
    for (const auto& [from, to] : pairs) {
      const WindowDim* w = WindowOf(from);
      const bool moves = w && (w->size != 1 || w->pad_low != 0 || w->pad_high != 0);
      kept_in[static_cast<size_t>(from)] = in.dim(from) != 1 || out.dim(to) != 1 || moves;
      kept_out[static_cast<size_t>(to)] = out.dim(to) != 1;
      to_output_[static_cast<size_t>(from)] = to;
    }
    kept_in[static_cast<size_t>(labels_.input_feature)] = in.dim(labels_.input_feature) != 1;
    for (int64_t d = 0; d < in.rank(); ++d)
      if (kept_in[static_cast<size_t>(d)]) input_dims_.push_back(d);
    for (int64_t d = 0; d < out.rank(); ++d)
      if (kept_out[static_cast<size_t>(d)]) output_dims_.push_back(d);
    for (int64_t d : output_dims_) output_sizes_.push_back(out.dim(d));
  }

  // The window dimension of a dimension of the input, or null.
  const WindowDim* WindowOf(int64_t dim, size_t* number = nullptr) const {
    const auto at = std::ranges::find(labels_.input_spatial, dim);
    if (at == labels_.input_spatial.end()) return nullptr;
    if (number) *number = static_cast<size_t>(at - labels_.input_spatial.begin());
    return &attrs_.window.dims[static_cast<size_t>(at - labels_.input_spatial.begin())];
  }

  Instruction* Padded() {
    Int64Vector sizes;
    PaddingConfig padding;
    for (int64_t d : input_dims_) {
      const WindowDim* w = WindowOf(d);
      sizes.push_back(conv_->operand(0)->shape().dim(d));
      padding.push_back(w ? PaddingDim{w->pad_low, w->pad_high, 0} : PaddingDim{});
    }
    Instruction* input = b_.Convert(b_.Reshape(conv_->operand(0), sizes), sums_);
    return b_.Make(Op::Pad, {input, b_.Scalar(sums_, 0)}, PadAttrs{padding});
  }

  // What all results read of one feature at one place of the window.
  Instruction* Shifted(Instruction* input, const Int64Vector& tap, int64_t feature) {
    const bool by_group = attrs_.feature_group_count > 1;
    SliceDims slice;
    Int64Vector sizes;
    Dims to;  // the dimension of the result, for each that is left
    for (size_t k = 0; k < input_dims_.size(); ++k) {
      const int64_t d = input_dims_[k], out = to_output_[static_cast<size_t>(d)];
      size_t number = 0;
      if (const WindowDim* w = WindowOf(d, &number)) {
        const int64_t start = tap[number] * w->window_dilation;
        slice.push_back({start, start + (conv_->shape().dim(out) - 1) * w->stride + 1, w->stride});
      } else if (d == labels_.input_feature && !by_group) {
        slice.push_back({feature, feature + 1, 1});
        continue;
      } else {
        slice.push_back({0, input->shape().dim(static_cast<int64_t>(k)), 1});
      }
      const auto at = std::ranges::find(output_dims_, out);
      if (at == output_dims_.end()) continue;
      sizes.push_back(conv_->shape().dim(out));
      to.push_back(at - output_dims_.begin());
    }
    Instruction* taken = b_.Reshape(b_.Make(Op::Slice, {input}, SliceAttrs{slice}), sizes);
    if (!std::ranges::is_sorted(to)) {
      Dims permutation;
      for (size_t n = 0; n < to.size(); ++n) permutation.push_back(static_cast<int64_t>(n));
      std::ranges::sort(permutation, {}, [&](int64_t n) { return to[static_cast<size_t>(n)]; });
      taken = b_.Transpose(taken, permutation);
      std::ranges::sort(to);
    }
    return outputs_ == 1 ? taken : b_.Broadcast(taken, output_sizes_, to);
  }

  Instruction* Weight(Instruction* kernel, const Int64Vector& tap, int64_t feature) {
    const Shape& shape = kernel->shape();
    const int64_t outputs = shape.dim(labels_.kernel_output_feature);
    SliceDims slice;
    for (int64_t d = 0; d < shape.rank(); ++d) slice.push_back({0, shape.dim(d), 1});
    slice[static_cast<size_t>(labels_.kernel_input_feature)] = {feature, feature + 1, 1};
    for (size_t d = 0; d < tap.size(); ++d) {
      const WindowDim& w = attrs_.window.dims[d];
      const int64_t k = w.reversal ? w.size - 1 - tap[d] : tap[d];
      slice[static_cast<size_t>(labels_.kernel_spatial[d])] = {k, k + 1, 1};
    }
    Instruction* taken = b_.Make(Op::Slice, {kernel}, SliceAttrs{slice});
    if (outputs == 1) return b_.Broadcast(b_.Reshape(taken, {}), output_sizes_, {});
    const int64_t at = std::ranges::find(output_dims_, labels_.output_feature) - output_dims_.begin();
    return b_.Broadcast(b_.Reshape(taken, {outputs}), output_sizes_, {at});
  }

  Instruction* conv_;
  const ConvolutionAttrs attrs_;
  const ConvDimLabels& labels_;
  const ElementType sums_;
  Builder b_;
  int64_t taps_ = 0, features_ = 0, outputs_ = 0;
  Dims input_dims_, output_dims_;  // what is left
  Int64Vector output_sizes_;
  Dims to_output_;  // by dimension of the input
};

struct SmallConvolutions final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t expanded = 0;
    const std::set<const Computation*> inside = InsideLoops(module);
    for (Computation* c : module.PostOrder()) {
      std::vector<Instruction*> convolutions;
      for (Instruction* i : c->instructions())
        if (i->op() == Op::Convolution && (inside.contains(c) || IsInteger(i->shape().type())))
          convolutions.push_back(i);
      for (Instruction* conv : convolutions) expanded += Expander(conv).Run();
    }
    context.Count("small-convolutions.expanded", expanded);
    return expanded > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeSmallConvolutions() { return std::make_unique<SmallConvolutions>(); }

}  // namespace strop
