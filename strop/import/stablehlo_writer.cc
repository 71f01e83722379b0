// A module of straight-line HLO as StableHLO text, in MLIR's generic form.
//
//   %q = f32[2,3] custom-call(%x), custom_call_target="stablehlo.uniform_quantize",
//        backend_config={scale=[0.1],zero_point=[3],storage_type=si8,storage_min=-128,storage_max=127, ...}
//   ->
//   %0 = "stablehlo.uniform_quantize"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3x!quant.uniform<i8:f32, 0.1:3>>
//
// HLO has no quantised types: such a call tells its numbers in a configuration, and its result has the type that is
// expressed or stored. Here it gets the quantised type back, which only what dequantises it may read. Written are the
// entry's elementwise ops, constants, movements of data, dots and these calls; everything else is refused by name.
#include <unordered_map>

#include "strop/import/import.h"
#include "strop/import/mlir.h"
#include "strop/ir/config_value.h"

namespace strop {
namespace {

struct Spelling {
  std::string_view name, converter;
  Op op;
};
constexpr Spelling kSpellings[] = {
#define IMPORT_OP(name, converter, op, ...) {name, #converter, Op::op},
#include "strop/import/import_ops.def"
#undef IMPORT_OP
};

// The name of an op that both write with operands alone, or nothing.
std::string_view PlainName(Op op) {
  if (op == Op::Select) return "stablehlo.select";
  if (op == Op::Clamp) return "stablehlo.clamp";
  for (const Spelling& s : kSpellings)
    if (s.op == op && s.converter == "Elementwise" && s.name.starts_with("stablehlo.")) return s.name;
  return {};
}

Result<std::string> ElementName(ElementType type) {
  if (IsPred(type)) return std::string("i1");
  if (IsSigned(type)) return StrCat("i", Bits(type));
  if (IsUnsigned(type)) return StrCat("ui", Bits(type));
  if (type == ElementType::C64) return std::string("complex<f32>");
  if (type == ElementType::C128) return std::string("complex<f64>");
  for (int f = 0; f < kNumMlirFloats; ++f)
    if (const MlirFloatInfo& info = InfoOf(static_cast<MlirFloat>(f)); info.element == type)
      return std::string(info.name);
  return Unimplemented("elements of type ", Name(type), " in StableHLO");
}

Result<std::string> TensorName(const Shape& shape, std::string element = {}) {
  if (!shape.IsArray() || !shape.IsStatic()) return Unimplemented("a value of shape ", shape, " in StableHLO");
  std::string text = "tensor<";
  for (int64_t d : shape.dims()) StrAppend(text, d, "x");
  if (element.empty()) {
    STROP_ASSIGN(element, ElementName(shape.type()));
  }
  return StrCat(text, element, ">");
}

std::string ArrayOf(const Dims& values) {
  std::string text = "array<i64";
  for (size_t i = 0; i < values.size(); ++i) StrAppend(text, i == 0 ? ": " : ", ", values[i]);
  return text + ">";
}

std::string ListOf(const Dims& values) { return StrCat("[", Join(values, ", "), "]"); }

Result<std::string> DenseOf(const Literal& literal) {
  STROP_ASSIGN(const std::string type, TensorName(literal.shape()));
  if (literal.num_elements() == 0) return StrCat("dense<> : ", type);
  if (IsPred(literal.shape().type()) || Bits(literal.shape().type()) < 8) {
    if (!literal.AllElementsEqual() || IsComplex(literal.shape().type()))
      return Unimplemented("a constant of type ", type, " in StableHLO");
    const int64_t value = literal.GetInt(0);
    return StrCat("dense<", IsPred(literal.shape().type()) ? (value ? "true" : "false") : StrCat(value), "> : ", type);
  }
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string text = "dense<\"0x";
  for (uint8_t byte : literal.bytes()) text += {kDigits[byte >> 4], kDigits[byte & 15]};
  return StrCat(text, "\"> : ", type);
}

class Writer {
 public:
  Result<std::string> Write(const Module& module) {
    const Computation& entry = *module.entry();
    std::string arguments, body;
    for (const Instruction* p : entry.parameters()) {
      const std::string name = StrCat("%arg", p->parameter_number());
      STROP_ASSIGN(const std::string type, TensorName(p->shape()));
      StrAppend(arguments, arguments.empty() ? "" : ", ", name, ": ", type);
      values_[p] = {name, type};
    }
    for (const Instruction* i : entry.instructions()) {
      if (i->op() == Op::Parameter || (i->op() == Op::Tuple && i == entry.root())) continue;
      Result<std::string> line = Line(*i);
      if (!line.ok()) return std::move(line).status().At(i->Where());
      const std::string name = StrCat("%", next_++);
      StrAppend(body, "    ", name, " = ", *line, "\n");
      values_[i].name = name;
    }
    std::vector<const Instruction*> results;
    if (entry.root()->op() == Op::Tuple) {
      for (const Instruction* r : entry.root()->operands()) results.push_back(r);
    } else {
      results.push_back(entry.root());
    }
    std::string names, types;
    for (const Instruction* r : results) {
      StrAppend(names, names.empty() ? "" : ", ", values_[r].name);
      StrAppend(types, types.empty() ? "" : ", ", values_[r].type);
    }
    return StrCat("module {\n  func.func @main(", arguments, ") -> (", types, ") {\n", body, "    return",
                  names.empty() ? "" : " ", names, names.empty() ? "" : " : ", types, "\n  }\n}\n");
  }

