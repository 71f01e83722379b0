// Ops that move elements without computing: sources, broadcast, reshape and bitcast, slices, pad, concatenate,
// transpose.
#include <algorithm>

#include "strop/ir/ops/infer.h"

namespace strop::infer {

// ---- sources --------------------------------------------------------------------------------------------------------

Result<Shape> Constant(const Args& args) {
  const Shape& shape = args.attrs<ConstantAttrs>().literal.shape();
  if (shape.type() == ElementType::Invalid) return args.Error("has no value");
  return shape.WithoutLayout();
}

Result<Shape> Iota(const Args& args) {
  STROP_ASSIGN(Shape shape, args.Declared());
  const int64_t dimension = args.attrs<IotaAttrs>().dimension;
  if (!shape.IsArray() || IsPred(shape.type()))
    return args.Error("the result must be an array of numbers, but is ", shape);
  if (dimension < 0 || dimension >= shape.rank())
    return args.Violates(1, "iota_dimension ", dimension, " is not a dimension of the result ", shape);
  return shape;
}

Result<Shape> Parameter(const Args& args) {
  const int64_t number = args.attrs<ParameterAttrs>().number;
  if (number < 0) return args.Error("the parameter number must not be negative, but is ", number);
  return args.Declared();
}

// ---- same elements, other shape -------------------------------------------------------------------------------------

Result<Shape> Bitcast(const Args& args) {
  STROP_ASSIGN(Shape result, args.Declared());
  const Shape& operand = args.operand(0);
  if (!operand.IsArray() || !result.IsArray()) {
    if (ShapesAgree(operand, result)) return result;
    return args.Error("only arrays can change their shape, but ", operand, " becomes ", result);
  }
  // Tiles, padding and packed elements make sizes that the dimensions don't tell: those are taken on trust.
  auto plain = [](const Shape& s) {
    return s.IsStatic() && !IsSubByte(s.type()) && !(s.has_layout() && s.layout().extra);
  };
  if (plain(operand) && plain(*args.declared) && operand.byte_size() != result.byte_size())
    return args.Error("operand ", operand, " and result ", result, " differ in size");
  return result;
}

Result<Shape> BitcastConvert(const Args& args) {
  STROP_TRY(args.ExpectArray(0));
  STROP_ASSIGN(Shape result, args.Declared());
  const Shape& operand = args.operand(0);
  if (!result.IsArray()) return args.Error("the result must be an array, but is ", result);
  if (IsComplex(operand.type()) != IsComplex(result.type()))
    return args.Violates(2, "complex numbers only become complex numbers, but ", operand, " becomes ", result);
  const int from = Bits(operand.type()), to = Bits(result.type());
  // The narrower side has one more dimension, the last, that counts the parts of an element of the wider side.
  const bool narrows = from > to;
  const Shape& wide = narrows ? operand : result;
  const Shape& narrow = narrows ? result : operand;
  const int64_t ratio = narrows ? from / to : to / from;
  const int64_t extra = from == to ? 0 : 1;
  bool fits = narrow.rank() == wide.rank() + extra && std::max(from, to) % std::min(from, to) == 0;
  for (int64_t i = 0; fits && i < wide.rank(); ++i) fits = SizesAgree(wide, i, narrow, i);
  if (fits && extra) fits = narrow.is_unbounded(wide.rank()) || narrow.dim(wide.rank()) == ratio;
  if (!fits) return args.Violates(1, "the bits of ", operand, " do not make a ", result);
  Shape refined = result;
  for (int64_t i = 0; i < std::min(operand.rank(), result.rank()); ++i) Refine(refined, i, operand, i);
  return refined;
}

Result<Shape> Broadcast(const Args& args) {
  STROP_TRY(args.ExpectArray(0));
  STROP_ASSIGN(Shape result, args.Declared());
  const Shape& operand = args.operand(0);
  const Dims& dimensions = args.attrs<DimensionsAttrs>().dimensions;
  if (!result.IsArray()) return args.Error("the result must be an array, but is ", result);
  if (result.type() != operand.type())
    return args.Violates(1, "the result must be of type ", Name(operand.type()), ", but is ", result);
  if (static_cast<int64_t>(dimensions.size()) != operand.rank())
    return args.Violates(2, "dimensions=", Braces(dimensions), " must name a result dimension for each dimension of ",
                         operand);
  if (!InRange(dimensions, result.rank()))
    return args.Violates(3, "dimensions=", Braces(dimensions), " are not dimensions of the result ", result);
  if (!IsUnique(dimensions)) return args.Violates(4, "dimensions=", Braces(dimensions), " must be unique");
  for (int64_t i = 0; i < operand.rank(); ++i)
    if (!SizesAgree(operand, i, result, dimensions[i]))
      return args.Violates(5, "dimension ", i, " of the operand ", operand, " does not fit dimension ", dimensions[i],
                           " of the result ", result);
  return result;
}

Result<Shape> Copy(const Args& args) { return args.operand(0).WithoutLayout(); }

Result<Shape> Reshape(const Args& args) {
  STROP_TRY(args.ExpectArray(0));
  STROP_ASSIGN(Shape result, args.Declared());
  const Shape& operand = args.operand(0);
  if (!result.IsArray()) return args.Error("the result must be an array, but is ", result);
  if (result.type() != operand.type())
    return args.Violates(1, "the result must be of type ", Name(operand.type()), ", but is ", result);
  auto unbounded = [](const Shape& s) {
    for (int64_t i = 0; i < s.rank(); ++i)
      if (s.is_unbounded(i)) return true;
    return false;
  };
  if (!unbounded(operand) && !unbounded(result) && operand.num_elements() != result.num_elements())
    return args.Violates(2, "operand ", operand, " has ", operand.num_elements(), " elements, but the result ", result,
                         " has ", result.num_elements());
  return result;
}

Result<Shape> DynamicReshape(const Args& args) {
  if (args.operand_count() < 1) return args.Error("needs an operand");
  STROP_TRY(args.ExpectArray(0));
  STROP_ASSIGN(Shape result, args.Declared());
  if (!result.IsArray() || result.type() != args.operand(0).type())
    return args.Violates(1, "the result must be an array of ", Name(args.operand(0).type()), ", but is ", result);
  if (args.operand_count() - 1 != result.rank())
    return args.Violates(4, "needs one size for each dimension of the result ", result, ", but got ",
                         args.operand_count() - 1);
  for (int64_t i = 1; i < args.operand_count(); ++i)
    if (!args.operand(i).IsScalar() || !IsInteger(args.operand(i).type()))
      return args.Error("size ", i - 1, " must be an integer scalar, but is ", args.operand(i));
  const bool bounded = result.num_elements() >= 0 && args.operand(0).IsStatic() && result.IsStatic();
  if (bounded && args.operand(0).num_elements() != result.num_elements())
    return args.Violates(2, "operand ", args.operand(0), " and result ", result, " differ in their number of elements");
  return result;
}

Result<Shape> Reverse(const Args& args) {
  STROP_TRY(args.ExpectArray(0));
  const Dims& dimensions = args.attrs<DimensionsAttrs>().dimensions;
  if (!IsUnique(dimensions)) return args.Violates(2, "dimensions=", Braces(dimensions), " must be unique");
  if (!InRange(dimensions, args.operand(0).rank()))
    return args.Violates(3, "dimensions=", Braces(dimensions), " are not dimensions of ", args.operand(0));
  return args.operand(0).WithoutLayout();
}

Result<Shape> Shuffle(const Args& args) { return Reverse(args); }

Result<Shape> Transpose(const Args& args) {
  STROP_TRY(args.ExpectArray(0));
  const Shape& operand = args.operand(0);
  const Dims& permutation = args.attrs<DimensionsAttrs>().dimensions;
  if (static_cast<int64_t>(permutation.size()) != operand.rank() || !IsUnique(permutation) ||
      !InRange(permutation, operand.rank()))
    return args.Violates(2, "dimensions=", Braces(permutation), " are not a permutation of the dimensions of ",
                         operand);
  Int64Vector dims;
  for (int64_t p : permutation) dims.push_back(operand.dim(p));
  Shape result = operand.WithDims(std::move(dims));
  for (int64_t i = 0; i < result.rank(); ++i) result.set_dynamic(i, operand.is_dynamic(permutation[i]));
  return result;
}

// ---- parts and wholes -----------------------------------------------------------------------------------------------

Result<Shape> Concatenate(const Args& args) {
  if (args.operand_count() == 0) return args.Violates(3, "needs at least one operand");
  STROP_TRY(args.ExpectArrays());
  const Dims& dimensions = args.attrs<DimensionsAttrs>().dimensions;
  Shape result = args.operand(0).WithoutLayout();
  if (dimensions.size() != 1) return args.Error("needs exactly one dimension, but got ", Braces(dimensions));
  const int64_t along = dimensions[0];
  if (along < 0 || along >= result.rank())
    return args.Violates(4, "dimension ", along, " is not a dimension of ", result);
  for (int64_t k = 1; k < args.operand_count(); ++k) {
    const Shape& next = args.operand(k);
    if (next.type() != result.type())
      return args.Violates(1, "operands must have the same element type, but are ", args.operand(0), " and ", next);
    bool fits = next.rank() == result.rank();
    for (int64_t i = 0; fits && i < result.rank(); ++i) fits = i == along || SizesAgree(result, i, next, i);
    if (!fits)
      return args.Violates(2, "operands must have the same dimensions except for dimension ", along, ", but are ",
                           args.operand(0), " and ", next);
    for (int64_t i = 0; i < result.rank(); ++i) {
      if (i != along) {
        Refine(result, i, next, i);
      } else if (result.is_unbounded(i) || next.is_unbounded(i)) {
        result.set_dim(i, kUnboundedSize);
        result.set_dynamic(i, true);
      } else {
        result.set_dim(i, SaturatingAdd(result.dim(i), next.dim(i)));
        result.set_dynamic(i, result.is_dynamic(i) || next.is_dynamic(i));
      }
    }
  }
  return result;
}

Result<Shape> Pad(const Args& args) {
  STROP_TRY(args.ExpectArrays());
  const Shape& operand = args.operand(0);
  const Shape& value = args.operand(1);
  const PaddingConfig& padding = args.attrs<PadAttrs>().padding;
  if (!value.IsScalar()) return args.Error("the padding value must be a scalar, but is ", value);
  if (value.type() != operand.type())
    return args.Violates(1, "the padding value must have the operand's element type, but is ", value, " for ", operand);
  if (static_cast<int64_t>(padding.size()) != operand.rank())
    return args.Violates(2, "padding has ", padding.size(), " dimensions, but the operand is ", operand);
  Shape result = operand.WithoutLayout();
  for (int64_t i = 0; i < operand.rank(); ++i) {
    if (padding[i].interior < 0)
      return args.Violates(3, "interior padding must not be negative, but is ", padding[i].interior);
    if (operand.is_unbounded(i)) continue;
    const __int128 size = operand.dim(i);
    const __int128 inner = size == 0 ? 0 : size + (size - 1) * padding[i].interior;
    const __int128 padded = inner + padding[i].low + padding[i].high;
    if (padded < 0 || padded > INT64_MAX)
      return args.Violates(4, "padding ", padding[i].low, "_", padding[i].high, "_", padding[i].interior,
                           " of dimension ", i, " of ", operand, " gives no valid size");
    result.set_dim(i, static_cast<int64_t>(padded));
  }
  return result;
}

Result<Shape> Slice(const Args& args) {
  STROP_TRY(args.ExpectArray(0));
  const Shape& operand = args.operand(0);
  const SliceDims& slice = args.attrs<SliceAttrs>().slice;
  if (static_cast<int64_t>(slice.size()) != operand.rank())
    return args.Violates(2, "the slice has ", slice.size(), " dimensions, but the operand is ", operand);
  Shape result = operand.WithoutLayout();
  for (int64_t i = 0; i < operand.rank(); ++i) {
    const SliceDim& s = slice[i];
    if (s.start < 0 || s.start > s.limit || (!operand.is_unbounded(i) && s.limit > operand.dim(i)))
      return args.Violates(3, "[", s.start, ":", s.limit, "] does not lie within dimension ", i, " of ", operand);
    if (s.stride <= 0) return args.Violates(4, "strides must be positive, but dimension ", i, " has ", s.stride);
    const int64_t span = s.limit - s.start;
    result.set_dim(i, span / s.stride + (span % s.stride != 0));
    // A slice of the whole dimension keeps its run-time size; a part of it is static.
    if (operand.is_unbounded(i) || span != operand.dim(i) || s.stride != 1) result.set_dynamic(i, false);
  }
  return result;
}

namespace {

// Start indices: one integer scalar a dimension, or (an old form) one vector of them.
Status CheckStartIndices(const Args& args, int64_t first, int64_t rank, int count_label, int type_label) {
  const int64_t given = args.operand_count() - first;
  if (given == 1 && args.operand(first).IsArray() && args.operand(first).rank() == 1) {
    const Shape& vector = args.operand(first);
    if (!IsInteger(vector.type())) return args.Error("start indices must be integers, but are ", vector);
    if (!vector.is_unbounded(0) && vector.dim(0) != rank)
      return args.Violates(count_label, "needs ", rank, " start indices, but got ", vector);
    return OkStatus();
  }
  if (given != rank) return args.Violates(count_label, "needs ", rank, " start indices, but got ", given);
  for (int64_t i = first; i < args.operand_count(); ++i) {
    const Shape& index = args.operand(i);
    if (!index.IsScalar() || !IsInteger(index.type()))
      return args.Error("start index ", i - first, " must be an integer scalar, but is ", index);
    if (index.type() != args.operand(first).type())
      return args.Violates(type_label, "start indices must have the same type, but are ", args.operand(first), " and ",
                           index);
  }
  return OkStatus();
}

}  // namespace

Result<Shape> DynamicSlice(const Args& args) {
  if (args.operand_count() < 1) return args.Error("needs an operand");
  STROP_TRY(args.ExpectArray(0));
  const Shape& operand = args.operand(0);
  const Dims& sizes = args.attrs<DynamicSliceAttrs>().sizes;
  if (static_cast<int64_t>(sizes.size()) != operand.rank())
    return args.Violates(2, "dynamic_slice_sizes=", Braces(sizes), " must name a size for each dimension of ", operand);
  STROP_TRY(CheckStartIndices(args, 1, operand.rank(), 2, 3));
  for (int64_t i = 0; i < operand.rank(); ++i)
    if (sizes[i] < 0 || (!operand.is_unbounded(i) && sizes[i] > operand.dim(i)))
      return args.Violates(4, "slice size ", sizes[i], " does not fit dimension ", i, " of ", operand);
  return Shape::Array(operand.type(), Int64Vector(sizes));
}

Result<Shape> DynamicUpdateSlice(const Args& args) {
  if (args.operand_count() < 2) return args.Error("needs an operand and an update");
  STROP_TRY(args.ExpectArray(0));
  STROP_TRY(args.ExpectArray(1));
  const Shape& operand = args.operand(0);
  const Shape& update = args.operand(1);
  if (update.type() != operand.type())
    return args.Violates(2, "the update must have the operand's element type, but is ", update, " for ", operand);
  if (update.rank() != operand.rank())
    return args.Violates(3, "the update must have the operand's rank, but is ", update, " for ", operand);
  STROP_TRY(CheckStartIndices(args, 2, operand.rank(), 4, 5));
  for (int64_t i = 0; i < operand.rank(); ++i)
    if (!operand.is_unbounded(i) && !update.is_unbounded(i) && update.dim(i) > operand.dim(i))
      return args.Violates(6, "the update ", update, " is larger than dimension ", i, " of ", operand);
  return operand.WithoutLayout();
}

// ---- run-time sizes -------------------------------------------------------------------------------------------------

Result<Shape> GetDimensionSize(const Args& args) {
  STROP_TRY(args.ExpectArray(0));
  const Dims& dimensions = args.attrs<DimensionsAttrs>().dimensions;
  if (dimensions.size() != 1 || !InRange(dimensions, args.operand(0).rank()))
    return args.Violates(1, "dimensions=", Braces(dimensions), " must name one dimension of ", args.operand(0));
  return Shape::Scalar(ElementType::S32);
}

Result<Shape> SetDimensionSize(const Args& args) {
  STROP_TRY(args.ExpectArrays());
  const Dims& dimensions = args.attrs<DimensionsAttrs>().dimensions;
  if (dimensions.size() != 1 || !InRange(dimensions, args.operand(0).rank()))
    return args.Violates(1, "dimensions=", Braces(dimensions), " must name one dimension of ", args.operand(0));
  if (!args.operand(1).IsScalar() || args.operand(1).type() != ElementType::S32)
    return args.Error("the size must be an s32 scalar, but is ", args.operand(1));
  Shape result = args.operand(0).WithoutLayout();
  result.set_dynamic(dimensions[0], true);
  return result;
}

}  // namespace strop::infer
