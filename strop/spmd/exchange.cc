#include "strop/spmd/exchange.h"

#include <algorithm>
#include <limits>

#include "strop/analysis/combiner.h"
#include "strop/base/division.h"
#include "strop/spmd/propagation.h"

namespace strop::spmd {
namespace {

constexpr int64_t kAnything = -1, kZero = -2;

// Dimension `dim` of an operand.
struct Exchange {
  int64_t operand, dim;
  Span span;
  int64_t fill = kAnything;  // kZero, or the number of the operand that is beyond the ends
};

int64_t Ceil(int64_t a, int64_t b) { return -FloorDiv(-a, b); }

// A window over pieces: what `pieces` outputs of it read, and what is padding then.
struct LocalWindow {
  Span span;
  int64_t low = 0, high = 0;
};

std::optional<LocalWindow> WindowOver(const WindowDim& w, int64_t outputs) {
  const int64_t step = outputs * w.stride, base = w.base_dilation;
  if (step % base != 0) return std::nullopt;
  const int64_t length = (outputs - 1) * w.stride + w.DilatedSize();
  LocalWindow out;
  const int64_t first = Ceil(-w.pad_low, base), last = FloorDiv(length - 1 - w.pad_low, base);
  out.span = {.scale = step / base, .offset = first, .size = last - first + 1};
  if (out.span.size <= 0) return std::nullopt;
  out.low = first * base + w.pad_low;
  out.high = length - out.low - ((out.span.size - 1) * base + 1);
  return out;
}

// pad is a window of one element over a dilated operand.
WindowDim WindowOfPad(const PaddingDim& p) {
  return {.pad_low = p.low, .pad_high = p.high, .base_dilation = p.interior + 1};
}

int64_t SpatialDim(const Instruction& i, const Rule& rule, int64_t factor) {
  const Dims& spatial = i.attrs<ConvolutionAttrs>().dim_labels.input_spatial;
  for (size_t k = 0; k < spatial.size(); ++k)
    for (int16_t f : rule.operands[0][spatial[k]])
      if (f == factor) return static_cast<int64_t>(k);
  return -1;
}

// The windows of select-and-scatter that reach into a piece of the operand, and what they read.
struct LocalScatter {
  Span source, operand;
};
std::optional<LocalScatter> ScatterOver(const WindowDim& w, int64_t whole, int64_t n) {
  const int64_t piece = whole / n;
  const bool plain = w.pad_low == 0 && w.pad_high == 0 && w.base_dilation == 1 && w.window_dilation == 1;
  if (!plain || whole % n != 0 || piece % w.stride != 0) return std::nullopt;
  LocalScatter out;
  const int64_t each = piece / w.stride, first = Ceil(1 - w.size, w.stride);
  out.source = {.scale = each, .offset = first, .size = each - first};
  out.operand = {.scale = piece,
                 .offset = first * w.stride,
                 .size = std::max((each - first - 1) * w.stride + w.size, piece - first * w.stride)};
  return out;
}

// A kernel in pieces along space, as a gradient's is: every output reads all of it, each device adds what its piece
// gives.
Span SpanUnderKernel(const WindowDim& w, int64_t piece, int64_t outputs) {
  return {.scale = piece * w.window_dilation,
          .offset = -w.pad_low,
          .size = (outputs - 1) * w.stride + (piece - 1) * w.window_dilation + 1};
}

// What is exchanged where the factor is cut into n pieces; nothing: it cannot be.
std::optional<std::vector<Exchange>> ExchangesOf(const Instruction& i, const Rule& rule, const Values& values,
                                                 int64_t factor, int64_t n) {
  auto whole = [&](int64_t k) -> const Shape& { return values.Of(*i.operand(k)).whole; };
  const int64_t d = factor;  // but for convolutions, each dimension is the factor of its number
  const Shape out = i.shape().Leaves()[0];
  auto along = [&](int64_t dim) { return Ceil(out.dim(dim), n); };
  std::vector<Exchange> all;
  switch (i.op()) {
    case Op::Slice: {
      const SliceDim& s = i.attrs<SliceAttrs>().slice[d];
      all.push_back({0, d, {s.stride * along(d), s.start, s.stride * (along(d) - 1) + 1}});
      break;
    }
    case Op::Pad: {
      const auto window = WindowOver(WindowOfPad(i.attrs<PadAttrs>().padding[d]), along(d));
      if (!window) return std::nullopt;
      all.push_back({0, d, window->span, 1});
      break;
    }
    case Op::Reverse:
      all.push_back({0, d, {.scale = -along(d), .offset = out.dim(d) - along(d), .size = along(d), .mirrored = true}});
      break;
    case Op::Concatenate: {
      int64_t offset = 0;
      for (int64_t k = 0; k < i.operand_count(); ++k) {
        all.push_back({k, d, {along(d), -offset, along(d)}});
        offset += whole(k).dim(d);
      }
      break;
    }
    case Op::ReduceWindow: {
      const auto window = WindowOver(i.attrs<WindowAttrs>().window.dims[d], along(d));
      if (!window) return std::nullopt;
      const int64_t inputs = i.operand_count() / 2;
      for (int64_t k = 0; k < inputs; ++k) all.push_back({k, d, window->span, inputs + k});
      break;
    }
    case Op::SelectAndScatter: {
      const auto local = ScatterOver(i.attrs<WindowAttrs>().window.dims[d], out.dim(d), n);
      if (!local || RecognizeCombiner(*i.called(1)).op != Op::Add) return std::nullopt;
      all.push_back({0, d, local->operand});
      all.push_back({1, d, local->source, kZero});
      break;
    }
    case Op::Convolution: {
      const auto& a = i.attrs<ConvolutionAttrs>();
      const int64_t k = SpatialDim(i, rule, factor), in = a.dim_labels.input_spatial[k];
      const WindowDim& w = a.window.dims[k];
      const int64_t outputs = out.dim(a.dim_labels.output_spatial[k]);
      if (rule.factors[factor].kind == FactorKind::Reduction) {
        if (w.base_dilation != 1 || w.reversal || w.size % n != 0) return std::nullopt;
        all.push_back({0, in, SpanUnderKernel(w, w.size / n, outputs), kZero});
      } else {
        const auto window = WindowOver(w, Ceil(outputs, n));
        if (!window) return std::nullopt;
        all.push_back({0, in, window->span, kZero});
      }
      break;
    }
    default: return std::nullopt;
  }
  return all;
}

bool LiesWhole(const Values& values, const Instruction& operand, int64_t d) {
  return IsFree(operand) || values.Of(operand).specs[0].dims[d].empty();
}

Instruction* Fill(const LocalOp& op, const Exchange& e) {
  if (e.fill == kAnything) return nullptr;
  return e.fill == kZero ? op.b.Scalar(op.wholes[e.operand].type(), 0) : op.operands[e.fill];
}

// One value of the operands' spans: each where it lies in the result.
Instruction* Joined(LocalOp& op, int64_t d, const Axes& axes) {
  Builder& b = op.b;
  Instruction* joined = op.operands[0];
  int64_t offset = op.wholes[0].dim(d);
  for (size_t k = 1; k < op.operands.size() && joined; ++k) {
    const Int64Vector dims = joined->shape().dims();
    auto number = [&](int64_t n) { return b.Constant(Literal::ScalarOfInt(ElementType::S32, n)); };
    Instruction* first = b.Make(Op::Multiply, {op.values.resharder().Coordinate(b, axes), number(dims[d])});
    Instruction* index =
        b.Make(Op::Add, {b.Iota(Shape::Array(ElementType::S32, dims), d), b.Broadcast(first, dims, {})});
    Instruction* before = b.Compare(index, b.Broadcast(number(offset), dims, {}), CompareDirection::Lt);
    joined = b.Make(Op::Select, {before, joined, op.operands[k]});
    offset += op.wholes[k].dim(d);
  }
  return joined;
}

void SetWindow(LocalOp& op, int64_t factor, int64_t n) {
  const Instruction& i = op.i;
  const Shape out = i.shape().Leaves()[0];
  switch (i.op()) {
    case Op::Slice: {
      SliceAttrs attrs = i.attrs<SliceAttrs>();
      attrs.slice[factor].start = 0;
      attrs.slice[factor].limit = op.operands[0]->shape().dim(factor);
      op.i.set_attrs(std::move(attrs));
      break;
    }
    case Op::Pad: {
      PadAttrs attrs = i.attrs<PadAttrs>();
      PaddingDim& p = attrs.padding[factor];
      const auto window = WindowOver(WindowOfPad(p), Ceil(out.dim(factor), n));
      p.low = window->low;
      p.high = window->high;
      op.i.set_attrs(std::move(attrs));
      break;
    }
    case Op::ReduceWindow: {
      WindowAttrs attrs = i.attrs<WindowAttrs>();
      WindowDim& w = attrs.window.dims[factor];
      const auto window = WindowOver(w, Ceil(out.dim(factor), n));
      w.pad_low = window->low;
      w.pad_high = window->high;
      op.i.set_attrs(std::move(attrs));
      break;
    }
    case Op::Convolution: {
      ConvolutionAttrs attrs = i.attrs<ConvolutionAttrs>();
      const int64_t k = SpatialDim(i, op.rule, factor);
      WindowDim& w = attrs.window.dims[k];
      if (op.rule.factors[factor].kind == FactorKind::Reduction) {
        w.size /= n;
        w.pad_low = w.pad_high = 0;
      } else {
        const auto window = WindowOver(w, Ceil(out.dim(attrs.dim_labels.output_spatial[k]), n));
        w.pad_low = window->low;
        w.pad_high = window->high;
      }
      op.i.set_attrs(std::move(attrs));
      break;
    }
    default: break;
  }
}

}  // namespace

bool IsExchanged(const Instruction& i, const Rule& rule, int64_t factor) {
  switch (i.op()) {
    case Op::Slice:
    case Op::Pad:
    case Op::Reverse: return rule.factors[factor].kind == FactorKind::Permutation;
    case Op::ReduceWindow:
    case Op::SelectAndScatter: return rule.factors[factor].kind == FactorKind::Permutation;
    case Op::Concatenate: return factor == i.dimensions()[0];
    case Op::Convolution:
      return SpatialDim(i, rule, factor) >= 0 && rule.factors[factor].kind != FactorKind::PassThrough;
    default: return false;
  }
}

bool CanExchange(const Instruction& i, const Rule& rule, const Values& values, int64_t factor, int64_t pieces) {
  const auto all = ExchangesOf(i, rule, values, factor, pieces);
  return all && std::all_of(all->begin(), all->end(), [&](const Exchange& e) {
           const Instruction& operand = *i.operand(e.operand);
           if (e.span.size <= 0) return false;  // of nothing
           if (LiesWhole(values, operand, e.dim)) return true;
           const int64_t whole = values.Of(operand).whole.dim(e.dim);
           return whole > 0 && ElementsSent(whole, pieces, e.span) < std::numeric_limits<double>::infinity();
         });
}

double ExchangedBytes(const Instruction& i, const Rule& rule, const Values& values, const FactorAxes& axes) {
  double bytes = 0;
  const Mesh& mesh = values.mesh();
  for (size_t f = 0; f < axes.size(); ++f) {
    if (axes[f].empty() || !IsExchanged(i, rule, static_cast<int64_t>(f))) continue;
    const int64_t n = mesh.SizeOf(axes[f]);
    const auto all = ExchangesOf(i, rule, values, static_cast<int64_t>(f), n);
    for (const Exchange& e : *all) {
      if (LiesWhole(values, *i.operand(e.operand), e.dim)) continue;
      const Shape& whole = values.Of(*i.operand(e.operand)).whole;
      const Shape shard = mesh.ShardShape(whole, OperandSpec(i, rule, values, e.operand, axes));
      bytes += ElementsSent(whole.dim(e.dim), n, e.span) * static_cast<double>(shard.byte_size()) /
               static_cast<double>(std::max<int64_t>(shard.dim(e.dim), 1));
    }
  }
  return bytes;
}

Spec OperandSpec(const Instruction& i, const Rule& rule, const Values& values, int64_t k, const FactorAxes& axes) {
  Spec spec = SpecOf(values.mesh(), rule, rule.operands[k], axes);
  for (size_t d = 0; d < spec.dims.size(); ++d)
    for (int16_t f : rule.operands[k][d])
      if (!axes[f].empty() && IsExchanged(i, rule, f) && LiesWhole(values, *i.operand(k), static_cast<int64_t>(d)) &&
          !(i.op() == Op::Convolution && k == 1))
        spec.dims[d].clear();
  return spec;
}

void ExchangeOperands(LocalOp& op) {
  for (size_t f = 0; f < op.axes.size(); ++f) {
    const auto factor = static_cast<int64_t>(f);
    const Axes& axes = op.axes[f];
    if (axes.empty() || !IsExchanged(op.i, op.rule, factor)) continue;
    const int64_t n = op.values.mesh().SizeOf(axes);
    const auto all = ExchangesOf(op.i, op.rule, op.values, factor, n);
    for (const Exchange& e : *all) {
      Instruction*& operand = op.operands[e.operand];
      if (!operand) return;
      const bool is_whole = LiesWhole(op.values, *op.i.operand(e.operand), e.dim);
      operand = TakeSpan(op.b, op.values.resharder(), operand, op.wholes[e.operand].dim(e.dim), e.dim, axes, e.span,
                         Fill(op, e), is_whole);
      if (!operand) return;
    }
    if (op.i.op() == Op::Concatenate) op.instead = Joined(op, factor, axes);
    if (op.i.op() == Op::SelectAndScatter) {
      const auto local = ScatterOver(op.i.attrs<WindowAttrs>().window.dims[f], op.i.shape().dim(factor), n);
      op.larger.resize(op.axes.size());
      op.larger[f] = {-local->operand.offset, local->operand.size};
    }
    SetWindow(op, factor, n);
  }
}

std::optional<Rotation> RotationOf(const Instruction& i) {
  if (i.op() != Op::Concatenate || i.operand_count() != 2) return std::nullopt;
  const Instruction &first = *i.operand(0), &second = *i.operand(1);
  if (first.op() != Op::Slice || second.op() != Op::Slice || first.operand(0) != second.operand(0)) return std::nullopt;
  const Instruction& x = *first.operand(0);
  const int64_t dim = i.dimensions()[0];
  if (!x.shape().Compatible(i.shape())) return std::nullopt;
  const SliceDims &a = first.attrs<SliceAttrs>().slice, &b = second.attrs<SliceAttrs>().slice;
  for (int64_t d = 0; d < x.shape().rank(); ++d) {
    const bool plain = a[d].stride == 1 && b[d].stride == 1;
    const bool all = a[d].start == 0 && b[d].start == 0 && a[d].limit == x.shape().dim(d) && b[d].limit == a[d].limit;
    const bool around = a[d].limit == x.shape().dim(d) && b[d].start == 0 && b[d].limit == a[d].start;
    if (!plain || !(d == dim ? around : all)) return std::nullopt;
  }
  return Rotation{&x, dim, a[dim].start};
}

Instruction* RotateShards(Builder& b, const Rotation& rotation, Values& values, const Spec& wanted) {
  const Parted& x = values.Of(*rotation.of);
  const Axes& axes = wanted.dims[rotation.dim];
  const int64_t whole = x.whole.dim(rotation.dim), n = values.mesh().SizeOf(axes);
  if (x.specs[0] != wanted || axes.empty() || whole % n != 0) return nullptr;
  // The shorter way around.
  const int64_t by = rotation.by > whole / 2 ? rotation.by - whole : rotation.by;
  const Span span{.scale = whole / n, .offset = by, .size = whole / n, .around = true};
  return TakeSpan(b, values.resharder(), x.value, whole, rotation.dim, axes, span, nullptr);
}

}  // namespace strop::spmd
