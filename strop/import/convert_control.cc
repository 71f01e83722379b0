// Control flow, calls, tuples, tokens and host transfers.
#include "strop/import/convert.h"

namespace strop {
namespace {

// A tuple of values, or the value itself if it is one and `bare_if_one`.
Instruction* Pack(OpImport& op, std::span<Instruction* const> values, bool bare_if_one) {
  if (values.size() == 1 && bare_if_one) return values[0];
  std::vector<Shape> shapes;
  for (Instruction* v : values) shapes.push_back(v->shape());
  return op.Add(Op::Tuple, Shape::Tuple(std::move(shapes)), values, NoAttrs{});
}

Instruction* Element(Computation* computation, Instruction* tuple, int64_t i) {
  return computation->Add(Op::GetTupleElement, tuple->shape().element(i), {tuple}, GetTupleElementAttrs{i});
}

// Gives `values` to a computation through its one parameter, packed as Pack does.
void BindParameter(BlockImporter& inner, std::span<const MlirValue* const> values, const Shape& packed,
                   bool bare_if_one) {
  Instruction* parameter = inner.computation()->AddParameter(0, packed, "arg_tuple");
  for (size_t i = 0; i < values.size(); ++i) {
    bool bare = values.size() == 1 && bare_if_one;
    inner.Set(*values[i], bare ? parameter : Element(inner.computation(), parameter, static_cast<int64_t>(i)));
  }
}

Result<std::vector<Instruction*>> Values(OpImport& op, std::span<const MlirValue* const> values) {
  std::vector<Instruction*> out;
  for (const MlirValue* v : values) {
    STROP_ASSIGN(Instruction * value, op.block().Value(*v, op.mlir()));
    out.push_back(value);
  }
  return out;
}

}  // namespace

// if and case: each branch takes what it uses from outside as a tuple of its own.
Status ConvertConditional(OpImport& op) {
  std::vector<Instruction*> operands = {op.operand(0)};
  std::vector<Computation*> branches;
  for (const MlirRegion* region : op.mlir().regions) {
    std::vector<const MlirValue*> captured = op.block().Captured(*region);
    STROP_ASSIGN(std::vector<Instruction*> values, Values(op, captured));
    Instruction* packed = Pack(op, values, false);
    auto bind = [&](BlockImporter& inner, const MlirBlock& block) -> Status {
      if (!block.args.empty()) return op.Invalid("a branch must not have arguments");
      BindParameter(inner, captured, packed->shape(), false);
      return OkStatus();
    };
    STROP_ASSIGN(Computation * branch, op.block().Region(*region, "branch", bind, false));
    operands.push_back(packed);
    branches.push_back(branch);
  }
  return op.Emit(Op::Conditional, operands, ConditionalAttrs{}, branches);
}

// The state is the operands, followed by what the regions use from outside; one value by itself, or a tuple.
Status ConvertWhile(OpImport& op) {
  std::vector<const MlirValue*> captured = op.block().Captured(*op.mlir().regions[0]);
  for (const MlirValue* v : op.block().Captured(*op.mlir().regions[1])) {
    if (std::find(captured.begin(), captured.end(), v) == captured.end()) captured.push_back(v);
  }
  STROP_ASSIGN(std::vector<Instruction*> state, Values(op, captured));
  state.insert(state.begin(), op.operands().begin(), op.operands().end());
  if (op.shapes().size() != op.operands().size())
    return op.Invalid("has ", op.operand_count(), " operands and ", op.shapes().size(), " results (while_c3)");
  Instruction* init = Pack(op, state, true);
  Computation* called[2];
  for (int r = 0; r < 2; ++r) {
    const MlirRegion& region = *op.mlir().regions[r];
    auto bind = [&](BlockImporter& inner, const MlirBlock& block) -> Status {
      if (block.args.size() != op.operands().size()) {
        return op.Invalid("the ", r == 0 ? "condition" : "body", " has ", block.args.size(), " arguments for ",
                          op.operand_count(), " operands (while_c", r + 1, ")");
      }
      for (size_t i = 0; i < block.args.size(); ++i) {
        Result<Shape> shape = ShapeOf(*block.args[i]->type);
        if (!shape.ok()) return op.At(std::move(shape).status());
        if (!shape->IsStatic()) continue;  // the verifier knows which sizes agree
        if (!shape->Compatible(op.operand(static_cast<int64_t>(i))->shape())) {
          return op.Invalid("argument ", i, " of the ", r == 0 ? "condition" : "body", " is ", *shape, ", but operand ",
                            i, " is ", op.operand(static_cast<int64_t>(i))->shape(), " (while_c", r + 1, ")");
        }
      }
      std::vector<const MlirValue*> values(block.args.begin(), block.args.end());
      values.insert(values.end(), captured.begin(), captured.end());
      BindParameter(inner, values, init->shape(), true);
      return OkStatus();
    };
    bool condition = r == 0;
    std::span<const MlirValue* const> pass_through =
        condition ? std::span<const MlirValue* const>() : std::span<const MlirValue* const>(captured);
    STROP_ASSIGN(called[r], op.block().Region(region, condition ? "while_condition" : "while_body", bind,
                                              !condition && state.size() != 1, pass_through));
  }
  Instruction* loop = op.Add(Op::While, init->shape(), {&init, 1}, NoAttrs{}, called);
  if (state.size() == 1) return captured.empty() ? op.SetResult(loop) : op.SetResults({});
  return op.SetResultsFromTuple(loop);
}

Status ConvertCall(OpImport& op) {
  const MlirAttr* callee = op.attr("callee");
  if (!callee || callee->kind != MlirAttrKind::Symbol) return op.Invalid("attribute 'callee' must name a function");
  STROP_ASSIGN(Computation * computation, op.module().CalleeFor(op, callee->text));
  Computation* called[] = {computation};
  return op.Emit(Op::Call, op.operands(), CallAttrs{}, called);
}

namespace {

// letter {letter digit _} . {letter digit _ $}, with one dot or more
bool IsNamespacedName(const std::string& name) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  auto word = [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '_'; };
  if (name.empty() || !letter(name[0])) return false;
  int parts = 1;
  for (size_t i = 1; i < name.size(); ++i) {
    if (name[i] == '.') {
      if (name[i - 1] == '.') return false;
      ++parts;
    } else if (!word(name[i]) && !(name[i] == '$' && parts > 1)) {
      return false;
    }
  }
  return parts > 1 && name.back() != '.';
}

}  // namespace

