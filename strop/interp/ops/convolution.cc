// convolution, straight from its definition. With s, d, e the stride, window dilation and base dilation of a spatial
// dimension, k over kernel positions and i over input features:
//
//   out[n, o, y] = sum of in[n, i, (y*s + k*d - pad_low) / e] * kernel[o, i, k]
//
// where the quotient must be exact and inside. A reversed dimension reads the kernel from its end. With feature groups,
// output feature o sees only the input features of its group; with batch groups, only the batches of its group.
#include "strop/interp/ops.h"
#include "strop/interp/ops/contraction.h"

namespace strop::interp {

namespace {

// For one spatial dimension and one output position: which kernel positions meet which input positions.
struct Meeting {
  int64_t input_offset;   // in elements
  int64_t kernel_offset;  // in rows of output features
};
using Meetings = std::vector<std::vector<Meeting>>;  // by output position

Meetings MeetingsAlong(const WindowDim& w, int64_t input_size, int64_t output_size, int64_t input_stride,
                       int64_t kernel_stride) {
  Meetings out(static_cast<size_t>(output_size));
  for (int64_t y = 0; y < output_size; ++y)
    for (int64_t k = 0; k < w.size; ++k) {
      const int64_t dilated = y * w.stride + k * w.window_dilation - w.pad_low;
      if (dilated < 0 || dilated % w.base_dilation != 0) continue;
      const int64_t x = dilated / w.base_dilation;
      if (x >= input_size) continue;
      const int64_t from = w.reversal ? w.size - 1 - k : k;
      out[static_cast<size_t>(y)].push_back({x * input_stride, from * kernel_stride});
    }
  return out;
}

class Convolution {
 public:
  explicit Convolution(OpCall& call) : call_(call), a_(call.attrs<ConvolutionAttrs>()), labels_(a_.dim_labels) {
    const Int64Vector& in_dims = call.in(0).shape().dims();
    const Int64Vector& out_dims = call.shape.dims();
    in_strides_ = RowMajorStrides(in_dims);
    const int64_t features = call.in(1).shape().dim(labels_.kernel_input_feature);
    out_strides_ = RowMajorStrides(out_dims);
    for (size_t d = 0; d < a_.window.dims.size(); ++d) {
      const size_t in = static_cast<size_t>(labels_.input_spatial[d]),
                   out = static_cast<size_t>(labels_.output_spatial[d]);
      int64_t packed_stride = features;  // of this kernel dimension, in rows of output features
      for (size_t later = d + 1; later < a_.window.dims.size(); ++later) packed_stride *= a_.window.dims[later].size;
      meetings_.push_back(MeetingsAlong(a_.window.dims[d], in_dims[in], out_dims[out], in_strides_[in], packed_stride));
      spatial_dims_.push_back(out_dims[out]);
      spatial_strides_.push_back(out_strides_[out]);
    }
  }

  // T: host type of the elements; Sum: of the sums (see contraction.h).
  template <class T, class Sum>
  Status Run(Literal& result) {
    const std::vector<T> input = LoadAs<T>(call_.in(0)), kernel = PackKernel<T>();
    const int64_t batches = call_.shape.dim(labels_.output_batch), outputs = call_.shape.dim(labels_.output_feature);
    const int64_t features = call_.in(1).shape().dim(labels_.kernel_input_feature);
    const int64_t in_batch = Stride(in_strides_, labels_.input_batch),
                  in_feature = Stride(in_strides_, labels_.input_feature);
    // A group is a run of output features that see the same input features (or the same batches).
    const int64_t groups = a_.feature_group_count * a_.batch_group_count, group_size = outputs / groups;
    std::vector<Meeting> points;
    std::vector<Sum> sums(static_cast<size_t>(outputs));
    std::vector<Cell> cells(sums.size());
    for (IndexWalk y(spatial_dims_, {spatial_strides_}); !y.done(); y.Next()) {
      STROP_TRY(call_.evaluator.Poll());
      PointsAt(y.index(), points);
      for (int64_t n = 0; n < batches; ++n) {
        std::fill(sums.begin(), sums.end(), Sum{});
        for (int64_t g = 0; g < groups; ++g) {
          const int64_t feature_group = a_.batch_group_count > 1 ? 0 : g,
                        batch_group = a_.batch_group_count > 1 ? g : 0;
          const T* in = input.data() + (n + batch_group * batches) * in_batch + feature_group * features * in_feature;
          for (const Meeting& p : points)
            for (int64_t i = 0; i < features; ++i)
              AddProducts(in[p.input_offset + i * in_feature],
                          kernel.data() + (p.kernel_offset + i) * outputs + g * group_size,
                          sums.data() + g * group_size, group_size);
        }
        Store(result, sums, cells, y.offset(0) + n * Stride(out_strides_, labels_.output_batch));
      }
    }
    return OkStatus();
  }

