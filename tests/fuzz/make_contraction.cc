// Products, convolutions, linear algebra, transforms, normalisation, random bits.
#include <algorithm>
#include <numeric>

#include "tests/fuzz/scope.h"

namespace strop::fuzz {
namespace {

// Of a product of elements of `type`: mostly itself, or a wider one.
ElementType ResultType(Scope& scope, ElementType type) {
  if (scope.random().Chance(70)) return type;
  if (IsInteger(type)) return IsSigned(type) ? ElementType::S32 : ElementType::U32;
  return IsFloat(type) ? (Bits(type) < 32 ? ElementType::F32 : ElementType::F64) : type;
}

Instruction* AnyNumbers(Scope& scope) {
  const int64_t dice = scope.random().Below(10);
  return scope.OfKind(dice < 6   ? ElementKind::Float
                      : dice < 8 ? ElementKind::Signed
                      : dice < 9 ? ElementKind::Unsigned
                                 : ElementKind::Complex);
}

// A float or complex array with dims {..., n, n}.
Instruction* SquareMatrices(Scope& scope) {
  Random& random = scope.random();
  Int64Vector dims;
  while (dims.size() < 2 && random.Chance(30)) dims.push_back(random.Between(int64_t{0}, int64_t{3}));
  const int64_t n = random.Chance(15) ? 17 : random.Between(int64_t{0}, int64_t{6});
  dims.push_back(n);
  dims.push_back(n);
  if (!scope.Fits(dims)) return nullptr;
  Instruction* x = scope.Value(scope.AnyType(random.Chance(80) ? ElementKind::Float : ElementKind::Complex), dims);
  if (!x || (IsFloat(x->shape().type()) && !FormatOf(x->shape().type()).has_zero)) return nullptr;
  return x;
}

// `x` with `diagonal` added on the diagonal of its last two dimensions.
Instruction* OnDiagonal(Scope& scope, Instruction* x, double diagonal) {
  const Shape& shape = x->shape();
  const Shape numbers = shape.WithType(ElementType::S32);
  Instruction* row = scope.Add(Op::Iota, {}, IotaAttrs{shape.rank() - 2}, &numbers);
  Instruction* column = scope.Add(Op::Iota, {}, IotaAttrs{shape.rank() - 1}, &numbers);
  Instruction* same = scope.Add(Op::Compare, {row, column}, CompareAttrs{});
  Instruction* large = scope.Add(Op::Broadcast, {scope.Constant(shape.type(), diagonal)}, DimensionsAttrs{}, &shape);
  return scope.Add(Op::Select, {same, scope.Add(Op::Add, {x, large}), x});
}

// Labels of `rank` dimensions in some order: batch, feature, then the spatial ones.
std::vector<int64_t> Labels(Random& random, int64_t rank) {
  std::vector<int64_t> places(static_cast<size_t>(rank));
  std::iota(places.begin(), places.end(), 0);
  if (random.Chance(60)) random.Shuffle(places);
  return places;
}

WindowDim ConvolutionWindow(Random& random, int64_t size) {
  WindowDim w;
  w.size = random.Chance(10) ? random.Between(int64_t{0}, int64_t{7}) : random.Between(int64_t{1}, int64_t{3});
  if (random.Chance(35)) w.stride = random.Between(int64_t{1}, int64_t{3});
  if (random.Chance(45)) w.pad_low = random.Between(int64_t{-1}, int64_t{3});
  if (random.Chance(45)) w.pad_high = random.Between(int64_t{-1}, int64_t{3});
  if (random.Chance(20)) w.base_dilation = random.Between(int64_t{1}, int64_t{3});
  if (random.Chance(20)) w.window_dilation = random.Between(int64_t{1}, int64_t{3});
  w.reversal = random.Chance(15);
  return w;
}

}  // namespace

Instruction* MakeDot(Scope& scope, Op op) {
  if (!scope.scalar() && scope.random().Chance(25)) return MakeProducts(scope);
  Instruction* lhs = AnyNumbers(scope);
  if (!lhs) return nullptr;
  Random& random = scope.random();
  const Shape& shape = lhs->shape();
  std::vector<int64_t> order(static_cast<size_t>(shape.rank()));
  std::iota(order.begin(), order.end(), 0);
  if (random.Chance(50)) random.Shuffle(order);
  DotAttrs attrs;
  std::vector<std::pair<int64_t, int64_t>> shared;  // rhs's sizes, with the lhs dimension or -1
  for (int64_t d : order) {
    const int64_t dice = random.Below(10);
    if (dice < 4) {
      attrs.lhs_contracting.push_back(d);
      shared.emplace_back(shape.dim(d), d);
    } else if (dice < 6) {
      attrs.lhs_batch.push_back(d);
      shared.emplace_back(shape.dim(d), d);
    }
  }
  for (int64_t free = random.Between(int64_t{0}, int64_t{2}); free > 0; --free) shared.emplace_back(scope.AnyDim(), -1);
  if (random.Chance(50)) random.Shuffle(shared);
  auto place = [&](int64_t dim) {
    for (size_t i = 0; i < shared.size(); ++i)
      if (shared[i].second == dim) return static_cast<int64_t>(i);
    return int64_t{-1};
  };
  for (int64_t d : attrs.lhs_contracting) attrs.rhs_contracting.push_back(place(d));
  for (int64_t d : attrs.lhs_batch) attrs.rhs_batch.push_back(place(d));
  Int64Vector dims;
  for (const auto& s : shared) dims.push_back(s.first);
  if (!scope.Fits(dims)) return nullptr;
  Instruction* rhs = scope.Value(shape.type(), dims);
  if (!rhs) return nullptr;
  Result<Shape> result = InferShape(op, std::vector<const Shape*>{&shape, &rhs->shape()}, attrs, {}, nullptr);
  if (!result.ok()) return nullptr;
  const Shape declared = result->WithType(ResultType(scope, shape.type()));
  return scope.Try(op, {lhs, rhs}, attrs, {}, &declared);
}

// One dimension of lhs in groups: [b?, m, k] with m ragged and a rhs for each group, k ragged and a result for each, or
// b.
Instruction* MakeRaggedDot(Scope& scope, Op op) {
  Random& random = scope.random();
  Instruction* any = AnyNumbers(scope);
  if (!any) return nullptr;
  const ElementType type = any->shape().type();
  const int64_t m = scope.AnyDim(), k = scope.AnyDim(), n = scope.AnyDim();
  const int64_t groups = random.Between(int64_t{1}, int64_t{4});
  const bool batched = random.Chance(30);
  const int64_t mode = random.Below(batched ? 3 : 2);  // what is ragged: m, k or the batch
  Int64Vector lhs = {m, k}, rhs = {k, n};
  RaggedDotAttrs attrs;
  const int64_t front = batched ? 1 : 0;
  if (batched) {
    const int64_t b = random.Between(int64_t{1}, int64_t{3});
    lhs = {b, m, k}, rhs = {b, k, n};
    attrs.lhs_batch = attrs.rhs_batch = {0};
  }
  attrs.lhs_contracting = {front + 1};
  attrs.rhs_contracting = {front};
  attrs.lhs_ragged = {mode == 2 ? 0 : front + mode};
  if (mode == 0) {
    rhs.insert(rhs.begin(), groups);
    attrs.rhs_group = {0};
    attrs.rhs_contracting = {front + 1};
    if (batched) attrs.rhs_batch = {1};
  }
  if (!scope.Fits(lhs) || !scope.Fits(rhs)) return nullptr;
  // Sizes whose sum is at most what there is to cut.
  const int64_t whole = lhs[static_cast<size_t>(attrs.lhs_ragged[0])];
  Literal sizes = *Literal::Zeros(Shape::Array(ElementType::S32, {groups}));
  int64_t left = whole;
  for (int64_t g = 0; g < groups; ++g) {
    const int64_t size = random.Below(left + 1);
    sizes.SetInt(g, size);
    left -= size;
  }
  Instruction* x = scope.Value(type, lhs);
  Instruction* y = scope.Value(type, rhs);
  if (!x || !y) return nullptr;
  // Rows beyond the last group: whether zeros are multiplied by them is an implementation's business.
  if (!IsInteger(type)) x = Tamed(scope, x), y = Tamed(scope, y);
  return scope.Try(op, {x, y, scope.Add(Op::Constant, {}, ConstantAttrs{std::move(sizes)})}, attrs);
}

// [m, k] x [k, n] with a scale for each block of either.
Instruction* MakeScaledDot(Scope& scope, Op op) {
  Random& random = scope.random();
  static constexpr ElementType kNarrow[] = {ElementType::F8E4M3FN, ElementType::F8E5M2, ElementType::BF16};
  const ElementType type = kNarrow[random.Below(3)];
  const ElementType scale_type = random.Chance(50) ? ElementType::F8E8M0FNU : ElementType::BF16;
  const int64_t blocks = random.Between(int64_t{1}, int64_t{3});
  const int64_t m = scope.AnyDim(), n = scope.AnyDim(), k = blocks * random.Between(int64_t{1}, int64_t{8});
  if (!scope.Fits({m, k}) || !scope.Fits({k, n})) return nullptr;
  Instruction* x = scope.Value(type, {m, k});
  Instruction* y = scope.Value(type, {k, n});
  Instruction* x_scale = scope.Value(scale_type, random.Chance(20) ? Int64Vector{} : Int64Vector{m, blocks});
  Instruction* y_scale = scope.Value(scale_type, random.Chance(20) ? Int64Vector{} : Int64Vector{blocks, n});
  if (!x || !y || !x_scale || !y_scale) return nullptr;
  DotAttrs attrs;
  attrs.lhs_contracting = {1};
  attrs.rhs_contracting = {0};
  const Shape declared = Shape::Array(random.Chance(50) ? ElementType::F32 : ElementType::BF16, {m, n});
  return scope.Try(op, {Tamed(scope, x), Tamed(scope, y), x_scale, y_scale}, attrs, {}, &declared);
}

Instruction* MakeConvolution(Scope& scope, Op op) {
  Random& random = scope.random();
  ConvolutionAttrs a;
  const int64_t spatial =
      std::min<int64_t>(random.Between(int64_t{0}, int64_t{3}), random.Between(int64_t{1}, int64_t{3}));
  const int64_t groups = random.Chance(30) ? random.Between(int64_t{2}, int64_t{3}) : 1;
  const bool batch_groups = groups > 1 && random.Chance(30);
  (batch_groups ? a.batch_group_count : a.feature_group_count) = groups;
  const int64_t features = random.Between(int64_t{1}, int64_t{5});
  const int64_t kernels = random.Between(int64_t{1}, int64_t{5}) * groups;
  const int64_t rank = spatial + 2;
  const std::vector<int64_t> in = Labels(random, rank), kernel = Labels(random, rank), out = Labels(random, rank);
  ConvDimLabels& l = a.dim_labels;
  l.input_batch = in[0], l.input_feature = in[1];
  l.kernel_output_feature = kernel[0], l.kernel_input_feature = kernel[1];
  l.output_batch = out[0], l.output_feature = out[1];
  Int64Vector lhs(static_cast<size_t>(rank)), rhs(static_cast<size_t>(rank));
  lhs[in[0]] = random.Between(int64_t{random.Chance(5) ? 0 : 1}, int64_t{3}) * (batch_groups ? groups : 1);
  lhs[in[1]] = features * (batch_groups ? 1 : groups);
  rhs[kernel[0]] = kernels;
  rhs[kernel[1]] = features;
  for (int64_t i = 0; i < spatial; ++i) {
    const size_t at = static_cast<size_t>(i) + 2;
    l.input_spatial.push_back(in[at]);
    l.kernel_spatial.push_back(kernel[at]);
    l.output_spatial.push_back(out[at]);
    lhs[in[at]] = random.Chance(5) ? 0 : random.Between(int64_t{1}, int64_t{9});
    a.window.dims.push_back(ConvolutionWindow(random, lhs[in[at]]));
    rhs[kernel[at]] = a.window.dims.back().size;
  }
  if (!scope.Fits(lhs) || !scope.Fits(rhs)) return nullptr;
  const ElementType type = AnyNumbers(scope)->shape().type();
  if (IsFloat(type) && !FormatOf(type).has_zero) return nullptr;  // nothing to pad with
  Instruction* x = scope.Value(type, lhs);
  Instruction* w = scope.Value(type, rhs);
  if (!x || !w) return nullptr;
  // Whether padding is multiplied by what the kernel holds is an implementation's business.
  if (IsFloat(type) || IsComplex(type)) w = Tamed(scope, w), x = IsComplex(type) ? Tamed(scope, x) : x;
  Result<Shape> result = InferShape(op, std::vector<const Shape*>{&x->shape(), &w->shape()}, a, {}, nullptr);
  if (!result.ok()) return nullptr;
  const Shape declared = result->WithType(ResultType(scope, type));
  return scope.Try(op, {x, w}, a, {}, &declared);
}

Instruction* MakeBatchNorm(Scope& scope, Op op) {
  Instruction* x = scope.OfKind(ElementKind::Float);
  if (!x || x->shape().rank() == 0) return nullptr;
  BatchNormAttrs attrs;
  attrs.epsilon = 0.5f;
  attrs.feature_index = scope.random().Below(x->shape().rank());
  const Int64Vector features = {x->shape().dim(attrs.feature_index)};
  std::vector<Instruction*> operands = {x};
  const int vectors = op == Op::BatchNormTraining ? 2 : op == Op::BatchNormGrad ? 3 : 4;
  for (int i = 0; i < vectors; ++i) operands.push_back(scope.Value(x->shape().type(), features));
  if (op == Op::BatchNormGrad) operands.push_back(scope.Value(x->shape()));
  for (Instruction*& operand : operands) operand = operand ? Tamed(scope, operand) : nullptr;
  const size_t variance = op == Op::BatchNormGrad ? 3 : op == Op::BatchNormInference ? 4 : operands.size();
  if (variance < operands.size() && operands[variance]) operands[variance] = scope.Add(Op::Abs, {operands[variance]});
  return scope.Try(op, operands, attrs);
}

// Of A + n I with entries of A below one, which is positive definite enough; what a factorisation does with others,
// and with the half that it does not read, is not said.
Instruction* MakeCholesky(Scope& scope, Op op) {
  Instruction* x = SquareMatrices(scope);
  if (!x || Bits(x->shape().type()) < 16) return nullptr;  // the diagonal would overflow
  x = OnDiagonal(scope, Tamed(scope, x), 2 * static_cast<double>(x->shape().dims().back()) + 2);
  CholeskyAttrs attrs;
  attrs.lower = scope.random().Chance(50);
  if (IsComplex(x->shape().type())) x = scope.Add(Op::Complex, {scope.Add(Op::Real, {x}), scope.Add(Op::Real, {x})});
  Dims transposed(static_cast<size_t>(x->shape().rank()));
  std::iota(transposed.begin(), transposed.end(), 0);
  std::swap(transposed[transposed.size() - 1], transposed[transposed.size() - 2]);
  if (IsComplex(x->shape().type()))
    x = OnDiagonal(scope, scope.Convert(scope.Add(Op::Real, {x}), x->shape().type()), 1);
  Instruction* sum = scope.Add(Op::Add, {x, scope.Add(Op::Transpose, {x}, DimensionsAttrs{transposed})});
  Instruction* factor = scope.Add(op, {sum}, attrs);
  if (!factor) return nullptr;
  const Shape numbers = factor->shape().WithType(ElementType::S32);
  Instruction* row = scope.Add(Op::Iota, {}, IotaAttrs{numbers.rank() - 2}, &numbers);
  Instruction* column = scope.Add(Op::Iota, {}, IotaAttrs{numbers.rank() - 1}, &numbers);
  CompareAttrs said{attrs.lower ? CompareDirection::Ge : CompareDirection::Le};
  Instruction* zero =
      scope.Add(Op::Broadcast, {scope.Constant(factor->shape().type(), 0)}, DimensionsAttrs{}, &factor->shape());
  return scope.Try(Op::Select, {scope.Add(Op::Compare, {row, column}, said), factor, zero});
}

Instruction* MakeTriangularSolve(Scope& scope, Op op) {
  Instruction* a = SquareMatrices(scope);
  if (!a) return nullptr;
  Random& random = scope.random();
  TriangularSolveAttrs attrs;
  attrs.left_side = random.Chance(50);
  attrs.lower = random.Chance(50);
  attrs.unit_diagonal = random.Chance(30);
  attrs.transpose_a = static_cast<TransposeA>(random.Between(int64_t{1}, int64_t{3}));
  Int64Vector dims = a->shape().dims();
  dims[dims.size() - (attrs.left_side ? 1 : 2)] = random.Between(int64_t{0}, int64_t{5});
  const double n = static_cast<double>(a->shape().dims().back());
  a = OnDiagonal(scope, Tamed(scope, a), n + 2);
  Instruction* b = scope.Value(a->shape().type(), dims);
  return b ? scope.Try(op, {a, Tamed(scope, b)}, attrs) : nullptr;
}

Instruction* MakeFft(Scope& scope, Op op) {
  Random& random = scope.random();
  FftAttrs attrs;
  attrs.type = static_cast<FftType>(random.Below(4));
  const bool wide = random.Chance(30);
  const ElementType complex = wide ? ElementType::C128 : ElementType::C64;
  const ElementType type = attrs.type == FftType::Rfft ? ComplexPart(complex) : complex;
  Int64Vector dims;
  while (dims.size() < 2 && random.Chance(35)) dims.push_back(random.Between(int64_t{0}, int64_t{3}));
  for (int64_t n = random.Between(int64_t{1}, int64_t{3}); n > 0; --n) {
    const int64_t size = random.Chance(20) ? scope.AnyDim() : random.Between(int64_t{1}, int64_t{9});
    attrs.length.push_back(size);
    dims.push_back(size);
  }
  if (attrs.type == FftType::Irfft) dims.back() = attrs.length.back() / 2 + 1;
  if (!scope.Fits(dims)) return nullptr;
  Instruction* x = scope.Value(type, dims);
  return x ? scope.Try(op, {Tamed(scope, x)}, attrs) : nullptr;
}

Instruction* MakeRngBitGenerator(Scope& scope, Op op) {
  Random& random = scope.random();
  static constexpr RngAlgorithm kAlgorithms[] = {RngAlgorithm::ThreeFry, RngAlgorithm::Philox, RngAlgorithm::Default};
  RngBitGeneratorAttrs attrs{kAlgorithms[random.Below(3)]};
  const int64_t size = attrs.algorithm == RngAlgorithm::Philox && random.Chance(50) ? 3 : 2;
  Instruction* state = scope.Value(ElementType::U64, {size});
  if (!state) return nullptr;
  const ElementType bits = scope.AnyType(random.Chance(70) ? ElementKind::Unsigned : ElementKind::Signed);
  const Shape declared = Shape::Tuple({state->shape(), Shape::Array(bits, scope.AnyDims())});
  return scope.Try(op, {state}, attrs, {}, &declared);
}

}  // namespace strop::fuzz
