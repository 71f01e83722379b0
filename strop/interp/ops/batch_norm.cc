// Batch normalisation: statistics over all dimensions but the feature dimension, in long double.
//   training:  y = (x - mean) / sqrt(variance + epsilon) * scale + offset, with mean and (biased) variance of the batch
//   inference: the same with mean and variance given
//   gradient:  see EvalBatchNormGrad
#include <cmath>

#include "strop/interp/ops.h"
#include "strop/interp/strided.h"

namespace strop::interp {

namespace {

// The feature of each element, and how many elements a feature has.
struct Features {
  std::vector<int64_t> of;
  int64_t count = 0;
  long double elements = 0;

  Features(const Shape& shape, int64_t index) : count(shape.dim(index)) {
    for (IndexWalk walk(shape.dims()); !walk.done(); walk.Next())
      of.push_back(walk.index()[static_cast<size_t>(index)]);
    elements = count == 0 ? 0 : static_cast<long double>(of.size()) / static_cast<long double>(count);
  }
  // Sum of f(i) over the elements of each feature.
  template <class F>
  std::vector<long double> Sum(F&& f) const {
    std::vector<long double> sums(static_cast<size_t>(count), 0);
    for (size_t i = 0; i < of.size(); ++i) sums[static_cast<size_t>(of[i])] += f(i, static_cast<size_t>(of[i]));
    return sums;
  }
};

template <class F>
Result<Literal> Fill(const Shape& shape, size_t count, F&& f) {
  STROP_ASSIGN(Literal out, Literal::Zeros(shape));
  for (size_t i = 0; i < count; ++i) {
    const Cell cell = Cell::Real(static_cast<double>(f(i)));
    StoreCells(out.type(), &cell, 1, out.mutable_bytes().data(), static_cast<int64_t>(i));
  }
  return out;
}

Status CheckReal(const OpCall& call) {
  if (IsFloat(call.in(0).type())) return OkStatus();
  return Unimplemented(Name(call.op()), " of ", Name(call.in(0).type()));
}

}  // namespace

// Operands: x, scale, offset. Results: y, mean, variance.
Result<Literal> EvalBatchNormTraining(OpCall& call) {
  STROP_TRY(CheckReal(call));
  const auto& a = call.attrs<BatchNormAttrs>();
  const Features features(call.in(0).shape(), a.feature_index);
  const std::vector<double> x = LoadReals(call.in(0)), scale = LoadReals(call.in(1)), offset = LoadReals(call.in(2));
  std::vector<long double> mean = features.Sum([&](size_t i, size_t) { return static_cast<long double>(x[i]); });
  for (long double& m : mean) m /= features.elements;
  std::vector<long double> variance =
      features.Sum([&](size_t i, size_t f) { return (x[i] - mean[f]) * (x[i] - mean[f]); });
  for (long double& v : variance) v /= features.elements;
  STROP_ASSIGN(Literal y, Fill(call.shape.element(0), x.size(), [&](size_t i) {
                 const size_t f = static_cast<size_t>(features.of[i]);
                 return (x[i] - mean[f]) / std::sqrt(variance[f] + a.epsilon) * scale[f] + offset[f];
               }));
  STROP_ASSIGN(Literal mean_out, Fill(call.shape.element(1), mean.size(), [&](size_t f) { return mean[f]; }));
  STROP_ASSIGN(Literal variance_out, Fill(call.shape.element(2), mean.size(), [&](size_t f) { return variance[f]; }));
  return Literal::Tuple({std::move(y), std::move(mean_out), std::move(variance_out)});
}

// Operands: x, scale, offset, mean, variance.
Result<Literal> EvalBatchNormInference(OpCall& call) {
  STROP_TRY(CheckReal(call));
  const auto& a = call.attrs<BatchNormAttrs>();
  const Features features(call.in(0).shape(), a.feature_index);
  const std::vector<double> x = LoadReals(call.in(0)), scale = LoadReals(call.in(1)), offset = LoadReals(call.in(2)),
                            mean = LoadReals(call.in(3)), variance = LoadReals(call.in(4));
  return Fill(call.shape, x.size(), [&](size_t i) {
    const size_t f = static_cast<size_t>(features.of[i]);
    return (static_cast<long double>(x[i]) - mean[f]) / std::sqrt(static_cast<long double>(variance[f]) + a.epsilon) *
               scale[f] +
           offset[f];
  });
}

// Operands: x, scale, mean, variance, gradient g of y. With n elements a feature, s = sqrt(variance + epsilon), h = (x
// - mean) / s:
//   d offset = sum g;   d scale = sum g h;   d x = scale / s * (g - (d offset + h * d scale) / n)
Result<Literal> EvalBatchNormGrad(OpCall& call) {
  STROP_TRY(CheckReal(call));
  const auto& a = call.attrs<BatchNormAttrs>();
  const Features features(call.in(0).shape(), a.feature_index);
  const std::vector<double> x = LoadReals(call.in(0)), scale = LoadReals(call.in(1)), mean = LoadReals(call.in(2)),
                            variance = LoadReals(call.in(3)), gradient = LoadReals(call.in(4));
  auto deviation = [&](size_t f) { return std::sqrt(static_cast<long double>(variance[f]) + a.epsilon); };
  auto normal = [&](size_t i, size_t f) { return (static_cast<long double>(x[i]) - mean[f]) / deviation(f); };
  const std::vector<long double> d_offset =
      features.Sum([&](size_t i, size_t) { return static_cast<long double>(gradient[i]); });
  const std::vector<long double> d_scale = features.Sum([&](size_t i, size_t f) { return gradient[i] * normal(i, f); });
  STROP_ASSIGN(Literal dx, Fill(call.shape.element(0), x.size(), [&](size_t i) {
                 const size_t f = static_cast<size_t>(features.of[i]);
                 return scale[f] / deviation(f) *
                        (gradient[i] - (d_offset[f] + normal(i, f) * d_scale[f]) / features.elements);
               }));
  STROP_ASSIGN(Literal ds, Fill(call.shape.element(1), d_scale.size(), [&](size_t f) { return d_scale[f]; }));
  STROP_ASSIGN(Literal doff, Fill(call.shape.element(2), d_offset.size(), [&](size_t f) { return d_offset[f]; }));
  return Literal::Tuple({std::move(dx), std::move(ds), std::move(doff)});
}

}  // namespace strop::interp