// A call of the decomposition that says what it stands for.
Status ConvertComposite(OpImport& op) {
  const MlirAttr* decomposition = op.attr("decomposition");
  if (!decomposition || decomposition->kind != MlirAttrKind::Symbol)
    return op.Invalid("attribute 'decomposition' must name a function");
  if (!op.mlir().regions.empty()) return op.Unsupported("composites with regions");
  STROP_ASSIGN(std::string name, op.Text("name"));
  if (!IsNamespacedName(name))
    return op.Invalid("\"", name, "\" is no name of an operation in a namespace, such as \"my.op\"");
  STROP_ASSIGN(int64_t version, op.Int("version", 0));
  STROP_ASSIGN(Computation * computation, op.module().Callee(decomposition->text, op.mlir()));
  const MlirAttr* attributes = op.attr("composite_attributes");
  Computation* called[] = {computation};
  CallAttrs attrs;
  attrs.is_composite = true;
  Instruction* call = op.Add(Op::Call, op.ResultShape(), op.operands(), attrs, called);
  call->set_frontend_attribute("composite.name", name);
  call->set_frontend_attribute("composite.attributes", attributes ? PrintAttr(*attributes) : "{}");
  call->set_frontend_attribute("composite.version", StrCat(version));
  return op.shapes().size() == 1 ? op.SetResult(call) : op.SetResultsFromTuple(call);
}

Status ConvertGetTupleElement(OpImport& op) {
  STROP_ASSIGN(int64_t index, op.Int("index"));
  return op.Emit(Op::GetTupleElement, op.operands(), GetTupleElementAttrs{index});
}

Status ConvertOptimizationBarrier(OpImport& op) {
  if (op.operand_count() != static_cast<int64_t>(op.shapes().size()))
    return op.Invalid("must have as many results as operands");
  if (op.operand_count() == 0) return OkStatus();
  Instruction* packed = Pack(op, op.operands(), true);
  return op.Emit(Op::OptimizationBarrier, {packed});
}

