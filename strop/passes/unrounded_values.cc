// Marks values of bf16 that need not be rounded (ir/unrounded.h): results of arithmetic and of products that only
// arithmetic reads.
//
//   %p = bf16[n] multiply(%x, %y); %e = bf16[n] exponential(%p)
//   ->  %p = bf16[n] multiply(%x, %y), frontend_attributes={strop.unrounded="1"}; %e = bf16[n] exponential(%p)
//
// What compares a value, chooses by it or cuts it to integers sees it rounded, and so does all else that reads it: the
// gradient of a maximum finds the elements that are equal to it, in whatever kernel they are computed again. What is
// converted to bf16 is rounded, too: who converts does it on purpose, to model small floats.
#include "strop/ir/unrounded.h"

#include <algorithm>
#include <unordered_set>

#include "strop/analysis/combiner.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

// Continuous functions that round their result.
bool IsArithmetic(Op op) {
  switch (op) {
    case Op::Acos:
    case Op::Acosh:
    case Op::Add:
    case Op::Asin:
    case Op::Asinh:
    case Op::Atan:
    case Op::Atan2:
    case Op::Atanh:
    case Op::Cbrt:
    case Op::Cos:
    case Op::Cosh:
    case Op::Divide:
    case Op::Erf:
    case Op::Exp:
    case Op::Expm1:
    case Op::Log:
    case Op::Log1p:
    case Op::Logistic:
    case Op::Multiply:
    case Op::Power:
    case Op::Rsqrt:
    case Op::Sin:
    case Op::Sinh:
    case Op::Sqrt:
    case Op::Subtract:
    case Op::Tan:
    case Op::Tanh: return true;
    default: return false;
  }
}

// What gives elements of its operand `k`, or these with another sign.
bool HandsOn(Op op, int64_t k) {
  switch (op) {
    case Op::Abs:
    case Op::Broadcast:
    case Op::Clamp:
    case Op::Copy:
    case Op::Maximum:
    case Op::Minimum:
    case Op::Negate:
    case Op::Reshape:
    case Op::Slice:
    case Op::Transpose: return true;
    case Op::Select: return k > 0;
    default: return false;
  }
}

bool IsWidening(const Instruction& user) {
  return user.op() == Op::Convert && IsFloat(user.shape().type()) && Bits(user.shape().type()) >= 32;
}

bool IsSum(const Instruction& user) {
  return user.op() == Op::Reduce && RecognizeCombiner(*user.called(0)).op == Op::Add;
}

// Does bf16 round, in the end, all that is made of a result of f32? `narrow`: the results of f32 of which that is true.
// What is made of it has its relative error: products and quotients, and sums of exponentials, none of which is
// negative.
using Values = std::unordered_set<const Instruction*>;
bool EndsInBf16(const Instruction& value, const Values& narrow) {
  const bool positive = value.op() == Op::Exp || value.op() == Op::Logistic;
  return std::ranges::all_of(value.uses(), [&](const Use& use) {
    const Instruction& user = *use.user;
    if (user.op() == Op::Convert) return user.shape().type() == ElementType::BF16;
    const bool keeps = user.op() == Op::Multiply || user.op() == Op::Divide || HandsOn(user.op(), use.operand_number);
    return (keeps || (positive && IsSum(user))) && narrow.contains(&user);
  });
}

// 1: it had no mark.
int64_t Mark(Instruction& i) {
  if (MayStayUnrounded(i)) return 0;
  i.set_frontend_attribute(kUnroundedMark, "1");
  return 1;
}

struct UnroundedValues final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t marked = 0;
    for (Computation* c : module.PostOrder()) {
      Values free, narrow;  // whose readers take them unrounded; see EndsInBf16
      const std::vector<Instruction*> order = c->PostOrder();
      for (auto it = order.rbegin(); it != order.rend(); ++it) {
        Instruction& i = **it;
        if (!i.shape().IsArray() || i.IsRoot() || i.HasControlEdges()) continue;
        const ElementType type = i.shape().type();
        if (type == ElementType::F32 && EndsInBf16(i, narrow)) {
          narrow.insert(&i);
          if (i.op() == Op::Divide || i.op() == Op::Exp || i.op() == Op::Logistic) marked += Mark(i);
        }
        if (type != ElementType::BF16) continue;
        const auto takes = [&](const Use& use) {
          const Instruction& user = *use.user;
          return IsArithmetic(user.op()) || IsWidening(user) || IsSum(user) ||
                 (HandsOn(user.op(), use.operand_number) && free.contains(&user));
        };
        if (!std::ranges::all_of(i.uses(), takes)) continue;
        free.insert(&i);
        if (IsArithmetic(i.op()) || i.op() == Op::Dot) marked += Mark(i);
      }
    }
    context.Count("unrounded-values.marked", marked);
    return marked > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeUnroundedValues() { return std::make_unique<UnroundedValues>(); }

}  // namespace strop
