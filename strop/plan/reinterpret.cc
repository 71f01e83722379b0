// Words that are read as bytes, and bytes as words, are the same memory: a bitcast-convert to elements of another size
// is no work, once its operand is in memory. Inside of a kernel each byte would compute its word again.
//
//   %w = u32[100,16] ...                              %w = u32[100,16] ...
//   %b = u8[100,16,4] bitcast-convert(%w)             %b = u8[100,16,4] bitcast(%w)
//
// A bitcast is what the plan takes for its operand's memory. Elements of less than a byte are not so in memory.
#include "strop/plan/plan.h"
#include "strop/plan/values.h"

namespace strop::plan_internal {

bool IsOfOtherSize(const Instruction& bitcast) {
  return Bytes(bitcast.shape().type()) != Bytes(bitcast.operand(0)->shape().type());
}

void ReinterpretInMemory(Computation& computation) {
  std::vector<Instruction*> converts;
  const auto in_bytes = [](const Shape& shape) {
    return shape.IsStatic() && Bits(shape.type()) == 8 * Bytes(shape.type()) && !IsComplex(shape.type());
  };
  for (Instruction* i : computation.instructions())
    if (i->op() == Op::BitcastConvert && !i->HasControlEdges() && in_bytes(i->shape()) &&
        in_bytes(i->operand(0)->shape()) && IsOfOtherSize(*i))
      converts.push_back(i);
  for (Instruction* i : converts)
    computation.ReplaceWithNew(i, Op::Bitcast, i->shape().WithoutLayout(), {i->operand(0)});
}

}  // namespace strop::plan_internal
