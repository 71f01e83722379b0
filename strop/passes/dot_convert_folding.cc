// A conversion in front of a dot that loses nothing is left to the dot, which converts while it packs its operands:
//
//   %w = bf16[k,n] convert(s8[k,n] %q); dot(%x, %w)     ->     dot(%x, %q)
//
// The widened operand, often a model's weights, is never in memory. Only where sums are kept in the same type as
// before, so that the result has the same bits.
#include "strop/passes/pass.h"

namespace strop {
namespace {

// Does every value of `from` have an equal in `to`?
bool Exact(ElementType from, ElementType to) {
  if (!IsFloat(to) || Bits(to) <= 8) return false;
  switch (from) {
    case ElementType::S4:
    case ElementType::U4:
    case ElementType::S8:
    case ElementType::U8: return true;  // bf16 has 8 significant bits
    case ElementType::BF16:
    case ElementType::F16: return to == ElementType::F32 || to == ElementType::F64;
    case ElementType::F32: return to == ElementType::F64;
    default: return false;
  }
}

// Sums of products with floats of 32 bits or less are kept in f32, with others in f64; a float remains among the types.
bool SameSums(const Instruction& dot, int64_t k, ElementType narrow) {
  const ElementType other = dot.operand(1 - k)->shape().type(), result = dot.shape().type();
  if (!IsFloat(other) || !IsFloat(result)) return false;
  const bool wide = dot.operand(k)->shape().type() == ElementType::F64;
  return Bits(narrow) == 64 || !wide || other == ElementType::F64 || result == ElementType::F64;
}

struct DotConvertFolding final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t folded = 0;
    for (Computation* c : module.PostOrder()) {
      for (Instruction* dot : c->instructions()) {
        if (dot->op() != Op::Dot || dot->operand_count() != 2) continue;
        for (int64_t k = 0; k < 2; ++k) {
          Instruction* convert = dot->operand(k);
          if (convert->op() != Op::Convert) continue;
          const ElementType narrow = convert->operand(0)->shape().type();
          if (!Exact(narrow, convert->shape().type()) || !SameSums(*dot, k, narrow)) continue;
          dot->SetOperand(k, convert->operand(0));
          ++folded;
        }
      }
    }
    context.Count("dot-convert-folding.folded", folded);
    return folded > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeDotConvertFolding() { return std::make_unique<DotConvertFolding>(); }

}  // namespace strop
