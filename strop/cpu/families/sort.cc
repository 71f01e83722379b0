// sort by any comparator: the comparator is compiled to a function, the library's stable merge sort calls it.
// (Comparators that are a known order of one operand never come here: library/sort.cc takes them.)
#include <cstring>

#include "strop/codegen/elemental.h"
#include "strop/cpu/kernel_family.h"
#include "strop/cpu/kernels/sort.h"

namespace strop::cpu {
namespace {

Decision Matches(const Instruction& kernel) {
  if (kernel.op() != Op::Sort) return Decision::No(kOtherOp);
  for (int64_t k = 0; k < kernel.operand_count(); ++k)
    if (!kernel.operand(k)->shape().IsStatic()) return Decision::No("dynamic shapes");
  return CanInline(*kernel.called(0));
}

// bool less(const void* const* pairs, void* context)
Status Emit(const KernelSpec& spec, EmitContext& context) {
  VectorBuilder& b = context.b;
  IrBuilder& ir = b.ir();
  const Computation& comparator = *spec.instruction->called(0);
  auto* type = llvm::FunctionType::get(ir.getInt1Ty(), {b.Ptr(), b.Ptr()}, false);
  auto* function = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage, context.function, b.module());
  function->addRetAttr(llvm::Attribute::ZExt);
  function->setDoesNotThrow();
  ir.SetInsertPoint(llvm::BasicBlock::Create(b.context(), "entry", function));
  LoopScopes scopes(b);
  ElementalEmitter e(b, scopes, 1);
  Vals args;
  for (const Instruction* p : comparator.parameters()) {
    llvm::Value* slot =
        ir.CreateConstInBoundsGEP1_64(b.Ptr(), function->getArg(0), static_cast<uint64_t>(p->parameter_number()));
    const ElementBuilder::Memory memory{.pointer = ir.CreateLoad(b.Ptr(), slot)};
    args.push_back(e.elements().Load(memory, p->shape().type(), b.I64(0), 0, 1, nullptr, 1));
  }
  ir.CreateRet(e.Inline(comparator, args)[0].re);
  STROP_TRY(e.status());
  return OkStatus();
}

StepBody Wrap(const KernelSpec& spec, void* function) {
  const Instruction& sort = *spec.instruction;
  const Shape& first = sort.operand(0)->shape();
  const int64_t dimension = sort.attrs<SortAttrs>().dimensions[0];
  SortShape shape;
  shape.n = first.dim(dimension);
  for (int64_t d = 0; d < first.rank(); ++d)
    if (d != dimension) (d < dimension ? shape.outer : shape.inner) *= first.dim(d);
  std::vector<int64_t> element_bytes;
  for (int64_t k = 0; k < sort.operand_count(); ++k) element_bytes.push_back(Bytes(sort.operand(k)->shape().type()));
  const int64_t count = first.num_elements();
  const auto less = reinterpret_cast<SortLess>(function);
  return HostStep{.fn = [=](const HostCall& call) -> Status {
    std::vector<SortOperand> operands;
    for (size_t k = 0; k < element_bytes.size(); ++k) {
      void* result = call.args[element_bytes.size() + k];
      if (result != call.args[k]) std::memcpy(result, call.args[k], static_cast<size_t>(count * element_bytes[k]));
      operands.push_back(SortOperand{result, element_bytes[k]});
    }
    if (count == 0) return OkStatus();
    return SortByFunction(shape, operands, less, nullptr, call.run.pool);
  }};
}

}  // namespace

const KernelFamily kSortFamily = {.name = "sort", .matches = &Matches, .emit_function = &Emit, .wrap = &Wrap};

}  // namespace strop::cpu
