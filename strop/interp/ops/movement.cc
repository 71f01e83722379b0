// Ops that move elements without looking at them. Each one is a strided copy: the op decides where element (0, ..., 0)
// lies and how far apart neighbours are.
#include <algorithm>
#include <cstring>

#include "strop/interp/ops.h"
#include "strop/interp/strided.h"

namespace strop::interp {

namespace {

const uint8_t* At(const Literal& literal, int64_t linear) {
  return literal.bytes().data() + linear * Bytes(literal.type());
}
uint8_t* At(Literal& literal, int64_t linear) {
  return literal.mutable_bytes().data() + linear * Bytes(literal.type());
}

// The same bytes under another shape with as many of them.
Result<Literal> Relabel(Literal value, const Shape& shape) {
  if (shape.type() == value.type() && shape.num_elements() == value.num_elements()) return value.WithShape(shape);
  return Literal::FromBytes(shape, value.bytes());
}

}  // namespace

Result<Literal> EvalConstant(OpCall& call) {
  const Literal& literal = call.instruction.literal();
  return literal.shape().IsArray() ? literal.WithShape(call.shape) : literal;
}

Result<Literal> EvalCopy(OpCall& call) { return std::move(call.operands[0]); }

// Which element goes where depends on an attribute that no form of HLO text that Strop reads has.
Result<Literal> EvalShuffle(OpCall& call) {
  return Unimplemented("shuffle of ", call.shape.ToString(), ": its mode and indices are not read yet");
}

Result<Literal> EvalIota(OpCall& call) {
  STROP_ASSIGN(Literal result, call.NewResult());
  const ElementType type = call.shape.type();
  const size_t dimension = static_cast<size_t>(call.attrs<IotaAttrs>().dimension);
  // One period of the numbers, each repeated over the inner dimensions, then the period over the outer ones.
  const Int64Vector& dims = call.shape.dims();
  const int64_t inner = Product(std::span<const int64_t>(dims).subspan(dimension + 1));
  const int64_t width = Bytes(type), total = result.num_elements();
  if (total == 0) return result;
  uint8_t* out = result.mutable_bytes().data();
  const ScalarFn convert = ConvertFunction(ElementType::S64, type);
  ScalarInfo info;
  info.operand = ElementType::S64;
  info.result = type;
  for (int64_t i = 0; i < dims[dimension]; ++i) {
    const Cell value = convert(Cell::Int(i), {}, {}, info);
    StoreCells(type, &value, 1, out, i * inner);
    Fill(width, out + i * inner * width, out + i * inner * width, inner);
  }
  const int64_t period = dims[dimension] * inner;
  for (int64_t at = period; at < total; at += period)
    std::memcpy(out + at * width, out, static_cast<size_t>(period * width));
  return result;
}

Result<Literal> EvalBroadcast(OpCall& call) {
  STROP_ASSIGN(Literal result, call.NewResult());
  const Literal& operand = call.in(0);
  const Dims& dimensions = call.instruction.dimensions();
  const Int64Vector source = RowMajorStrides(operand.shape().dims());
  Int64Vector strides(call.shape.dims().size(), 0);
  for (size_t i = 0; i < dimensions.size(); ++i)
    if (operand.shape().dim(static_cast<int64_t>(i)) != 1) strides[static_cast<size_t>(dimensions[i])] = source[i];
  CopyStrided(Bytes(operand.type()), call.shape.dims(), result.mutable_bytes().data(),
              RowMajorStrides(call.shape.dims()), operand.bytes().data(), strides);
  return result;
}

// Result dimension i is operand dimension dimensions[i].
Result<Literal> EvalTranspose(OpCall& call) {
  STROP_ASSIGN(Literal result, call.NewResult());
  const Literal& operand = call.in(0);
  const Dims& dimensions = call.instruction.dimensions();
  const Int64Vector source = RowMajorStrides(operand.shape().dims());
  Int64Vector strides;
  for (int64_t d : dimensions) strides.push_back(source[static_cast<size_t>(d)]);
  CopyStrided(Bytes(operand.type()), call.shape.dims(), result.mutable_bytes().data(),
              RowMajorStrides(call.shape.dims()), operand.bytes().data(), strides);
  return result;
}

Result<Literal> EvalReverse(OpCall& call) {
  STROP_ASSIGN(Literal result, call.NewResult());
  const Literal& operand = call.in(0);
  if (operand.num_elements() == 0) return result;
  Int64Vector strides = RowMajorStrides(operand.shape().dims());
  int64_t first = 0;
  for (int64_t d : call.instruction.dimensions()) {
    first += strides[static_cast<size_t>(d)] * (operand.shape().dim(d) - 1);
    strides[static_cast<size_t>(d)] *= -1;
  }
  CopyStrided(Bytes(operand.type()), call.shape.dims(), result.mutable_bytes().data(),
              RowMajorStrides(call.shape.dims()), At(operand, first), strides);
  return result;
}

Result<Literal> EvalSlice(OpCall& call) {
  STROP_ASSIGN(Literal result, call.NewResult());
  if (result.num_elements() == 0) return result;
  const Literal& operand = call.in(0);
  const SliceDims& slice = call.attrs<SliceAttrs>().slice;
  Int64Vector strides = RowMajorStrides(operand.shape().dims()), there = call.shape.dims();
  int64_t first = 0;
  for (size_t i = 0; i < slice.size(); ++i) {
    const int64_t left = operand.shape().dim(static_cast<int64_t>(i)) - slice[i].start;
    if (left <= 0) return result;
    there[i] = std::min(there[i], (left - 1) / slice[i].stride + 1);  // less than all only of what is of bounded size
    first += strides[i] * slice[i].start;
    strides[i] *= slice[i].stride;
  }
  CopyStrided(Bytes(operand.type()), there, result.mutable_bytes().data(), RowMajorStrides(call.shape.dims()),
              At(operand, first), strides);
  return result;
}

Result<Literal> EvalConcatenate(OpCall& call) {
  STROP_ASSIGN(Literal result, call.NewResult());
  const size_t dimension = static_cast<size_t>(call.instruction.dimensions()[0]);
  const Int64Vector strides = RowMajorStrides(call.shape.dims());
  int64_t at = 0;
  for (const Literal& operand : call.operands) {
    if (operand.num_elements() > 0)
      CopyStrided(Bytes(operand.type()), operand.shape().dims(), At(result, at * strides[dimension]), strides,
                  operand.bytes().data(), RowMajorStrides(operand.shape().dims()));
    at += operand.shape().dim(static_cast<int64_t>(dimension));
  }
  return result;
}

// Element i of the operand goes to low + i * (interior + 1); what falls outside (negative padding) is dropped.
Result<Literal> EvalPad(OpCall& call) {
  STROP_ASSIGN(Literal result, call.NewResult());
  const Literal& operand = call.in(0);
  const int64_t width = Bytes(operand.type());
  Fill(width, result.mutable_bytes().data(), call.in(1).bytes().data(), result.num_elements());
  Int64Vector from = RowMajorStrides(operand.shape().dims());
  Int64Vector to = RowMajorStrides(call.shape.dims());
  Int64Vector kept;
  int64_t first_from = 0, first_to = 0;
  const PaddingConfig& padding = call.attrs<PadAttrs>().padding;
  for (size_t i = 0; i < padding.size(); ++i) {
    const int64_t step = padding[i].interior + 1, low = padding[i].low;
    const int64_t size = operand.shape().dim(static_cast<int64_t>(i)), room = call.shape.dim(static_cast<int64_t>(i));
    const int64_t begin = low >= 0 ? 0 : (-low + step - 1) / step;  // first one with a place >= 0
    const int64_t end =
        room - low <= 0 ? 0 : std::min(size, (room - low + step - 1) / step);  // past the last with a place < room
    kept.push_back(std::max<int64_t>(end - begin, 0));
    if (kept.back() == 0) return result;
    first_from += begin * from[i];
    first_to += (low + begin * step) * to[i];
    to[i] *= step;
  }
  CopyStrided(width, kept, At(result, first_to), to, At(operand, first_from), from);
  return result;
}

// The same bits in memory under another shape and layout. Both are brought to the order of memory and back.
Result<Literal> EvalBitcast(OpCall& call) {
  const Literal& operand = call.in(0);
  if (!operand.shape().IsArray() || !call.shape.IsArray()) return std::move(call.operands[0]);
  const Shape& declared = call.instruction.operand(0)->shape();
  const Layout from = declared.layout_or_default(), to = call.shape.layout_or_default();
  if (from.IsRowMajor() && to.IsRowMajor()) return Relabel(std::move(call.operands[0]), call.shape);
  std::vector<uint8_t> memory(operand.bytes().size());
  CopyStrided(Bytes(operand.type()), operand.shape().dims(), memory.data(), declared.Strides(), operand.bytes().data(),
              RowMajorStrides(operand.shape().dims()));
  STROP_ASSIGN(Literal result, call.NewResult());
  if (result.bytes().size() != memory.size())
    return Unimplemented("bitcast from ", declared.ToStringWithLayout(), " to ", call.shape.ToStringWithLayout(),
                         " changes the number of bytes");
  CopyStrided(Bytes(call.shape.type()), call.shape.dims(), result.mutable_bytes().data(),
              RowMajorStrides(call.shape.dims()), memory.data(), call.shape.Strides());
  return result;
}

// Between widths the elements of the narrower type make up the innermost dimension, least significant first. Literals
// keep one byte per element of less than eight bits; packing them is what makes the widths commensurable.
Result<Literal> EvalBitcastConvert(OpCall& call) {
  const Literal& operand = call.in(0);
  const int from = Bits(operand.type()), to = Bits(call.shape.type());
  const bool pred = IsPred(operand.type()) != IsPred(call.shape.type());
  if (from == to && !pred) return Literal::FromBytes(call.shape, operand.bytes());
  STROP_ASSIGN(Literal result, call.NewResult());
  const std::span<const uint8_t> source = operand.bytes();
  const std::span<uint8_t> target = result.mutable_bytes();
  // A pred is one bit, as StableHLO's i1, where the element counts say so; else the byte that it is stored in.
  auto bits = [](const Literal& a, const Literal& b) {
    return IsPred(a.type()) && a.num_elements() == b.num_elements() * Bits(b.type()) ? 1 : Bits(a.type());
  };
  const int from_bits = bits(operand, result), to_bits = bits(result, operand);
  const int64_t total = operand.num_elements() * from_bits;
  if (total != result.num_elements() * to_bits)
    return Unimplemented("bitcast-convert from ", operand.shape().ToString(), " to ", call.shape.ToString());
  auto place = [](int64_t bit, int bits) {  // of bit number `bit` of the packed stream, in a Literal
    const int64_t element = bit / bits, within = bit % bits;
    return std::pair<int64_t, int>(element * ((bits + 7) / 8) + within / 8, static_cast<int>(within % 8));
  };
  if (from >= 8 && to >= 8 && !pred)
    return Literal::FromBytes(call.shape, source);  // whole bytes, little endian both ways
  for (int64_t bit = 0; bit < total; ++bit) {
    const auto [from_byte, from_shift] = place(bit, from_bits);
    const auto [to_byte, to_shift] = place(bit, to_bits);
    target[static_cast<size_t>(to_byte)] |=
        static_cast<uint8_t>(((source[static_cast<size_t>(from_byte)] >> from_shift) & 1) << to_shift);
  }
  if (IsSigned(call.shape.type()) && to < 8) {  // stored sign-extended
    std::vector<Cell> cells = LoadAll(result);
    StoreCells(call.shape.type(), cells.data(), static_cast<int64_t>(cells.size()), result.mutable_bytes().data(), 0);
  }
  return result;
}

}  // namespace strop::interp