// ---- custom calls
// -----------------------------------------------------------------------------------------------------

namespace {

// minor-to-major lists, one per operand or result; token and tuple entries are ignored
Result<std::vector<Shape>> WithLayouts(const OpImport& op, std::string_view name, std::vector<Shape> shapes) {
  const MlirAttr* list = op.attr(name);
  if (list->kind != MlirAttrKind::Array || list->elements.size() != shapes.size()) {
    return op.Invalid("attribute '", name, "' must have ", shapes.size(), " layouts");
  }
  for (size_t i = 0; i < shapes.size(); ++i) {
    Result<std::vector<int64_t>> order = IntegersOf(*list->elements[i]);
    if (!order.ok()) return op.Invalid("attribute '", name, "': ", order.status().message());
    if (shapes[i].IsTuple()) return op.Unsupported("layouts of tuples");
    if (!shapes[i].IsArray()) continue;
    Layout layout;
    for (int64_t d : *order) layout.minor_to_major.push_back(d);
    shapes[i].set_layout(std::move(layout));
    Status valid = shapes[i].Validate();
    if (!valid.ok()) return op.Invalid("attribute '", name, "', layout ", i, ": ", valid.message());
  }
  return shapes;
}

Status CustomCallConfig(const OpImport& op, CustomCallAttrs& attrs) {
  STROP_ASSIGN(int64_t api, op.Int("api_version", 1));
  if (api < 0 || api > 4) return op.Invalid("api_version ", api, " is not known");
  attrs.api_version = static_cast<ApiVersion>(api);
  // XLA puts a dictionary there where the format cannot hold one as backend_config.
  const MlirAttr* config = op.attr("mhlo.backend_config");
  const bool wants_text = !config && api >= 1 && api <= 3;
  if (!config) config = op.attr("backend_config");
  if (!config) return OkStatus();
  if (config->kind == MlirAttrKind::String) {
    attrs.opaque = std::string(config->text);
  } else if (wants_text) {
    return op.Invalid("backend_config must be a string for api_version ", api);
  } else if (config->kind == MlirAttrKind::Dict) {
    attrs.opaque = PrintAttr(*config);
    attrs.api_version = ApiVersion::TypedFfi;
  } else {
    return op.Invalid("backend_config must be a string or a dictionary");
  }
  return OkStatus();
}

// Part of a shape by tuple indices; null if there is none.
const Shape* SubShape(const Shape& shape, const Dims& index) {
  const Shape* s = &shape;
  for (int64_t i : index) {
    if (!s->IsTuple() || i < 0 || i >= s->tuple_size()) return nullptr;
    s = &s->element(i);
  }
  return s;
}

Status CustomCallAliases(const OpImport& op, CustomCallAttrs& attrs) {
  const MlirAttr* aliases = op.attr("output_operand_aliases");
  for (const MlirAttr* a : aliases ? aliases->elements : std::span<const MlirAttr* const>()) {
    if (a->name != "stablehlo.output_operand_alias") return op.Invalid("output_operand_aliases is not as expected");
    OutputOperandAlias alias;
    STROP_ASSIGN(alias.output_index, op.FieldInts(*a, "output_tuple_indices"));
    STROP_ASSIGN(alias.operand_index, op.FieldInts(*a, "operand_tuple_indices"));
    alias.operand = op.FieldInt(*a, "operand_index");
    if (alias.operand < 0 || alias.operand >= op.operand_count())
      return op.Invalid("output_operand_aliases name operand ", alias.operand);
    const Shape result = op.ResultShape();
    const Shape* to = SubShape(result, alias.output_index);
    const Shape* from = SubShape(op.operand(alias.operand)->shape(), alias.operand_index);
    if (!to || !from)
      return op.Invalid("output_operand_aliases: there is no such part in ",
                        !to ? result : op.operand(alias.operand)->shape());
    if (!to->Compatible(*from))
      return op.Invalid("output_operand_aliases: ", *to, " cannot share the memory of ", *from);
    attrs.output_to_operand_aliasing.push_back(std::move(alias));
  }
  return OkStatus();
}

// Ops that went out as custom calls before StableHLO had them.
struct OldName {
  std::string_view target;
  Op op;
};
constexpr OldName kOldNames[] = {{"mhlo.erf", Op::Erf},     {"mhlo.tan", Op::Tan},   {"mhlo.acos", Op::Acos},
                                 {"mhlo.acosh", Op::Acosh}, {"mhlo.asin", Op::Asin}, {"mhlo.asinh", Op::Asinh},
                                 {"mhlo.atanh", Op::Atanh}, {"mhlo.cosh", Op::Cosh}, {"mhlo.sinh", Op::Sinh}};

}  // namespace

