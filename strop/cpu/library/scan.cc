// reduce-window whose window reaches from each element to an end of its line -> the library's scan:
//
//   %s = f32[n] reduce-window(%x, %zero), window={size=n pad=n-1_0}, to_apply=%add
//
// is what jax.numpy.cumsum lowers to. Padding is the initial value, which is combined many times, so it must be the
// combiner's identity (or the combiner must not count).
#include "strop/cpu/library/library.h"
#include "strop/cpu/load/problems.h"

namespace strop::cpu {
namespace {

// (a, b) -> a op b of the parameters themselves, in either order.
Result<CombineKind> CombineOf(const Computation& c) {
  const Instruction& root = *c.root();
  const bool whole = c.parameter_count() == 2 && root.operand_count() == 2 && root.operand(0)->IsParameter() &&
                     root.operand(1)->IsParameter() && root.operand(0) != root.operand(1);
  switch (whole ? root.op() : Op::kEnd) {
    case Op::Add: return CombineKind::kAdd;
    case Op::Multiply: return CombineKind::kMultiply;
    case Op::Minimum: return CombineKind::kMinimum;
    case Op::Maximum: return CombineKind::kMaximum;
    case Op::And: return CombineKind::kAnd;
    case Op::Or: return CombineKind::kOr;
    default: return Unimplemented("combiner %", c.name(), " is none of add, multiply, min, max, and, or");
  }
}

bool InitialCountsOnce(const Instruction& initial, CombineKind combine) {
  if (combine != CombineKind::kAdd && combine != CombineKind::kMultiply) return true;
  if (initial.op() != Op::Constant) return false;
  const double identity = combine == CombineKind::kAdd ? 0 : 1;
  const Literal& value = initial.literal();
  if (IsComplex(value.type())) return value.GetComplex(0) == identity;
  return IsFloat(value.type()) ? value.GetDouble(0) == identity : value.GetInt(0) == static_cast<int64_t>(identity);
}

bool IsTrivial(const WindowDim& w) { return w.size == 1 && w.stride == 1 && w.pad_low == 0 && w.pad_high == 0; }

Result<ScanProblem> ProblemOf(const Instruction& i) {
  if (i.operand_count() != 2) return Unimplemented("reduce-window of several operands");
  const Shape& input = i.operand(0)->shape();
  const Window& window = i.attrs<WindowAttrs>().window;
  ScanProblem p;
  p.type = input.type();
  STROP_ASSIGN(p.combine, CombineOf(*i.to_apply()));
  int64_t along = -1;
  for (int64_t d = 0; d < input.rank(); ++d) {
    const WindowDim& w = window.dims[static_cast<size_t>(d)];
    if (w.base_dilation != 1 || w.window_dilation != 1 || w.stride != 1) return Unimplemented("a window with gaps");
    if (IsTrivial(w)) continue;
    const bool forward = w.pad_low == w.size - 1 && w.pad_high == 0,
               backward = w.pad_low == 0 && w.pad_high == w.size - 1;
    if (along >= 0 || w.size != input.dim(d) || (!forward && !backward))
      return Unimplemented("a window that does not reach to the end");
    along = d;
    p.reverse = backward;
  }
  if (along < 0) return Unimplemented("a window of one element");
  if (!InitialCountsOnce(*i.operand(1), p.combine)) return Unimplemented("an initial value that is no identity");
  p.n = input.dim(along);
  for (int64_t d = 0; d < along; ++d) p.outer *= input.dim(d);
  for (int64_t d = along + 1; d < input.rank(); ++d) p.inner *= input.dim(d);
  STROP_TRY(CheckScan(p));
  return p;
}

}  // namespace

Decision SupportsScan(const Instruction& reduce_window) {
  auto problem = ProblemOf(reduce_window);
  return problem.ok() ? Decision::Yes() : Decision::No(problem.status().message());
}

Result<CompiledKernel> MakeScan(const KernelSpec& spec) {
  STROP_ASSIGN(ScanProblem problem, ProblemOf(*spec.instruction));
  return FromRecipe(RecipeOf(kScanRecipe, problem));
}

}  // namespace strop::cpu
