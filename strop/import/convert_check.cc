// The ops by which StableHLO's test programs check themselves, as custom calls that the interpreter and `strop run
// --check` know:
//
//   check.expect_almost_eq_const %x, dense<..> : T, tolerance = 0.1
//     custom-call(x, constant), custom_call_target="check.expect_almost_eq", backend_config="{tolerance = 1.000000e-01
//     : f64}"
#include "strop/import/convert.h"

namespace strop {

// Operands are the actual and the expected value; attributes go along as text.
Status ConvertCheck(OpImport& op) {
  CustomCallAttrs attrs;
  attrs.target = std::string(op.mlir().name);
  attrs.has_side_effect = op.mlir().name != "interpreter.probe";
  std::vector<Instruction*> operands(op.operands().begin(), op.operands().end());
  std::vector<MlirNamedAttr> parameters;
  for (const MlirNamedAttr& a : op.mlir().attrs) {
    if (a.name != "value") parameters.push_back(a);
  }
  if (attrs.target.ends_with("_const")) {
    attrs.target.resize(attrs.target.size() - 6);
    const MlirAttr* value = op.attr("value");
    if (!value) return op.Invalid("attribute 'value' is missing");
    Result<Literal> literal = LiteralOf(*value);
    if (!literal.ok()) return op.At(std::move(literal).status());
    operands.push_back(op.b().Constant(*std::move(literal)));
  }
  // The ops' own defaults differ from those of the custom calls of the same name.
  MlirModule& mlir = op.module().mlir();
  if (attrs.target == "check.expect_almost_eq" && !op.attr("tolerance")) {
    parameters.push_back(
        {"tolerance", mlir.FloatBits(EncodeFloat(ElementType::F64, 1e-4), mlir.Float(MlirFloat::F64))});
  }
  if (attrs.target == "check.expect_close" && !op.attr("max_ulp_difference"))
    parameters.push_back({"max_ulp_difference", mlir.Int64(1)});
  if (!parameters.empty()) {
    STROP_ASSIGN(const MlirAttr* dict, mlir.Dict(std::move(parameters)));
    attrs.opaque = PrintAttr(*dict);
  }
  return op.Emit(Op::CustomCall, operands, std::move(attrs));
}

// programs = [[@a, @b], [@c, @d]]: a grid of replicas (rows) and partitions; infeed = [@q] yields what they read.
Status ConvertRunParallel(OpImport& op) {
  const MlirAttr* programs = op.attr("programs");
  if (!programs || programs->kind != MlirAttrKind::Array || programs->elements.empty())
    return op.Invalid("attribute 'programs' must be a grid of functions");
  CustomCallAttrs attrs;
  attrs.target = "interpreter.run_parallel";
  attrs.has_side_effect = true;
  std::vector<Computation*> called;
  size_t partitions = programs->elements[0]->elements.size();
  auto add = [&](const MlirAttr& symbol) -> Status {
    if (symbol.kind != MlirAttrKind::Symbol) return op.Invalid("programs and infeed must name functions");
    STROP_ASSIGN(Computation * computation, op.module().Callee(symbol.text, op.mlir()));
    called.push_back(computation);
    return OkStatus();
  };
  for (const MlirAttr* row : programs->elements) {
    if (row->kind != MlirAttrKind::Array || row->elements.size() != partitions)
      return op.Invalid("the rows of 'programs' must have the same length");
    for (const MlirAttr* symbol : row->elements) STROP_TRY(add(*symbol));
  }
  const MlirAttr* infeed = op.attr("infeed");
  size_t num_infeed = infeed ? infeed->elements.size() : 0;
  for (size_t i = 0; i < num_infeed; ++i) STROP_TRY(add(*infeed->elements[i]));
  attrs.opaque =
      StrCat("{replicas = ", programs->elements.size(), ", partitions = ", partitions, ", infeed = ", num_infeed, "}");
  return op.Emit(Op::CustomCall, op.operands(), std::move(attrs), called);
}

}  // namespace strop