 private:
  struct Value {
    std::string name, type;
    bool quantized = false;
  };

  // What stands behind "%n = "; sets the type of the value.
  Result<std::string> Line(const Instruction& i) {
    Value& value = values_[&i];
    if (IsQuantizing(i)) {
      STROP_ASSIGN(std::string element, QuantizedElement(i));
      STROP_ASSIGN(value.type, TensorName(i.shape(), std::move(element)));
      value.quantized = true;
      return Call(i, "stablehlo.uniform_quantize", "");
    }
    STROP_ASSIGN(value.type, TensorName(i.shape()));
    for (const Instruction* operand : i.operands())
      if (values_[operand].quantized && !IsDequantizing(i))
        return Unimplemented(Name(i.op()), " %", i.name(), " reads the numbers that %", operand->name(), " stores");
    if (IsDequantizing(i)) {
      if (!values_[i.operand(0)].quantized)
        return Unimplemented("%", i.name(), " dequantises what no uniform_quantize of this program gave");
      return Call(i, "stablehlo.uniform_dequantize", "");
    }
    if (const std::string_view name = PlainName(i.op()); !name.empty()) return Call(i, name, "");
    return WithAttributes(i);
  }

  Result<std::string> WithAttributes(const Instruction& i) {
    switch (i.op()) {
      case Op::Constant: {
        STROP_ASSIGN(std::string dense, DenseOf(i.literal()));
        return StrCat("stablehlo.constant ", dense);
      }
      case Op::Reshape: return Call(i, "stablehlo.reshape", "");
      case Op::Broadcast:
        return Call(i, "stablehlo.broadcast_in_dim", StrCat("broadcast_dimensions = ", ArrayOf(i.dimensions())));
      case Op::Transpose: return Call(i, "stablehlo.transpose", StrCat("permutation = ", ArrayOf(i.dimensions())));
      case Op::Concatenate:
        return Call(i, "stablehlo.concatenate", StrCat("dimension = ", i.dimensions()[0], " : i64"));
      case Op::Dot: return Dot(i);
      default: return Unimplemented(Name(i.op()), " %", i.name(), " is not written as StableHLO");
    }
  }

