#include "strop/passes/part_of.h"

#include <algorithm>

#include "strop/ir/builder.h"

namespace strop {
namespace {

Instruction* Sliced(Instruction* value, int64_t dimension, int64_t begin, int64_t end, Instruction* before) {
  Builder b(value->parent());
  b.set_insert_before(before);
  const size_t rank = static_cast<size_t>(value->shape().rank());
  Dims from(rank, 0), to(value->shape().dims().begin(), value->shape().dims().end());
  from[static_cast<size_t>(dimension)] = begin;
  to[static_cast<size_t>(dimension)] = end;
  return b.Slice(value, from, to, Dims(rank, 1));
}

// Does it repeat its operand along the dimension?
bool RepeatsAlong(const Instruction& i, int64_t dimension) {
  return i.op() == Op::Broadcast && std::ranges::find(i.dimensions(), dimension) == i.dimensions().end();
}

}  // namespace

Instruction* PartOf(Instruction* value, int64_t dimension, int64_t begin, int64_t end, Instruction* before,
                    std::unordered_map<const Instruction*, Instruction*>& made) {
  if (const auto found = made.find(value); found != made.end()) return found->second;
  const bool computed = IsElementwise(value->op()) && value->operand_count() > 0 && !value->HasControlEdges();
  Instruction* part = nullptr;
  if (made.size() >= kMostOfPart || !(computed || RepeatsAlong(*value, dimension))) {
    part = Sliced(value, dimension, begin, end, before);
  } else {
    std::vector<Instruction*> operands;
    for (Instruction* operand : value->operands()) operands.push_back(operand);
    if (computed) {
      for (Instruction*& operand : operands)
        if (operand->shape().rank() > 0) operand = PartOf(operand, dimension, begin, end, before, made);
    }
    if (std::ranges::find(operands, nullptr) != operands.end()) return nullptr;
    Int64Vector dims = value->shape().dims();
    dims[static_cast<size_t>(dimension)] = end - begin;
    part = value->parent()->AddClone(*value, Shape::Array(value->shape().type(), dims), operands, nullptr, before);
  }
  return made[value] = part;
}

}  // namespace strop
