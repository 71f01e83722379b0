// dynamic-update-slice in place, alone or as the root of a fusion: the result has the operand's memory, and only the
// window is written.
#include "strop/codegen/kernel_frame.h"
#include "strop/cpu/kernel_family.h"

namespace strop::cpu {
namespace {

const Instruction* Update(const Instruction& kernel) {
  const Instruction* root = kernel.op() == Op::Fusion ? kernel.called(0)->root() : &kernel;
  return root->op() == Op::DynamicUpdateSlice ? root : nullptr;
}

Decision Matches(const Instruction& kernel) {
  const Instruction* update = Update(kernel);
  if (!update) return Decision::No(kOtherOp);
  if (kernel.op() == Op::Fusion && !update->operand(0)->IsParameter())
    return Decision::No("the updated operand is computed in the kernel");
  return CanEmitElement(kernel);
}

Result<EmittedKernel> Emit(const KernelSpec& spec, KernelFrame& frame) {
  const KernelBody& body = frame.body();
  const Instruction& update = *body.roots[0];
  if (spec.in_place.empty() || spec.in_place[0] < 0 ||
      body.inputs[static_cast<size_t>(spec.in_place[0])] != update.operand(0))
    return Internal("dynamic-update-slice %", update.name(), " is not in place");
  const Shape& window = update.operand(1)->shape();
  EmittedKernel emitted;
  if (window.num_elements() > 0) {
    // The window is walked as if it were the kernel's result.
    KernelBody part{body.kernel, body.inputs, {update.operand(1)}, {0}};
    const LoopSpace space = ChooseWindowSpace(part, update, frame.b().target().vector_bytes);
    KernelCost cost = CostOf(part);
    cost.bytes = SaturatingMultiply(2, window.byte_size());
    const KernelFrame::Cut cut = KernelFrame::CutIntoTasks(space, cost);
    emitted.num_tasks = cut.num_tasks;
    STROP_TRY(frame.Walk(space, cut, [&](ElementalEmitter& e, const ArrayIndex& at) {
      const Val value = e.Emit(update.operand(1), at);
      e.Store(frame.output(0), value, e.WindowPosition(update, at));
      return e.status();
    }));
  }
  return emitted;
}

}  // namespace

const KernelFamily kUpdateFamily = {"update", &Matches, &Emit};

}  // namespace strop::cpu