  Result<std::string> Dot(const Instruction& i) {
    const DotAttrs& a = i.attrs<DotAttrs>();
    if (i.operand_count() != 2 || !a.algorithm.empty())
      return Unimplemented("dot %", i.name(), " with an algorithm or sparse operands is not written as StableHLO");
    return Call(i, "stablehlo.dot_general",
                StrCat("dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = ", ListOf(a.lhs_batch),
                       ", rhs_batching_dimensions = ", ListOf(a.rhs_batch), ", lhs_contracting_dimensions = ",
                       ListOf(a.lhs_contracting), ", rhs_contracting_dimensions = ", ListOf(a.rhs_contracting), ">"));
  }

  Result<std::string> Call(const Instruction& i, std::string_view name, const std::string& attributes) {
    std::string operands, types;
    for (const Instruction* operand : i.operands()) {
      StrAppend(operands, operands.empty() ? "" : ", ", values_[operand].name);
      StrAppend(types, types.empty() ? "" : ", ", values_[operand].type);
    }
    return StrCat("\"", name, "\"(", operands, ")", attributes.empty() ? "" : StrCat(" <{", attributes, "}>"), " : (",
                  types, ") -> ", values_[&i].type);
  }

  static bool IsCallOf(const Instruction& i, std::string_view what) {
    if (i.op() != Op::CustomCall || i.operand_count() != 1) return false;
    const std::string& target = i.attrs<CustomCallAttrs>().target;
    return target == StrCat("stablehlo.", what) || target == StrCat("mhlo.", what);
  }
  static bool IsQuantizing(const Instruction& i) { return IsCallOf(i, "uniform_quantize"); }
  static bool IsDequantizing(const Instruction& i) { return IsCallOf(i, "uniform_dequantize"); }

  // !quant.uniform<i8:f32:1, {0.1:3, 0.2:-4}>
  static Result<std::string> QuantizedElement(const Instruction& i) {
    const std::string& opaque = i.attrs<CustomCallAttrs>().opaque;
    const auto text = [&](std::string_view key) {
      return std::string(Trim(ConfigValue(opaque.empty() ? i.backend_config() : opaque, key).value_or("")));
    };
    const auto list = [&](std::string_view key) {
      std::string value = text(key);
      if (value.size() >= 2 && value.front() == '[') value = value.substr(1, value.size() - 2);
      std::vector<std::string> items;
      for (std::string_view item : Split(value, ',')) items.emplace_back(Trim(item));
      return items;
    };
    std::string storage = text("storage_type");
    if (storage.starts_with("si") || storage.starts_with("ui")) storage.erase(storage[0] == 's' ? 0 : 1, 1);
    const int bits = static_cast<int>(ParseNumber<int64_t>(storage.empty() ? "" : storage.substr(1)).value_or(0));
    const std::vector<std::string> scales = list("scale"), zeros = list("zero_point");
    if ((storage[0] != 'i' && storage[0] != 'u') || bits < 1 || bits > 32 || scales.empty() ||
        scales.size() != zeros.size())
      return InvalidArgument("%", i.name(), ": its configuration tells no storage_type, or not as many zero points as ",
                             "scales");
    const int64_t low = storage[0] == 'i' ? -(int64_t{1} << (bits - 1)) : 0, high = low + (int64_t{1} << bits) - 1;
    const std::string from = text("storage_min"), to = text("storage_max");
    std::string out = StrCat("!quant.uniform<", storage);
    if (!from.empty() && !to.empty() && (from != StrCat(low) || to != StrCat(high)))
      StrAppend(out, "<", from, ":", to, ">");
    STROP_ASSIGN(const std::string expressed, ElementName(i.operand(0)->shape().type()));
    StrAppend(out, ":", expressed);
    if (scales.size() > 1) StrAppend(out, ":", text("quantization_dimension"), ", {");
    for (size_t s = 0; s < scales.size(); ++s)
      StrAppend(out, s == 0 && scales.size() > 1 ? "" : ", ", scales[s], ":", zeros[s]);
    return out + (scales.size() > 1 ? "}>" : ">");
  }

  std::unordered_map<const Instruction*, Value> values_;
  int64_t next_ = 0;
};

}  // namespace

Result<std::string> WriteStableHlo(const Module& module) { return Writer().Write(module); }

}  // namespace strop
