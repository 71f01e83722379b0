// Windows as values: reduce-window, and where each window reaches to the end of a dimension, scans.
//
//   reduce-window f32[9] size=3   acc = init; acc += x[i]; acc += x[i + 1]; acc += x[i + 2]    (or a loop over the
//   window) the same, size=9 pad=8_0      loop n: acc += x[n]; out[n] = acc
#include "strop/codegen/elemental.h"

namespace strop {

using V = llvm::Value*;

namespace {

constexpr int64_t kMaxUnrolled = 32;          // elements of a window that are emitted one by one
constexpr int64_t kMaxUnrolledAtBorders = 9;  // the same, where each may lie outside: every border has code of its own

// Is every element of every window, along this dimension, an element of the operand?
bool AlwaysInside(const WindowDim& w, int64_t bound, int64_t results) {
  return w.base_dilation == 1 && w.pad_low <= 0 && (results - 1) * w.stride + w.DilatedSize() - w.pad_low <= bound;
}

// Is the window so small that a loop over it costs more than its elements?
bool Unrolled(const Window& window, const Shape& operand, const Shape& result) {
  int64_t elements = 1;
  bool inside = true;
  for (size_t d = 0; d < window.dims.size(); ++d) {
    const WindowDim& w = window.dims[d];
    elements = SaturatingMultiply(elements, w.size);
    inside &= AlwaysInside(w, operand.dim(static_cast<int64_t>(d)), result.dim(static_cast<int64_t>(d)));
    if (w.base_dilation > 1) return false;
  }
  return elements <= (inside ? kMaxUnrolled : kMaxUnrolledAtBorders);
}

}  // namespace

// The window's elements in order, those in padding or between dilated elements left out. Window dimensions of size one
// need no loop.
Vals ElementalEmitter::ReduceWindow(const Instruction& i, const ArrayIndex& index) {
  const Window& window = i.attrs<WindowAttrs>().window;
  const int64_t inputs = i.operand_count() / 2;
  const Shape& operand = i.operand(0)->shape();
  const Shape& result = i.shape().IsTuple() ? i.shape().element(0) : i.shape();
  const LaneCombiner combiner = RecognizeCombiner(*i.called(0));
  const ArrayIndex at = indices_.Refactor(index, result.dims());
  const int width = index.uniform() ? 1 : lanes();
  Vals accumulators;
  for (int64_t k = 0; k < inputs; ++k)
    accumulators.push_back(elements_.Splat(EmitScalarOperand(i.operand(inputs + k)), width));
  const ElementType type = accumulators[0].type;
  const bool widen = combiner.op == Op::Add && IsFloat(type) && Bits(type) < 32;
  if (widen) accumulators[0].type = ElementType::F32;

  const bool unrolled = Unrolled(window, operand, result);
  ArrayIndex position;
  position.sizes = operand.dims();
  position.digits.resize(operand.dims().size());
  const std::function<Vals(size_t, Condition, Vals)> dimension = [&](size_t d, Condition inside, Vals acc) -> Vals {
    if (d == window.dims.size()) {
      const auto take = [&]() -> Vals {
        Vals values;
        for (int64_t k = 0; k < inputs; ++k) values.push_back(Emit(i.operand(k), position));
        const bool by_lane = inside.value && VectorBuilder::Lanes(inside.value) > 1;
        return CombineInto(combiner, acc, values, by_lane ? inside.value : nullptr);
      };
      if (inside.value && VectorBuilder::Lanes(inside.value) > 1) return WithMask(inside, take);
      return Choose(inside, index.uniform(), take, [&] { return acc; });
    }
    const WindowDim& w = window.dims[d];
    const auto step = [&](const LaneIndex& offset, const Vals& carried) {
      LaneIndex x = indices_.Add(indices_.Mul(at.digits[d], w.stride), indices_.Mul(offset, w.window_dilation));
      x = indices_.Add(x, indices_.Constant(-w.pad_low));
      Condition here = inside;
      const int64_t bound = operand.dim(static_cast<int64_t>(d));
      const bool always = AlwaysInside(w, bound, result.dim(static_cast<int64_t>(d)));
      if (w.base_dilation > 1) {
        here = Both(here, InRange(x, (bound - 1) * w.base_dilation + 1));
        const auto [quotient, rest] = indices_.DivMod(x, w.base_dilation, INT64_MAX);
        here = Both(here, InRange(rest, 1));
        x = quotient;
      } else if (!always) {
        here = Both(here, InRange(x, bound));
      }
      position.digits[d] = x;
      return dimension(d + 1, here, carried);
    };
    if (w.size == 1) return step(indices_.Constant(0), acc);
    if (unrolled) {
      for (int64_t n = 0; n < w.size; ++n) acc = step(indices_.Constant(w.reversal ? w.size - 1 - n : n), acc);
      return acc;
    }
    return LoopOver("window", b_.I64(0), b_.I64(w.size), 1, acc, [&](V n, const Vals& carried) {
      const LaneIndex offset = indices_.Counter(n, scopes_.current(), 0, 1).Within(0, w.size - 1);
      return step(w.reversal ? indices_.Sub(w.size - 1, offset) : offset, carried);
    });
  };
  accumulators = dimension(0, Condition{}, accumulators);
  if (widen) accumulators[0] = Val{elements_.RoundToFormat(type, accumulators[0].re), nullptr, type};
  return accumulators;
}

std::optional<ScanShape> ScanOf(const Instruction& i) {
  if (i.op() != Op::ReduceWindow) return std::nullopt;
  const Shape& operand = i.operand(0)->shape();
  const Window& window = i.attrs<WindowAttrs>().window;
  ScanShape shape;
  bool found = false;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    const WindowDim& w = window.dims[static_cast<size_t>(d)];
    if (w.stride != 1 || w.base_dilation != 1 || w.window_dilation != 1 || w.reversal) return std::nullopt;
    if (w.size == 1 && w.pad_low == 0 && w.pad_high == 0) {
      (found ? shape.inner : shape.outer) *= operand.dim(d);
      continue;
    }
    const bool forward = w.pad_low == w.size - 1 && w.pad_high == 0;
    shape.backward = w.pad_low == 0 && w.pad_high == w.size - 1;
    if (found || w.size != operand.dim(d) || (!forward && !shape.backward)) return std::nullopt;
    found = true;
    shape.n = w.size;
  }
  return found ? std::optional(shape) : std::nullopt;
}

