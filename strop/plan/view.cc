// Slices that need no memory of their own: pieces of what they are cut from.
#include "strop/plan/values.h"

namespace strop::plan_internal {
namespace {

// The slice that a fusion consists of, or the instruction itself.
const Instruction* SliceOf(const Instruction& i) {
  const Instruction* at = &i;
  if (i.op() == Op::Fusion) {
    if (i.attrs<FusionAttrs>().kind == FusionKind::Custom) return nullptr;
    for (at = i.called(0)->root(); at->op() == Op::Reshape || at->op() == Op::Bitcast;) at = at->operand(0);
  }
  return at->op() == Op::Slice || at->op() == Op::DynamicSlice ? at : nullptr;
}

// What a value inside a fusion is outside of it; null if it is computed there.
const Instruction* Outside(const Instruction& i, const Instruction* inner) {
  if (i.op() != Op::Fusion) return inner;
  return inner->op() == Op::Parameter ? i.operand(inner->parameter_number()) : nullptr;
}

// Is a box of these sizes in an array one piece of memory, both in row-major order?
bool IsOnePiece(const Shape& array, const Shape& box) {
  int64_t d = 0;
  while (d < box.rank() && box.dim(d) == 1) ++d;
  for (++d; d < box.rank(); ++d)
    if (box.dim(d) != array.dim(d)) return false;
  return true;
}

}  // namespace

std::optional<SliceView> ViewOf(const Instruction& i, int64_t alignment) {
  const Instruction* slice = SliceOf(i);
  if (!slice) return std::nullopt;
  const Shape &box = slice->shape(), &array = slice->operand(0)->shape();
  SliceView view{.of = Outside(i, slice->operand(0))};
  if (!view.of || !array.IsStatic() || !box.IsStatic() || box.num_elements() == 0) return std::nullopt;
  for (const Shape* shape : {&i.shape(), &box, &array})
    if (!shape->IsArray() || !shape->layout_or_default().IsRowMajor()) return std::nullopt;
  if (!IsOnePiece(array, box) || array.byte_size() % array.num_elements() != 0) return std::nullopt;
  int64_t stride = array.byte_size() / array.num_elements();
  for (int64_t d = box.rank() - 1; d >= 0; stride *= array.dim(d--)) {
    const int64_t limit = array.dim(d) - box.dim(d);
    if (limit == 0) continue;
    if (slice->op() == Op::Slice) {
      const SliceDim& along = slice->attrs<SliceAttrs>().slice[d];
      if (along.stride != 1) return std::nullopt;
      view.step.offset += along.start * stride;
      continue;
    }
    const Instruction* start = Outside(i, slice->operand(d + 1));
    if (!start || stride % alignment != 0) return std::nullopt;
    view.starts.push_back(start);
    view.step.dims.push_back({start->shape().type(), limit, stride});
  }
  if (view.step.offset % alignment != 0) return std::nullopt;
  return view;
}

}  // namespace strop::plan_internal