Status ConvertCustomCall(OpImport& op) {
  CustomCallAttrs attrs;
  STROP_ASSIGN(attrs.target, op.Text("call_target_name"));
  for (const OldName& old : kOldNames) {
    if (old.target == attrs.target && op.operand_count() == 1 && op.shapes().size() == 1)
      return op.Emit(old.op, op.operands(), DefaultAttrs(old.op));
  }
  if (attrs.target == "ApproxTopK") return ConvertApproxTopK(op);
  // JAX's wish that one value be computed before another. Steps run as soon as their operands are there, so nothing is
  // left of it.
  if (attrs.target == "control_dep" && op.shapes().empty()) return OkStatus();
  STROP_ASSIGN(attrs.has_side_effect, op.Bool("has_side_effect"));
  STROP_TRY(CustomCallConfig(op, attrs));
  STROP_TRY(CustomCallAliases(op, attrs));
  if (attrs.target.starts_with("check.")) attrs.has_side_effect = true;
  std::vector<Shape> results = op.shapes();
  if ((op.attr("operand_layouts") != nullptr) != (op.attr("result_layouts") != nullptr)) {
    return op.Invalid("layouts must be given for both operands and results, or for none");
  }
  if (op.attr("operand_layouts")) {
    std::vector<Shape> shapes;
    for (Instruction* o : op.operands()) shapes.push_back(o->shape());
    STROP_ASSIGN(attrs.operand_layout_constraints, WithLayouts(op, "operand_layouts", std::move(shapes)));
    attrs.has_layout_constraints = true;
  }
  if (op.attr("result_layouts")) {
    // One tuple result is named leaf by leaf.
    bool one_tuple = results.size() == 1 && results[0].IsTuple();
    STROP_ASSIGN(std::vector<Shape> laid_out,
                 WithLayouts(op, "result_layouts", one_tuple ? results[0].elements() : results));
    results = one_tuple ? std::vector<Shape>{Shape::Tuple(std::move(laid_out))} : std::move(laid_out);
  }
  std::vector<Computation*> called;
  const MlirAttr* computations = op.attr("called_computations");
  for (const MlirAttr* symbol : computations ? computations->elements : std::span<const MlirAttr* const>()) {
    STROP_ASSIGN(Computation * computation, op.module().Callee(symbol->text, op.mlir()));
    called.push_back(computation);
  }
  Instruction* call = op.Add(Op::CustomCall, results.size() == 1 ? results[0] : Shape::Tuple(results), op.operands(),
                             std::move(attrs), called);
  return results.size() == 1 ? op.SetResult(call) : op.SetResultsFromTuple(call);
}

// ---- the host and other devices
// -----------------------------------------------------------------------------------------

// (data..., token) = infeed(token): HLO gives ((data...), token)
Status ConvertInfeed(OpImport& op) {
  InfeedAttrs attrs;
  STROP_ASSIGN(attrs.infeed_config, op.Text("infeed_config", ""));
  if (!op.shapes().back().IsToken()) return op.Invalid("the last result must be a token (infeed_c2)");
  for (size_t i = 0; i + 1 < op.shapes().size(); ++i) {
    if (!op.shapes()[i].IsArray()) return op.Invalid("result ", i, " must be an array (infeed_c1)");
  }
  if (const MlirAttr* layout = op.attr("layout")) {
    for (const MlirAttr* e : layout->elements) {
      if (e->kind != MlirAttrKind::Array)
        return op.Invalid("attribute 'layout' must be a list of lists, not ", PrintAttr(*layout));
    }
  }
  std::vector<Shape> data(op.shapes().begin(), op.shapes().end() - 1);
  int64_t n = static_cast<int64_t>(data.size());
  Shape result = Shape::Tuple({Shape::Tuple(std::move(data)), Shape::Token()});
  Instruction* infeed = op.Add(Op::Infeed, result, op.operands(), std::move(attrs));
  Instruction* tuple = Element(op.b().computation(), infeed, 0);
  std::vector<Instruction*> results;
  for (int64_t i = 0; i < n; ++i) results.push_back(Element(op.b().computation(), tuple, i));
  results.push_back(Element(op.b().computation(), infeed, 1));
  return op.SetResults(results);
}

