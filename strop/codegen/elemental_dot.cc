// dot and convolution as values: one accumulator an output element, a loop over what is contracted. This is the general
// path for every element type, dimension order, dilation and group; the GEMM and convolution kernel families take over
// where they match.
#include <algorithm>

#include "strop/codegen/elemental.h"

namespace strop {

using V = llvm::Value*;

namespace {

constexpr int64_t kMaxUnrolled = 8;  // products of an element without a loop

// Products of small floats are exact in f32, and small integers must not wrap: accumulate in a wide type.
ElementType AccumulatorType(ElementType result) {
  return IsFloat(result) && Bits(result) < 32 ? ElementType::F32 : result;
}

}  // namespace

Vals ElementalEmitter::MultiplyAccumulate(const Vals& acc, const Val& lhs, const Val& rhs) {
  const ElementType type = acc[0].type;
  const Val a = scalars_.Convert(lhs, type), c = scalars_.Convert(rhs, type);
  if (IsFloat(type)) {
    V product_sum = b_.Fma(a.re, c.re, acc[0].re);
    return {Val{product_sum, nullptr, type}};
  }
  return {scalars_.Add(acc[0], scalars_.Mul(a, c))};
}

Vals ElementalEmitter::Dot(const Instruction& i, const ArrayIndex& index) {
  const DotAttrs& a = i.attrs<DotAttrs>();
  const Shape &lhs = i.operand(0)->shape(), &rhs = i.operand(1)->shape();
  if (i.operand_count() != 2) return Unsupported(i, index);
  const ArrayIndex at = indices_.Refactor(index, i.shape().dims());
  const auto contains = [](const Dims& dims, int64_t d) {
    return std::find(dims.begin(), dims.end(), d) != dims.end();
  };
  ArrayIndex left, right;
  left.sizes = lhs.dims();
  right.sizes = rhs.dims();
  left.digits.resize(lhs.dims().size());
  right.digits.resize(rhs.dims().size());
  size_t next = 0;
  for (size_t k = 0; k < a.lhs_batch.size(); ++k) {
    left.digits[a.lhs_batch[k]] = at.digits[next];
    right.digits[a.rhs_batch[k]] = at.digits[next++];
  }
  for (int64_t d = 0; d < lhs.rank(); ++d)
    if (!contains(a.lhs_batch, d) && !contains(a.lhs_contracting, d)) left.digits[d] = at.digits[next++];
  for (int64_t d = 0; d < rhs.rank(); ++d)
    if (!contains(a.rhs_batch, d) && !contains(a.rhs_contracting, d)) right.digits[d] = at.digits[next++];

  const ElementType type = i.shape().type(), wide = AccumulatorType(type);
  V zero = llvm::Constant::getNullValue(
      VectorBuilder::WithLanes(elements_.RegisterType(wide), index.uniform() ? 1 : lanes()));
  Vals acc{Val{zero, IsComplex(wide) ? zero : nullptr, wide}};
  const std::function<Vals(size_t, const Vals&)> contract = [&](size_t k, const Vals& carried) -> Vals {
    if (k == a.lhs_contracting.size())
      return MultiplyAccumulate(carried, Emit(i.operand(0), left), Emit(i.operand(1), right));
    if (lhs.dim(a.lhs_contracting[k]) <= kMaxUnrolled && a.lhs_contracting.size() == 1) {
      Vals sum = carried;
      for (int64_t n = 0; n < lhs.dim(a.lhs_contracting[k]); ++n) {
        left.digits[a.lhs_contracting[k]] = right.digits[a.rhs_contracting[k]] = indices_.Constant(n);
        sum = contract(k + 1, sum);
      }
      return sum;
    }
    return LoopOver("contract", b_.I64(0), b_.I64(lhs.dim(a.lhs_contracting[k])), 1, carried, [&](V n, const Vals& c) {
      const LaneIndex digit = indices_.Counter(n, scopes_.current(), 0, 1);
      left.digits[a.lhs_contracting[k]] = digit;
      right.digits[a.rhs_contracting[k]] = digit;
      return contract(k + 1, c);
    });
  };
  if (b_.short_chains() && a.lhs_contracting.size() == 1 && IsFloat(wide)) {
    const auto product = [&](const LaneIndex& n, const Vals& sum) {
      left.digits[a.lhs_contracting[0]] = right.digits[a.rhs_contracting[0]] = n;
      return MultiplyAccumulate(sum, Emit(i.operand(0), left), Emit(i.operand(1), right));
    };
    return {scalars_.Convert(ContractInChains(lhs.dim(a.lhs_contracting[0]), acc[0], product), type)};
  }
  acc = contract(0, acc);
  return {scalars_.Convert(acc[0], type)};
}

// Sums of products in several chains, which do not wait for each other: every so manieth product is one's.
Val ElementalEmitter::ContractInChains(int64_t size, const Val& zero,
                                       const std::function<Vals(const LaneIndex& n, const Vals& sum)>& product) {
  constexpr int64_t kLeastForTwo = 6, kLeastForFour = 12;
  const int64_t chains = size >= kLeastForFour ? 4 : size >= kLeastForTwo ? 2 : 1;
  const int64_t whole = size / chains * chains;
  Vals sums(static_cast<size_t>(chains), zero);
  const auto step = [&](const LaneIndex& first, int64_t count, Vals carried) {
    for (int64_t k = 0; k < count; ++k) {
      Val& sum = carried[static_cast<size_t>(k)];
      sum = product(indices_.Add(first, indices_.Constant(k)), {sum})[0];
    }
    return carried;
  };
  if (size <= kMaxUnrolled) {
    for (int64_t n = 0; n < whole; n += chains) sums = step(indices_.Constant(n), chains, sums);
  } else {
    sums = LoopOver("contract", b_.I64(0), b_.I64(whole), chains, sums, [&](V n, const Vals& carried) {
      return step(indices_.Counter(n, scopes_.current(), 0, chains), chains, carried);
    });
  }
  sums = step(indices_.Constant(whole), size - whole, sums);
  for (size_t n = sums.size(); n > 1; n /= 2)
    for (size_t k = 0; k < n / 2; ++k) sums[k] = scalars_.Add(sums[k], sums[k + n / 2]);
  return sums[0];
}

Vals ElementalEmitter::Convolution(const Instruction& i, const ArrayIndex& index) {
  const ConvolutionAttrs& a = i.attrs<ConvolutionAttrs>();
  const ConvDimLabels& labels = a.dim_labels;
  const Shape &input = i.operand(0)->shape(), &kernel = i.operand(1)->shape();
  const ArrayIndex at = indices_.Refactor(index, i.shape().dims());
  const int64_t output_features = i.shape().dim(labels.output_feature);
  const int64_t input_features_per_group = kernel.dim(labels.kernel_input_feature);
  ArrayIndex source, weight;
  source.sizes = input.dims();
  weight.sizes = kernel.dims();
  source.digits.resize(input.dims().size());
  weight.digits.resize(kernel.dims().size());
  const LaneIndex feature = at.digits[labels.output_feature];
  weight.digits[labels.kernel_output_feature] = feature;
  // Groups: a feature group sees its own input features, a batch group its own part of the batch.
  LaneIndex batch = at.digits[labels.output_batch];
  if (a.batch_group_count > 1) {
    const LaneIndex group = indices_.DivMod(feature, output_features / a.batch_group_count, output_features).first;
    batch = indices_.Add(batch, indices_.Mul(group, input.dim(labels.input_batch) / a.batch_group_count));
  }
  source.digits[labels.input_batch] = batch;
  LaneIndex first_feature = indices_.Constant(0);
  if (a.feature_group_count > 1) {
    const LaneIndex group = indices_.DivMod(feature, output_features / a.feature_group_count, output_features).first;
    first_feature = indices_.Mul(group, input_features_per_group);
  }

  const ElementType type = i.shape().type(), wide = AccumulatorType(type);
  V zero = llvm::Constant::getNullValue(
      VectorBuilder::WithLanes(elements_.RegisterType(wide), index.uniform() ? 1 : lanes()));
  Vals acc{Val{zero, IsComplex(wide) ? zero : nullptr, wide}};
  const auto taken = [&](const Condition& inside, const Vals& carried) -> Vals {
    const auto take = [&]() -> Vals {
      Vals next = MultiplyAccumulate(carried, Emit(i.operand(0), source), Emit(i.operand(1), weight));
      if (inside.value && VectorBuilder::Lanes(inside.value) > 1)
        next[0] = elements_.Select(inside.value, next[0], carried[0]);
      return next;
    };
    if (inside.value && VectorBuilder::Lanes(inside.value) > 1) return WithMask(inside, take);
    return Choose(inside, index.uniform(), take, [&] { return carried; });
  };
  const std::function<Vals(size_t, Condition, const Vals&)> spatial = [&](size_t d, Condition inside,
                                                                          const Vals& carried) -> Vals {
    if (d == a.window.dims.size()) {
      return LoopOver("features", b_.I64(0), b_.I64(input_features_per_group), 1, carried, [&](V n, const Vals& c) {
        const LaneIndex k = indices_.Counter(n, scopes_.current(), 0, 1);
        weight.digits[labels.kernel_input_feature] = k;
        source.digits[labels.input_feature] = indices_.Add(first_feature, k);
        return taken(inside, c);
      });
    }
    const WindowDim& w = a.window.dims[d];
    const int64_t bound = input.dim(labels.input_spatial[d]);
    const auto step = [&](const LaneIndex& n, const Vals& c) {
      LaneIndex x =
          indices_.Add(indices_.Mul(at.digits[labels.output_spatial[d]], w.stride), indices_.Mul(n, w.window_dilation));
      x = indices_.Add(x, indices_.Constant(-w.pad_low));
      Condition here = inside;
      if (w.base_dilation > 1) {
        here = Both(here, InRange(x, (bound - 1) * w.base_dilation + 1));
        const auto [quotient, rest] = indices_.DivMod(x, w.base_dilation, INT64_MAX);
        here = Both(here, InRange(rest, 1));
        x = quotient;
      } else if (w.pad_low > 0 || w.pad_high > 0) {
        here = Both(here, InRange(x, bound));
      }
      source.digits[labels.input_spatial[d]] = x;
      weight.digits[labels.kernel_spatial[d]] = w.reversal ? indices_.Sub(w.size - 1, n) : n;
      return spatial(d + 1, here, c);
    };
    if (w.size == 1) return step(indices_.Constant(0), carried);
    return LoopOver("window", b_.I64(0), b_.I64(w.size), 1, carried,
                    [&](V n, const Vals& c) { return step(indices_.Counter(n, scopes_.current(), 0, 1), c); });
  };
  acc = spatial(0, Condition{}, acc);
  return {scalars_.Convert(acc[0], type)};
}

}  // namespace strop
