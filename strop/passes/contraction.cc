// Marks sums whose product need not be rounded (ir/contraction.h): f32 and f64, a product with no other user. Of two
// products the first is taken. A reduction that sums is one, too, if its combiner is just that sum.
//
//   %p = multiply(%x, %y); ROOT %s = subtract(%z, %p)
//   ->  ROOT %s = subtract(%z, %p), frontend_attributes={strop.contracted_operand="1"}
//
// XLA:CPU lets LLVM do this inside each of its kernels. Formulas that JAX sends for special functions are as exact (and
// as fast) as there only with it: polynomials by Horner's rule, Clenshaw's recurrence.
#include "strop/ir/contraction.h"

#include "strop/analysis/combiner.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

// Of few elements, a sum is waited for, and an fma takes longer than a sum whose products are already there.
constexpr int64_t kFewestSummed = 1024;

bool IsSum(const Instruction& i) {
  if (!IsContractible(i) || i.op() != Op::Reduce) return IsContractible(i);
  return RecognizeCombiner(*i.called(0)).op == Op::Add && i.operand(0)->shape().num_elements() >= kFewestSummed;
}

struct Contraction final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t marked = 0;
    for (Computation* c : module.PostOrder()) {
      for (Instruction* sum : c->instructions()) {
        if (!IsSum(*sum) || sum->HasControlEdges() || sum->frontend_attributes().count(kContractionMark)) continue;
        for (int64_t k = 0; k < (sum->op() == Op::Reduce ? 1 : 2); ++k) {
          const Instruction& product = *sum->operand(k);
          if (product.op() != Op::Multiply || product.use_count() != 1 || product.IsRoot() || product.HasControlEdges())
            continue;
          sum->set_frontend_attribute(kContractionMark, k == 0 ? "0" : "1");
          ++marked;
          break;
        }
      }
    }
    context.Count("contraction.products", marked);
    return marked > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeContraction() { return std::make_unique<Contraction>(); }

}  // namespace strop
