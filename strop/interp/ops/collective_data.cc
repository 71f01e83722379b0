// What a collective gives to one member of a group, as a function of the operands of all members.
#include <algorithm>

#include "strop/interp/grid.h"
#include "strop/interp/ops.h"
#include "strop/interp/strided.h"

namespace strop::interp {

namespace {

using Everyone = std::vector<std::vector<Literal>>;  // [member][operand]

// `count` rows of `from` along `dimension`, beginning at from_start, to to_start in `to`.
Status CopyRows(const Literal& from, int64_t from_start, Literal& to, int64_t to_start, int64_t count,
                size_t dimension) {
  Int64Vector dims = from.shape().dims();
  if (from_start < 0 || to_start < 0 || count < 0 || from_start + count > dims[dimension] ||
      to_start + count > to.shape().dim(static_cast<int64_t>(dimension)))
    return InvalidArgument("a collective moves rows ", from_start, " to ", from_start + count, " of ",
                           from.shape().ToString(), " to row ", to_start, " of ", to.shape().ToString());
  if (count == 0) return OkStatus();
  dims[dimension] = count;
  const Int64Vector from_strides = RowMajorStrides(from.shape().dims()),
                    to_strides = RowMajorStrides(to.shape().dims());
  const int64_t width = Bytes(from.type());
  CopyStrided(width, dims, to.mutable_bytes().data() + width * to_start * to_strides[dimension], to_strides,
              from.bytes().data() + width * from_start * from_strides[dimension], from_strides);
  return OkStatus();
}

// Elementwise combination of operand k of every member, in group order.
Result<Literal> Reduced(Evaluator& evaluator, const Instruction& instruction, const Everyone& all, size_t k) {
  STROP_ASSIGN(ScalarFunction * function, evaluator.Scalar(*instruction.to_apply()));
  Accumulator accumulator(function);
  std::vector<Cell> sum = LoadAll(all[0][k]);
  for (size_t m = 1; m < all.size(); ++m) {
    const std::vector<Cell> values = LoadAll(all[m][k]);
    for (size_t i = 0; i < sum.size(); ++i) STROP_TRY(accumulator.Combine({&sum[i], 1}, {&values[i], 1}));
  }
  for (Cell& cell : sum) accumulator.Finish({&cell, 1});
  STROP_ASSIGN(Literal out, Literal::Zeros(all[0][k].shape()));
  StoreCells(out.type(), sum.data(), static_cast<int64_t>(sum.size()), out.mutable_bytes().data(), 0);
  return out;
}

Result<Literal> Gathered(const Everyone& all, size_t k, const Shape& shape, size_t dimension) {
  STROP_ASSIGN(Literal out, Literal::Zeros(StaticShape(shape)));
  int64_t at = 0;
  for (const auto& member : all) {
    const int64_t rows = member[k].shape().dim(static_cast<int64_t>(dimension));
    STROP_TRY(CopyRows(member[k], 0, out, at, rows, dimension));
    at += rows;
  }
  return out;
}

// Part number `me` of `whole` cut along `dimension` into pieces of `shape`.
Result<Literal> Part(const Literal& whole, size_t me, const Shape& shape, size_t dimension) {
  STROP_ASSIGN(Literal out, Literal::Zeros(StaticShape(shape)));
  const int64_t rows = shape.dim(static_cast<int64_t>(dimension));
  STROP_TRY(CopyRows(whole, static_cast<int64_t>(me) * rows, out, 0, rows, dimension));
  return out;
}

// Array form: every operand is cut along the dimension, piece number `me` of each member is put together.
Result<Literal> AllToAllArray(const Everyone& all, size_t me, const Shape& shape, size_t dimension) {
  STROP_ASSIGN(Literal out, Literal::Zeros(StaticShape(shape)));
  const int64_t rows = shape.dim(static_cast<int64_t>(dimension)) / static_cast<int64_t>(all.size());
  for (size_t m = 0; m < all.size(); ++m)
    STROP_TRY(
        CopyRows(all[m][0], static_cast<int64_t>(me) * rows, out, static_cast<int64_t>(m) * rows, rows, dimension));
  return out;
}

// Operands: data, output, input offsets, send sizes, output offsets, receive sizes. Each member sends, for each peer
// (and each of the updates to it), some rows of its data to a place in the peer's output.
Result<Literal> RaggedAllToAll(const Everyone& all, size_t me) {
  Literal out = all[me][1];
  for (const auto& member : all) {
    const int64_t updates = member[2].num_elements() / static_cast<int64_t>(all.size());
    for (int64_t u = 0; u < updates; ++u) {
      const int64_t i = static_cast<int64_t>(me) * updates + u;
      STROP_TRY(CopyRows(member[0], member[2].GetInt(i), out, member[4].GetInt(i), member[3].GetInt(i), 0));
    }
  }
  return out;
}

const Shape& Component(const Shape& shape, size_t k) {
  return shape.IsTuple() ? shape.element(static_cast<int64_t>(k)) : shape;
}

// The result without the frame that a -start op puts around it.
const Shape& PlainShape(const Instruction& instruction) {
  const bool starts = instruction.op() == Op::AllGatherStart || instruction.op() == Op::CollectivePermuteStart;
  return starts && instruction.shape().IsTuple() ? instruction.shape().element(1) : instruction.shape();
}

}  // namespace

Result<Literal> CollectiveResult(Evaluator& evaluator, const Instruction& instruction, size_t me, const Everyone& all) {
  const auto& a = instruction.attrs<CollectiveAttrs>();
  const Shape& shape = PlainShape(instruction);
  const size_t operands = all[me].size(), dimension = a.dimensions.empty() ? 0 : static_cast<size_t>(a.dimensions[0]);
  for (const auto& member : all)
    for (size_t k = 0; k < operands; ++k)
      if (member.size() != operands || !member[k].shape().Compatible(all[me][k].shape()))
        return InvalidArgument(Name(instruction.op()), ": the members of a group bring operands of different shapes");
  if (instruction.op() == Op::RaggedAllToAll) return RaggedAllToAll(all, me);
  std::vector<Literal> results;
  for (size_t k = 0; k < operands; ++k) {
    Result<Literal> result = [&]() -> Result<Literal> {
      switch (instruction.op()) {
        case Op::AllGather:
        case Op::AllGatherStart: return Gathered(all, k, Component(shape, k), dimension);
        case Op::AllReduce:
        case Op::AllReduceStart:
        case Op::CollectiveReduce: return Reduced(evaluator, instruction, all, k);
        case Op::ReduceScatter: {
          STROP_ASSIGN(Literal sum, Reduced(evaluator, instruction, all, k));
          return Part(sum, me, Component(shape, k), dimension);
        }
        case Op::AllToAll:
          if (!shape.IsTuple() && a.has_dimensions) return AllToAllArray(all, me, shape, dimension);
          if (k >= all.size())
            return InvalidArgument("all-to-all of ", operands, " operands in a group of ", all.size());
          return all[k][me < operands ? me : 0];
        case Op::CollectiveBroadcast: return all[0][k];
        default: return Unimplemented(Name(instruction.op()), " in the interpreter");
      }
    }();
    STROP_TRY(result);
    if (!result->shape().Compatible(StaticShape(Component(shape, k))))
      return InvalidArgument(Name(instruction.op()), " in a group of ", all.size(), " gives ",
                             result->shape().ToString(), ", not ", Component(shape, k).ToString());
    results.push_back(*std::move(result));
  }
  if (!shape.IsTuple()) return std::move(results[0]);
  return Literal::Tuple(std::move(results));
}

Result<Literal> PermuteResult(const Instruction& instruction, std::span<const Literal> own,
                              const std::vector<Literal>* sent) {
  if (!instruction.attrs<PermuteAttrs>().slice_sizes.empty())
    return Unimplemented(Name(instruction.op()), " in place (with slice_sizes) in the interpreter");
  std::vector<Literal> results;
  for (size_t k = 0; k < own.size(); ++k) {
    if (sent && k < sent->size() && (*sent)[k].shape().Compatible(own[k].shape())) {
      results.push_back((*sent)[k]);
      continue;
    }
    STROP_ASSIGN(Literal zeros, Literal::Zeros(own[k].shape()));
    results.push_back(std::move(zeros));
  }
  if (!PlainShape(instruction).IsTuple() && results.size() == 1) return std::move(results[0]);
  return Literal::Tuple(std::move(results));
}

}  // namespace strop::interp
