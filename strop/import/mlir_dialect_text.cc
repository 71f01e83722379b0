#include "strop/import/mlir_dialect_text.h"

#include "strop/import/mlir_ops.h"
#include "strop/import/mlir_print.h"

namespace strop {
namespace {

std::vector<int64_t> Ints(const MlirAttr* attr) {
  if (!attr) return {};
  Result<std::vector<int64_t>> values = IntegersOf(*attr);
  return values.ok() ? *values : std::vector<int64_t>{};
}

int64_t Int(const MlirAttr* attr) { return attr ? attr->as_int() : 0; }

void AppendInts(std::string& out, std::span<const int64_t> values) {
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i) out += ", ";
    if (values[i] == kMlirDynamic) {
      out += '?';
    } else {
      StrAppend(out, values[i]);
    }
  }
  out += ']';
}

// `name = value, ...` by the table's field list. Fields that are absent are skipped.
void AppendFields(std::string& out, const MlirAttr& attr, std::string_view fields) {
  MlirFieldInfo field;
  bool first = true;
  while (NextField(fields, field)) {
    const MlirAttr* value = attr.Find(field.name);
    if (!value) continue;
    if (!first) out += ", ";
    first = false;
    StrAppend(out, field.name, " = ");
    switch (field.kind) {
      case MlirFieldKind::Dims: AppendInts(out, Ints(value)); break;
      case MlirFieldKind::Int: StrAppend(out, value->as_int()); break;
      case MlirFieldKind::String: AppendMlirString(out, value->text); break;
      default: AppendAttr(out, *value);
    }
  }
}

// One third of conv's notation: the dimensions of `spatial` numbered, the others by their letters.
bool AppendConvPart(std::string& out, std::span<const int64_t> spatial, int64_t a, char a_name, int64_t b,
                    char b_name) {
  std::vector<std::string> dims(spatial.size() + 2);
  auto put = [&](int64_t at, std::string what) {
    if (at < 0 || at >= static_cast<int64_t>(dims.size()) || !dims[at].empty()) return false;
    dims[at] = std::move(what);
    return true;
  };
  if (!put(a, std::string(1, a_name)) || !put(b, std::string(1, b_name))) return false;
  for (size_t i = 0; i < spatial.size(); ++i) {
    if (!put(spatial[i], StrCat(i))) return false;
  }
  StrAppend(out, "[", Join(dims, ", "), "]");
  return true;
}

// "x", with ":(1)2" for a part of an axis
void AppendAxisRef(std::string& out, const MlirAttr& axis) {
  const MlirAttr* name = axis.Find("name");
  AppendMlirString(out, name ? name->text : "");
  if (const MlirAttr* sub = axis.Find("sub_axis_info")) {
    StrAppend(out, ":(", Int(sub->Find("pre_size")), ")", Int(sub->Find("size")));
  }
}

void AppendAxisList(std::string& out, const MlirAttr* list) {
  out += '{';
  for (size_t i = 0; list && i < list->elements.size(); ++i) {
    if (i) out += ", ";
    AppendAxisRef(out, *list->elements[i]);
  }
  out += '}';
}

void AppendDimensionSharding(std::string& out, const MlirAttr& dim) {
  const MlirAttr* axes = dim.Find("axes");
  const MlirAttr* closed = dim.Find("is_closed");
  out += '{';
  for (size_t i = 0; axes && i < axes->elements.size(); ++i) {
    if (i) out += ", ";
    AppendAxisRef(out, *axes->elements[i]);
  }
  if (closed && !closed->bits) out += axes && !axes->elements.empty() ? ", ?" : "?";
  out += '}';
  if (const MlirAttr* priority = dim.Find("priority")) StrAppend(out, "p", priority->as_int());
}

void AppendMeshBody(std::string& out, const MlirAttr& mesh) {
  out += "<[";
  const MlirAttr* axes = mesh.Find("axes");
  for (size_t i = 0; axes && i < axes->elements.size(); ++i) {
    if (i) out += ", ";
    const MlirAttr* name = axes->elements[i]->Find("name");
    AppendMlirString(out, name ? name->text : "");
    StrAppend(out, "=", Int(axes->elements[i]->Find("size")));
  }
  out += ']';
  if (const MlirAttr* ids = mesh.Find("device_ids")) {
    out += ", device_ids=";
    AppendInts(out, Ints(ids));
  }
  out += '>';
}

void AppendShardingBody(std::string& out, const MlirAttr& sharding) {
  out += '<';
  const MlirAttr* mesh = sharding.Find("mesh_or_ref");
  if (mesh && mesh->kind == MlirAttrKind::Symbol) {
    AppendAttr(out, *mesh);
  } else if (mesh) {
    out += "mesh";
    AppendDialectAttrBody(out, *mesh);
  }
  out += ", [";
  const MlirAttr* dims = sharding.Find("dim_shardings");
  for (size_t i = 0; dims && i < dims->elements.size(); ++i) {
    if (i) out += ", ";
    AppendDimensionSharding(out, *dims->elements[i]);
  }
  out += ']';
  for (std::string_view which : {"replicated", "unreduced"}) {
    const MlirAttr* axes = sharding.Find(StrCat(which, "_axes"));
    if (!axes || axes->elements.empty()) continue;
    StrAppend(out, ", ", which, "=");
    AppendAxisList(out, axes);
  }
  out += '>';
}