 private:
  static int64_t Stride(const Int64Vector& strides, int64_t d) { return strides[static_cast<size_t>(d)]; }

  // As [kernel position][input feature][output feature]: the innermost loop runs over the outputs.
  template <class T>
  std::vector<T> PackKernel() const {
    const int64_t in = labels_.kernel_input_feature, out = labels_.kernel_output_feature;
    return PackOperand(LoadAs<T>(call_.in(1)), call_.in(1).shape().dims(), labels_.kernel_spatial, {in}, {out}).values;
  }

  // One result element per output feature, beginning at `at`.
  template <class Sum>
  void Store(Literal& result, const std::vector<Sum>& sums, std::vector<Cell>& cells, int64_t at) const {
    const int64_t stride = Stride(out_strides_, labels_.output_feature), count = static_cast<int64_t>(sums.size());
    const ElementType type = call_.shape.type();
    uint8_t* bytes = result.mutable_bytes().data();
    for (size_t o = 0; o < sums.size(); ++o) cells[o] = SumCell(sums[o], type);
    if (stride == 1) return StoreCells(type, cells.data(), count, bytes, at);
    for (int64_t o = 0; o < count; ++o) StoreCells(type, &cells[static_cast<size_t>(o)], 1, bytes, at + o * stride);
  }

  // All meetings of one output position: the product over the spatial dimensions.
  void PointsAt(const Int64Vector& y, std::vector<Meeting>& points) const {
    points.assign(1, Meeting{0, 0});
    for (size_t d = 0; d < meetings_.size(); ++d) {
      std::vector<Meeting> next;
      for (const Meeting& p : points)
        for (const Meeting& m : meetings_[d][static_cast<size_t>(y[d])])
          next.push_back({p.input_offset + m.input_offset, p.kernel_offset + m.kernel_offset});
      points = std::move(next);
    }
  }

  OpCall& call_;
  const ConvolutionAttrs& a_;
  const ConvDimLabels& labels_;
  Int64Vector in_strides_, out_strides_, spatial_dims_, spatial_strides_;
  std::vector<Meetings> meetings_;
};

}  // namespace

Result<Literal> EvalConvolution(OpCall& call) {
  const auto& a = call.attrs<ConvolutionAttrs>();
  const ElementType type = call.shape.type();
  if (call.operands.size() != 2 || !a.dim_labels.input_unknown.empty())
    return Unimplemented("convolution with sparse operands or unknown dimensions");
  for (Precision p : a.operand_precision)
    if (p == Precision::PackedNibble) return Unimplemented("convolution with operand_precision packed_nibble");
  STROP_TRY(CheckContractionTypes(call.op(), call.in(0).type(), call.in(1).type(), type));
  STROP_ASSIGN(Literal result, call.NewResult());
  if (result.num_elements() == 0) return result;
  Convolution convolution(call);
  STROP_TRY(WithSumTypes(call.in(0).type(), call.in(1).type(), type, kLongSum, [&](auto types) {
    return convolution.Run<typename decltype(types)::Element, typename decltype(types)::Total>(result);
  }));
  return result;
}

}  // namespace strop::interp
