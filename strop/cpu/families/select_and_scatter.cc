// select-and-scatter (the gradient of pooling): each window of the operand selects one element, and the source's
// element of that window is scattered to its place.
//
//   out = init;  for each window w:  best = the element that `select` prefers over the others;  out[best] =
//   scatter(source[w], out[best])
//
// Dimensions along which windows are single elements (batch, channel) are independent of each other, and tasks run
// along them; everything else is a loop inside. Vector lanes run along
//   - channels, where they are the last dimension: a second pass over the window adds to those lanes whose best element
//     it meets, so that nothing is gathered or scattered;
//   - windows side by side, where the last dimension is one that they reach over: the lanes find their best elements
//     together, and the sources are added one after the other, as neighbours may have chosen the same element.
// Either way elements receive their sources in the order of the windows.
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

constexpr int64_t kUnrolled = 16;  // elements of a window, of which each has code of its own
constexpr int kLeastColumns = 4;   // windows that are searched together

// The windows of a dimension that lie inside of it, as [begin, end).
std::pair<int64_t, int64_t> Inside(const WindowDim& w, int64_t size, int64_t windows) {
  if (w.base_dilation != 1) return {0, 0};
  const int64_t room = size - 1 - (w.size - 1) * w.window_dilation + w.pad_low;
  const int64_t begin = std::clamp<int64_t>((std::max<int64_t>(w.pad_low, 0) + w.stride - 1) / w.stride, 0, windows);
  return {begin, room < 0 ? begin : std::clamp<int64_t>(room / w.stride + 1, begin, windows)};
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
        width_(width) {
    int64_t elements = 1;
    for (const WindowDim& w : window_.dims) elements = SaturatingMultiply(elements, w.size);
    unrolled_ = elements <= kUnrolled;
  }

  // `columns` are lanes along the last dimension, if it is spatial.
  void Run(const ArrayIndex& position, ElementalEmitter* columns) {
    columns_ = columns;
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
    const int64_t size = operand_.sizes[d];
    if (columns_ && k + 1 == spatial_.size() && size >= columns_->lanes()) {
      Columns("fill", 0, size, [&](const LaneIndex& at, V) {
        operand_.digits[d] = at;
        columns_->Store(frame_.output(0), columns_->EmitScalarOperand(op_.operand(2)), operand_);
      });
      return;
    }
    e_.scopes().Loop("fill", b_.I64(0), b_.I64(size), 1, [&](V i) {
      operand_.digits[d] = e_.indices().Counter(i, e_.scopes().current(), 0, 1);
      Fill(k + 1);
    });
  }

  // body(columns, how many of them were there before) for all of [begin, end), which are as many as the lanes or more:
  // the last ones reach back.
  void Columns(const char* name, int64_t begin, int64_t end, const std::function<void(const LaneIndex&, V)>& body) {
    const int64_t lanes = columns_->lanes();
    e_.scopes().Loop(name, b_.I64(begin), b_.I64(end), lanes, [&](V i) {
      V first = b_.Binary(llvm::Intrinsic::smin, i, b_.I64(end - lanes));
      const LaneIndex at = columns_->indices().Counter(first, e_.scopes().current(), 1, 1).Within(begin, end - 1);
      body(at, b_.Sub(i, first));
    });
  }

  void Sources(size_t k) {
    if (k == spatial_.size()) return OneWindow();
    const auto d = static_cast<size_t>(spatial_[k]);
    const int64_t size = source_.sizes[d];
    if (!columns_ || k + 1 < spatial_.size()) return Each(k, 0, size);
    const auto [begin, end] = Inside(window_.dims[d], operand_.sizes[d], size);
    if (end - begin < columns_->lanes()) return Each(k, 0, size);
    Each(k, 0, begin);
    Columns("sources", begin, end, [&](const LaneIndex& at, V before) {
      source_.digits[d] = at;
      WindowsTogether(before);
    });
    Each(k, end, size);
  }

  void Each(size_t k, int64_t begin, int64_t end) {
    if (begin == end) return;
    e_.scopes().Loop("source", b_.I64(begin), b_.I64(end), 1, [&](V i) {
      const LaneIndex at = e_.indices().Counter(i, e_.scopes().current(), 0, 1).Within(begin, end - 1);
      source_.digits[static_cast<size_t>(spatial_[k])] = at;
      Sources(k + 1);
    });
  }

  // Goes through the elements of the window that are inside of the operand: visit(state) with operand_ and tap_ there.
  using State = std::vector<V>;
  using Visit = std::function<State(const State&)>;
  State Taps(const State& state, const Visit& visit) {
    tap_ = b_.I32(0);
    return Elements(0, {}, state, visit);
  }
  State Elements(size_t k, ElementalEmitter::Condition inside, const State& state, const Visit& visit) {
    if (k == spatial_.size()) {
      if (!inside.value) return visit(state);
      return e_.scopes().If(inside.value, [&] { return visit(state); }, [&] { return state; });
    }
    const auto d = static_cast<size_t>(spatial_[k]);
    const WindowDim& w = window_.dims[d];
    V outer = tap_;
    const auto step = [&](V n, LaneIndex offset, const State& carried) {
      IndexBuilder& indices = e_.indices();
      tap_ = b_.Add(b_.Mul(outer, b_.I32(static_cast<int32_t>(w.size))), b_.ZExtOrTrunc(n, 32));
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
      return Elements(k + 1, here, carried, visit);
    };
    if (unrolled_) {
      State now = state;
      for (int64_t n = 0; n < w.size; ++n) now = step(b_.I64(n), e_.indices().Constant(n), now);
      return now;
    }
    return e_.scopes().Loop("window", b_.I64(0), b_.I64(w.size), 1, state, [&](V n, std::span<const V> carried) {
      const LaneIndex offset = e_.indices().Counter(n, e_.scopes().current(), 0, 1).Within(0, w.size - 1);
      return step(n, offset, State(carried.begin(), carried.end()));
    });
  }

  // What a search ends with: found (i1), where the best element is, its value. Where is its number within the window if
  // lanes are channels, else its number among all of the operand.
  bool by_channel() const { return width_ > 1 && !together_; }
  int where_bits() const { return by_channel() || op_.shape().num_elements() <= INT32_MAX ? 32 : 64; }

  State Search() {
    const ElementType type = op_.shape().type();
    V zero = llvm::Constant::getNullValue(VectorBuilder::WithLanes(e_.elements().RegisterType(type), width_));
    State state{b_.False(), b_.Splat(b_.ZExtOrTrunc(b_.I64(0), where_bits()), width_), zero};
    if (IsComplex(type)) state.push_back(zero);
    return Taps(state, [&](const State& before) { return Compare(before); });
  }

  State Compare(const State& state) {
    const ElementType type = op_.shape().type();
    const Val value = e_.elements().Splat(e_.Emit(op_.operand(0), operand_), width_);
    const Val best{state[2], IsComplex(type) ? state[3] : nullptr, type};
    const Val keeps = e_.Inline(*op_.called(0), {best, value})[0];
    V keep = b_.And(b_.Splat(state[0], width_), b_.Splat(keeps.re, width_));
    const Val chosen = e_.elements().Select(keep, best, value);
    State next{b_.True(), b_.Select(keep, state[1], Here()), chosen.re};
    if (chosen.im) next.push_back(chosen.im);
    return next;
  }

  V Here() {
    if (by_channel()) return b_.Splat(tap_, width_);
    const LaneIndex at = e_.indices().Linear(operand_);
    V first = b_.ZExtOrTrunc(at.base, where_bits());
    if (at.stride == 0) return b_.Splat(first, width_);
    V steps = b_.ZExtOrTrunc(b_.LaneNumbers(width_, 64), where_bits());
    return b_.Add(b_.Mul(steps, b_.I(at.stride, steps)), first);
  }

  void OneWindow() {
    const State found = Search();
    const auto scatter = [&]() -> State {
      if (by_channel())
        AddByChannel(found[1]);
      else
        AddAt(found[1]);
      return {};
    };
    e_.scopes().If(found[0], scatter, [] { return State(); });
  }

  // The source of this window, to element `where`.
  void AddAt(V where) {
    const int level = e_.scopes().current();
    const LaneIndex at = e_.indices().FromLanes(b_.SExtOrTrunc(where, 64), level);
    ArrayIndex target;
    target.digits.push_back(at);
    target.sizes.push_back(op_.shape().num_elements());
    const Val old = e_.Load(frame_.output(0), op_.shape().type(), target);
    const Val add = e_.Emit(op_.operand(1), source_);
    e_.Store(frame_.output(0), e_.Inline(*op_.called(1), {add, old})[0], target);
  }

  void AddByChannel(V where) {
    Taps({}, [&](const State&) -> State {
      const Val old = e_.Load(frame_.output(0), op_.shape().type(), operand_);
      const Val sum = e_.Inline(*op_.called(1), {e_.Emit(op_.operand(1), source_), old})[0];
      e_.Store(frame_.output(0), e_.elements().Select(b_.IEq(where, b_.Splat(tap_, width_)), sum, old), operand_);
      return {};
    });
  }

  // As many windows as the columns have lanes; the first `before` of them have been there.
  void WindowsTogether(V before) {
    WindowEmitter lanes(*columns_, frame_, op_, spatial_, columns_->lanes());
    lanes.together_ = true;
    lanes.operand_ = operand_;
    lanes.source_ = source_;
    const State found = lanes.Search();
    const auto d = static_cast<size_t>(spatial_.back());
    e_.scopes().If(
        found[0],
        [&]() -> State {
          V memory = lanes.Memory(found[1]->getType());
          b_.ir().CreateStore(found[1], memory);
          V first = source_.digits[d].base;
          e_.scopes().Loop("scatter", before, b_.I64(lanes.width_), 1, [&](V lane) {
            llvm::Type* type = found[1]->getType()->getScalarType();
            V where = b_.ir().CreateLoad(type, b_.ir().CreateGEP(type, memory, lane));
            source_.digits[d] = e_.indices().Counter(b_.Add(first, lane), e_.scopes().current(), 0, 1);
            AddAt(where);
          });
          return {};
        },
        [] { return State(); });
    source_.digits[d] = {};
  }

  // Of the function, not of a loop.
  V Memory(llvm::Type* type) {
    llvm::BasicBlock& entry = b_.ir().GetInsertBlock()->getParent()->getEntryBlock();
    return IrBuilder(&entry, entry.begin()).CreateAlloca(type);
  }

  ElementalEmitter& e_;
  VectorBuilder& b_;
  const KernelFrame& frame_;
  const Instruction& op_;
  const Window& window_;
  std::vector<int64_t> spatial_;
  int width_;
  bool unrolled_ = false, together_ = false;  // lanes are windows
  ElementalEmitter* columns_ = nullptr;
  ArrayIndex operand_, source_;
  V tap_ = nullptr;  // i32, the number of operand_ within the window
};

// Lanes for windows side by side; 1 if there are too few.
int ColumnsOf(const Instruction& op, int lanes) {
  const WindowDim& w = op.attrs<WindowAttrs>().window.dims.back();
  const auto [begin, end] = Inside(w, op.operand(0)->shape().dims().back(), op.operand(1)->shape().dims().back());
  while (lanes > 1 && lanes > end - begin) lanes /= 2;
  return lanes >= kLeastColumns ? lanes : 1;
}

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
    ElementalEmitter* columns = nullptr;
    if (!lanes_along_rows) {
      const int lanes = ColumnsOf(op, PreferredLanes(body, frame.b().target().vector_bytes));
      if (lanes > 1) columns = &frame.Emitter(lanes);
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
      WindowEmitter(e, frame, op, spatial, by_lane ? e.lanes() : 1).Run(position, columns);
      return columns && !columns->status().ok() ? columns->status() : e.status();
    }));
  }
  return emitted;
}

}  // namespace

const KernelFamily kSelectAndScatterFamily = {"select-and-scatter", &Matches, &Emit};

}  // namespace strop::cpu
