// reduce, scan, map, sort, topk.
#include <algorithm>

#include "strop/ir/ops/infer.h"

namespace strop::infer {

Result<Shape> Reduce(const Args& args) {
  const int64_t n = args.operand_count() / 2;
  if (n < 1 || args.operand_count() % 2 != 0)
    return args.Violates(3, "needs as many initial values as inputs, but got ", args.operand_count(), " operands");
  STROP_TRY(args.ExpectArrays());
  const Dims& dimensions = args.attrs<DimensionsAttrs>().dimensions;
  Shape input = args.operand(0).WithoutLayout();
  std::vector<ElementType> inputs, init;
  for (int64_t i = 0; i < n; ++i) {
    if (!DimsAgree(args.operand(i), input))
      return args.Violates(1, "inputs must have the same dimensions, but are ", args.operand(0), " and ",
                           args.operand(i));
    for (int64_t d = 0; d < input.rank(); ++d) Refine(input, d, args.operand(i), d);
    if (!args.operand(n + i).IsScalar())
      return args.Error("initial value ", i, " must be a scalar, but is ", args.operand(n + i));
    if (!TypesAgree(args.operand(n + i).type(), args.operand(i).type(), true))
      return args.Violates(2, "initial value ", args.operand(n + i), " must have the element type of its input ",
                           args.operand(i));
    inputs.push_back(args.operand(i).type());
    init.push_back(args.operand(n + i).type());
  }
  if (!InRange(dimensions, input.rank()))
    return args.Violates(4, "dimensions=", Braces(dimensions), " are not dimensions of ", input);
  if (!IsUnique(dimensions)) return args.Violates(5, "dimensions=", Braces(dimensions), " must be unique");
  STROP_ASSIGN(std::vector<ElementType> types, CheckReducer(args, 0, inputs, init, 6));
  Int64Vector kept;
  for (int64_t i = 0; i < input.rank(); ++i)
    if (!Contains(dimensions, i)) kept.push_back(i);
  std::vector<Shape> results;
  for (ElementType t : types) {
    Shape result = Shape::Array(t, Int64Vector(kept.size(), 0));
    for (int64_t i = 0; i < result.rank(); ++i) {
      result.set_dim(i, input.dim(kept[i]));
      result.set_dynamic(i, input.is_dynamic(kept[i]));
    }
    results.push_back(std::move(result));
  }
  return OneOrTuple(std::move(results));
}

// operands: inputs, then the initial carries. The callee takes one slice of each input (the scanned dimension removed)
// and the carries, and returns one slice of each output and the new carries; XLA's text may keep either order of the
// two, and the result is (outputs..., carries...). With one input, one carry and a scalar callee, the output is the
// carry itself.
Result<Shape> Scan(const Args& args) {
  const auto& a = args.attrs<ScanAttrs>();
  STROP_TRY(args.ExpectArrays());
  STROP_ASSIGN(Shape declared, args.Declared());
  const int64_t carries = a.num_carries > 0 ? a.num_carries : args.operand_count() / 2;
  const int64_t inputs = args.operand_count() - carries;
  if (a.num_carries < 0 || inputs < 0)
    return args.Error("has ", carries, " carries, but ", args.operand_count(), " operands");
  if (a.dimensions.size() != 1) return args.Error("dimensions=", Braces(a.dimensions), " must name one dimension");
  const int64_t along = a.dimensions[0];
  const Shape* first = nullptr;
  auto check_scanned = [&](const Shape& shape, std::string_view what) -> Status {
    if (!shape.IsArray() || along < 0 || along >= shape.rank())
      return args.Error("dimension ", along, " is not a dimension of the ", what, " ", shape);
    if (first && !SizesAgree(*first, along, shape, along))
      return args.Error("the scanned dimension ", along, " of ", *first, " and ", shape, " must have the same size");
    if (!first) first = &shape;
    return OkStatus();
  };
  for (int64_t i = 0; i < inputs; ++i) STROP_TRY(check_scanned(args.operand(i), "input"));
  if (!declared.IsTuple() && carries + inputs > 0 && carries == 0) {
    STROP_TRY(check_scanned(declared, "result"));
    return declared;
  }
  if (!declared.IsTuple() || declared.tuple_size() < carries)
    return args.Error("the result must be a tuple of the outputs and ", carries, " carries, but is ", declared);
  const int64_t outputs = declared.tuple_size() - carries;
  for (int64_t i = 0; i < outputs; ++i) STROP_TRY(check_scanned(declared.element(i), "output"));
  for (int64_t i = 0; i < carries; ++i)
    if (!ShapesAgree(declared.element(outputs + i), args.operand(inputs + i)))
      return args.Error("carry ", i, " is ", args.operand(inputs + i), ", but its result is ",
                        declared.element(outputs + i));
  return declared;
}

Result<Shape> Map(const Args& args) {
  if (args.operand_count() < 1) return args.Violates(2, "needs at least one operand");
  STROP_TRY(args.ExpectArrays());
  Shape result = args.operand(0).WithoutLayout();
  for (int64_t i = 1; i < args.operand_count(); ++i) {
    if (!DimsAgree(args.operand(i), result))
      return args.Violates(1, "operands must have the same dimensions, but are ", args.operand(0), " and ",
                           args.operand(i));
    for (int64_t d = 0; d < result.rank(); ++d) Refine(result, d, args.operand(i), d);
  }
  const Dims& dimensions = args.attrs<DimensionsAttrs>().dimensions;
  bool all = dimensions.empty() || static_cast<int64_t>(dimensions.size()) == result.rank();
  for (size_t i = 0; all && i < dimensions.size(); ++i) all = dimensions[i] == static_cast<int64_t>(i);
  if (!all)
    return args.Violates(3, "dimensions=", Braces(dimensions), " must be all dimensions of ", result, " in order");
  STROP_ASSIGN(Signature sig, SignatureOf(args, 0));
  const std::string& name = args.called[0]->name();
  if (static_cast<int64_t>(sig.parameters.size()) != args.operand_count())
    return args.Violates(4, "%", name, " must take ", args.operand_count(), " parameters, but takes ",
                         sig.parameters.size());
  for (int64_t i = 0; i < args.operand_count(); ++i)
    if (!sig.parameters[i]->IsScalar() || !TypesAgree(sig.parameters[i]->type(), args.operand(i).type(), true))
      return args.Violates(4, "%", name, ": parameter ", i, " is ", *sig.parameters[i], ", but operand ", i, " is ",
                           args.operand(i));
  if (!sig.result->IsScalar()) return args.Violates(4, "%", name, " must return a scalar, but returns ", *sig.result);
  return result.WithType(sig.result->type());
}

Result<Shape> Sort(const Args& args) {
  if (args.operand_count() < 1) return args.Violates(1, "needs at least one operand");
  STROP_TRY(args.ExpectArrays());
  const Dims& dimensions = args.attrs<SortAttrs>().dimensions;
  for (int64_t i = 1; i < args.operand_count(); ++i)
    if (!DimsAgree(args.operand(i), args.operand(0)))
      return args.Violates(3, "operands must have the same dimensions, but are ", args.operand(0), " and ",
                           args.operand(i));
  // A scalar may be sorted: XLA names dimension 0 or none for it.
  if (dimensions.size() != 1 || dimensions[0] < 0 || dimensions[0] >= std::max<int64_t>(args.operand(0).rank(), 1))
    return args.Violates(4, "dimensions=", Braces(dimensions), " must name one dimension of ", args.operand(0));
  STROP_ASSIGN(Signature sig, SignatureOf(args, 0));
  const std::string& name = args.called[0]->name();
  if (static_cast<int64_t>(sig.parameters.size()) != 2 * args.operand_count())
    return args.Violates(5, "%", name, " must take ", 2 * args.operand_count(), " parameters, but takes ",
                         sig.parameters.size());
  for (size_t i = 0; i < sig.parameters.size(); ++i)
    if (!sig.parameters[i]->IsScalar() || sig.parameters[i]->type() != args.operand(i / 2).type())
      return args.Violates(5, "%", name, ": parameter ", i, " is ", *sig.parameters[i], ", but operand ", i / 2, " is ",
                           args.operand(i / 2));
  if (!sig.result->IsScalar() || !IsPred(sig.result->type()))
    return args.Violates(5, "%", name, " must return pred[], but returns ", *sig.result);
  std::vector<Shape> results;
  for (int64_t i = 0; i < args.operand_count(); ++i) results.push_back(args.operand(i).WithoutLayout());
  return OneOrTuple(std::move(results));
}

Result<Shape> TopK(const Args& args) {
  STROP_TRY(args.ExpectArray(0));
  const Shape& operand = args.operand(0);
  const int64_t k = args.attrs<TopKAttrs>().k;
  if (operand.rank() < 1) return args.Error("the operand must have at least one dimension, but is ", operand);
  const int64_t last = operand.rank() - 1;
  if (k < 0 || (!operand.is_unbounded(last) && k > operand.dim(last)))
    return args.Error("k=", k, " does not lie in the last dimension of ", operand);
  Shape values = operand.WithoutLayout();
  values.set_dim(last, k);
  values.set_dynamic(last, false);
  return Shape::Tuple({values, values.WithType(ElementType::S32)});
}

}  // namespace strop::infer
