// Unknown sizes that arguments settle: a program written for f32[?,3] is imported for the f32[2,3] that it is given.
//
//   main(%n: i64, %x: f32[?])  with n = 4 and x of f32[4]     parameters of s64[] and f32[4]
//   %d = reshape(convert(%n))                                  folds to [4]
//   dynamic_iota(%d) -> ?xi32                                  iota s32[4]
//   add(%x, %y) -> ?xf32                                       f32[4], by inference
//
// Op by op, in order: what gives a result its sizes (a shape operand that folds, an elementwise operand, inference) has
// been refined before. What stays unknown is refused where the program is compiled.
#include <algorithm>

#include "strop/import/convert.h"

namespace strop {
namespace {

bool HasUnknownSize(const Shape& shape) {
  if (!shape.IsArray()) return false;
  for (int64_t d = 0; d < shape.rank(); ++d)
    if (shape.is_unbounded(d)) return true;
  return false;
}

// The operand that holds the result's dimensions, by the op's name; -1 for other ops.
int ShapeOperand(std::string_view name) {
  if (name == "stablehlo.dynamic_iota") return 0;
  if (name == "stablehlo.dynamic_reshape" || name == "stablehlo.dynamic_broadcast_in_dim") return 1;
  return -1;
}

}  // namespace

bool RefinesTo(const Shape& declared, const Shape& refined) {
  if (!declared.IsArray() || !refined.IsArray()) return declared.Compatible(refined);
  if (declared.type() != refined.type() || declared.rank() != refined.rank()) return false;
  for (int64_t d = 0; d < declared.rank(); ++d)
    if (!declared.is_unbounded(d) &&
        (declared.dim(d) != refined.dim(d) || declared.is_dynamic(d) != refined.is_dynamic(d)))
      return false;
  return true;
}

Status ModuleImporter::RefineArgument(MlirValue& argument, int64_t number, const MlirArgument& given,
                                      std::string_view loc) {
  STROP_ASSIGN(Shape declared, ShapeOf(*argument.type));
  if (!RefinesTo(declared, given.shape))
    return InvalidArgument("argument ", number, " is ", given.shape, ", the program takes ", declared)
        .At(std::string(loc));
  if (HasUnknownSize(declared)) {
    const Int64Vector& dims = given.shape.dims();
    STROP_ASSIGN(argument.type, mlir_.Tensor({dims.data(), dims.size()}, argument.type->element()));
  }
  if (given.value) argument.known = mlir_.Int(*given.value, mlir_.Integer(64));
  return OkStatus();
}

// A function is imported for the sizes of its first call; calls with others are refused.
Result<Computation*> ModuleImporter::CalleeFor(const OpImport& call, std::string_view name) {
  auto found = functions_.find(name);
  if (!refines() || found == functions_.end() || found->second->regions.empty() ||
      found->second->regions[0]->blocks.size() != 1)
    return Callee(name, call.mlir());
  const MlirOp& func = *found->second;
  std::span<MlirValue*> args = func.regions[0]->blocks[0]->args;
  if (static_cast<int64_t>(args.size()) != call.operand_count())
    return call.Invalid("function @", name, " takes ", args.size(), " arguments");
  const bool first = !computations_.contains(name);
  for (size_t i = 0; i < args.size(); ++i) {
    MlirArgument given{call.operand(static_cast<int64_t>(i))->shape().WithoutLayout(), std::nullopt};
    const auto values = FoldIntegers(*call.mlir().operands[i]);
    if (given.shape.IsArray() && given.shape.rank() == 0 && values && values->size() == 1)
      given.value = values->front();
    if (first && given.shape.IsArray()) {
      STROP_TRY(RefineArgument(*args[i], static_cast<int64_t>(i), given, LocationText(call.mlir().loc)));
      continue;
    }
    STROP_ASSIGN(Shape taken, ShapeOf(*args[i]->type));
    if (!taken.Compatible(given.shape) || (args[i]->known && given.value != args[i]->known->as_int()))
      return call.Unsupported("function @", name, " called with other sizes than before");
  }
  if (!first) return Callee(name, call.mlir());
  return ImportCallee(func, call.mlir());
}

Result<Computation*> ModuleImporter::ImportCallee(const MlirOp& func, const MlirOp& user) {
  if (nested_calls_ >= kMaxNestedCalls)
    return Unimplemented("'", user.name, "': calls nested deeper than ", kMaxNestedCalls).At(LocationText(user.loc));
  ++nested_calls_;
  Status status = ImportFunction(func);
  --nested_calls_;
  STROP_TRY(std::move(status));
  const MlirAttr* name = func.Attr("sym_name");
  return computations_.at(name->text);
}

Status OpImport::Refine(size_t result, const Shape& shape) {
  Shape& mine = result_shapes_[result];
  if (!HasUnknownSize(mine) || !shape.IsStatic()) return OkStatus();
  if (!RefinesTo(mine, shape))
    return Invalid("the result has the type ", PrintType(*op_.results[result].type), ", but the arguments make it ",
                   shape);
  const Int64Vector& dims = shape.dims();
  STROP_ASSIGN(op_.results[result].type,
               module().mlir().Tensor({dims.data(), dims.size()}, op_.results[result].type->element()));
  mine = shape.WithoutLayout();
  return OkStatus();
}

// Before the op is converted, for converters that ask for the result's shape.
Status OpImport::RefineFromOperands() {
  if (result_shapes_.size() != 1 || !HasUnknownSize(result_shapes_[0])) return OkStatus();
  const Shape declared = result_shapes_[0];
  const int by = ShapeOperand(op_.name);
  if (by >= 0 && by < operand_count()) {
    const std::optional<std::vector<int64_t>> dims = FoldIntegers(*op_.operands[static_cast<size_t>(by)]);
    if (!dims || std::ranges::any_of(*dims, [](int64_t d) { return d < 0; })) return OkStatus();
    const Shape shape = Shape::Array(declared.type(), Int64Vector(dims->begin(), dims->end()));
    STROP_TRY(At(shape.Validate()));
    return Refine(0, shape);
  }
  if (!IsElementwise(hlo_op_) && !(op_.dialect() == "chlo" && operand_count() == 1)) return OkStatus();
  for (const Instruction* operand : operands_)
    if (operand->shape().IsArray() && operand->shape().IsStatic() && operand->shape().rank() == declared.rank())
      return Refine(0, Shape::Array(declared.type(), operand->shape().dims()));
  return OkStatus();
}

// The shape that inference gives, where the declared one leaves sizes open: nullopt if it cannot tell, or if the op's
// shape is its own affair.
std::optional<Shape> OpImport::InferredShape(Op hlo, std::span<Instruction* const> operands, const Attrs& attrs,
                                             std::span<Computation* const> called) {
  if (!std::ranges::any_of(result_shapes_, HasUnknownSize)) return std::nullopt;
  for (const Instruction* operand : operands)
    if (!operand->shape().IsStatic()) return std::nullopt;
  Builder probe(block_.computation());
  Instruction* made = probe.Make(hlo, operands, attrs, called, nullptr);
  if (!made) return std::nullopt;
  Shape shape = made->shape();
  block_.computation()->Remove(made);
  return shape;
}

}  // namespace strop
