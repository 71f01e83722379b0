#include "strop/import/vhlo.h"

#include <algorithm>
#include <unordered_set>

#include "strop/import/mlir_ops.h"

namespace strop {

bool HasWord(std::string_view words, std::string_view word) {
  if (words == "*") return true;
  while (!words.empty()) {
    size_t space = words.find(' ');
    if (words.substr(0, space) == word) return true;
    words.remove_prefix(space == std::string_view::npos ? words.size() : space + 1);
  }
  return false;
}

bool IsVhloDefault(std::string_view op, std::string_view name, const MlirAttr& a) {
  auto all = [&](int64_t value) {
    Result<std::vector<int64_t>> values = IntegersOf(a);
    return values.ok() && std::ranges::all_of(*values, [&](int64_t v) { return v == value; });
  };
  bool is_false = a.kind == MlirAttrKind::Bool && !a.bits;
  bool empty_list = a.kind == MlirAttrKind::Array && a.elements.empty();
  bool empty_string = a.kind == MlirAttrKind::String && a.text.empty();
  if (name == "indices_are_sorted" || name == "unique_indices" || name == "is_host_transfer" ||
      name == "has_side_effect")
    return is_false;
  if (name == "window_strides" || name == "base_dilations" || name == "window_dilations" || name == "lhs_dilation" ||
      name == "rhs_dilation") {
    return all(1);
  }
  if (name == "padding" || name == "window_reversal") return all(0);
  if (name == "known_expanding_dimensions" || name == "known_nonexpanding_dimensions") return all(INT64_MIN);
  if (name == "compare_type") return a.kind == MlirAttrKind::Enum && a.text == "NOTYPE";
  if (name == "result_accuracy") {
    const MlirAttr* mode = a.Find("mode");
    return mode && mode->text == "DEFAULT";
  }
  if (name == "precision_config") {
    return a.kind == MlirAttrKind::Array &&
           std::ranges::all_of(a.elements, [](const MlirAttr* e) { return e->text == "DEFAULT"; });
  }
  if (op == "cholesky") return name == "lower" && is_false;
  if (op == "sort") return (name == "is_stable" && is_false) || (name == "dimension" && a.as_int() == -1);
  if (op == "send" || op == "recv")
    return name == "source_target_pairs" && a.kind == MlirAttrKind::Dense && a.data.empty();
  if (op == "infeed") return (name == "layout" && empty_list) || (name == "infeed_config" && empty_string);
  if (op == "outfeed") return name == "outfeed_config" && empty_string;
  if (op == "func")
    return (name == "sym_visibility" && empty_string) || ((name == "arg_attrs" || name == "res_attrs") && empty_list);
  if (op == "composite") {
    return (name == "composite_attributes" && a.kind == MlirAttrKind::Dict && a.fields.empty()) ||
           (name == "version" && a.bits == 0);
  }
  if (op == "custom_call") {
    if (name == "api_version") return a.bits == 1;
    if (name == "backend_config") return empty_string;
    return empty_list &&
           (name == "called_computations" || name == "output_operand_aliases" || name == "result_tilings");
  }
  return false;
}

namespace {

// How one attribute of a VHLO op becomes StableHLO's. Attributes that no row names are taken over as they are.
enum class Rule : uint8_t {
  Ints,        // constant tensor -> array<i64: ...>
  Bools,       // constant tensor of i1 -> array<i1: ...>
  Flag,        // true -> unit, false -> absent
  Symbol,      // string -> @symbol
  Symbols,     // list of strings -> list of symbols
  ApiVersion,  // enum -> its number as i32
  Channel,     // channel_id and channel_type
};
struct AttrRule {
  std::string_view ops;  // names without dialect and version, or "*"
  std::string_view attr;
  Rule rule;
};
constexpr AttrRule kAttrRules[] = {
    {"*", "broadcast_dimensions", Rule::Ints},
    {"*", "broadcast_sizes", Rule::Ints},
    {"*", "known_expanding_dimensions", Rule::Ints},
    {"*", "known_nonexpanding_dimensions", Rule::Ints},
    {"*", "permutation", Rule::Ints},
    {"*", "start_indices", Rule::Ints},
    {"*", "limit_indices", Rule::Ints},
    {"*", "strides", Rule::Ints},
    {"*", "slice_sizes", Rule::Ints},
    {"*", "dimensions", Rule::Ints},
    {"*", "edge_padding_low", Rule::Ints},
    {"*", "edge_padding_high", Rule::Ints},
    {"*", "interior_padding", Rule::Ints},
    {"*", "fft_length", Rule::Ints},
    {"*", "window_dimensions", Rule::Ints},
    {"*", "window_strides", Rule::Ints},
    {"*", "base_dilations", Rule::Ints},
    {"*", "window_dilations", Rule::Ints},
    {"*", "lhs_dilation", Rule::Ints},
    {"*", "rhs_dilation", Rule::Ints},
    {"*", "window_reversal", Rule::Bools},
    {"*", "use_global_device_ids", Rule::Flag},
    {"*", "has_dynamic_root", Rule::Flag},
    {"call", "callee", Rule::Symbol},
    {"composite", "decomposition", Rule::Symbol},
    {"custom_call", "called_computations", Rule::Symbols},
    {"custom_call", "api_version", Rule::ApiVersion},
    {"*", "channel_id", Rule::Channel},
    {"*", "channel_type", Rule::Channel},
};

constexpr VhloStructRule kStructRules[] = {
    {"gather dynamic_gather", "dimension_numbers", "stablehlo.gather"},
    {"scatter", "scatter_dimension_numbers", "stablehlo.scatter"},
    {"dot_general", "dot_dimension_numbers", "stablehlo.dot"},
    {"dot_general", "algorithm", "stablehlo.dot_algorithm"},
    {"convolution dynamic_conv", "dimension_numbers", "stablehlo.conv"},
};

Status NotExpected(const MlirOp& op, std::string_view attr) {
  return InvalidArgument("'", op.name, "': attribute '", attr, "' is not as expected").At(LocationText(op.loc));
}

class Converter {
 public:
  explicit Converter(MlirModule& m) : m_(m) {}
  Status Op(MlirOp& op);

