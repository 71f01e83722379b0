#include "strop/ir/builder.h"

#include "strop/ir/ops/infer.h"

namespace strop {

Instruction* Builder::Make(Op op, std::span<Instruction* const> operands, Attrs attrs,
                           std::span<Computation* const> called, const Shape* declared) {
  if (!status_.ok()) return nullptr;
  SmallVector<const Shape*, 8> shapes;
  for (Instruction* o : operands) {
    if (!o) {
      status_ = Internal(Name(op), ": an operand is null");
      return nullptr;
    }
    shapes.push_back(&o->shape());
  }
  Result<Shape> shape = InferShape(op, {shapes.data(), shapes.size()}, attrs, called, declared);
  if (shape.ok() && declared && !infer::ShapesAgree(*shape, *declared))
    shape = InvalidArgument(Name(op), ": the result shape is given as ", *declared,
                            ", but operands and attributes give ", *shape);
  if (!shape.ok()) {
    status_ = std::move(shape).status();
    if (metadata_ && !metadata_->Location().empty()) std::move(status_).At(metadata_->Location());
    return nullptr;
  }
  // A declared shape that says the same keeps its layout.
  const bool keep = declared && declared->Compatible(*shape);
  Instruction* made =
      computation_->Add(op, keep ? *declared : *std::move(shape), operands, std::move(attrs), {}, before_);
  if (!called.empty()) made->set_called({called.begin(), called.end()});
  if (metadata_) made->set_metadata(metadata_);
  return made;
}

Instruction* Builder::Parameter(int64_t number, const Shape& shape, std::string name) {
  if (!status_.ok()) return nullptr;
  ParameterAttrs attrs;
  attrs.number = number;
  Result<Shape> checked = InferShape(Op::Parameter, {}, attrs, {}, &shape);
  if (!checked.ok()) {
    status_ = std::move(checked).status();
    return nullptr;
  }
  Instruction* made = computation_->AddParameter(number, shape, std::move(name));
  if (metadata_) made->set_metadata(metadata_);
  return made;
}

Instruction* Builder::Constant(Literal literal) { return Make(Op::Constant, {}, ConstantAttrs{std::move(literal)}); }

Instruction* Builder::Iota(const Shape& shape, int64_t dimension) {
  return Make(Op::Iota, {}, IotaAttrs{dimension}, {}, &shape);
}

Instruction* Builder::Broadcast(Instruction* operand, Int64Vector dims, Dims dimensions) {
  if (!status_.ok() || !operand) return Make(Op::Broadcast, {operand});
  Shape result = Shape::Array(operand->shape().type(), std::move(dims));
  for (size_t i = 0; i < dimensions.size(); ++i)
    if (dimensions[i] >= 0 && dimensions[i] < result.rank() && static_cast<int64_t>(i) < operand->shape().rank())
      result.set_dynamic(dimensions[i], operand->shape().is_dynamic(static_cast<int64_t>(i)));
  return MakeWithShape(Op::Broadcast, result, {operand}, DimensionsAttrs{std::move(dimensions)});
}

Instruction* Builder::Splat(ElementType type, double value, const Int64Vector& dims) {
  Instruction* scalar = Scalar(type, value);
  return dims.empty() ? scalar : Broadcast(scalar, dims, {});
}

Instruction* Builder::Reshape(Instruction* operand, Int64Vector dims) {
  if (!status_.ok() || !operand) return Make(Op::Reshape, {operand}, ReshapeAttrs{});
  if (operand->shape().IsArray() && operand->shape().dims() == dims) return operand;
  return MakeWithShape(Op::Reshape, Shape::Array(operand->shape().type(), std::move(dims)), {operand}, ReshapeAttrs{});
}

Instruction* Builder::Convert(Instruction* operand, ElementType type) {
  if (!status_.ok() || !operand) return Make(Op::Convert, {operand});
  if (operand->shape().type() == type) return operand;
  return MakeWithShape(Op::Convert, operand->shape().WithoutLayout().WithType(type), {operand});
}

Instruction* Builder::BitcastConvert(Instruction* operand, ElementType type) {
  if (!status_.ok() || !operand || !operand->shape().IsArray() || !IsArrayType(type))
    return Make(Op::BitcastConvert, {operand});
  if (operand->shape().type() == type) return operand;
  const int from = Bits(operand->shape().type()), to = Bits(type);
  Int64Vector dims = operand->shape().dims();
  if (from > to) dims.push_back(from / to);
  if (from < to && !dims.empty()) dims.pop_back();
  return MakeWithShape(Op::BitcastConvert, Shape::Array(type, std::move(dims)), {operand});
}

Instruction* Builder::Transpose(Instruction* operand, Dims permutation) {
  return Make(Op::Transpose, {operand}, DimensionsAttrs{std::move(permutation)});
}

Instruction* Builder::Slice(Instruction* operand, const Dims& start, const Dims& limit, const Dims& stride) {
  SliceAttrs attrs;
  for (size_t i = 0; i < start.size() && i < limit.size(); ++i)
    attrs.slice.push_back({start[i], limit[i], i < stride.size() ? stride[i] : 1});
  return Make(Op::Slice, {operand}, std::move(attrs));
}

Instruction* Builder::Compare(Instruction* lhs, Instruction* rhs, CompareDirection direction) {
  return Make(Op::Compare, {lhs, rhs}, CompareAttrs{direction, CompareOrder::Default});
}

Instruction* Builder::Reduce(Instruction* operand, Instruction* init, Dims dimensions, Computation* to_apply) {
  return Make(Op::Reduce, {operand, init}, DimensionsAttrs{std::move(dimensions)}, {to_apply});
}

Instruction* Builder::Dot(Instruction* lhs, Instruction* rhs, DotAttrs attrs, ElementType result_type) {
  Shape wanted = Shape::Scalar(result_type);  // only its type is read: the dimensions are inferred first
  if (!status_.ok() || !lhs || !rhs) return Make(Op::Dot, {lhs, rhs}, std::move(attrs));
  const Shape* shapes[] = {&lhs->shape(), &rhs->shape()};
  Result<Shape> shape = InferShape(Op::Dot, shapes, attrs, {}, &wanted);
  if (!shape.ok()) return Make(Op::Dot, {lhs, rhs}, std::move(attrs));  // reports the error
  return MakeWithShape(Op::Dot, *shape, {lhs, rhs}, std::move(attrs));
}

Instruction* Builder::Tuple(std::span<Instruction* const> elements) {
  return Make(Op::Tuple, elements, NoAttrs{}, {}, nullptr);
}

Instruction* Builder::GetTupleElement(Instruction* tuple, int64_t index) {
  return Make(Op::GetTupleElement, {tuple}, GetTupleElementAttrs{index});
}

Status Builder::Finish(Instruction* root) {
  if (!status_.ok()) return status_;
  if (!root) root = computation_->last();
  if (!root) return InvalidArgument("computation %", computation_->name(), " is empty");
  if (root->parent() != computation_) return Internal("the root of %", computation_->name(), " lives elsewhere");
  computation_->set_root(root);
  return OkStatus();
}

}  // namespace strop
