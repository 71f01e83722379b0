// convolution, straight from its definition. With s, d, e the stride, window dilation and base dilation of a spatial
// dimension:
//   out[n, o, y] = sum over kernel positions k and input features i of  in[n, i, (y*s + k*d - pad_low) / e] * kernel[o,
//   i, k]
// where the quotient must be exact and inside. A reversed dimension reads the kernel from its end. With feature groups,
// output feature o sees only the input features of its group; with batch groups, only the batches of its group.
#include "strop/interp/ops.h"
#include "strop/interp/ops/contraction.h"

namespace strop::interp {

namespace {

// For one spatial dimension and one output position: which kernel positions meet which input positions.
struct Meeting {
  int64_t input_offset, kernel_offset;  // in elements
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

template <class T>
struct Sum {
  long double value = 0;
  void Add(T a, T b) { value += static_cast<long double>(a) * b; }
  Cell Get() const { return Cell::Real(static_cast<double>(value)); }
};
struct NarrowSum {
  double value = 0;
  void Add(double a, double b) { value += a * b; }
  Cell Get() const { return Cell::Real(value); }
};
template <>
struct Sum<int64_t> {
  uint64_t value = 0;
  void Add(int64_t a, int64_t b) { value += static_cast<uint64_t>(a) * static_cast<uint64_t>(b); }
  Cell Get() const { return Cell::Uint(value); }
};
template <>
struct Sum<std::complex<double>> {
  long double re = 0, im = 0;
  void Add(std::complex<double> a, std::complex<double> b) {
    const long double ar = a.real(), ai = a.imag(), br = b.real(), bi = b.imag();
    re += ar * br - ai * bi;
    im += ar * bi + ai * br;
  }
  Cell Get() const { return Cell::Complex(static_cast<double>(re), static_cast<double>(im)); }
};

class Convolution {
 public:
  explicit Convolution(OpCall& call) : call_(call), a_(call.attrs<ConvolutionAttrs>()), labels_(a_.dim_labels) {
    const Int64Vector& in_dims = call.in(0).shape().dims();
    const Int64Vector& out_dims = call.shape.dims();
    in_strides_ = RowMajorStrides(in_dims);
    kernel_strides_ = RowMajorStrides(call.in(1).shape().dims());
    out_strides_ = RowMajorStrides(out_dims);
    for (size_t d = 0; d < a_.window.dims.size(); ++d) {
      const size_t in = static_cast<size_t>(labels_.input_spatial[d]),
                   out = static_cast<size_t>(labels_.output_spatial[d]);
      meetings_.push_back(MeetingsAlong(a_.window.dims[d], in_dims[in], out_dims[out], in_strides_[in],
                                        kernel_strides_[static_cast<size_t>(labels_.kernel_spatial[d])]));
      spatial_dims_.push_back(out_dims[out]);
      spatial_strides_.push_back(out_strides_[out]);
    }
  }

  template <class T, class Accumulate>
  Status Run(Literal& result) {
    const std::vector<T> input = LoadAs<T>(call_.in(0)), kernel = LoadAs<T>(call_.in(1));
    const int64_t batches = call_.shape.dim(labels_.output_batch), outputs = call_.shape.dim(labels_.output_feature);
    const int64_t features = call_.in(1).shape().dim(labels_.kernel_input_feature);
    const int64_t in_batch = Stride(in_strides_, labels_.input_batch),
                  in_feature = Stride(in_strides_, labels_.input_feature);
    const int64_t kernel_in = Stride(kernel_strides_, labels_.kernel_input_feature);
    const int64_t kernel_out = Stride(kernel_strides_, labels_.kernel_output_feature);
    const int64_t outputs_per_feature_group = outputs / a_.feature_group_count;
    const int64_t outputs_per_batch_group = outputs / a_.batch_group_count;
    std::vector<Meeting> points;
    for (IndexWalk y(spatial_dims_, {spatial_strides_}); !y.done(); y.Next()) {
      STROP_TRY(call_.evaluator.Poll());
      PointsAt(y.index(), points);
      for (int64_t n = 0; n < batches; ++n)
        for (int64_t o = 0; o < outputs; ++o) {
          const int64_t first_feature = outputs_per_feature_group == 0 ? 0 : o / outputs_per_feature_group * features;
          const int64_t batch = n + (outputs_per_batch_group == 0 ? 0 : o / outputs_per_batch_group * batches);
          const T* in = input.data() + batch * in_batch + first_feature * in_feature;
          const T* weights = kernel.data() + o * kernel_out;
          Accumulate sum;
          for (const Meeting& p : points)
            for (int64_t i = 0; i < features; ++i)
              sum.Add(in[p.input_offset + i * in_feature], weights[p.kernel_offset + i * kernel_in]);
          const Cell cell = sum.Get();
          const int64_t at = y.offset(0) + n * Stride(out_strides_, labels_.output_batch) +
                             o * Stride(out_strides_, labels_.output_feature);
          StoreCells(call_.shape.type(), &cell, 1, result.mutable_bytes().data(), at);
        }
    }
    return OkStatus();
  }

 private:
  static int64_t Stride(const Int64Vector& strides, int64_t d) { return strides[static_cast<size_t>(d)]; }

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
  Int64Vector in_strides_, kernel_strides_, out_strides_, spatial_dims_, spatial_strides_;
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
  switch (DomainOf(type)) {
    case Domain::Real:
      STROP_TRY(SumsWide(type) ? (convolution.Run<double, Sum<double>>(result))
                               : (convolution.Run<double, NarrowSum>(result)));
      break;
    case Domain::Complex: STROP_TRY((convolution.Run<std::complex<double>, Sum<std::complex<double>>>(result))); break;
    default: STROP_TRY((convolution.Run<int64_t, Sum<int64_t>>(result)));
  }
  return result;
}

}  // namespace strop::interp