 private:
  Result<const MlirAttr*> Apply(const MlirOp& op, const AttrRule& rule, const MlirAttr& value);
  Status AddStruct(const MlirOp& op, const VhloStructRule& rule, std::vector<std::string_view>& used);
  Status AddChannel(const MlirOp& op, std::string_view base);

  MlirModule& m_;
  std::vector<MlirNamedAttr> out_;
};

Result<const MlirAttr*> Converter::Apply(const MlirOp& op, const AttrRule& rule, const MlirAttr& value) {
  switch (rule.rule) {
    case Rule::Ints: {
      Result<std::vector<int64_t>> values = IntegersOf(value);
      if (!values.ok()) return NotExpected(op, rule.attr);
      return m_.Ints(*values);
    }
    case Rule::Bools: {
      Result<std::vector<int64_t>> values = IntegersOf(value);
      if (!values.ok()) return NotExpected(op, rule.attr);
      MlirAttr a;
      a.kind = MlirAttrKind::DenseArray;
      a.type = m_.Integer(1);
      std::string bytes;
      for (int64_t v : *values) bytes += v ? '\1' : '\0';
      a.data = m_.arena().CopyString(bytes);
      return m_.Make(a);
    }
    case Rule::Flag:
      if (value.kind == MlirAttrKind::Unit) return &value;
      if (value.kind != MlirAttrKind::Bool) return NotExpected(op, rule.attr);
      return value.bits ? m_.Unit() : nullptr;
    case Rule::Symbol:
      if (value.kind != MlirAttrKind::String) return NotExpected(op, rule.attr);
      return m_.Symbol(value.text);
    case Rule::Symbols: {
      std::vector<const MlirAttr*> symbols;
      for (const MlirAttr* e : value.elements) {
        if (e->kind != MlirAttrKind::String) return NotExpected(op, rule.attr);
        symbols.push_back(m_.Symbol(e->text));
      }
      return m_.Array(symbols);
    }
    case Rule::ApiVersion: {
      const MlirEnumInfo& info = *FindMlirEnum("stablehlo.custom_call_api_version");
      for (uint64_t i = 0; i < 5; ++i) {
        if (EnumMember(info, i) == value.text) return m_.Int(static_cast<int64_t>(i), m_.Integer(32));
      }
      return NotExpected(op, rule.attr);
    }
    case Rule::Channel: break;
  }
  return nullptr;
}

Status Converter::AddStruct(const MlirOp& op, const VhloStructRule& rule, std::vector<std::string_view>& used) {
  const MlirStructInfo& info = *FindMlirStruct(rule.name);
  std::vector<MlirNamedAttr> fields;
  MlirFieldInfo field;
  bool complete = true;
  for (std::string_view rest = info.fields; NextField(rest, field);) {
    const MlirAttr* value = op.Attr(field.name);
    used.push_back(field.name);
    bool none = value && value->kind == MlirAttrKind::Type && value->type->kind == MlirTypeKind::None;
    if (!value || none) {
      complete = false;
      continue;
    }
    bool empty = false;
    if (field.kind == MlirFieldKind::Dims) {
      Result<std::vector<int64_t>> dims = IntegersOf(*value);
      if (!dims.ok()) return NotExpected(op, field.name);
      empty = dims->empty();
      value = m_.Ints(*dims);
    } else if (field.kind == MlirFieldKind::Int) {
      if (value->kind != MlirAttrKind::Integer) return NotExpected(op, field.name);
      empty = value->bits == 0;
    } else if (field.kind == MlirFieldKind::Type) {
      if (value->kind != MlirAttrKind::Type) return NotExpected(op, field.name);
    }
    if (!(info.elide && empty)) fields.push_back({field.name, value});
  }
  if (rule.attr == "algorithm" && !complete) return OkStatus();  // none was given
  STROP_ASSIGN(const MlirAttr* made, m_.Struct(info.name, fields));
  out_.push_back({rule.attr, made});
  return OkStatus();
}

Status Converter::AddChannel(const MlirOp& op, std::string_view base) {
  const MlirAttr* id = op.Attr("channel_id");
  if (!id) return OkStatus();
  if (id->kind != MlirAttrKind::Integer) return NotExpected(op, "channel_id");
  const MlirAttr* type = op.Attr("channel_type");
  bool required = base == "send" || base == "recv";
  if (!required && id->bits == 0) return OkStatus();
  MlirNamedAttr fields[2] = {{"handle", id}, {"type", type ? type : m_.Int64(0)}};
  STROP_ASSIGN(const MlirAttr* made, m_.Struct("stablehlo.channel_handle", fields));
  out_.push_back({"channel_handle", made});
  return OkStatus();
}

Status Converter::Op(MlirOp& op) {
  if (!op.name.starts_with("vhlo.")) return OkStatus();
  std::string_view base = op.name.substr(5);
  size_t version = base.rfind("_v");
  if (version != std::string_view::npos) base = base.substr(0, version);
  std::string name = StrCat("stablehlo.", base);
  if (base == "func" || base == "call") name = StrCat("func.", base);
  if (base == "return" && op.parent && op.parent->parent && op.parent->parent->parent) {
    std::string_view around = op.parent->parent->parent->name;
    if (around == "func.func" || around.starts_with("vhlo.func")) name = "func.return";
  }
  const MlirOpInfo* info = FindMlirOp(name);
  if (!info) return Unimplemented("operation '", op.name, "' is not known").At(LocationText(op.loc));

  out_.clear();
  std::vector<std::string_view> used;
  for (const VhloStructRule& rule : kStructRules) {
    if (HasWord(rule.ops, base)) STROP_TRY(AddStruct(op, rule, used));
  }
  STROP_TRY(AddChannel(op, base));
  for (const MlirNamedAttr& a : op.attrs) {
    if (std::ranges::find(used, a.name) != used.end()) continue;
    const MlirAttr* value = a.value;
    for (const AttrRule& rule : kAttrRules) {
      if (rule.attr != a.name || !HasWord(rule.ops, base)) continue;
      STROP_ASSIGN(value, Apply(op, rule, *a.value));
    }
    if (!value || IsVhloDefault(base, a.name, *value)) continue;
    out_.push_back({a.name, value});
  }
  // Layouts come for all operands and results or not at all.
  auto layouts = [](const MlirNamedAttr& a) { return a.name == "operand_layouts" || a.name == "result_layouts"; };
  if (base == "custom_call" &&
      std::ranges::all_of(out_, [&](const MlirNamedAttr& a) { return !layouts(a) || a.value->elements.empty(); }) &&
      !(op.operands.empty() && op.results.empty())) {
    std::erase_if(out_, layouts);
  }
  Result<const MlirAttr*> dict = m_.Dict(out_);
  if (!dict.ok()) return std::move(dict).status().At(LocationText(op.loc));
  op.attrs = (*dict)->fields;
  op.name = info->name;
  op.info = info;
  return OkStatus();
}

constexpr int kCurrent = kCurrentStablehloMinor;
constexpr VhloOp kVhloOps[] = {
#define VHLO_OP(name, first, last, attributes) {"vhlo." name, first, last, attributes},
#include "strop/import/vhlo_ops.def"
#undef VHLO_OP
};

}  // namespace

const char* VhloAttributes(std::string_view op) {
  for (const VhloOp& row : kVhloOps) {
    if (row.name == op) return row.attributes;
  }
  return nullptr;
}

const VhloOp* FindVhloOp(std::string_view base, int minor) {
  for (const VhloOp& row : kVhloOps) {
    std::string_view name = row.name.substr(5);
    if (name.substr(0, name.rfind("_v")) == base && row.first <= minor && minor <= row.last) return &row;
  }
  return nullptr;
}

std::span<const VhloStructRule> VhloStructRules() { return kStructRules; }

namespace {

// Removes casts between equal types, which bridged VHLO's types and Shardy's.
void RemoveIdentityCasts(MlirOp& root) {
  auto identity = [](const MlirOp& op) {
    if (op.name != "builtin.unrealized_conversion_cast" || op.operands.size() != op.results.size()) return false;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      if (!op.operands[i] || !SameType(*op.operands[i]->type, *op.results[i].type)) return false;
    }
    return true;
  };
  std::unordered_set<const MlirOp*> removed;
  std::vector<MlirOp*> all = {&root};
  for (size_t i = 0; i < all.size(); ++i) {
    if (identity(*all[i])) removed.insert(all[i]);
    for (MlirRegion* region : all[i]->regions) {
      for (MlirBlock* block : region->blocks) all.insert(all.end(), block->ops.begin(), block->ops.end());
    }
  }
  if (removed.empty()) return;
  for (MlirOp* op : all) {
    for (MlirValue*& operand : op->operands) {
      // A chain of casts ends, unless malformed input closes it to a ring.
      for (size_t steps = 0; operand && operand->op && removed.contains(operand->op) && steps <= removed.size();
           ++steps) {
        operand = operand->op->operands[operand->index];
      }
    }
    for (MlirRegion* region : op->regions) {
      for (MlirBlock* block : region->blocks) {
        auto kept = std::ranges::remove_if(block->ops, [&](MlirOp* o) { return removed.contains(o); });
        block->ops = block->ops.subspan(0, block->ops.size() - kept.size());
      }
    }
  }
}

}  // namespace

Status ConvertVhloToStablehlo(MlirModule& module) {
  Converter converter(module);
  std::vector<MlirOp*> stack = {module.root};
  while (!stack.empty()) {
    MlirOp* op = stack.back();
    stack.pop_back();
    STROP_TRY(converter.Op(*op));
    for (MlirRegion* region : op->regions) {
      for (MlirBlock* block : region->blocks) stack.insert(stack.end(), block->ops.begin(), block->ops.end());
    }
  }
  RemoveIdentityCasts(*module.root);
  return OkStatus();
}

}  // namespace strop
