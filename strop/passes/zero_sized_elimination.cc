// An array without elements is a constant, whatever computes it:
//
//   %e = (c64[0], s32[]) custom-call(%x), custom_call_target="lapack_cgeev_ffi"
//   %w = c64[0] get-tuple-element(%e), index=0                                      ->  %w = c64[0] constant({})
//
// What only made such arrays is dead then. Side effects stay.
#include "strop/passes/pass.h"

namespace strop {
namespace {

bool IsEmptyValue(const Instruction& i) {
  if (i.IsConstant() || i.IsParameter() || !i.shape().IsArray() || !i.shape().IsStatic()) return false;
  if (i.shape().num_elements() != 0 || i.HasSideEffect()) return false;
  return !i.HasControlEdges();
}

struct ZeroSizedElimination final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t replaced = 0;
    for (Computation* c : module.computations()) {
      for (Instruction* i : c->instructions()) {
        if (!IsEmptyValue(*i) || (i->use_count() == 0 && i != c->root())) continue;
        STROP_ASSIGN(Literal empty, Literal::Zeros(i->shape().WithoutLayout()));
        i->ReplaceAllUsesWith(c->AddConstant(std::move(empty), i));  // itself it is left to dce
        ++replaced;
      }
    }
    context.Count("zero-sized-elimination.replaced", replaced);
    return replaced > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeZeroSizedElimination() { return std::make_unique<ZeroSizedElimination>(); }

}  // namespace strop
