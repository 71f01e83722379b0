#include "strop/gpu/kernel.h"

#include <llvm/IR/IntrinsicsNVPTX.h>

#include <algorithm>
#include <utility>

#include "strop/codegen/kernel_frame.h"

namespace strop::gpu {
namespace {

using V = llvm::Value*;

constexpr int kScalarBytes = 1;  // of a "vector": one element, whatever its type

const Instruction& RootOf(const Instruction& kernel) {
  return kernel.op() == Op::Fusion ? *kernel.called(0)->root() : kernel;
}

// The general code of these calls the C library for arguments that are rare, or for all.
Decision NeedsNoLibrary(const Instruction& i) {
  const bool is_float = i.shape().IsArray() && !IsInteger(i.shape().type());
  const bool calls = i.op() == Op::Cos || i.op() == Op::Sin || i.op() == Op::Tan || i.op() == Op::Remainder ||
                     (i.op() == Op::Power && i.shape().type() == ElementType::F64) ||
                     (Is(i.op(), kFloatMath) && IsComplex(i.shape().type()));
  if (is_float && calls) return Decision::No(Name(i.op()), " of ", Name(i.shape().type()), " calls the C library");
  for (const Computation* c : i.called())
    for (const Instruction* inner : c->instructions())
      if (Decision d = NeedsNoLibrary(*inner); !d) return d;
  return Decision::Yes();
}

llvm::Function* CreateEntry(VectorBuilder& b, const std::string& symbol, size_t buffers) {
  const std::vector<llvm::Type*> pointers(buffers, b.Ptr());
  llvm::Function* function = CreateFunction(b, llvm::FunctionType::get(b.ir().getVoidTy(), pointers, false), symbol);
  function->setCallingConv(llvm::CallingConv::PTX_Kernel);
  function->addFnAttr("nvvm.maxntid", std::to_string(kBlockThreads));
  b.ir().SetInsertPoint(llvm::BasicBlock::Create(b.context(), "entry", function));
  return function;
}

// The number of the thread in the grid.
V ThreadNumber(VectorBuilder& b) {
  IrBuilder& ir = b.ir();
  V block = ir.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_ctaid_x, {});
  V thread = ir.CreateIntrinsic(llvm::Intrinsic::nvvm_read_ptx_sreg_tid_x, {});
  return ir.CreateAdd(ir.CreateMul(ir.CreateZExt(block, b.Int(64)), b.I64(kBlockThreads)),
                      ir.CreateZExt(thread, b.Int(64)));
}

// `point` for the element of the thread, if the space has so many.
Status EmitThread(KernelFrame& frame, const LoopSpace& space, V thread, const KernelFrame::PointFn& point) {
  const int64_t elements = space.num_elements();
  Status status;
  frame.scopes().If(
      frame.b().SLt(thread, frame.b().I64(elements)),
      [&] {
        ElementalEmitter& e = frame.Emitter(1);
        ArrayIndex at;
        at.sizes = {elements};
        at.digits.push_back(e.indices().Counter(thread, frame.scopes().current(), 0, 1).Within(0, elements - 1));
        Int64Vector sizes = space.row_sizes;
        sizes.push_back(space.row_size);
        status = point(e, e.indices().Refactor(at, sizes));
        if (status.ok()) status = e.status();
        return std::vector<V>();
      },
      [] { return std::vector<V>(); });
  return status;
}

// In the place of its operand: the elements of the window alone.
Status EmitUpdate(const KernelSpec& spec, KernelFrame& frame, V thread) {
  const KernelBody& body = frame.body();
  const Instruction& update = *body.roots[0];
  if (spec.in_place.empty() || spec.in_place[0] < 0)
    return Internal("dynamic-update-slice %", update.name(), " is not in place");
  if (update.operand(1)->shape().num_elements() == 0) return OkStatus();
  const KernelBody part{body.kernel, body.inputs, {update.operand(1)}, {0}};
  const LoopSpace space = ChooseWindowSpace(part, update, kScalarBytes);
  return EmitThread(frame, space, thread, [&](ElementalEmitter& e, const ArrayIndex& at) {
    const Val value = e.Emit(update.operand(1), at);
    e.Store(frame.output(0), value, e.WindowPosition(update, at));
    return e.status();
  });
}

// Results of one size share a walk.
Status EmitResults(KernelFrame& frame, V thread) {
  for (const ResultsOfOneSize& part : ResultsBySize(frame.body())) {
    if (part.elements == 0) continue;
    LoopSpace space = ChooseLoopSpace(part.body, kScalarBytes, false);
    if (space.interleaved > 1) {  // a thread for each of them
      space.row_sizes.push_back(space.row_size);
      space.rows *= space.row_size;
      space.row_size = std::exchange(space.interleaved, 1);
    }
    STROP_TRY(EmitThread(frame, space, thread, [&](ElementalEmitter& e, const ArrayIndex& at) {
      return EmitRoots(e, frame, part.body, space, at, part.outputs);
    }));
  }
  return OkStatus();
}

}  // namespace

Decision CanEmitKernel(const Instruction& kernel) {
  if (Decision d = ComputesFromArrays(kernel); !d) return d;
  const Instruction& root = RootOf(kernel);
  if (root.op() == Op::Scatter) return Decision::No("scatter has no kernel yet");
  if (root.op() == Op::DynamicUpdateSlice && &root != &kernel && !root.operand(0)->IsParameter())
    return Decision::No("the updated operand is computed in the kernel");
  if (Decision d = NeedsNoLibrary(kernel); !d) return d;
  return CanEmitElement(kernel);
}

Status EmitKernel(const KernelSpec& spec, VectorBuilder& b, const std::string& symbol) {
  const KernelBody body = KernelBody::Of(*spec.instruction);
  llvm::Function* function = CreateEntry(b, symbol, body.inputs.size() + body.roots.size());
  std::vector<ElementBuilder::Memory> buffers;
  for (llvm::Argument& argument : function->args()) buffers.push_back({.pointer = &argument, .invariant = true});
  KernelFrame frame(b, body, spec.in_place, buffers);
  V thread = ThreadNumber(b);
  const bool updates = !body.roots.empty() && body.roots[0]->op() == Op::DynamicUpdateSlice;
  STROP_TRY(updates ? EmitUpdate(spec, frame, thread) : EmitResults(frame, thread));
  b.ir().CreateRetVoid();
  return OkStatus();
}

int64_t BlocksOf(const KernelSpec& spec) {
  const KernelBody body = KernelBody::Of(*spec.instruction);
  int64_t threads = 0;
  for (size_t r = 0; r < body.roots.size(); ++r) threads = std::max(threads, body.ElementsOf(r));
  return (threads + kBlockThreads - 1) / kBlockThreads;
}

std::string TilesOf(const KernelSpec& spec) { return StrCat(BlocksOf(spec), " blocks of ", kBlockThreads, " threads"); }

}  // namespace strop::gpu
