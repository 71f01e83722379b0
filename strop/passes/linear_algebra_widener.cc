// cholesky and triangular-solve of floats narrower than 32 bits are computed in f32, and rounded once:
//
//   bf16 cholesky(x)  ->  convert(f32 cholesky(convert(x)))
#include "strop/ir/builder.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

struct LinearAlgebraWidener final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t widened = 0;
    for (Computation* c : module.computations()) {
      for (Instruction* i : c->instructions()) {
        if (i->op() != Op::Cholesky && i->op() != Op::TriangularSolve) continue;
        const ElementType type = i->shape().type();
        if (!IsFloat(type) || Bits(type) >= 32) continue;
        Builder b(c);
        b.set_insert_before(i);
        b.set_metadata(i->shared_metadata());
        std::vector<Instruction*> operands;
        for (int64_t k = 0; k < i->operand_count(); ++k) operands.push_back(b.Convert(i->operand(k), ElementType::F32));
        Instruction* wide = b.Make(i->op(), operands, i->any_attrs(), {}, nullptr);
        Instruction* result = b.Convert(wide, type);
        STROP_TRY(b.status());
        c->Replace(i, result);
        ++widened;
      }
    }
    context.Count("linear-algebra-widener.widened", widened);
    return widened > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeLinearAlgebraWidener() { return std::make_unique<LinearAlgebraWidener>(); }

}  // namespace strop
