// StableHLO to VHLO, in place: each op becomes the version of it that the wanted release knows, with every attribute of
// that version spelled out (VHLO has no defaults) and structured attributes taken apart.
//
// An attribute that the version lacks may be dropped only where it says nothing; anything else is refused with the
// release that would be needed. Types and attributes have first releases of their own, checked by the writer.
#include <algorithm>

#include "strop/import/mlir_ops.h"
#include "strop/import/vhlo.h"

namespace strop {
namespace {

Status NotInRelease(const MlirOp& op, std::string_view what, int minor) {
  return InvalidArgument("'", op.name, "': ", what, " cannot be said in StableHLO 1.", minor).At(LocationText(op.loc));
}

class Legalizer {
 public:
  Legalizer(MlirModule& m, int minor) : m_(m), minor_(minor) {}
  Status Op(MlirOp& op);

 private:
  Result<const MlirAttr*> Flattened(const MlirOp& op, std::string_view base, std::string_view name);
  Result<const MlirAttr*> Value(const MlirOp& op, std::string_view base, std::string_view name);
  Result<const MlirAttr*> Default(const MlirOp& op, std::string_view base, std::string_view name);
  Status CheckRelease(const MlirOp& op, std::string_view base);
  Status CheckUnused(const MlirOp& op, std::string_view base);
  const MlirAttr* Filled(std::span<const int64_t> dims, const MlirType* element, int64_t value);
  int64_t WindowRank(const MlirOp& op) const;

