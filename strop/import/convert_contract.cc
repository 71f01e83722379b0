// Contractions and linear algebra: dot, convolution, einsum, fft, cholesky, triangular solve, batch normalisation,
// random bits.
#include <algorithm>

#include "strop/import/convert.h"

namespace strop {
namespace {

Result<PrecisionConfig> PrecisionOf(const OpImport& op) {
  PrecisionConfig config;
  const MlirAttr* list = op.attr("precision_config");
  if (!list) return config;
  if (list->kind != MlirAttrKind::Array) return op.Invalid("precision_config must be a list");
  bool any = false;
  for (const MlirAttr* e : list->elements) {
    if (e->kind != MlirAttrKind::Enum) return op.Invalid("precision_config must be a list of precisions");
    Precision p = e->text == "HIGHEST" ? Precision::Highest : e->text == "HIGH" ? Precision::High : Precision::Default;
    any = any || p != Precision::Default;
    config.push_back(p);
  }
  if (config.size() > 2) return op.Invalid("precision_config has ", config.size(), " entries for two operands");
  // All default is what an empty list says.
  if (!any) config.clear();
  return config;
}

// The named algorithms of HLO, by what #stablehlo.dot_algorithm spells out.
struct Algorithm {
  std::string_view lhs, rhs, accumulation;
  int64_t lhs_components, rhs_components, operations;
  std::string_view name;
};
constexpr Algorithm kAlgorithms[] = {
    {"f16", "f16", "f16", 1, 1, 1, "dot_f16_f16_f16"},        {"f16", "f16", "f32", 1, 1, 1, "dot_f16_f16_f32"},
    {"bf16", "bf16", "bf16", 1, 1, 1, "dot_bf16_bf16_bf16"},  {"bf16", "bf16", "f32", 1, 1, 1, "dot_bf16_bf16_f32"},
    {"bf16", "bf16", "f32", 1, 1, 3, "dot_bf16_bf16_f32_x3"}, {"bf16", "bf16", "f32", 1, 1, 6, "dot_bf16_bf16_f32_x6"},
    {"bf16", "bf16", "f32", 1, 1, 9, "dot_bf16_bf16_f32_x9"}, {"bf16", "bf16", "f32", 2, 2, 3, "dot_bf16_bf16_f32_x3"},
    {"bf16", "bf16", "f32", 3, 3, 6, "dot_bf16_bf16_f32_x6"}, {"bf16", "bf16", "f32", 3, 3, 9, "dot_bf16_bf16_f32_x9"},
    {"tf32", "tf32", "f32", 1, 1, 1, "dot_tf32_tf32_f32"},    {"tf32", "tf32", "f32", 1, 1, 3, "dot_tf32_tf32_f32_x3"},
    {"tf32", "tf32", "f32", 2, 2, 3, "dot_tf32_tf32_f32_x3"}, {"f32", "f32", "f32", 1, 1, 1, "dot_f32_f32_f32"},
    {"f64", "f64", "f64", 1, 1, 1, "dot_f64_f64_f64"},
};

Result<Keyword> AlgorithmOf(const OpImport& op) {
  if (!op.attr("algorithm")) return Keyword();
  STROP_ASSIGN(const MlirAttr* a, op.StructAttr("algorithm", "stablehlo.dot_algorithm"));
  auto type = [&](std::string_view field) {
    const MlirAttr* t = a->Find(field);
    return t && t->kind == MlirAttrKind::Type ? PrintType(*t->type) : std::string("none");
  };
  std::string lhs = type("lhs_precision_type"), rhs = type("rhs_precision_type"),
              accumulation = type("accumulation_type");
  int64_t lhs_components = op.FieldInt(*a, "lhs_component_count"),
          rhs_components = op.FieldInt(*a, "rhs_component_count");
  int64_t operations = op.FieldInt(*a, "num_primitive_operations");
  const MlirAttr* imprecise = a->Find("allow_imprecise_accumulation");
  bool fast = imprecise && imprecise->bits;
  if (lhs.starts_with("f8") && rhs.starts_with("f8") && accumulation == "f32" && operations == 1) {
    return Keyword(fast ? "dot_any_f8_any_f8_f32_fast_accum" : "dot_any_f8_any_f8_f32");
  }
  for (const Algorithm& k : kAlgorithms) {
    if (!fast && k.lhs == lhs && k.rhs == rhs && k.accumulation == accumulation && k.lhs_components == lhs_components &&
        k.rhs_components == rhs_components && k.operations == operations) {
      return Keyword(std::string(k.name));
    }
  }
  return op.Unsupported("the dot algorithm ", PrintAttr(*a), " is none of HLO's");
}

// What dot_general and ragged_dot have in common.
template <class A>
Status ReadContraction(const OpImport& op, const MlirAttr& numbers, A& attrs) {
  STROP_TRY(op.ReadFields(numbers, {{"lhs_batching_dimensions", &attrs.lhs_batch},
                                    {"rhs_batching_dimensions", &attrs.rhs_batch},
                                    {"lhs_contracting_dimensions", &attrs.lhs_contracting},
                                    {"rhs_contracting_dimensions", &attrs.rhs_contracting}}));
  STROP_ASSIGN(attrs.operand_precision, PrecisionOf(op));
  return OkStatus();
}

}  // namespace

// The old dot: last dimension of lhs by the first of rhs (vectors and matrices).
Status ConvertDot(OpImport& op) {
  const Shape& lhs = op.operand(0)->shape();
  if (!lhs.IsArray() || lhs.rank() < 1 || op.operand(1)->shape().rank() < 1)
    return op.Invalid("operands must have rank 1 or 2");
  DotAttrs attrs;
  attrs.lhs_contracting = {lhs.rank() - 1};
  attrs.rhs_contracting = {0};
  STROP_ASSIGN(attrs.operand_precision, PrecisionOf(op));
  return op.Emit(Op::Dot, op.operands(), std::move(attrs));
}

Status ConvertDotGeneral(OpImport& op) {
  STROP_ASSIGN(const MlirAttr* numbers, op.StructAttr("dot_dimension_numbers", "stablehlo.dot"));
  DotAttrs attrs;
  STROP_TRY(ReadContraction(op, *numbers, attrs));
  STROP_ASSIGN(attrs.algorithm, AlgorithmOf(op));
  if (!attrs.algorithm.empty() && !attrs.operand_precision.empty())
    return op.Invalid("with an algorithm, precision_config must be DEFAULT");
  return op.Emit(Op::Dot, op.operands(), std::move(attrs));
}

// chlo.ragged_dot
Status ConvertChloRaggedDot(OpImport& op) {
  STROP_ASSIGN(const MlirAttr* numbers, op.StructAttr("ragged_dot_dimension_numbers", "chlo.ragged_dot"));
  RaggedDotAttrs attrs;
  STROP_TRY(ReadContraction(op, *numbers, attrs));
  STROP_TRY(op.ReadFields(*numbers,
                          {{"lhs_ragged_dimensions", &attrs.lhs_ragged}, {"rhs_group_dimensions", &attrs.rhs_group}}));
  return op.Emit(Op::RaggedDot, op.operands(), std::move(attrs));
}

namespace {

// "ab,bc->ac" and "ab->ba": labels that the result lacks are summed.
struct Einsum {
  std::string lhs, rhs, out;
  bool unary = false;
};

Result<Einsum> ParseEinsum(const OpImport& op) {
  STROP_ASSIGN(std::string config, op.Text("einsum_config"));
  std::erase(config, ' ');
  Einsum e;
  size_t arrow = config.find("->"), comma = config.find(',');
  e.unary = op.operand_count() == 1;
  if (arrow == std::string::npos || (comma == std::string::npos) != e.unary || (!e.unary && comma > arrow)) {
    return op.Invalid("einsum_config \"", config, "\" does not fit ", op.operand_count(), " operands");
  }
  e.lhs = config.substr(0, e.unary ? arrow : comma);
  if (!e.unary) e.rhs = config.substr(comma + 1, arrow - comma - 1);
  e.out = config.substr(arrow + 2);
  for (const std::string* labels : {&e.lhs, &e.rhs, &e.out}) {
    for (char c : *labels) {
      bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
      if (!letter || std::ranges::count(*labels, c) > 1)
        return op.Unsupported("einsum_config \"", config, "\" (ellipses and diagonals)");
    }
  }
  if (static_cast<int64_t>(e.lhs.size()) != op.operand(0)->shape().rank() ||
      (!e.unary && static_cast<int64_t>(e.rhs.size()) != op.operand(1)->shape().rank())) {
    return op.Invalid("einsum_config \"", config, "\" does not fit the operands' ranks");
  }
  for (char c : e.out) {
    if (e.lhs.find(c) == std::string::npos && e.rhs.find(c) == std::string::npos)
      return op.Invalid("einsum label '", c, "' is in no operand");
  }
  return e;
}

// Sums over the labels of `labels` that are in neither of the others.
Instruction* SumOut(OpImport& op, Instruction* value, std::string& labels, const std::string& other,
                    const std::string& out) {
  Dims dims;
  std::string kept;
  for (size_t i = 0; i < labels.size(); ++i) {
    if (other.find(labels[i]) == std::string::npos && out.find(labels[i]) == std::string::npos) {
      dims.push_back(static_cast<int64_t>(i));
    } else {
      kept += labels[i];
    }
  }
  if (dims.empty()) return value;
  ElementType type = value->shape().type();
  labels = kept;
  return op.b().Reduce(value, op.b().Scalar(type, 0), dims, op.Sum(type));
}

}  // namespace

Status ConvertEinsum(OpImport& op) {
  STROP_ASSIGN(Einsum e, ParseEinsum(op));
  Instruction* value = SumOut(op, op.operand(0), e.lhs, e.rhs, e.out);
  std::string order = e.lhs;
  if (!e.unary) {
    Instruction* rhs = SumOut(op, op.operand(1), e.rhs, e.lhs, e.out);
    DotAttrs attrs;
    order.clear();
    std::string lhs_free;
    for (size_t i = 0; i < e.lhs.size(); ++i) {
      size_t j = e.rhs.find(e.lhs[i]);
      if (j == std::string::npos) {
        lhs_free += e.lhs[i];
      } else if (e.out.find(e.lhs[i]) != std::string::npos) {
        attrs.lhs_batch.push_back(static_cast<int64_t>(i));
        attrs.rhs_batch.push_back(static_cast<int64_t>(j));
        order += e.lhs[i];
      } else {
        attrs.lhs_contracting.push_back(static_cast<int64_t>(i));
        attrs.rhs_contracting.push_back(static_cast<int64_t>(j));
      }
    }
    order += lhs_free;
    for (char c : e.rhs) {
      if (e.lhs.find(c) == std::string::npos) order += c;
    }
    value = op.b().Dot(value, rhs, std::move(attrs), op.shape().type());
  }
  Dims permutation;
  for (char c : e.out) permutation.push_back(static_cast<int64_t>(order.find(c)));
  if (!std::ranges::is_sorted(permutation)) value = op.b().Transpose(value, permutation);
  return op.SetResult(value);
}

Status ConvertConvolution(OpImport& op) {
  STROP_ASSIGN(const MlirAttr* numbers, op.StructAttr("dimension_numbers", "stablehlo.conv"));
  ConvolutionAttrs attrs;
  ConvDimLabels& d = attrs.dim_labels;
  d.input_batch = op.FieldInt(*numbers, "input_batch_dimension");
  d.input_feature = op.FieldInt(*numbers, "input_feature_dimension");
  d.kernel_input_feature = op.FieldInt(*numbers, "kernel_input_feature_dimension");
  d.kernel_output_feature = op.FieldInt(*numbers, "kernel_output_feature_dimension");
  d.output_batch = op.FieldInt(*numbers, "output_batch_dimension");
  d.output_feature = op.FieldInt(*numbers, "output_feature_dimension");
  STROP_ASSIGN(d.input_spatial, op.FieldInts(*numbers, "input_spatial_dimensions"));
  STROP_ASSIGN(d.kernel_spatial, op.FieldInts(*numbers, "kernel_spatial_dimensions"));
  STROP_ASSIGN(d.output_spatial, op.FieldInts(*numbers, "output_spatial_dimensions"));
  size_t n = d.kernel_spatial.size();
  STROP_ASSIGN(Dims strides, op.Ints("window_strides", Dims(n, 1)));
  STROP_ASSIGN(Dims lhs_dilation, op.Ints("lhs_dilation", Dims(n, 1)));
  STROP_ASSIGN(Dims rhs_dilation, op.Ints("rhs_dilation", Dims(n, 1)));
  STROP_ASSIGN(Dims reversal, op.Ints("window_reversal", Dims(n, 0)));
  Dims padding;
  bool padding_is_data = false;
  if (op.operand_count() == 3) {  // dynamic_conv
    const Shape& amounts = op.operand(2)->shape();
    if (amounts.IsStatic() && amounts.dims() != Int64Vector{static_cast<int64_t>(n), 2})
      return op.Invalid("operand 2 must have two numbers for each of ", n, " spatial dimensions, but is ", amounts);
    std::optional<std::vector<int64_t>> values = FoldIntegers(*op.mlir().operands[2]);
    padding_is_data = !values;
    if (padding_is_data && !(HasKnownShapes(op) && op.shape().IsStatic())) return EmitDynamic(op);
    padding = values ? *std::move(values) : Dims(2 * n, 0);
  } else {
    STROP_TRY(op.CheckPairs("padding"));
    STROP_ASSIGN(padding, op.Ints("padding", Dims(2 * n, 0)));
  }
  const Shape& kernel = op.operand(1)->shape();
  auto wrong_size = [&](std::string_view what, size_t size) {
    return op.Invalid(what, " has ", size, " entries for ", n, " spatial dimensions");
  };
  if (strides.size() != n) return wrong_size("window_strides", strides.size());
  if (lhs_dilation.size() != n) return wrong_size("lhs_dilation", lhs_dilation.size());
  if (rhs_dilation.size() != n) return wrong_size("rhs_dilation", rhs_dilation.size());
  if (reversal.size() != n) return wrong_size("window_reversal", reversal.size());
  if (padding.size() != 2 * n) return wrong_size("padding", padding.size());
  for (size_t i = 0; i < n; ++i) {
    int64_t dim = d.kernel_spatial[i];
    if (!kernel.IsArray() || dim < 0 || dim >= kernel.rank())
      return op.Invalid("kernel spatial dimension ", dim, " is no dimension of ", kernel);
    WindowDim w;
    w.size = kernel.dim(dim);
    w.stride = strides[i];
    w.pad_low = padding[2 * i];
    w.pad_high = padding[2 * i + 1];
    w.base_dilation = lhs_dilation[i];
    w.window_dilation = rhs_dilation[i];
    w.reversal = reversal[i] != 0;
    attrs.window.dims.push_back(w);
  }
  STROP_ASSIGN(attrs.feature_group_count, op.Int("feature_group_count", 1));
  STROP_ASSIGN(attrs.batch_group_count, op.Int("batch_group_count", 1));
  STROP_ASSIGN(attrs.operand_precision, PrecisionOf(op));
  Instruction* input = op.operand(0);
  if (padding_is_data) {
    STROP_ASSIGN(input, PadInputByData(op, d, op.operand(2), attrs.window));
  }
  return op.Emit(Op::Convolution, {input, op.operand(1)}, std::move(attrs));
}

Status ConvertFft(OpImport& op) {
  FftAttrs attrs;
  STROP_ASSIGN(attrs.length, op.Ints("fft_length"));
  STROP_ASSIGN(std::string_view type, op.EnumMember("fft_type"));
  attrs.type = type == "FFT"    ? FftType::Fft
               : type == "IFFT" ? FftType::Ifft
               : type == "RFFT" ? FftType::Rfft
                                : FftType::Irfft;
  return op.Emit(Op::Fft, op.operands(), std::move(attrs));
}

Status ConvertCholesky(OpImport& op) {
  CholeskyAttrs attrs;
  STROP_ASSIGN(attrs.lower, op.Bool("lower"));
  return op.Emit(Op::Cholesky, op.operands(), attrs);
}

Status ConvertTriangularSolve(OpImport& op) {
  TriangularSolveAttrs attrs;
  STROP_ASSIGN(attrs.left_side, op.Bool("left_side", std::nullopt));
  STROP_ASSIGN(attrs.lower, op.Bool("lower", std::nullopt));
  STROP_ASSIGN(attrs.unit_diagonal, op.Bool("unit_diagonal", std::nullopt));
  STROP_ASSIGN(std::string_view transpose, op.EnumMember("transpose_a"));
  attrs.transpose_a = transpose == "NO_TRANSPOSE" ? TransposeA::NoTranspose
                      : transpose == "TRANSPOSE"  ? TransposeA::Transpose
                      : transpose == "ADJOINT"    ? TransposeA::Adjoint
                                                  : TransposeA::Invalid;
  if (attrs.transpose_a == TransposeA::Invalid)
    return op.Invalid("transpose_a must be NO_TRANSPOSE, TRANSPOSE or ADJOINT");
  return op.Emit(Op::TriangularSolve, op.operands(), attrs);
}

Status ConvertBatchNorm(OpImport& op) {
  BatchNormAttrs attrs;
  const MlirAttr* epsilon = op.attr("epsilon");
  if (!epsilon || epsilon->kind != MlirAttrKind::Float) return op.Invalid("attribute 'epsilon' must be a float");
  attrs.epsilon = static_cast<float>(FloatValue(*epsilon));
  STROP_ASSIGN(attrs.feature_index, op.Int("feature_index"));
  return op.Emit(op.hlo_op(), op.operands(), attrs);
}

// The shape operand of rng says what the result type says.
Status ConvertRng(OpImport& op) {
  STROP_ASSIGN(std::string_view distribution, op.EnumMember("rng_distribution"));
  RngAttrs attrs{distribution == "NORMAL" ? RngDistribution::Normal : RngDistribution::Uniform};
  const Shape& dims = op.operand(2)->shape();
  if (dims.rank() != 1 || dims.dim(0) != op.shape().rank())
    return op.Invalid("the shape operand ", dims, " does not fit the result ", op.shape());
  if (!op.shape().IsStatic()) return op.Unsupported("a result of the dynamic shape ", op.shape());
  return op.Emit(Op::Rng, {op.operand(0), op.operand(1)}, attrs);
}

Status ConvertRngBitGenerator(OpImport& op) {
  STROP_ASSIGN(std::string_view algorithm, op.EnumMember("rng_algorithm"));
  RngBitGeneratorAttrs attrs{algorithm == "THREE_FRY" ? RngAlgorithm::ThreeFry
                             : algorithm == "PHILOX"  ? RngAlgorithm::Philox
                                                      : RngAlgorithm::Default};
  return op.Emit(Op::RngBitGenerator, op.operands(), attrs);
}

}  // namespace strop
