// select-and-scatter (the gradient of pooling): each window of the operand selects one element, and the source's
// element of that window is scattered to its place.
//
//   out = init;  for each window w:  best = the element that `select` prefers over the others;  out[best] =
//   scatter(source[w], out[best])
//
// Dimensions along which windows are single elements (batch, channel) are independent of each other: tasks and vector
// lanes run along them, and everything else is a loop inside. Each lane has a best position of its own.
#include <algorithm>

#include "strop/codegen/kernel_frame.h"
#include "strop/cpu/kernel_family.h"

namespace strop::cpu {
namespace {

using V = llvm::Value*;

bool IsTrivial(const WindowDim& w) {
  return w.size == 1 && w.stride == 1 && w.pad_low == 0 && w.pad_high == 0 && w.base_dilation == 1;
}

Decision Matches(const Instruction& kernel) {
  if (kernel.op() != Op::SelectAndScatter) return Decision::No(kOtherOp);
  if (!kernel.operand(0)->shape().IsStatic() || !kernel.operand(1)->shape().IsStatic())
    return Decision::No("dynamic shapes");
  for (const Computation* c : kernel.called())
    if (Decision d = CanInline(*c); !d) return d;
  return Decision::Yes();
}

// The code for one position of the independent dimensions (in `at`, by dimension; others are filled in here).
class WindowEmitter {
 public:
  WindowEmitter(ElementalEmitter& e, const KernelFrame& frame, const Instruction& op, std::vector<int64_t> spatial,
                int width)
      : e_(e),
        b_(e.b()),
        frame_(frame),
        op_(op),
        window_(op.attrs<WindowAttrs>().window),
        spatial_(std::move(spatial)),
        width_(width) {}

  void Run(ArrayIndex position) {
    operand_ = position;
    operand_.sizes = op_.operand(0)->shape().dims();
    source_ = position;
    source_.sizes = op_.operand(1)->shape().dims();
    Fill(0);
    Sources(0);
  }

 private:
  void Fill(size_t k) {
    if (k == spatial_.size()) {
      e_.Store(frame_.output(0), e_.EmitScalarOperand(op_.operand(2)), operand_);
      return;
    }
    const auto d = static_cast<size_t>(spatial_[k]);
    e_.scopes().Loop("fill", b_.I64(0), b_.I64(operand_.sizes[d]), 1, [&](V i) {
      operand_.digits[d] = e_.indices().Counter(i, e_.scopes().current(), 0, 1);
      Fill(k + 1);
    });
  }

  void Sources(size_t k) {
    if (k == spatial_.size()) return OneWindow();
    const auto d = static_cast<size_t>(spatial_[k]);
    e_.scopes().Loop("source", b_.I64(0), b_.I64(source_.sizes[d]), 1, [&](V i) {
      source_.digits[d] = e_.indices().Counter(i, e_.scopes().current(), 0, 1);
      Sources(k + 1);
    });
  }

  // State of the search: found (i1), per spatial dimension the best position (per lane), the best value.
  std::vector<V> Search(size_t k, ElementalEmitter::Condition inside, std::vector<V> state) {
    if (k == spatial_.size()) {
      const auto take = [&]() { return Compare(state); };
      if (!inside.value) return take();
      return e_.scopes().If(inside.value, take, [&] { return state; });
    }
    const auto d = static_cast<size_t>(spatial_[k]);
    const WindowDim& w = window_.dims[d];
    return e_.scopes().Loop("window", b_.I64(0), b_.I64(w.size), 1, state, [&](V n, std::span<const V> carried) {
      IndexBuilder& indices = e_.indices();
      LaneIndex offset = indices.Counter(n, e_.scopes().current(), 0, 1);
      if (w.reversal) offset = indices.Sub(w.size - 1, offset);
      LaneIndex x = indices.Add(indices.Mul(source_.digits[d], w.stride), indices.Mul(offset, w.window_dilation));
      x = indices.Add(x, indices.Constant(-w.pad_low));
      ElementalEmitter::Condition here = e_.Both(inside, e_.InRange(x, (operand_.sizes[d] - 1) * w.base_dilation + 1));
      if (w.base_dilation > 1) {  // between the operand's elements are holes
        const auto [quotient, rest] = indices.DivMod(x, w.base_dilation, INT64_MAX);
        here = e_.Both(here, e_.InRange(rest, 1));
        x = quotient;
      }
      operand_.digits[d] = x;
      return Search(k + 1, here, std::vector<V>(carried.begin(), carried.end()));
    });
  }

