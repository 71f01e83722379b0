// The few MHLO ops that StableHLO written from HLO still carries (jaxlib's hlo_to_stablehlo): fusions, copies, top-k,
// bitcasts between layouts, and marks.
#include "strop/import/convert.h"

namespace strop {
namespace {

// The dimensions from major to minor that attribute `name` gives to `shape`; row-major where it is absent.
Result<Dims> MajorToMinor(const OpImport& op, std::string_view name, const Shape& shape) {
  Dims minor_to_major(shape.rank());
  for (int64_t i = 0; i < shape.rank(); ++i) minor_to_major[i] = shape.rank() - 1 - i;
  STROP_ASSIGN(minor_to_major, op.Ints(name, std::move(minor_to_major)));
  Shape laid_out = shape;
  laid_out.set_layout(Layout{{minor_to_major.begin(), minor_to_major.end()}});
  if (Status valid = laid_out.Validate(); !valid.ok()) return op.Invalid(name, ": ", valid.message());
  return Dims(minor_to_major.rbegin(), minor_to_major.rend());
}

}  // namespace

// The region becomes the fused computation. Aliases of outputs and operands only say what may share memory: left out.
Status ConvertMhloFusion(OpImport& op) {
  FusionAttrs attrs;
  STROP_ASSIGN(std::string_view kind, op.EnumMember("fusion_kind", "kLoop"));
  attrs.kind = kind == "kInput"    ? FusionKind::Input
               : kind == "kOutput" ? FusionKind::Output
               : kind == "kCustom" ? FusionKind::Custom
                                   : FusionKind::Loop;
  STROP_ASSIGN(Computation * body, op.Function(0, "fused_computation"));
  if (body->parameter_count() != op.operand_count())
    return op.Invalid("the region takes ", body->parameter_count(), " values for ", op.operand_count(), " operands");
  Computation* called[] = {body};
  return op.Emit(Op::Fusion, op.operands(), attrs, called);
}

// The same bytes under another layout: in logical terms a transpose to the order in memory, a reshape, and a transpose
// from the order in memory.
Status ConvertMhloBitcast(OpImport& op) {
  const Shape& from = op.operand(0)->shape();
  const Shape& to = op.shape();
  if (!from.IsArray() || !to.IsArray() || !from.IsStatic() || !to.IsStatic())
    return op.Unsupported("a bitcast of ", from, " to ", to);
  if (from.type() != to.type()) return op.Emit(Op::BitcastConvert, op.operands(), DefaultAttrs(Op::BitcastConvert));
  if (from.num_elements() != to.num_elements()) return op.Invalid(from, " and ", to, " differ in size");
  STROP_ASSIGN(Dims source, MajorToMinor(op, "source_layout", from));
  STROP_ASSIGN(Dims result, MajorToMinor(op, "result_layout", to));
  Instruction* in_memory = op.b().Transpose(op.operand(0), source);
  Int64Vector dims;
  for (int64_t d : result) dims.push_back(to.dim(d));
  in_memory = op.b().Reshape(in_memory, dims);
  Dims back(result.size());
  for (size_t i = 0; i < result.size(); ++i) back[result[i]] = static_cast<int64_t>(i);
  return op.SetResult(op.b().Transpose(in_memory, back));
}

}  // namespace strop