Status ConvertOutfeed(OpImport& op) {
  OutfeedAttrs attrs;
  STROP_ASSIGN(attrs.outfeed_config, op.Text("outfeed_config", ""));
  Instruction* token = op.operands().back();
  Instruction* data = Pack(op, op.operands().first(op.operands().size() - 1), false);
  attrs.outfeed_shape = data->shape();
  return op.Emit(Op::Outfeed, {data, token}, std::move(attrs));
}

namespace {

Result<ChannelAttrs> ChannelOf(const OpImport& op) {
  STROP_ASSIGN(const MlirAttr* handle, op.StructAttr("channel_handle", "stablehlo.channel_handle"));
  ChannelAttrs attrs;
  attrs.channel_id = op.FieldInt(*handle, "handle");
  STROP_ASSIGN(attrs.is_host_transfer, op.Bool("is_host_transfer"));
  // Channel types: 1 between devices, 2 from device to host, 3 from host to device.
  int64_t type = op.FieldInt(*handle, "type"), wanted = !attrs.is_host_transfer              ? 1
                                                        : op.mlir().name == "stablehlo.send" ? 2
                                                                                             : 3;
  if (type != wanted)
    return op.Invalid("channel type ", type,
                      " does not fit is_host_transfer = ", attrs.is_host_transfer ? "true" : "false");
  STROP_TRY(op.CheckPairs("source_target_pairs"));
  return attrs;
}

// Pairs go along as XLA spells them for its own passes.
Status AddPairs(const OpImport& op, Instruction* instruction) {
  STROP_ASSIGN(Dims pairs, op.Ints("source_target_pairs", Dims{}));
  if (pairs.empty()) return OkStatus();
  std::string text = "{";
  for (size_t i = 0; i + 1 < pairs.size(); i += 2) StrAppend(text, i ? "," : "", "{", pairs[i], ",", pairs[i + 1], "}");
  instruction->set_frontend_attribute("_xla_send_recv_source_target_pairs", text + "}");
  return OkStatus();
}

}  // namespace

Status ConvertSend(OpImport& op) {
  STROP_ASSIGN(ChannelAttrs attrs, ChannelOf(op));
  Instruction* token = op.operands().back();
  Instruction* data = Pack(op, op.operands().first(op.operands().size() - 1), true);
  Instruction* operands[] = {data, token};
  Shape shape = Shape::Tuple({data->shape(), Shape::Scalar(ElementType::U32), Shape::Token()});
  Instruction* send = op.Add(Op::Send, shape, operands, attrs);
  STROP_TRY(AddPairs(op, send));
  return op.Emit(Op::SendDone, {send}, attrs);
}

Status ConvertRecv(OpImport& op) {
  STROP_ASSIGN(ChannelAttrs attrs, ChannelOf(op));
  if (!op.shapes().back().IsToken()) return op.Invalid("the last result must be a token (recv_c4)");
  std::vector<Shape> parts(op.shapes().begin(), op.shapes().end() - 1);
  bool bare = parts.size() == 1;
  int64_t n = static_cast<int64_t>(parts.size());
  Shape data = bare ? parts[0] : Shape::Tuple(std::move(parts));
  Instruction* recv =
      op.Add(Op::Recv, Shape::Tuple({data, Shape::Scalar(ElementType::U32), Shape::Token()}), op.operands(), attrs);
  STROP_TRY(AddPairs(op, recv));
  Instruction* done = op.Add(Op::RecvDone, Shape::Tuple({data, Shape::Token()}), {&recv, 1}, attrs);
  Instruction* received = Element(op.b().computation(), done, 0);
  std::vector<Instruction*> results;
  for (int64_t i = 0; i < n; ++i) results.push_back(bare ? received : Element(op.b().computation(), received, i));
  results.push_back(Element(op.b().computation(), done, 1));
  return op.SetResults(results);
}

}  // namespace strop