  MlirModule& m_;
  int minor_;
  std::vector<std::string_view> used_;  // attributes of the op that have gone into `out_`
  std::vector<std::string_view> row_;   // attributes of its VHLO op
};

// A constant tensor of i64 or i1 with one value in all places.
const MlirAttr* Legalizer::Filled(std::span<const int64_t> dims, const MlirType* element, int64_t value) {
  MlirAttr a;
  a.kind = MlirAttrKind::Dense;
  const MlirAttr* unit = m_.Unit();
  Result<const MlirType*> type = m_.Tensor(m_.arena().CopyArray(dims), element);
  if (!type.ok()) return unit;
  a.type = *type;
  const int64_t n = NumElements(*a.type).value_or(0), width = ElementBytes(*element);
  std::span<char> data = m_.arena().NewArray<char>(n * width);
  for (int64_t i = 0; i < n; ++i) data[i * width] = static_cast<char>(value);
  a.data = {data.data(), data.size()};
  Result<const MlirAttr*> made = m_.Make(a);
  return made.ok() ? *made : unit;
}

// The number of dimensions that an op's window has.
int64_t Legalizer::WindowRank(const MlirOp& op) const {
  const MlirAttr* dims = op.Attr("window_dimensions");
  if (const MlirAttr* conv = op.Attr("dimension_numbers")) dims = conv->Find("input_spatial_dimensions");
  Result<std::vector<int64_t>> values = dims ? IntegersOf(*dims) : std::vector<int64_t>();
  return values.ok() ? static_cast<int64_t>(values->size()) : 0;
}

// What VHLO holds where StableHLO says nothing.
Result<const MlirAttr*> Legalizer::Default(const MlirOp& op, std::string_view base, std::string_view name) {
  const int64_t rank = WindowRank(op);
  auto is = [&](std::string_view names) { return HasWord(names, name); };
  if (is("channel_id channel_type version")) return m_.Int64(0);
  if (is("use_global_device_ids has_dynamic_root indices_are_sorted unique_indices is_host_transfer has_side_effect "
         "is_stable"))
    return m_.Bool(false);
  if (base == "cholesky" && name == "lower") return m_.Bool(false);
  if (base == "sort" && name == "dimension") return m_.Int64(-1);
  if (is("backend_config")) {
    const MlirAttr* api = op.Attr("api_version");
    if (api && api->bits == 4) return m_.Dict({});
  }
  if (is("sym_visibility backend_config infeed_config outfeed_config")) return m_.String("");
  if (is("arg_attrs res_attrs called_computations operand_layouts result_layouts output_operand_aliases "
         "result_tilings layout"))
    return m_.Array({});
  if (is("composite_attributes")) return m_.Dict({});
  if (is("compare_type")) return m_.Enum("stablehlo.comparison_type", "NOTYPE");
  if (is("api_version")) return m_.Enum("stablehlo.custom_call_api_version", "API_VERSION_ORIGINAL");
  if (is("window_strides base_dilations window_dilations lhs_dilation rhs_dilation"))
    return Filled({{rank}}, m_.Integer(64), 1);
  if (is("padding")) return Filled({{rank, 2}}, m_.Integer(64), 0);
  if (is("window_reversal")) return Filled({{rank}}, m_.Integer(1), 0);
  if (is("known_expanding_dimensions known_nonexpanding_dimensions") ||
      (is("source_target_pairs") && (base == "send" || base == "recv")))
    return Filled({{0}}, m_.Integer(64), 0);
  if (is("precision_config")) {
    const MlirAttr* none = m_.Enum("stablehlo.precision", "DEFAULT");
    const MlirAttr* both[] = {none, none};
    return m_.Array(both);
  }
  if (is("result_accuracy")) {
    const MlirType* f64 = m_.Float(MlirFloat::F64);
    const MlirNamedAttr fields[] = {{"atol", m_.FloatBits(0, f64)},
                                    {"rtol", m_.FloatBits(0, f64)},
                                    {"ulps", m_.Int64(0)},
                                    {"mode", m_.Enum("stablehlo.result_accuracy_mode", "DEFAULT")}};
    return m_.Struct("stablehlo.result_accuracy", fields);
  }
  return InvalidArgument("'", op.name, "' lacks the attribute '", name, "'").At(LocationText(op.loc));
}

// A field of a structured attribute, or null if `name` is none.
Result<const MlirAttr*> Legalizer::Flattened(const MlirOp& op, std::string_view base, std::string_view name) {
  const MlirAttr* none = nullptr;
  for (const VhloStructRule& rule : VhloStructRules()) {
    if (!HasWord(rule.ops, base)) continue;
    MlirFieldInfo field;
    for (std::string_view rest = FindMlirStruct(rule.name)->fields; NextField(rest, field);) {
      if (field.name != name) continue;
      const MlirAttr* made = op.Attr(rule.attr);
      used_.push_back(rule.attr);
      if (rule.attr == "algorithm" && !made) return m_.TypeValue(m_.None());
      if (!made || made->kind != MlirAttrKind::Struct)
        return InvalidArgument("'", op.name, "' lacks the attribute '", rule.attr, "'").At(LocationText(op.loc));
      const MlirAttr* value = made->Find(name);
      if (value) return value;
      if (field.kind == MlirFieldKind::Dims) return m_.Ints({});
      return m_.Int64(0);
    }
  }
  return none;
}

// The attribute `name` of the VHLO op.
Result<const MlirAttr*> Legalizer::Value(const MlirOp& op, std::string_view base, std::string_view name) {
  STROP_ASSIGN(const MlirAttr* field, Flattened(op, base, name));
  if (field) return field;
  if (name == "channel_id" || name == "channel_type") {
    used_.push_back("channel_handle");
    const MlirAttr* handle = op.Attr("channel_handle");
    const MlirAttr* part = handle ? handle->Find(name == "channel_id" ? "handle" : "type") : nullptr;
    return part ? Result<const MlirAttr*>(part) : Default(op, base, name);
  }
  used_.push_back(name);
  const MlirAttr* value = op.Attr(name);
  if (!value) return Default(op, base, name);
  if (value->kind == MlirAttrKind::Unit) return m_.Bool(true);
  if (base == "custom_call" && name == "api_version") {
    std::string_view member = EnumMember(*FindMlirEnum("stablehlo.custom_call_api_version"), value->bits);
    if (value->kind != MlirAttrKind::Integer || member.empty())
      return InvalidArgument("'", op.name, "': unknown api_version").At(LocationText(op.loc));
    return m_.Enum("stablehlo.custom_call_api_version", member);
  }
  return value;
}

// What an op could not say, or could say less of, in earlier releases.
Status Legalizer::CheckRelease(const MlirOp& op, std::string_view base) {
  const MlirAttr* config = op.Attr("backend_config");
  if (minor_ < 3 && base == "custom_call" && config && config->kind == MlirAttrKind::Dict)
    return NotInRelease(op, "a backend_config that is a dictionary", minor_);
  if (minor_ < 5 && HasWord("all_gather all_reduce all_to_all", base) && op.results.size() != 1)
    return NotInRelease(op, "several results", minor_);
  if (minor_ < 14 && base == "composite" && !op.regions.empty()) return NotInRelease(op, "a region", minor_);
  return OkStatus();
}

// Attributes of the op's own that its version does not have must say nothing.
Status Legalizer::CheckUnused(const MlirOp& op, std::string_view base) {
  for (const VhloStructRule& rule : VhloStructRules()) {
    const MlirAttr* made = HasWord(rule.ops, base) ? op.Attr(rule.attr) : nullptr;
    if (!made || made->kind != MlirAttrKind::Struct) continue;
    for (const MlirNamedAttr& f : made->fields) {
      if (std::ranges::find(row_, f.name) != row_.end()) continue;
      Result<std::vector<int64_t>> dims = IntegersOf(*f.value);
      const bool empty = f.value->kind == MlirAttrKind::DenseArray && dims.ok() && dims->empty();
      if (!empty) return NotInRelease(op, f.name, minor_);
    }
    used_.push_back(rule.attr);
  }
  return OkStatus();
}

Status Legalizer::Op(MlirOp& op) {
  if (op.name == "builtin.module") return OkStatus();
  const std::string_view dialect = op.dialect();
  if (!op.info || (dialect != "stablehlo" && dialect != "func"))
    return Unimplemented("'", op.name, "' has no form in a portable artifact").At(LocationText(op.loc));
  const std::string_view base = op.name.substr(dialect.size() + 1);
  const VhloOp* row = FindVhloOp(base, minor_);
  if (!row) return NotInRelease(op, "the operation", minor_);
  STROP_TRY(CheckRelease(op, base));

  used_.clear();
  row_.clear();
  std::vector<MlirNamedAttr> out;
  for (std::string_view rest = row->attributes; !rest.empty();) {
    const size_t space = rest.find(' ');
    row_.push_back(rest.substr(0, space));
    rest.remove_prefix(space == rest.npos ? rest.size() : space + 1);
    STROP_ASSIGN(const MlirAttr* value, Value(op, base, row_.back()));
    out.push_back({row_.back(), value});
  }
  STROP_TRY(CheckUnused(op, base));
  for (const MlirNamedAttr& a : op.attrs) {
    if (std::ranges::find(used_, a.name) != used_.end()) continue;
    if (!IsProperty(*op.info, a.name)) {
      out.push_back(a);
    } else if (!IsVhloDefault(base, a.name, *a.value)) {
      return NotInRelease(op, StrCat("the attribute '", a.name, "'"), minor_);
    }
  }
  Result<const MlirAttr*> dict = m_.Dict(std::move(out));
  if (!dict.ok()) return std::move(dict).status().At(LocationText(op.loc));
  op.attrs = (*dict)->fields;
  op.name = row->name;
  op.info = nullptr;
  return OkStatus();
}

}  // namespace

Status ConvertStablehloToVhlo(MlirModule& module, int minor) {
  Legalizer legalizer(module, minor);
  std::vector<MlirOp*> stack = {module.root};
  while (!stack.empty()) {
    MlirOp* op = stack.back();
    stack.pop_back();
    STROP_TRY(legalizer.Op(*op));
    for (MlirRegion* region : op->regions) {
      for (MlirBlock* block : region->blocks) stack.insert(stack.end(), block->ops.rbegin(), block->ops.rend());
    }
  }
  return OkStatus();
}

}  // namespace strop
