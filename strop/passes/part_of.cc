#include "strop/passes/part_of.h"

#include <algorithm>

#include "strop/ir/builder.h"

namespace strop {
namespace {

constexpr size_t kMostOfPart = 64;  // instructions

Instruction* Sliced(Instruction* value, int64_t dimension, int64_t begin, int64_t end, Instruction* before) {
  Builder b(value->parent());
  b.set_insert_before(before);
  const size_t rank = static_cast<size_t>(value->shape().rank());
  Dims from(rank, 0), to(value->shape().dims().begin(), value->shape().dims().end());
  from[static_cast<size_t>(dimension)] = begin;
  to[static_cast<size_t>(dimension)] = end;
  return b.Slice(value, from, to, Dims(rank, 1));
}

// The dimension of the operand that becomes this one of a broadcast or transpose; -1: there is none.
int64_t SourceOf(const Instruction& i, int64_t dimension) {
  if (i.op() == Op::Transpose) return i.dimensions()[static_cast<size_t>(dimension)];
  const auto at = std::ranges::find(i.dimensions(), dimension);
  return at == i.dimensions().end() ? -1 : at - i.dimensions().begin();
}

// Is it the same at all places along the dimension?
bool IsIotaOfAnother(const Instruction& i, int64_t dimension) {
  return i.op() == Op::Iota && i.attrs<IotaAttrs>().dimension != dimension;
}

}  // namespace

Instruction* PartOf(Instruction* value, int64_t dimension, int64_t begin, int64_t end, Instruction* before,
                    PartsMade& made) {
  const std::pair<const Instruction*, int64_t> key(value, dimension);
  if (const auto found = made.find(key); found != made.end()) return found->second;
  const bool computed = IsElementwise(value->op()) && value->operand_count() > 0;
  const bool spreads = value->op() == Op::Broadcast || value->op() == Op::Transpose;
  const bool taken_apart = computed || spreads || IsIotaOfAnother(*value, dimension);
  if (!taken_apart || made.size() >= kMostOfPart || value->HasControlEdges())
    return made[key] = Sliced(value, dimension, begin, end, before);
  const int64_t source = spreads ? SourceOf(*value, dimension) : dimension;
  std::vector<Instruction*> operands;
  for (Instruction* operand : value->operands()) {
    const bool whole = source < 0 || operand->shape().rank() == 0;
    operands.push_back(whole ? operand : PartOf(operand, source, begin, end, before, made));
    if (!operands.back()) return nullptr;
  }
  Int64Vector dims = value->shape().dims();
  dims[static_cast<size_t>(dimension)] = end - begin;
  const Shape shape = Shape::Array(value->shape().type(), dims);
  return made[key] = value->parent()->AddClone(*value, shape, operands, nullptr, before);
}

}  // namespace strop
