#include "strop/analysis/loop_position.h"

namespace strop {
namespace {

std::optional<LoopPosition> Position(const Instruction* i, const Instruction& state, int64_t element, int depth) {
  constexpr int kMostDepth = 6;
  if (i->op() == Op::GetTupleElement && i->operand(0) == &state && i->tuple_index() == element)
    return LoopPosition{1, 0};
  if (i->IsConstant() && i->shape().IsScalar() && IsInteger(i->shape().type()))
    return LoopPosition{0, i->literal().GetInt(0)};
  if (depth > kMostDepth || (i->op() != Op::Add && i->op() != Op::Subtract)) return std::nullopt;
  const auto x = Position(i->operand(0), state, element, depth + 1);
  const auto y = Position(i->operand(1), state, element, depth + 1);
  if (!x || !y) return std::nullopt;
  const int64_t sign = i->op() == Op::Add ? 1 : -1;
  return LoopPosition{x->factor + sign * y->factor, x->offset + sign * y->offset};
}

}  // namespace

std::optional<LoopPosition> PositionOf(const Instruction* i, const Instruction& body_state, const Counter& counter) {
  return Position(i, body_state, counter.element, 0);
}

bool VisitsAll(const LoopPosition& position, const Counter& counter) {
  const int64_t first = position.factor * counter.init + position.offset, step = position.factor * counter.step;
  return (step == 1 && first == 0) || (step == -1 && first == counter.trips - 1);
}

}  // namespace strop
