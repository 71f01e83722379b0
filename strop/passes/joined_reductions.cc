#include "strop/passes/joined_reductions.h"

#include "strop/ir/builder.h"
#include "strop/passes/inline.h"

namespace strop {

Instruction* JoinedReduction(std::span<Instruction* const> reduces, Instruction* before) {
  std::vector<Instruction*> arrays, inits;
  for (const Instruction* reduce : reduces) {
    const std::vector<Instruction*>& operands = reduce->operands();
    const auto middle = operands.begin() + static_cast<int64_t>(operands.size() / 2);
    arrays.insert(arrays.end(), operands.begin(), middle);
    inits.insert(inits.end(), middle, operands.end());
  }
  Computation* all = before->parent()->module()->AddComputation("joined");
  std::vector<Instruction*> left, right, results;
  const auto n = static_cast<int64_t>(inits.size());
  for (int64_t k = 0; k < n; ++k) left.push_back(all->AddParameter(k, inits[k]->shape()));
  for (int64_t k = 0; k < n; ++k) right.push_back(all->AddParameter(n + k, inits[k]->shape()));
  Builder inside(all);
  Instruction* end = inside.Tuple({});  // bodies are cloned before something
  for (const Instruction* reduce : reduces) {
    const auto begin = static_cast<int64_t>(results.size()), count = reduce->operand_count() / 2;
    std::vector<Instruction*> arguments(left.begin() + begin, left.begin() + begin + count);
    arguments.insert(arguments.end(), right.begin() + begin, right.begin() + begin + count);
    Instruction* combined = CloneBodyBefore(*reduce->to_apply(), arguments, end);
    const bool is_tuple = combined->shape().IsTuple();
    for (int64_t k = 0; k < count; ++k)
      results.push_back(!is_tuple                     ? combined
                        : combined->op() == Op::Tuple ? combined->operand(k)
                                                      : inside.GetTupleElement(combined, k));
  }
  all->set_root(inside.Tuple(results));
  all->Remove(end);
  Builder b(before->parent());
  b.set_insert_before(before);
  if (reduces[0]->has_metadata()) b.set_metadata(reduces[0]->shared_metadata());
  arrays.insert(arrays.end(), inits.begin(), inits.end());
  Computation* const called[] = {all};
  return b.Make(Op::Reduce, arrays, DimensionsAttrs{reduces[0]->dimensions()}, called, nullptr);
}

}  // namespace strop
