// All elementwise ops: cells in, one scalar function, cells out, a chunk at a time.
#include <algorithm>
#include <cstring>

#include "strop/interp/ops.h"

namespace strop::interp {

Result<Literal> EvalElementwise(OpCall& call) {
  const ElementType type = call.shape.type();
  STROP_ASSIGN(ScalarOp op, MakeScalarOp(call.op(), call.in(0).type(), type, call.instruction.any_attrs()));
  STROP_ASSIGN(Literal result, call.NewResult());
  const int64_t count = result.num_elements();
  const int64_t chunk = std::min<int64_t>(count, 512);
  std::vector<Cell> cells[3], out(static_cast<size_t>(chunk));
  for (std::vector<Cell>& line : cells) line.resize(out.size());
  // The bounds of clamp may be scalars; they are read once and stay.
  const size_t operands = std::min<size_t>(call.operands.size(), 3);
  bool spread[3] = {};
  for (size_t k = 0; k < operands; ++k) {
    const Literal& operand = call.operands[k];
    spread[k] = operand.shape().rank() == 0 && call.shape.rank() != 0;
    if (!spread[k] && operand.num_elements() != count)
      return Internal("interpreter: ", Name(call.op()), " of shapes that differ");
    if (spread[k]) std::fill(cells[k].begin(), cells[k].end(), LoadCell(operand, 0));
  }
  uint8_t* bytes = result.mutable_bytes().data();
  for (int64_t begin = 0; begin < count; begin += chunk) {
    const int64_t n = std::min(chunk, count - begin);
    for (size_t k = 0; k < operands; ++k)
      if (!spread[k]) LoadCells(call.operands[k].type(), call.operands[k].bytes().data(), begin, n, cells[k].data());
    for (size_t i = 0; i < static_cast<size_t>(n); ++i) out[i] = op.fn(cells[0][i], cells[1][i], cells[2][i], op.info);
    StoreCells(type, out.data(), n, bytes, begin);
  }
  return result;
}

// Moves bytes, so that the payload of a NaN survives. The predicate may be a scalar; tuples are chosen whole.
Result<Literal> EvalSelect(OpCall& call) {
  const Literal& predicate = call.in(0);
  if (predicate.shape().rank() == 0) return std::move(call.operands[predicate.GetInt(0) ? 1 : 2]);
  const int64_t width = Bytes(call.shape.type());
  Literal result = std::move(call.operands[2]);
  const std::span<const uint8_t> chosen = predicate.bytes();
  const uint8_t* on_true = call.in(1).bytes().data();
  uint8_t* out = result.mutable_bytes().data();
  for (size_t i = 0; i < chosen.size(); ++i)
    if (chosen[i])
      std::memcpy(out + static_cast<int64_t>(i) * width, on_true + static_cast<int64_t>(i) * width,
                  static_cast<size_t>(width));
  return result;
}

}  // namespace strop::interp