// Forwards the order is that of each window by itself, backwards that of an associative combiner.
void ElementalEmitter::Scan(const Instruction& i, const ScanShape& shape, const ArrayIndex& at,
                            const std::function<void(const ArrayIndex&, const Vals&)>& store) {
  const int64_t inputs = i.operand_count() / 2;
  const LaneCombiner combiner = RecognizeCombiner(*i.called(0));
  Vals init;
  for (int64_t k = 0; k < inputs; ++k)
    init.push_back(elements_.Splat(EmitScalarOperand(i.operand(inputs + k)), at.uniform() ? 1 : lanes()));
  const ElementType type = init[0].type;
  const bool widen = combiner.op == Op::Add && IsFloat(type) && Bits(type) < 32;
  if (widen) init[0].type = ElementType::F32;
  ArrayIndex position = indices_.Refactor(at, Int64Vector{shape.outer, shape.inner});
  position =
      ArrayIndex{{position.digits[0], indices_.Constant(0), position.digits[1]}, {shape.outer, shape.n, shape.inner}};
  LoopOver("scan", b_.I64(0), b_.I64(shape.n), 1, init, [&](V n, const Vals& carried) {
    const LaneIndex step = indices_.Counter(n, scopes_.current(), 0, 1).Within(0, shape.n - 1);
    position.digits[1] = shape.backward ? indices_.Sub(shape.n - 1, step) : step;
    Vals values;
    for (int64_t k = 0; k < inputs; ++k) {
      values.push_back(Emit(i.operand(k), position));
      values.back().type = init[static_cast<size_t>(k)].type;
    }
    const Vals next = shape.backward ? CombineInto(combiner, values, carried, nullptr)
                                     : CombineInto(combiner, carried, values, nullptr);
    Vals results = next;
    if (widen) results[0] = Val{elements_.RoundToFormat(type, next[0].re), nullptr, type};
    store(position, results);
    return next;
  });
}

}  // namespace strop
