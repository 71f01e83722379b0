// A product of type bf16 whose result is widened is left in the type that its sums are kept in, unrounded:
//
//   %d = bf16[m,n] dot(%x, %y); f32[m,n] convert(%d)     ->     f32[m,n] dot(%x, %y)
//
// The result is closer to the exact one and the conversion is gone; XLA:CPU does the same where excess precision is
// allowed, its default. It rounds f16, whose products it has as such, and so does this. Other users of the product get
// it rounded, as before; a reduce-precision to bf16 asks for that, and goes where nothing widens it. Conversions of
// anything else stay: who rounds on purpose, to model small floats, rounds values and not sums.
#include <algorithm>

#include "strop/ir/builder.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

// Sums of products of such operands are kept in f32.
bool SumsAreF32(const Instruction& product) {
  for (const Instruction* operand : product.operands())
    if (!IsFloat(operand->shape().type()) || Bits(operand->shape().type()) > 32) return false;
  return true;
}

// reduce-precision to what bf16 has anyway.
bool AsksForRounding(const Instruction& user) {
  if (user.op() != Op::ReducePrecision || user.shape().type() != ElementType::BF16) return false;
  const auto& attrs = user.attrs<ReducePrecisionAttrs>();
  return attrs.exponent_bits == 8 && attrs.mantissa_bits == 7;
}

bool Widens(const Instruction& user) { return user.op() == Op::Convert && user.shape().type() == ElementType::F32; }

struct ProductWidening final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t widened = 0;
    for (Computation* c : module.PostOrder()) {
      for (Instruction* product : c->PostOrder()) {  // a copy: what goes is behind the product
        if (product->op() != Op::Dot && product->op() != Op::Convolution) continue;
        const ElementType narrow = product->shape().type();
        if (narrow != ElementType::BF16 || !SumsAreF32(*product)) continue;
        const std::vector<Instruction*> users = product->users();
        const auto wide = std::ranges::count_if(users, [](const Instruction* u) { return Widens(*u); });
        if (wide == 0) {
          widened += DropRequests(*c, users);
          continue;
        }
        Builder b(c);
        b.set_insert_before(product);
        b.set_metadata(product->shared_metadata());
        const Shape shape = product->shape().WithType(ElementType::F32);
        Instruction* sums = b.Make(product->op(), product->operands(), product->any_attrs(), {}, &shape);
        const bool rounded = wide != static_cast<int64_t>(users.size()) || c->root() == product;
        Instruction* narrowed = rounded ? b.Convert(sums, narrow) : nullptr;
        STROP_TRY(b.status());
        for (Instruction* user : users)
          if (Widens(*user)) c->Replace(user, sums);
        if (rounded) c->Replace(product, narrowed);
        DropRequests(*c, users);
        ++widened;
      }
    }
    context.Count("product-widening.widened", widened);
    return widened > 0;
  }

  static int64_t DropRequests(Computation& c, const std::vector<Instruction*>& users) {
    int64_t dropped = 0;
    for (Instruction* user : users) {
      if (!AsksForRounding(*user)) continue;
      // Without it the next run would widen the product.
      if (user->operand(0)->op() != Op::Convert &&
          std::ranges::any_of(user->users(), [](const Instruction* u) { return Widens(*u); }))
        continue;
      c.Replace(user, user->operand(0));
      ++dropped;
    }
    return dropped;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeProductWidening() { return std::make_unique<ProductWidening>(); }

}  // namespace strop
