// Ops whose place or size comes from data: dynamic slices, bounded dynamic dimensions, reshapes.
//
// A value with a bounded dimension is held at its actual size, so set-dimension-size cuts, get-dimension-size looks,
// and the shape of everything that follows is inferred anew from the actual operands (ActualShape).
#include <algorithm>
#include <cstring>

#include "strop/interp/ops.h"
#include "strop/interp/strided.h"
#include "strop/ir/builder.h"

namespace strop::interp {

namespace {

// A start index as a number; u64 values too large for int64 count as large.
int64_t IndexValue(const Literal& literal) {
  const int64_t v = literal.GetInt(0);
  return IsUnsigned(literal.type()) && v < 0 ? INT64_MAX : v;
}

// The size of a dimension; like a start index, it is moved into its range.
int64_t ClampedSize(const Literal& literal, int64_t bound) {
  return std::clamp<int64_t>(IndexValue(literal), 0, bound);
}

// Start indices, moved so that a block of `sizes` fits into `dims`. Indices are scalars, or one vector (old form).
Int64Vector ClampedStarts(std::span<const Literal> indices, const Int64Vector& dims, const Int64Vector& sizes) {
  Int64Vector starts;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t start;
    if (indices.size() == 1 && indices[0].shape().rank() == 1) {
      start = indices[0].GetInt(static_cast<int64_t>(i));
      if (IsUnsigned(indices[0].type()) && start < 0) start = INT64_MAX;
    } else {
      start = IndexValue(indices[i]);
    }
    starts.push_back(std::clamp<int64_t>(start, 0, std::max<int64_t>(dims[i] - sizes[i], 0)));
  }
  return starts;
}

int64_t LinearIndex(const Int64Vector& index, const Int64Vector& strides) {
  int64_t at = 0;
  for (size_t i = 0; i < index.size(); ++i) at += index[i] * strides[i];
  return at;
}

}  // namespace

Result<Literal> EvalDynamicSlice(OpCall& call) {
  STROP_ASSIGN(Literal result, call.NewResult());
  if (result.num_elements() == 0) return result;
  const Literal& operand = call.in(0);
  const Int64Vector strides = RowMajorStrides(operand.shape().dims());
  const Int64Vector starts = ClampedStarts(call.operands.subspan(1), operand.shape().dims(), call.shape.dims());
  const int64_t width = Bytes(operand.type());
  Int64Vector there = call.shape.dims();  // less than all only of what is of bounded size
  for (size_t i = 0; i < there.size(); ++i) there[i] = std::min(there[i], operand.shape().dims()[i]);
  CopyStrided(width, there, result.mutable_bytes().data(), RowMajorStrides(call.shape.dims()),
              operand.bytes().data() + width * LinearIndex(starts, strides), strides);
  return result;
}

Result<Literal> EvalDynamicUpdateSlice(OpCall& call) {
  Literal result = std::move(call.operands[0]);
  const Literal& update = call.in(1);
  if (update.num_elements() == 0) return result;
  const Int64Vector strides = RowMajorStrides(result.shape().dims());
  const Int64Vector starts = ClampedStarts(call.operands.subspan(2), result.shape().dims(), update.shape().dims());
  const int64_t width = Bytes(update.type());
  CopyStrided(width, update.shape().dims(), result.mutable_bytes().data() + width * LinearIndex(starts, strides),
              strides, update.bytes().data(), RowMajorStrides(update.shape().dims()));
  return result;
}

Result<Literal> EvalGetDimensionSize(OpCall& call) {
  return Literal::ScalarOfInt(ElementType::S32, call.in(0).shape().dim(call.instruction.dimensions()[0]));
}

Result<Literal> EvalSetDimensionSize(OpCall& call) {
  const Literal& operand = call.in(0);
  const int64_t dimension = call.instruction.dimensions()[0];
  // A result of a fixed size stays as large as it is: there is no place to note another.
  if (!call.instruction.shape().is_dynamic(dimension)) return std::move(call.operands[0]);
  const int64_t size = ClampedSize(call.in(1), call.instruction.shape().dim(dimension));
  Int64Vector dims = operand.shape().dims();
  if (dims[static_cast<size_t>(dimension)] == size) return std::move(call.operands[0]);
  // Growing back after a cut gives zeros.
  Int64Vector kept = dims;
  kept[static_cast<size_t>(dimension)] = std::min(size, dims[static_cast<size_t>(dimension)]);
  dims[static_cast<size_t>(dimension)] = size;
  STROP_ASSIGN(Literal result, Literal::Zeros(Shape::Array(operand.type(), dims)));
  CopyStrided(Bytes(operand.type()), kept, result.mutable_bytes().data(), RowMajorStrides(dims), operand.bytes().data(),
              RowMajorStrides(operand.shape().dims()));
  return result;
}

Result<Literal> EvalReshape(OpCall& call) {
  Literal value = std::move(call.operands[0]);
  if (call.op() == Op::DynamicReshape && value.num_elements() != call.shape.num_elements()) {
    // The sizes do not belong together: as many elements as there are, in order, then zeros.
    STROP_ASSIGN(Literal result, Literal::Zeros(call.shape));
    const size_t bytes = std::min(result.bytes().size(), value.bytes().size());
    std::memcpy(result.mutable_bytes().data(), value.bytes().data(), bytes);
    return result;
  }
  if (value.num_elements() != call.shape.num_elements())
    return InvalidArgument(Name(call.op()), ": ", value.shape().ToString(), " has not as many elements as ",
                           call.shape.ToString());
  return value.WithShape(call.shape);
}