  std::vector<V> Compare(const std::vector<V>& state) {
    const ElementType type = op_.shape().type();
    const Val value = e_.elements().Splat(e_.Emit(op_.operand(0), operand_), width_);
    Val best{state[1 + spatial_.size()], IsComplex(type) ? state[2 + spatial_.size()] : nullptr, type};
    const Val keeps = e_.Inline(*op_.called(0), {best, value})[0];
    V keep = b_.And(b_.Splat(state[0], width_), b_.Splat(keeps.re, width_));
    std::vector<V> next{b_.True()};
    for (size_t k = 0; k < spatial_.size(); ++k) {
      V here = b_.Splat(e_.indices().Materialize(operand_.digits[static_cast<size_t>(spatial_[k])]), width_);
      next.push_back(b_.Select(keep, state[1 + k], here));
    }
    const Val chosen = e_.elements().Select(keep, best, value);
    next.push_back(chosen.re);
    if (chosen.im) next.push_back(chosen.im);
    return next;
  }

  void OneWindow() {
    const ElementType type = op_.shape().type();
    std::vector<V> state{b_.False()};
    for (size_t k = 0; k < spatial_.size(); ++k) state.push_back(b_.Splat(b_.I64(0), width_));
    V zero = llvm::Constant::getNullValue(VectorBuilder::WithLanes(e_.elements().RegisterType(type), width_));
    state.push_back(zero);
    if (IsComplex(type)) state.push_back(zero);
    const std::vector<V> found = Search(0, {}, state);
    const auto scatter = [&]() -> std::vector<V> {
      ArrayIndex target = operand_;
      const int level = e_.scopes().current();
      for (size_t k = 0; k < spatial_.size(); ++k)
        target.digits[static_cast<size_t>(spatial_[k])] = e_.indices().FromLanes(found[1 + k], level);
      const Val old = e_.Load(frame_.output(0), type, target);
      const Val add = e_.Emit(op_.operand(1), source_);
      e_.Store(frame_.output(0), e_.Inline(*op_.called(1), {add, old})[0], target);
      return {};
    };
    e_.scopes().If(found[0], scatter, [] { return std::vector<V>(); });
  }

  ElementalEmitter& e_;
  VectorBuilder& b_;
  const KernelFrame& frame_;
  const Instruction& op_;
  const Window& window_;
  std::vector<int64_t> spatial_;
  int width_;
  ArrayIndex operand_, source_;
};

Result<EmittedKernel> Emit(const KernelSpec& spec, KernelFrame& frame) {
  const Instruction& op = *spec.instruction;
  const KernelBody& body = frame.body();
  const Window& window = op.attrs<WindowAttrs>().window;
  const Shape& operand = op.operand(0)->shape();
  EmittedKernel emitted;
  if (operand.num_elements() > 0) {
    LoopSpace space;
    std::vector<int64_t> spatial;
    for (int64_t d = 0; d < operand.rank(); ++d) {
      if (IsTrivial(window.dims[static_cast<size_t>(d)])) {
        space.row_sizes.push_back(operand.dim(d));
        space.rows *= operand.dim(d);
      } else {
        spatial.push_back(d);
      }
    }
    const bool lanes_along_rows = spatial.empty() || spatial.back() != operand.rank() - 1;
    if (lanes_along_rows && operand.rank() > 0) {
      space.row_size = space.row_sizes.back();
      space.rows /= space.row_size;
      space.row_sizes.pop_back();
      space.lanes = PreferredLanes(body, frame.b().target().vector_bytes);
      while (space.lanes > 1 && space.lanes > space.row_size) space.lanes /= 2;
    }
    KernelCost cost = CostOf(body);
    int64_t window_elements = 1;
    for (const WindowDim& w : window.dims) window_elements = SaturatingMultiply(window_elements, w.size);
    cost.flops = SaturatingMultiply(4 * window_elements, op.operand(1)->shape().num_elements());
    const KernelFrame::Cut cut = KernelFrame::CutIntoTasks(space, cost);
    emitted.num_tasks = cut.num_tasks;
    STROP_TRY(frame.Walk(space, cut, [&](ElementalEmitter& e, const ArrayIndex& at) {
      // The independent dimensions' digits, by dimension.
      ArrayIndex position;
      size_t next = 0;
      for (int64_t d = 0; d < operand.rank(); ++d) {
        const bool is_spatial = std::find(spatial.begin(), spatial.end(), d) != spatial.end();
        position.digits.push_back(is_spatial ? e.indices().Constant(0) : at.digits[next++]);
      }
      const bool by_lane = lanes_along_rows && operand.rank() > 0 && e.lanes() > 1;
      WindowEmitter(e, frame, op, spatial, by_lane ? e.lanes() : 1).Run(position);
      return e.status();
    }));
  }
  return emitted;
}

}  // namespace

const KernelFamily kSelectAndScatterFamily = {"select-and-scatter", &Matches, &Emit};

}  // namespace strop::cpu
