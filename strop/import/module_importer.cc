// Functions, module attributes and the entry: what a Module has around its instructions.
#include <algorithm>

#include "strop/base/cursor.h"
#include "strop/import/convert.h"
#include "strop/import/mlir_print.h"

namespace strop {
namespace {

std::string_view FunctionName(const MlirOp& func) {
  const MlirAttr* name = func.Attr("sym_name");
  return name && name->kind == MlirAttrKind::String ? name->text : std::string_view();
}

bool HasBody(const MlirOp& func) { return func.regions.size() == 1 && !func.regions[0]->blocks.empty(); }

// The symbols in an attribute, lists and dictionaries searched through.
void CollectSymbols(const MlirAttr& attr, std::vector<std::string_view>& out) {
  std::vector<const MlirAttr*> stack = {&attr};
  for (size_t budget = 100000; !stack.empty() && budget > 0; --budget) {
    const MlirAttr* a = stack.back();
    stack.pop_back();
    if (a->kind == MlirAttrKind::Symbol) out.push_back(a->text);
    if (a->kind == MlirAttrKind::Array) {
      for (size_t i = a->elements.size(); i-- > 0;) stack.push_back(a->elements[i]);
    }
  }
}

// The functions that the ops of a function refer to, in order.
std::vector<std::string_view> Referenced(const MlirOp& func) {
  std::vector<std::string_view> symbols;
  std::vector<const MlirOp*> ops = {&func};
  for (size_t i = 0; i < ops.size(); ++i) {
    for (const MlirNamedAttr& a : ops[i]->attrs) CollectSymbols(*a.value, symbols);
    for (const MlirRegion* region : ops[i]->regions) {
      for (const MlirBlock* block : region->blocks) ops.insert(ops.end(), block->ops.begin(), block->ops.end());
    }
  }
  return symbols;
}

Result<int64_t> IntAttr(const MlirOp& op, std::string_view name, int64_t if_absent) {
  const MlirAttr* a = op.Attr(name);
  if (!a) return if_absent;
  if (a->kind != MlirAttrKind::Integer || a->as_int() < 1) {
    return InvalidArgument("module attribute '", name, "' must be a positive integer, not ", PrintAttr(*a));
  }
  return a->as_int();
}

}  // namespace

std::vector<std::string_view> FunctionsWithBody(const MlirModule& mlir) {
  std::vector<std::string_view> names;
  for (const MlirRegion* region : mlir.root->regions) {
    for (const MlirBlock* block : region->blocks) {
      for (const MlirOp* op : block->ops) {
        if (op->name == "func.func" && HasBody(*op)) names.push_back(FunctionName(*op));
      }
    }
  }
  return names;
}

Result<std::unique_ptr<Module>> ModuleImporter::Run() {
  const MlirAttr* name = mlir_.root->Attr("sym_name");
  module_ = std::make_unique<Module>(
      name && name->kind == MlirAttrKind::String && !name->text.empty() ? AsWord(name->text) : "main");
  STROP_TRY(CollectFunctions());
  STROP_TRY(ImportModuleAttrs());
  std::vector<const MlirOp*> order;
  STROP_TRY(OrderFunctions(order));
  for (const MlirOp* func : order)
    if (!refines() || func == entry_)
      STROP_TRY(ImportFunction(*func));  // refine.cc imports callees when they are called
  Computation* entry = computations_[FunctionName(*entry_)];
  module_->set_entry(entry);
  STROP_TRY(ImportEntryAttrs(*entry_, entry));
  module_->config().stack_frames = locations_.TakeFrames();
  return std::move(module_);
}

Status ModuleImporter::CollectFunctions() {
  if (mlir_.root->regions.size() != 1 || mlir_.root->regions[0]->blocks.size() != 1)
    return InvalidArgument("the module has no body");
  for (const MlirOp* op : mlir_.root->regions[0]->blocks[0]->ops) {
    if (op->name == "func.func") {
      std::string_view name = FunctionName(*op);
      if (name.empty()) return InvalidArgument("a function has no name").At(LocationText(op->loc));
      if (!functions_.emplace(name, op).second)
        return InvalidArgument("function @", name, " is defined twice").At(LocationText(op->loc));
      function_list_.push_back(op);
    } else if (op->name == "sdy.mesh") {
      const MlirAttr* mesh = op->Attr("mesh");
      std::string_view name = FunctionName(*op);
      if (!mesh || mesh->name != "sdy.mesh" || name.empty())
        return InvalidArgument("'sdy.mesh' needs a name and a mesh").At(LocationText(op->loc));
      meshes_.emplace(name, mesh);
      mesh_list_.push_back({name, mesh});
    } else {
      return Unimplemented("operation '", op->name, "' outside of a function").At(LocationText(op->loc));
    }
  }
  auto main = functions_.find(entry_name_.empty() ? std::string_view("main") : entry_name_);
  if (main == functions_.end() && !entry_name_.empty()) return NotFound("the module has no function @", entry_name_);
  if (main != functions_.end()) {
    entry_ = main->second;
  } else if (function_list_.size() == 1) {
    entry_ = function_list_[0];
  } else {
    return InvalidArgument(function_list_.empty() ? "the module has no function"
                                                  : "the module has several functions, but none is called @main");
  }
  if (!HasBody(*entry_))
    return InvalidArgument("the entry function @", FunctionName(*entry_), " has no body").At(LocationText(entry_->loc));
  return OkStatus();
}

// Callees before callers; only functions that the entry reaches.
Status ModuleImporter::OrderFunctions(std::vector<const MlirOp*>& order) {
  struct Visit {
    const MlirOp* func;
    std::vector<const MlirOp*> callees;
    size_t next = 0;
  };
  auto visit = [&](const MlirOp* func) {
    Visit v{func, {}};
    for (std::string_view symbol : Referenced(*func)) {
      auto it = functions_.find(symbol);
      if (it != functions_.end() && HasBody(*it->second)) v.callees.push_back(it->second);
    }
    return v;
  };
  std::unordered_map<const MlirOp*, bool> done;  // false: being visited
  std::vector<Visit> stack;
  stack.push_back(visit(entry_));
  done[entry_] = false;
  while (!stack.empty()) {
    Visit& top = stack.back();
    if (top.next == top.callees.size()) {
      done[top.func] = true;
      order.push_back(top.func);
      stack.pop_back();
      continue;
    }
    const MlirOp* callee = top.callees[top.next++];
    auto [it, inserted] = done.emplace(callee, false);
    if (inserted) {
      stack.push_back(visit(callee));
    } else if (!it->second) {
      return InvalidArgument("function @", FunctionName(*callee), " calls itself, which cannot be compiled")
          .At(LocationText(callee->loc));
    }
  }
  return OkStatus();
}

Status ModuleImporter::ImportFunction(const MlirOp& func) {
  std::string_view name = FunctionName(func);
  const MlirRegion& region = *func.regions[0];
  if (region.blocks.size() != 1) {
    return Unimplemented("function @", name, " has ", region.blocks.size(),
                         " blocks; branches between blocks are not supported")
        .At(LocationText(func.loc));
  }
  const MlirBlock& block = *region.blocks[0];
  Computation* computation = module_->AddComputation(std::string(name));
  BlockImporter importer(*this, computation);
  const MlirAttr* arg_attrs = func.Attr("arg_attrs");
  const bool refined = refines() && &func == entry_;
  if (refined && arguments_.size() != block.args.size())
    return InvalidArgument("the program takes ", block.args.size(), " arguments, ", arguments_.size(), " were given");
  for (size_t i = 0; i < block.args.size(); ++i) {
    if (refined)
      STROP_TRY(RefineArgument(*block.args[i], static_cast<int64_t>(i), arguments_[i], LocationText(func.loc)));
    const MlirValue& arg = *block.args[i];
    Result<Shape> shape = ShapeOf(*arg.type);
    if (!shape.ok())
      return std::move(shape).status().At(LocationText(func.loc)).Note(StrCat("argument ", i, " of @", name));
    Instruction* parameter = computation->AddParameter(static_cast<int64_t>(i), *std::move(shape), StrCat("Arg_", i));
    if (std::shared_ptr<const OpMetadata> metadata = locations_.Metadata(arg.loc))
      parameter->set_metadata(std::move(metadata));
    if (arg_attrs && i < arg_attrs->elements.size())
      STROP_TRY(ApplyExtras(*this, arg_attrs->elements[i]->fields, parameter, func.loc));
    importer.Set(arg, parameter);
  }
  STROP_ASSIGN(std::vector<Instruction*> results, importer.Run(block));
  const MlirAttr* type = func.Attr("function_type");
  if (type && type->kind == MlirAttrKind::Type && type->type->kind == MlirTypeKind::Function) {
    std::span<const MlirType* const> declared = type->type->results();
    if (declared.size() != results.size()) {
      return InvalidArgument("function @", name, " declares ", declared.size(), " results, but returns ",
                             results.size())
          .At(LocationText(func.loc));
    }
    for (size_t i = 0; i < results.size(); ++i) {
      STROP_ASSIGN(Shape shape, ShapeOf(*declared[i]));
      if (!shape.Compatible(results[i]->shape()) && !(refines() && RefinesTo(shape, results[i]->shape()))) {
        return InvalidArgument("function @", name, " declares result ", i, " as ", PrintType(*declared[i]),
                               ", but returns ", results[i]->shape())
            .At(LocationText(func.loc));
      }
    }
  }
  Instruction* root = results.size() == 1 ? results[0] : nullptr;
  if (!root) {
    std::vector<Shape> shapes;
    for (Instruction* r : results) shapes.push_back(r->shape());
    root = computation->Add(Op::Tuple, Shape::Tuple(std::move(shapes)), results, NoAttrs{});
  }
  computation->set_root(root);
  computations_[name] = computation;
  return OkStatus();
}

Result<Computation*> ModuleImporter::Callee(std::string_view name, const MlirOp& user) {
  auto it = computations_.find(name);
  if (it != computations_.end()) return it->second;
  if (auto function = functions_.find(name); refines() && function != functions_.end() &&
                                             !function->second->regions.empty() &&
                                             !function->second->regions[0]->blocks.empty())
    return ImportCallee(*function->second, user);
  if (functions_.contains(name))
    return Unimplemented("'", user.name, "': function @", name, " has no body").At(LocationText(user.loc));
  return InvalidArgument("'", user.name, "': there is no function @", name).At(LocationText(user.loc));
}

const MlirAttr* ModuleImporter::Mesh(std::string_view name) const {
  auto it = meshes_.find(name);
  return it == meshes_.end() ? nullptr : it->second;
}

Status ModuleImporter::ImportModuleAttrs() {
  ModuleConfig& config = module_->config();
  STROP_ASSIGN(config.num_partitions, IntAttr(*mlir_.root, "mhlo.num_partitions", 1));
  STROP_ASSIGN(config.replica_count, IntAttr(*mlir_.root, "mhlo.num_replicas", 1));
  config.use_spmd_partitioning = config.num_partitions > 1;
  config.use_shardy_partitioner = !mesh_list_.empty();
  if (const MlirAttr* extra = mlir_.root->Attr("mhlo.frontend_attributes")) {
    for (const MlirNamedAttr& f : extra->fields) {
      config.frontend_attributes[std::string(f.name)] =
          f.value->kind == MlirAttrKind::String ? std::string(f.value->text) : PrintAttr(*f.value);
    }
  }
  if (!mesh_list_.empty()) {
    std::string text = "{";
    for (const auto& [name, mesh] : mesh_list_) {
      if (text.size() > 1) text += ", ";
      AppendMlirKey(text, name);
      StrAppend(text, " = ", PrintAttr(*mesh));
    }
    config.frontend_attributes["xla.sdy.meshes"] = text + "}";
  }
  // As XLA writes it where aliasing was found before the conversion to MLIR.
  const MlirAttr* aliases = mlir_.root->Attr("mhlo.input_output_alias");
  for (const MlirAttr* entry : aliases ? aliases->elements : std::span<const MlirAttr* const>()) {
    const MlirAttr* alias = entry->Find("alias");
    const MlirAttr* output = entry->Find("output_index");
    const MlirAttr* number = alias ? alias->Find("parameter_number") : nullptr;
    const MlirAttr* index = alias ? alias->Find("parameter_index") : nullptr;
    const MlirAttr* kind = alias ? alias->Find("kind") : nullptr;
    if (!output || !number || !index)
      return InvalidArgument("module attribute 'mhlo.input_output_alias' is not as expected: ", PrintAttr(*entry));
    InputOutputAlias made;
    STROP_ASSIGN(made.output_index, IntegersOf(*output));
    STROP_ASSIGN(made.parameter_index, IntegersOf(*index));
    made.parameter = number->as_int();
    made.must_alias = kind && kind->text == "must_alias";
    config.input_output_alias.push_back(std::move(made));
  }
  return OkStatus();
}

Status ModuleImporter::ImportEntryAttrs(const MlirOp& func, Computation* computation) {
  ModuleConfig& config = module_->config();
  size_t num_args = static_cast<size_t>(computation->parameter_count());
  const Shape& root_shape = computation->root()->shape();
  // The module's aliases number the results, also where there is only one, which is no tuple here.
  for (InputOutputAlias& alias : config.input_output_alias)
    if (!root_shape.IsTuple() && alias.output_index == Dims{0}) alias.output_index = {};
  const MlirAttr* type = func.Attr("function_type");
  size_t num_results = type && type->type ? type->type->results().size() : 1;
  auto fail = [&](const auto&... args) {
    return InvalidArgument("@", FunctionName(func), ": ", StrCat(args...)).At(LocationText(func.loc));
  };
  auto list = [](const MlirAttr* attrs, size_t i) {
    return attrs && i < attrs->elements.size() ? attrs->elements[i] : nullptr;
  };
  auto text = [](const MlirAttr* dict, std::string_view key) -> std::string_view {
    const MlirAttr* a = dict ? dict->Find(key) : nullptr;
    return a && a->kind == MlirAttrKind::String ? a->text : std::string_view();
  };
  auto put = [](std::vector<std::string>& values, size_t n, size_t i, std::string_view value) {
    if (value.empty()) return;
    values.resize(n);
    values[i] = std::string(value);
  };
  const MlirAttr* arg_attrs = func.Attr("arg_attrs");
  for (size_t i = 0; i < num_args; ++i) {
    const MlirAttr* dict = list(arg_attrs, i);
    if (!dict) continue;
    put(config.parameter_memory_kinds, num_args, i, text(dict, "mhlo.memory_kind"));
    put(config.parameter_layout_modes, num_args, i, text(dict, "mhlo.layout_mode"));
    if (const MlirAttr* alias = dict->Find("tf.aliasing_output")) {
      if (alias->kind != MlirAttrKind::Integer || alias->as_int() < 0 ||
          alias->as_int() >= static_cast<int64_t>(num_results)) {
        return fail("tf.aliasing_output = ", PrintAttr(*alias), " of argument ", i, " names no result");
      }
      InputOutputAlias made;
      if (num_results > 1 || root_shape.IsTuple()) made.output_index = {alias->as_int()};
      made.parameter = static_cast<int64_t>(i);
      config.input_output_alias.push_back(std::move(made));
    }
    if (const MlirAttr* donor = dict->Find("jax.buffer_donor");
        donor && donor->kind == MlirAttrKind::Bool && donor->bits) {
      config.buffer_donors.push_back({static_cast<int64_t>(i), {}});
    }
  }
  const MlirAttr* res_attrs = func.Attr("res_attrs");
  std::vector<std::optional<Sharding>> shardings(num_results);
  bool any = false;
  for (size_t i = 0; i < num_results; ++i) {
    const MlirAttr* dict = list(res_attrs, i);
    if (!dict) continue;
    put(config.result_memory_kinds, num_results, i, text(dict, "mhlo.memory_kind"));
    put(config.result_layout_modes, num_results, i, text(dict, "mhlo.layout_mode"));
    if (std::string_view sharding = text(dict, "mhlo.sharding"); !sharding.empty()) {
      Result<Sharding> parsed = ParseSharding(sharding);
      if (!parsed.ok()) return fail("mhlo.sharding of result ", i, ": ", parsed.status().message());
      shardings[i] = *parsed;
    } else if (const MlirAttr* sdy = dict->Find("sdy.sharding")) {
      const Shape& shape = num_results == 1 ? root_shape : root_shape.element(static_cast<int64_t>(i));
      shardings[i] = HloSharding(*this, *sdy, shape.IsArray() ? shape.rank() : 0);
      module_->config().frontend_attributes[StrCat("xla.sdy.result_sharding.", i)] = PrintAttr(*sdy);
    }
    any = any || shardings[i].has_value();
  }
  if (!any) return OkStatus();
  // The root must be an instruction of its own: what it shares with the parameter or value that it returns is not its
  // sharding.
  Instruction* root = computation->root();
  if (num_results == 1) {
    if (!single_device() && (root->sharding() || root->IsParameter() || root->use_count() > 0)) {
      CustomCallAttrs mark;
      mark.target = "Sharding";
      root = computation->Add(Op::CustomCall, root->shape(), {root}, std::move(mark));
      computation->set_root(root);
    }
    if (!root->sharding() && !root->IsParameter()) root->set_sharding(*shardings[0]);
    return OkStatus();
  }
  Sharding tuple;
  tuple.kind = ShardingKind::Tuple;
  for (const std::optional<Sharding>& s : shardings) {
    tuple.elements.push_back(s ? *s : Sharding{.kind = ShardingKind::Unknown});
  }
  root->set_sharding(std::move(tuple));
  return OkStatus();
}

}  // namespace strop