void AppendStablehloMeshBody(std::string& out, const MlirAttr& mesh) {
  out += "<axes=[";
  const MlirAttr* axes = mesh.Find("axes");
  for (size_t i = 0; axes && i < axes->elements.size(); ++i) {
    if (i) out += ", ";
    AppendDialectAttrBody(out, *axes->elements[i]);
  }
  out += ']';
  if (const MlirAttr* ids = mesh.Find("device_ids")) {
    out += ", device_ids=";
    AppendAttr(out, *ids);
  }
  out += '>';
}

void AppendAccuracyBody(std::string& out, const MlirAttr& accuracy) {
  out += '<';
  for (std::string_view part : {"atol", "rtol"}) {
    const MlirAttr* value = accuracy.Find(part);
    if (!value || value->bits == 0) continue;
    StrAppend(out, part, " = ");
    AppendMlirFloat(out, value->bits, value->type->float_kind);
    out += ", ";
  }
  if (int64_t ulps = Int(accuracy.Find("ulps"))) StrAppend(out, "ulps = ", ulps, ", ");
  out += "mode = ";
  if (const MlirAttr* mode = accuracy.Find("mode")) AppendAttr(out, *mode);
  out += '>';
}

}  // namespace

void AppendFactorSymbol(std::string& out, int64_t index) {
  constexpr int64_t kAtZ = 'z' - 'i';
  if (index <= kAtZ) {
    out += static_cast<char>('i' + index);
  } else {
    StrAppend(out, "z_", index - kAtZ);
  }
}

void AppendConvDimensions(std::string& out, const MlirAttr& conv) {
  std::string text;
  auto dims = [&](std::string_view f) { return Ints(conv.Find(f)); };
  auto num = [&](std::string_view f) { return Int(conv.Find(f)); };
  bool ok = AppendConvPart(text, dims("input_spatial_dimensions"), num("input_batch_dimension"), 'b',
                           num("input_feature_dimension"), 'f');
  text += 'x';
  ok = ok && AppendConvPart(text, dims("kernel_spatial_dimensions"), num("kernel_input_feature_dimension"), 'i',
                            num("kernel_output_feature_dimension"), 'o');
  text += "->";
  ok = ok && AppendConvPart(text, dims("output_spatial_dimensions"), num("output_batch_dimension"), 'b',
                            num("output_feature_dimension"), 'f');
  if (ok) {
    out += text;
    return;
  }
  out += "raw ";
  AppendFields(out, conv, FindMlirStruct("stablehlo.conv")->fields);
}

void AppendDialectAttrBody(std::string& out, const MlirAttr& a) {
  if (a.name == "stablehlo.conv") {
    out += '<';
    AppendConvDimensions(out, a);
    out += '>';
  } else if (a.name == "stablehlo.type_extensions") {
    std::string list;
    AppendInts(list, Ints(a.Find("bounds")));
    StrAppend(out, "<", std::string_view(list).substr(1, list.size() - 2), ">");
  } else if (a.name == "stablehlo.result_accuracy") {
    AppendAccuracyBody(out, a);
  } else if (a.name == "stablehlo.sub_axis_info" || a.name == "sdy.sub_axis_info") {
    StrAppend(out, "(", Int(a.Find("pre_size")), ")", Int(a.Find("size")));
  } else if (a.name == "stablehlo.axis_ref") {
    const MlirAttr* name = a.Find("name");
    out += "<name = ";
    AppendMlirString(out, name ? name->text : "");
    if (const MlirAttr* sub = a.Find("sub_axis_info")) {
      out += ", sub_axis_info = ";
      AppendDialectAttrBody(out, *sub);
    }
    out += '>';
  } else if (a.name == "stablehlo.mesh") {
    AppendStablehloMeshBody(out, a);
  } else if (a.name == "sdy.mesh") {
    AppendMeshBody(out, a);
  } else if (a.name == "sdy.sharding") {
    AppendShardingBody(out, a);
  } else if (a.name == "sdy.sharding_per_value") {
    out += "<[";
    const MlirAttr* shardings = a.Find("shardings");
    for (size_t i = 0; shardings && i < shardings->elements.size(); ++i) {
      if (i) out += ", ";
      AppendDialectAttrBody(out, *shardings->elements[i]);
    }
    out += "]>";
  } else if (a.name == "sdy.manual_axes") {
    out += '{';
    const MlirAttr* axes = a.Find("value");
    for (size_t i = 0; axes && i < axes->elements.size(); ++i) {
      if (i) out += ", ";
      AppendMlirString(out, axes->elements[i]->text);
    }
    out += '}';
  } else if (a.name == "sdy.axis_ref") {
    AppendAxisRef(out, a);
  } else if (a.name == "sdy.dimension_sharding") {
    AppendDimensionSharding(out, a);
  } else if (const MlirStructInfo* info = FindMlirStruct(a.name)) {
    out += '<';
    AppendFields(out, a, info->fields);
    out += '>';
  } else {
    out += '<';
    for (size_t i = 0; i < a.fields.size(); ++i) {
      if (i) out += ", ";
      AppendNamedAttr(out, a.fields[i]);
    }
    out += '>';
  }
}

void AppendDialectAttr(std::string& out, const MlirAttr& a) {
  if (a.name == "stablehlo.type_extensions") {
    out += "#stablehlo.bounds";
    return AppendDialectAttrBody(out, a);
  }
  // A body that does not start with `<` takes the form #dialect<mnemonic body>.
  std::string body;
  AppendDialectAttrBody(body, a);
  if (body.starts_with('<')) {
    StrAppend(out, "#", a.name, body);
  } else {
    size_t dot = a.name.find('.');
    StrAppend(out, "#", a.name.substr(0, dot), "<", a.name.substr(dot + 1), body, ">");
  }
}

}  // namespace strop
