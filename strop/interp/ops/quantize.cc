// uniform_quantize and uniform_dequantize as custom calls, their parameters in the text of the call:
//   quantized = clamp(round(x * (1 / scale)) + zero_point, storage_min, storage_max)      ties to even
//   x         = (quantized - zero_point) * scale
// With several scales, quantization_dimension names the dimension that they run along. The quantised numbers are kept
// in the element type of the result, an integer type or f32.
#include <cmath>

#include "strop/interp/ops.h"
#include "strop/interp/ops/dictionary.h"
#include "strop/interp/strided.h"

namespace strop::interp {

namespace {

struct Quantization {
  std::vector<double> scale, zero_point;
  int64_t dimension = -1;
  double low = 0, high = 0;
};

Result<Quantization> ParseQuantization(const OpCall& call, const Shape& shape) {
  const std::string& text = call.attrs<CustomCallAttrs>().opaque.empty() ? call.instruction.backend_config()
                                                                         : call.attrs<CustomCallAttrs>().opaque;
  Quantization q;
  STROP_ASSIGN(q.scale, Numbers(text, "scale"));
  STROP_ASSIGN(q.zero_point, Numbers(text, "zero_point"));
  STROP_ASSIGN(double dimension, NumberOr(text, "quantization_dimension", -1));
  STROP_ASSIGN(q.low, NumberOr(text, "storage_min", -128));
  STROP_ASSIGN(q.high, NumberOr(text, "storage_max", 127));
  q.dimension = static_cast<int64_t>(dimension);
  if (q.zero_point.empty()) q.zero_point.assign(q.scale.size(), 0);
  if (q.scale.empty() || q.scale.size() != q.zero_point.size())
    return InvalidArgument(call.attrs<CustomCallAttrs>().target, " needs as many zero points as scales: ", text);
  if (q.scale.size() > 1 && (q.dimension < 0 || q.dimension >= shape.rank() ||
                             shape.dim(q.dimension) != static_cast<int64_t>(q.scale.size())))
    return InvalidArgument(call.attrs<CustomCallAttrs>().target, " of ", shape.ToString(), " has ", q.scale.size(),
                           " scales along dimension ", q.dimension);
  return q;
}

template <class F>
Result<Literal> ForEachElement(OpCall& call, F&& f) {
  STROP_ASSIGN(Quantization q, ParseQuantization(call, call.in(0).shape()));
  STROP_ASSIGN(Literal result, call.NewResult());
  const std::vector<double> x = LoadReals(call.in(0));
  for (IndexWalk walk(call.in(0).shape().dims()); !walk.done(); walk.Next()) {
    const size_t c = q.scale.size() > 1 ? static_cast<size_t>(walk.index()[static_cast<size_t>(q.dimension)]) : 0;
    result.SetDouble(walk.count(), f(q, q.scale[c], q.zero_point[c], x[static_cast<size_t>(walk.count())]));
  }
  return result;
}

}  // namespace

Result<Literal> EvalQuantize(OpCall& call) {
  return ForEachElement(call, [](const Quantization& q, double scale, double zero, double x) {
    if (std::isnan(x)) return zero;
    const auto steps = static_cast<double>(static_cast<float>(x) * static_cast<float>(1 / scale));
    return Minimum(Maximum(std::nearbyint(steps) + zero, q.low), q.high);
  });
}

Result<Literal> EvalDequantize(OpCall& call) {
  return ForEachElement(call,
                        [](const Quantization&, double scale, double zero, double x) { return (x - zero) * scale; });
}

}  // namespace strop::interp
