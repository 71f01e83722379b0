// Cumulative sums (products, extremes) along rows of a few elements are written out: by itself a scan walks a row at a
// time, and such a row is over before the walk has begun. Its columns side by side are vectors:
//
//   %c = s8[20000,3] reduce-window(s8[20000,3] %x, %zero), window={size=1x3 pad=0_0x2_0}, to_apply=%add
//   ->
//   %first = s8[20000,1] add(broadcast(%zero), slice(%x), slice={[0:20000], [0:1]})
//   %second = s8[20000,1] add(%first, slice(%x), slice={[0:20000], [1:2]})
//   %third = s8[20000,1] add(%second, slice(%x), slice={[0:20000], [2:3]})
//   %c = s8[20000,3] concatenate(%first, %second, %third), dimensions={1}
//
// The elements of each window are combined in the order that they had.
#include "strop/analysis/combiner.h"
#include "strop/ir/builder.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

constexpr int64_t kLeastElements = 512;

// Of how many elements rows may be: as many as were faster so, measured on vectors of 64 bytes, and of bytes no more
// than LLVM has shuffles for soon.
int64_t LongestRow(ElementType type) {
  if (Bytes(type) > 2) return 5;
  return IsFloat(type) ? 2 : 4;
}

// Sums of halves are rounded once, at the end. Of two elements there is one rounding only, if the sum begins at zero.
bool KeepsRounding(Op combine, const Instruction& init) {
  const ElementType type = init.shape().type();
  if (combine != Op::Add || !IsFloat(type) || Bytes(type) > 2) return true;
  return init.op() == Op::Constant && init.literal().GetDouble(0) == 0;
}

// Does each window reach from a row's first element to one of its elements?
bool ScansRows(const Instruction& i) {
  if (i.op() != Op::ReduceWindow || i.operand_count() != 2 || i.HasControlEdges()) return false;
  const Shape& operand = i.operand(0)->shape();
  const int64_t last = operand.rank() - 1;
  if (last < 0 || !operand.IsStatic() || !i.shape().SameDims(operand) || IsComplex(operand.type())) return false;
  const std::vector<WindowDim>& dims = i.attrs<WindowAttrs>().window.dims;
  for (int64_t d = 0; d <= last; ++d) {
    const WindowDim& w = dims[static_cast<size_t>(d)];
    const int64_t size = d == last ? operand.dim(d) : 1;
    const WindowDim whole{.size = size, .pad_low = size - 1};
    if (!(w == whole)) return false;
  }
  return operand.dim(last) > 1;
}

bool Rewrite(Instruction* scan) {
  if (!ScansRows(*scan)) return false;
  const Shape& shape = scan->shape();
  const int64_t last = shape.rank() - 1, n = shape.dim(last);
  const Op combine = RecognizeCombiner(*scan->called(0)).op;
  if (combine == Op::kEnd || n > LongestRow(shape.type()) || shape.num_elements() < kLeastElements) return false;
  if (!KeepsRounding(combine, *scan->operand(1))) return false;
  Builder b(scan->parent());
  b.set_insert_before(scan);
  if (scan->has_metadata()) b.set_metadata(scan->shared_metadata());
  Int64Vector dims = shape.dims();
  dims[static_cast<size_t>(last)] = 1;
  Instruction* sum = b.Broadcast(scan->operand(1), dims, {});
  std::vector<Instruction*> columns;
  Dims start(static_cast<size_t>(last + 1), 0), limit, stride(static_cast<size_t>(last + 1), 1);
  for (int64_t size : shape.dims()) limit.push_back(size);
  for (int64_t k = 0; k < n; ++k) {
    start[static_cast<size_t>(last)] = k, limit[static_cast<size_t>(last)] = k + 1;
    sum = b.Make(combine, {sum, b.Slice(scan->operand(0), start, limit, stride)});
    columns.push_back(sum);
  }
  Instruction* rows = b.Make(Op::Concatenate, columns, DimensionsAttrs{{last}}, {}, nullptr);
  if (!b.status().ok()) return false;
  scan->parent()->Replace(scan, rows);
  return true;
}

struct ShortScans final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t changed = 0;
    for (Computation* computation : module.computations()) {
      for (Instruction* instruction = computation->first(); instruction;) {
        Instruction* next = instruction->next();
        changed += Rewrite(instruction);
        instruction = next;
      }
    }
    context.Count("short-scans.written-out", changed);
    return changed > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeShortScans() { return std::make_unique<ShortScans>(); }

}  // namespace strop
