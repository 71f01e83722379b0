// Scans by any combiner: reduce-window whose window reaches from each element to the end of its line.
//
//   cumlogsumexp: each element is combined with the result before it, once, where the windows by themselves would
//   combine n^2 / 2 of them. Vectors run along what is behind the scanned dimension, or, if that is short, along what
//   is before it. (Sums, products, extremes are the library's, library/scan.cc.)
#include "strop/codegen/kernel_frame.h"
#include "strop/cpu/kernel_family.h"

namespace strop::cpu {
namespace {

const Instruction& Root(const Instruction& kernel) {
  return kernel.op() == Op::Fusion ? *kernel.called(0)->root() : kernel;
}

Decision Matches(const Instruction& kernel) {
  const Instruction& root = Root(kernel);
  if (root.op() != Op::ReduceWindow) return Decision::No(kOtherOp);
  for (int64_t k = 0; k < kernel.operand_count(); ++k) {
    const Shape& shape = kernel.operand(k)->shape();
    if (!shape.IsArray() || !shape.IsStatic()) return Decision::No("operand ", k, " is ", shape.ToString());
  }
  if (!ScanOf(root)) return Decision::No("its windows do not reach to the end of a dimension");
  return CanEmitElement(kernel);
}

Result<EmittedKernel> Emit(const KernelSpec&, KernelFrame& frame) {
  const KernelBody& body = frame.body();
  const Instruction& scan = *body.roots[0];
  const ScanShape shape = *ScanOf(scan);
  EmittedKernel emitted;
  if (shape.outer * shape.n * shape.inner == 0) return emitted;
  LoopSpace space;
  space.lanes = PreferredLanes(body, frame.b().target().vector_bytes);
  if (shape.inner >= space.lanes || shape.outer == 1) {
    space.row_sizes = {shape.outer};
    space.rows = shape.outer;
    space.row_size = shape.inner;
  } else {
    space.row_size = shape.outer * shape.inner;
  }
  while (space.lanes > 1 && space.lanes > space.row_size) space.lanes /= 2;
  KernelCost cost = CostOf(body);
  cost.flops = SaturatingMultiply(shape.outer * shape.n * shape.inner, scan.called(0)->instruction_count() * 4);
  const KernelFrame::Cut cut = KernelFrame::CutIntoTasks(space, cost);
  emitted.num_tasks = cut.num_tasks;
  STROP_TRY(frame.Walk(space, cut, [&](ElementalEmitter& e, const ArrayIndex& at) {
    e.Scan(scan, shape, at, [&](const ArrayIndex& position, const Vals& values) {
      for (size_t r = 0; r < values.size(); ++r) e.Store(frame.output(r), values[r], position);
    });
    return e.status();
  }));
  return emitted;
}

}  // namespace

const KernelFamily kScanFamily = {"scan", &Matches, &Emit};

}  // namespace strop::cpu
