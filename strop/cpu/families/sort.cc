// sort by any comparator: the comparator is compiled to a function, the library's stable merge sort calls it.
// (Comparators that are a known order of one operand never come here: library/sort.cc takes them.)
#include "strop/codegen/elemental.h"
#include "strop/cpu/kernel_family.h"
#include "strop/cpu/load/problems.h"

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

std::string Recipe(const KernelSpec& spec, const CodeRef& function) {
  const Instruction& sort = *spec.instruction;
  const Shape& first = sort.operand(0)->shape();
  const int64_t dimension = sort.attrs<SortAttrs>().dimensions[0];
  SortByCodeProblem problem{.less = function};
  problem.shape.n = first.dim(dimension);
  for (int64_t d = 0; d < first.rank(); ++d)
    if (d != dimension) (d < dimension ? problem.shape.outer : problem.shape.inner) *= first.dim(d);
  for (int64_t k = 0; k < sort.operand_count(); ++k) problem.widths.push_back(Bytes(sort.operand(k)->shape().type()));
  return RecipeOf(kSortByCodeRecipe, problem);
}

}  // namespace

const KernelFamily kSortFamily = {.name = "sort", .matches = &Matches, .emit_function = &Emit, .recipe = &Recipe};

}  // namespace strop::cpu