Result<Literal> CutToShape(Literal value, const Shape& shape) {
  if (value.shape().rank() != shape.rank() || value.shape().dims() == shape.dims()) return value;
  STROP_ASSIGN(Literal out, Literal::Zeros(Shape::Array(value.type(), shape.dims())));
  CopyStrided(Bytes(value.type()), shape.dims(), out.mutable_bytes().data(), RowMajorStrides(shape.dims()),
              value.bytes().data(), RowMajorStrides(value.shape().dims()));
  return out;
}

// ---- shapes at their actual sizes
// --------------------------------------------------------------------------------------

namespace {

// One bounded result dimension takes what the actual element count leaves; several take, each, the actual size of the
// operand dimension at the same place among the dimensions of the same run of elements.
Result<Shape> ActualReshape(const Shape& declared, const Shape& operand) {
  Shape shape = StaticShape(declared);
  int64_t dynamic = -1, dynamic_count = 0, fixed = 1;
  for (int64_t i = 0; i < declared.rank(); ++i) {
    if (declared.is_dynamic(i)) {
      dynamic = i;
      ++dynamic_count;
    } else {
      fixed *= declared.dim(i);
    }
  }
  const int64_t total = operand.num_elements();
  if (dynamic_count == 0) return shape;
  if (dynamic_count == 1) {
    if (fixed != 0 && total % fixed == 0) {
      shape.set_dim(dynamic, fixed == 0 ? 0 : total / fixed);
      return shape;
    }
  } else if (declared.rank() >= operand.rank()) {
    // Same dimensions but for ones that were added.
    Shape guess = shape;
    int64_t k = 0;
    for (int64_t i = 0; i < declared.rank(); ++i) {
      if (declared.dim(i) == 1 && declared.rank() - i > operand.rank() - k) continue;
      if (k < operand.rank()) guess.set_dim(i, operand.dim(k++));
    }
    if (guess.num_elements() == total) return guess;
  }
  return Unimplemented("reshape of ", operand.ToString(), " to ", declared.ToString(),
                       ": the actual sizes of the dynamic dimensions do not follow");
}

Result<Shape> ActualDynamicReshape(const Shape& declared, std::span<const Literal> sizes) {
  Shape shape = StaticShape(declared);
  for (int64_t i = 0; i < declared.rank() && i < static_cast<int64_t>(sizes.size()); ++i) {
    shape.set_dim(i, ClampedSize(sizes[static_cast<size_t>(i)], declared.dim(i)));
  }
  return shape;
}

Shape ActualBroadcast(const Instruction& instruction, const Shape& operand) {
  Shape shape = StaticShape(instruction.shape());
  const Dims& dimensions = instruction.dimensions();
  for (size_t i = 0; i < dimensions.size(); ++i)
    if (instruction.shape().is_dynamic(dimensions[i]))
      shape.set_dim(dimensions[i], operand.dim(static_cast<int64_t>(i)));
  return shape;
}

// A slice of a whole bounded dimension has as much of it as there is; a part of one has the size that was declared, and
// zeros behind the end.
Shape ActualSlice(const Shape& declared, const Shape& operand) {
  Shape shape = StaticShape(declared);
  for (int64_t i = 0; i < declared.rank(); ++i)
    if (declared.is_dynamic(i)) shape.set_dim(i, std::min(declared.dim(i), operand.dim(i)));
  return shape;
}

// Result sizes that no inference can see: the op makes the shape itself, or it is taken as declared.
bool TakesDeclaredShape(Op op) {
  if (Is(op, kControlFlow | kCollective | kAsync | kSideEffect)) return true;
  switch (op) {
    case Op::Constant:
    case Op::Iota:
    case Op::CustomCall:
    case Op::Fusion:
    case Op::Tuple:
    case Op::GetTupleElement:
    case Op::OptimizationBarrier:
    case Op::SetDimensionSize:
    case Op::GetDimensionSize:
    case Op::Domain:
    case Op::AddDependency:
    case Op::AfterAll:
    case Op::Copy:
    case Op::RngBitGenerator:
    case Op::Parameter: return true;
    default: return false;
  }
}

}  // namespace

Result<Shape> ActualShape(const Instruction& instruction, std::span<const Literal> operands) {
  const Op op = instruction.op();
  const Shape& declared = instruction.shape();
  if (TakesDeclaredShape(op) || operands.empty()) return StaticShape(declared);
  if (IsElementwise(op)) {
    Shape shape = StaticShape(declared);
    for (const Literal& operand : operands)
      for (int64_t i = 0; i < declared.rank() && operand.shape().rank() == declared.rank(); ++i)
        shape.set_dim(i, std::min(shape.dim(i), operand.shape().dim(i)));
    return shape;
  }
  switch (op) {
    case Op::Slice:
    case Op::DynamicSlice: return ActualSlice(declared, operands[0].shape());
    case Op::Reshape: return ActualReshape(declared, operands[0].shape());
    case Op::DynamicReshape: return ActualDynamicReshape(declared, operands.subspan(1));
    case Op::Broadcast: return ActualBroadcast(instruction, operands[0].shape());
    case Op::Bitcast:
    case Op::BitcastConvert: return ActualReshape(declared, operands[0].shape());
    default: break;
  }
  // Sizes that shrink through the op: infer with the actual operands. Parameters of slices keep what was declared.
  std::vector<const Shape*> shapes;
  for (const Literal& operand : operands) shapes.push_back(&operand.shape());
  STROP_ASSIGN(Shape shape, InferShape(op, shapes, instruction.any_attrs(), instruction.called(), &declared));
  return StaticShape(shape);
}

}  // namespace strop::interp
