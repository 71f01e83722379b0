#include "strop/import/convert.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>

namespace strop {

// ---- types and constants
// ----------------------------------------------------------------------------------------------

Result<ElementType> ElementTypeOf(const MlirType& type) {
  auto no = [&]() -> Status { return Unimplemented("element type ", PrintType(type), " has no counterpart in HLO"); };
  switch (type.kind) {
    case MlirTypeKind::Index: return ElementType::S64;
    case MlirTypeKind::Float: {
      ElementType t = InfoOf(type.float_kind).element;
      if (t == ElementType::Invalid) return no();
      return t;
    }
    case MlirTypeKind::Complex: {
      STROP_ASSIGN(ElementType part, ElementTypeOf(*type.element()));
      if (part != ElementType::F32 && part != ElementType::F64) return no();
      return ComplexOf(part);
    }
    case MlirTypeKind::Integer: {
      bool is_unsigned = type.sign == MlirSign::Unsigned;
      switch (type.width) {
        case 1:
          return type.sign == MlirSign::Signless ? ElementType::Pred : is_unsigned ? ElementType::U1 : ElementType::S1;
        case 2: return is_unsigned ? ElementType::U2 : ElementType::S2;
        case 4: return is_unsigned ? ElementType::U4 : ElementType::S4;
        case 8: return is_unsigned ? ElementType::U8 : ElementType::S8;
        case 16: return is_unsigned ? ElementType::U16 : ElementType::S16;
        case 32: return is_unsigned ? ElementType::U32 : ElementType::S32;
        case 64: return is_unsigned ? ElementType::U64 : ElementType::S64;
        default: return no();
      }
    }
    case MlirTypeKind::Quantized: {
      MlirType storage = *type.types[0];
      if (!(type.quant->flags & 1)) storage.sign = MlirSign::Unsigned;
      return ElementTypeOf(storage);
    }
    default: return no();
  }
}

ElementType UnsignedOf(int bits) {
  for (ElementType t : {ElementType::U1, ElementType::U2, ElementType::U4, ElementType::U8, ElementType::U16,
                        ElementType::U32, ElementType::U64})
    if (Bits(t) == bits) return t;
  return ElementType::Invalid;
}

Result<Shape> ShapeOf(const MlirType& type) {
  switch (type.kind) {
    case MlirTypeKind::Token: return Shape::Token();
    case MlirTypeKind::Future:  // stands for what it will hold
      for (const MlirType* t : type.types) {
        if (!t->IsTensor()) return InvalidArgument("a future must hold tensors, not ", PrintType(*t));
      }
      [[fallthrough]];
    case MlirTypeKind::Tuple: {
      if (type.kind == MlirTypeKind::Future && type.types.size() == 1) return ShapeOf(*type.types[0]);
      std::vector<Shape> elements;
      for (const MlirType* t : type.types) {
        STROP_ASSIGN(Shape s, ShapeOf(*t));
        elements.push_back(std::move(s));
      }
      return Shape::Tuple(std::move(elements));
    }
    case MlirTypeKind::Tensor:
    case MlirTypeKind::MemRef: {
      STROP_ASSIGN(ElementType element, ElementTypeOf(*type.element()));
      if (type.dims.size() > 64) return Unimplemented("a tensor of rank ", type.dims.size());
      std::vector<int64_t> bounds;
      if (type.encoding) {
        const MlirAttr* given =
            type.encoding->name == "stablehlo.type_extensions" ? type.encoding->Find("bounds") : nullptr;
        if (!given) return Unimplemented("tensor encoding ", PrintAttr(*type.encoding));
        STROP_ASSIGN(bounds, IntegersOf(*given));
        if (bounds.size() != type.dims.size())
          return InvalidArgument("type ", PrintType(type), " has ", bounds.size(), " bounds for its rank");
      }
      Int64Vector dims;
      for (int64_t d : type.dims) dims.push_back(d == kMlirDynamic ? kUnboundedSize : d);
      Shape shape = Shape::Array(element, std::move(dims));
      for (size_t i = 0; i < type.dims.size(); ++i) {
        if (type.dims[i] != kMlirDynamic || i >= bounds.size() || bounds[i] == kMlirDynamic) continue;
        shape.set_dim(static_cast<int64_t>(i), bounds[i]);
        shape.set_dynamic(static_cast<int64_t>(i), true);
      }
      STROP_TRY(shape.Validate());
      return shape;
    }
    case MlirTypeKind::UnrankedTensor: return Unimplemented("unranked type ", PrintType(type));
    default: return Unimplemented("type ", PrintType(type), " has no counterpart in HLO");
  }
}

Result<Literal> LiteralOf(const MlirAttr& attr) {
  bool dense = attr.kind == MlirAttrKind::Dense || attr.kind == MlirAttrKind::DenseResource;
  if (!dense || !attr.type || !attr.type->IsTensor()) return Unimplemented("constant ", PrintAttr(attr).substr(0, 80));
  STROP_ASSIGN(Shape shape, ShapeOf(*attr.type));
  int64_t bytes = Bytes(shape.type()), n = shape.num_elements();
  if (!shape.IsStatic()) return InvalidArgument("a constant of the dynamic type ", PrintType(*attr.type));
  if (attr.kind == MlirAttrKind::DenseResource && attr.data.empty() && n > 0) {
    return InvalidArgument("resource '", attr.text, "' is not in the file");
  }
  if (n > INT64_MAX / bytes || (!attr.splat && static_cast<int64_t>(attr.data.size()) != n * bytes)) {
    return InvalidArgument("a constant of type ", PrintType(*attr.type), " has ", attr.data.size(), " bytes");
  }
  STROP_ASSIGN(Literal literal, Literal::Zeros(shape));
  std::span<uint8_t> out = literal.mutable_bytes();
  if (attr.splat) {
    for (int64_t i = 0; i < n; ++i) std::memcpy(out.data() + i * bytes, attr.data.data(), bytes);
  } else if (!attr.data.empty()) {  // memcpy takes no null, even for nothing
    std::memcpy(out.data(), attr.data.data(), attr.data.size());
  }
  // Narrow integers are stored extended to their byte.
  if (IsSubByte(shape.type()) && IsInteger(shape.type())) {
    int bits = Bits(shape.type());
    for (uint8_t& b : out) {
      b &= static_cast<uint8_t>((1 << bits) - 1);
      if (IsSigned(shape.type()) && (b >> (bits - 1)) & 1) b |= static_cast<uint8_t>(0xff << bits);
    }
  }
  return literal;
}

bool IsConstantOp(const MlirOp& op) {
  return op.name == "stablehlo.constant" || op.name == "chlo.constant" || op.name == "arith.constant" ||
         op.name == "sdy.constant";
}

// Arithmetic of sizes; nullopt where the result is no number or does not fit.
static std::optional<int64_t> Apply(std::string_view op, int64_t a, int64_t b) {
  int64_t n = 0;
  bool fits = true;
  if (op == "stablehlo.add") {
    fits = !__builtin_add_overflow(a, b, &n);
  } else if (op == "stablehlo.subtract") {
    fits = !__builtin_sub_overflow(a, b, &n);
  } else if (op == "stablehlo.multiply") {
    fits = !__builtin_mul_overflow(a, b, &n);
  } else if (op == "stablehlo.divide" || op == "stablehlo.remainder") {
    if (b == 0 || b == -1) return std::nullopt;
    n = op == "stablehlo.divide" ? a / b : a % b;
  } else if (op == "stablehlo.maximum") {
    n = std::max(a, b);
  } else {
    n = std::min(a, b);
  }
  return fits ? std::optional(n) : std::nullopt;
}

static bool IsSizeArithmetic(std::string_view op) {
  for (std::string_view known : {"add", "subtract", "multiply", "divide", "remainder", "maximum", "minimum"})
    if (op.starts_with("stablehlo.") && op.substr(10) == known) return true;
  return false;
}

std::optional<std::vector<int64_t>> FoldIntegers(const MlirValue& value, int depth) {
  if (value.known) return std::vector<int64_t>{value.known->as_int()};
  if (!value.op || depth > 64) return std::nullopt;
  const MlirOp& op = *value.op;
  if (IsConstantOp(op)) {
    const MlirAttr* constant = op.Attr("value");
    if (!constant) return std::nullopt;
    if (constant->kind == MlirAttrKind::Integer) return std::vector<int64_t>{constant->as_int()};
    Result<std::vector<int64_t>> values = IntegersOf(*constant);
    if (!values.ok()) return std::nullopt;
    return *std::move(values);
  }
  auto operand = [&](size_t i) { return op.operands[i] ? FoldIntegers(*op.operands[i], depth + 1) : std::nullopt; };
  if (op.name == "stablehlo.reshape" || op.name == "stablehlo.convert" || op.name == "arith.index_cast") {
    if (op.operands.size() != 1 || !value.type->IsTensor() || value.type->element()->kind == MlirTypeKind::Float)
      return std::nullopt;
    return operand(0);
  }
  if (op.name == "stablehlo.concatenate" && value.type->dims.size() == 1) {
    std::vector<int64_t> all;
    for (size_t i = 0; i < op.operands.size(); ++i) {
      std::optional<std::vector<int64_t>> part = operand(i);
      if (!part) return std::nullopt;
      all.insert(all.end(), part->begin(), part->end());
    }
    return all;
  }
  if (IsSizeArithmetic(op.name) && op.operands.size() == 2 && value.type->IsTensor() &&
      value.type->element()->kind != MlirTypeKind::Float) {
    std::optional<std::vector<int64_t>> a = operand(0), b = operand(1);
    if (!a || !b || a->size() != b->size()) return std::nullopt;
    for (size_t i = 0; i < a->size(); ++i) {
      const std::optional<int64_t> number = Apply(op.name, (*a)[i], (*b)[i]);
      if (!number) return std::nullopt;
      (*a)[i] = *number;
    }
    return a;
  }
  if (op.name == "stablehlo.get_dimension_size" && op.operands.size() == 1 && op.operands[0]) {
    const MlirAttr* dim = op.Attr("dimension");
    std::span<const int64_t> dims = op.operands[0]->type->dims;
    if (!dim || dim->bits >= dims.size() || dims[dim->bits] == kMlirDynamic) return std::nullopt;
    return std::vector<int64_t>{dims[dim->bits]};
  }
  return std::nullopt;
}

// ---- OpImport
// ---------------------------------------------------------------------------------------------------------

OpImport::OpImport(BlockImporter& block, const MlirOp& op, Op hlo_op)
    : block_(block), op_(op), hlo_op_(hlo_op), builder_(block.computation()) {
  builder_.set_metadata(block.module().locations().Metadata(op.loc));
}

ModuleImporter& OpImport::module() { return block_.module(); }

Shape OpImport::ResultShape() const {
  return result_shapes_.size() == 1 ? result_shapes_[0] : Shape::Tuple(result_shapes_);
}

Status OpImport::At(Status status) const {
  if (status.ok()) return status;
  return std::move(std::move(status).At(LocationText(op_.loc))).Note(StrCat("while importing '", op_.name, "'"));
}

Result<Dims> OpImport::Ints(std::string_view name, std::optional<Dims> if_absent) const {
  const MlirAttr* a = attr(name);
  if (!a && if_absent) return *if_absent;
  if (!a) return Invalid("attribute '", name, "' is missing");
  Result<std::vector<int64_t>> values = IntegersOf(*a);
  if (!values.ok()) return Invalid("attribute '", name, "': ", values.status().message());
  return values;
}

Result<int64_t> OpImport::Int(std::string_view name, std::optional<int64_t> if_absent) const {
  const MlirAttr* a = attr(name);
  if (!a && if_absent) return *if_absent;
  if (!a) return Invalid("attribute '", name, "' is missing");
  if (a->kind != MlirAttrKind::Integer)
    return Invalid("attribute '", name, "' must be an integer, not ", PrintAttr(*a));
  return a->as_int();
}

Result<bool> OpImport::Bool(std::string_view name, std::optional<bool> if_absent) const {
  const MlirAttr* a = attr(name);
  if (!a && if_absent) return *if_absent;
  if (!a) return Invalid("attribute '", name, "' is missing");
  if (a->kind == MlirAttrKind::Unit) return true;
  if (a->kind != MlirAttrKind::Bool)
    return Invalid("attribute '", name, "' must be true or false, not ", PrintAttr(*a));
  return a->bits != 0;
}

Result<std::string> OpImport::Text(std::string_view name, std::optional<std::string> if_absent) const {
  const MlirAttr* a = attr(name);
  if (!a && if_absent) return *if_absent;
  if (!a) return Invalid("attribute '", name, "' is missing");
  if (a->kind != MlirAttrKind::String) return Invalid("attribute '", name, "' must be a string, not ", PrintAttr(*a));
  return std::string(a->text);
}

Result<std::string_view> OpImport::EnumMember(std::string_view name, std::string_view if_absent) const {
  const MlirAttr* a = attr(name);
  if (!a && !if_absent.empty()) return if_absent;
  if (!a) return Invalid("attribute '", name, "' is missing");
  if (a->kind != MlirAttrKind::Enum) return Invalid("attribute '", name, "' is not as expected: ", PrintAttr(*a));
  return a->text;
}

Result<const MlirAttr*> OpImport::StructAttr(std::string_view name, std::string_view kind) const {
  const MlirAttr* a = attr(name);
  if (!a) return Invalid("attribute '", name, "' is missing");
  if (a->kind != MlirAttrKind::Struct || a->name != kind)
    return Invalid("attribute '", name, "' must be #", kind, "<...>, not ", PrintAttr(*a));
  return a;
}

Result<Dims> OpImport::FieldInts(const MlirAttr& a, std::string_view field) const {
  const MlirAttr* value = a.Find(field);
  if (!value) return Dims{};
  Result<std::vector<int64_t>> values = IntegersOf(*value);
  if (!values.ok()) return Invalid("field '", field, "' of ", PrintAttr(a), " is no list of integers");
  return values;
}

Status OpImport::ReadFields(const MlirAttr& attr,
                            std::initializer_list<std::pair<std::string_view, Dims*>> fields) const {
  for (const auto& [name, place] : fields) {
    STROP_ASSIGN(*place, FieldInts(attr, name));
  }
  return OkStatus();
}

int64_t OpImport::FieldInt(const MlirAttr& a, std::string_view field) const {
  const MlirAttr* value = a.Find(field);
  return value && value->kind == MlirAttrKind::Integer ? value->as_int() : 0;
}

Instruction* OpImport::Add(Op hlo, const Shape& shape, std::span<Instruction* const> operands, Attrs attrs,
                           std::span<Computation* const> called) {
  Instruction* made = block_.computation()->Add(hlo, shape, operands, std::move(attrs));
  if (!called.empty()) made->set_called({called.begin(), called.end()});
  if (std::shared_ptr<const OpMetadata> metadata = module().locations().Metadata(op_.loc))
    made->set_metadata(std::move(metadata));
  return made;
}

Status OpImport::Emit(Op hlo, std::span<Instruction* const> operands, Attrs attrs,
                      std::span<Computation* const> called) {
  STROP_TRY(At(builder_.status()));
  for (Instruction* o : operands) {
    if (!o) return Internal("'", op_.name, "': an operand was not made");
  }
  if (module().refines() && hlo != Op::CustomCall) {
    const std::optional<Shape> shape = InferredShape(hlo, operands, attrs, called);
    const bool tuple = shape && shape->IsTuple() && result_shapes_.size() != 1;
    for (size_t i = 0; shape && i < result_shapes_.size(); ++i) {
      const Shape& sizes = tuple ? shape->element(static_cast<int64_t>(i)) : *shape;
      // The element type is the declared one: of products, say, inference does not know it.
      if (sizes.IsArray()) STROP_TRY(Refine(i, sizes.WithType(result_shapes_[i].type())));
    }
  }
  Instruction* made = Add(hlo, ResultShape(), operands, std::move(attrs), called);
  return result_shapes_.size() == 1 ? SetResult(made) : SetResultsFromTuple(made);
}

Status OpImport::SetResult(Instruction* value) { return SetResults({&value, 1}); }

Status OpImport::SetResults(std::span<Instruction* const> values) {
  STROP_TRY(At(builder_.status()));
  if (values.size() != op_.results.size()) return Internal("'", op_.name, "': ", values.size(), " results were made");
  for (size_t i = 0; i < values.size(); ++i) {
    if (!values[i]) return Internal("'", op_.name, "': a result was not made");
    if (module().refines()) STROP_TRY(Refine(i, values[i]->shape()));
    if (!values[i]->shape().Compatible(result_shapes_[i])) {
      return Invalid("the result has the type ", PrintType(*op_.results[i].type), ", but operands and attributes give ",
                     values[i]->shape());
    }
    block_.Set(op_.results[i], values[i]);
  }
  return OkStatus();
}

Status OpImport::SetResultsFromTuple(Instruction* tuple) {
  STROP_TRY(At(builder_.status()));
  std::vector<Instruction*> values;
  for (size_t i = 0; i < result_shapes_.size(); ++i) {
    values.push_back(
        Add(Op::GetTupleElement, result_shapes_[i], {&tuple, 1}, GetTupleElementAttrs{static_cast<int64_t>(i)}));
  }
  return SetResults(values);
}

Result<Computation*> OpImport::Function(int64_t region, std::string_view name) {
  const MlirRegion& r = *op_.regions[region];
  std::vector<const MlirValue*> captured = block_.Captured(r);
  if (!captured.empty()) return Unsupported("its region uses values from outside that are no constants");
  auto bind = [&](BlockImporter& inner, const MlirBlock& block) -> Status {
    for (size_t i = 0; i < block.args.size(); ++i) {
      Result<Shape> shape = ShapeOf(*block.args[i]->type);
      if (!shape.ok()) return At(std::move(shape).status());
      inner.Set(*block.args[i], inner.computation()->AddParameter(static_cast<int64_t>(i), *shape, StrCat("Arg_", i)));
    }
    return OkStatus();
  };
  return block_.Region(r, name, bind, false);
}

Computation* OpImport::Sum(ElementType type) {
  Computation* sum = module().module().AddComputation("sum");
  const Shape scalar = Shape::Scalar(type);
  Instruction* a = sum->AddParameter(0, scalar);
  Instruction* b = sum->AddParameter(1, scalar);
  sum->set_root(sum->Add(Op::Add, scalar, {a, b}));
  return sum;
}

Result<Computation*> OpImport::Reducer(int64_t region, int64_t first_init) {
  STROP_ASSIGN(Computation * reducer, Function(region, "reducer"));
  const Shape& root = reducer->root()->shape();
  int64_t n = root.IsTuple() ? root.tuple_size() : 1;
  auto result = [&](int64_t i) -> const Shape& { return root.IsTuple() ? root.element(i) : root; };
  if (reducer->parameter_count() != 2 * n)
    return Invalid("the reducer takes ", reducer->parameter_count(), " values and returns ", n);
  for (int64_t i = 0; i < 2 * n; ++i) {
    const Shape& parameter = reducer->parameter(i)->shape();
    if (!parameter.Compatible(result(i % n)))
      return Invalid("parameter ", i, " of the reducer is ", parameter, ", but it returns ", result(i % n));
  }
  for (int64_t i = 0; i < n && first_init + i < operand_count(); ++i) {
    ElementType from = operands_[first_init + i]->shape().type(), to = result(i).type();
    bool promotable = Kind(from) == Kind(to) && Bits(from) <= Bits(to);
    if (!promotable)
      return Invalid("operand ", first_init + i, " of type ", Name(from), " cannot be promoted to the reducer's ",
                     Name(to));
  }
  return reducer;
}

Status OpImport::CheckPairs(std::string_view name) const {
  const MlirAttr* a = attr(name);
  if (!a || (a->kind == MlirAttrKind::Dense && a->type->dims.size() == 2 && a->type->dims[1] == 2)) return OkStatus();
  return Invalid("attribute '", name, "' must be an N x 2 matrix, not ", PrintAttr(*a));
}

// ---- BlockImporter
// ----------------------------------------------------------------------------------------------------

Result<Instruction*> BlockImporter::Value(const MlirValue& value, const MlirOp& user) {
  auto it = values_.find(&value);
  if (it != values_.end()) return it->second;
  if (value.op && IsConstantOp(*value.op)) {
    STROP_TRY(ConvertOp(*value.op));
    it = values_.find(&value);
    if (it != values_.end()) return it->second;
  }
  return InvalidArgument("'", user.name, "' uses a value before its definition").At(LocationText(user.loc));
}

Status BlockImporter::ConvertOp(const MlirOp& op) {
  const ImportRow* row = FindImportRow(op.name);
  auto fail = [&](const auto&... args) {
    return InvalidArgument("'", op.name, "' ", StrCat(args...)).At(LocationText(op.loc));
  };
  if (!row) {
    return Unimplemented("operation '", op.name, "' cannot be imported").At(LocationText(op.loc));
  }
  auto mismatch = [](int8_t wanted, size_t n) {
    return wanted >= 0 ? n != static_cast<size_t>(wanted) : n < static_cast<size_t>(-1 - wanted);
  };
  if (mismatch(row->operands, op.operands.size())) return fail("has ", op.operands.size(), " operands");
  if (mismatch(row->results, op.results.size())) return fail("has ", op.results.size(), " results");
  if (mismatch(row->regions, op.regions.size())) return fail("has ", op.regions.size(), " regions");
  OpImport import(*this, op, row->hlo_op);
  for (const MlirValue& result : op.results) {
    Result<Shape> shape = ShapeOf(*result.type);
    if (!shape.ok()) return import.At(std::move(shape).status());
    import.result_shapes_.push_back(*std::move(shape));
  }
  for (const MlirValue* operand : op.operands) {
    if (!operand) return fail("has an operand that is never defined");
    STROP_ASSIGN(Instruction * value, Value(*operand, op));
    import.operands_.push_back(value);
  }
  int64_t first_id = module_.module().id_bound();
  if (TouchesQuantized(op)) STROP_TRY(import.DequantizeOperands());
  if (module_.refines()) STROP_TRY(import.RefineFromOperands());
  STROP_TRY(row->fn(import));
  STROP_TRY(import.QuantizeResults());
  STROP_TRY(import.At(import.b().status()));
  for (const MlirValue& result : op.results) {
    if (!values_.contains(&result)) return Internal("'", op.name, "' was imported without a result");
  }
  // Shardings and frontend attributes belong to the instruction that the op became.
  if (op.attrs.empty()) return OkStatus();
  Instruction* made = op.results.empty() ? computation_->last() : values_[&op.results[0]];
  if (op.results.empty() && (!made || made->op() != Op::CustomCall)) return OkStatus();
  if (made->op() == Op::GetTupleElement && op.results.size() > 1) made = made->operand(0);
  return made->id() >= first_id ? ApplyExtras(module_, op.attrs, made, op.loc) : OkStatus();
}

Result<std::vector<Instruction*>> BlockImporter::Run(const MlirBlock& block) {
  if (block.ops.empty()) return InvalidArgument("a block has no terminator");
  for (size_t i = 0; i + 1 < block.ops.size(); ++i) STROP_TRY(ConvertOp(*block.ops[i]));
  const MlirOp& end = *block.ops.back();
  if (end.name != "func.return" && end.name != "stablehlo.return" && end.name != "sdy.return" &&
      end.name != "mhlo.return") {
    return InvalidArgument("a block must end with a return, not with '", end.name, "'").At(LocationText(end.loc));
  }
  std::vector<Instruction*> results;
  for (const MlirValue* operand : end.operands) {
    if (!operand)
      return InvalidArgument("'", end.name, "' has an operand that is never defined").At(LocationText(end.loc));
    STROP_ASSIGN(Instruction * value, Value(*operand, end));
    results.push_back(value);
  }
  return results;
}

std::vector<const MlirValue*> BlockImporter::Captured(const MlirRegion& region) {
  std::unordered_set<const MlirValue*> inside, seen;
  std::vector<const MlirValue*> captured;
  std::vector<const MlirRegion*> regions = {&region};
  // Definitions first: a nested region may use what its enclosing block defines.
  for (size_t i = 0; i < regions.size(); ++i) {
    for (const MlirBlock* block : regions[i]->blocks) {
      inside.insert(block->args.begin(), block->args.end());
      for (const MlirOp* op : block->ops) {
        for (const MlirValue& r : op->results) inside.insert(&r);
        regions.insert(regions.end(), op->regions.begin(), op->regions.end());
      }
    }
  }
  for (const MlirRegion* r : regions) {
    for (const MlirBlock* block : r->blocks) {
      for (const MlirOp* op : block->ops) {
        for (const MlirValue* v : op->operands) {
          if (v && !inside.contains(v) && !(v->op && IsConstantOp(*v->op)) && seen.insert(v).second)
            captured.push_back(v);
        }
      }
    }
  }
  return captured;
}

Result<Computation*> BlockImporter::Region(const MlirRegion& region, std::string_view name,
                                           const std::function<Status(BlockImporter&, const MlirBlock&)>& bind,
                                           bool always_tuple, std::span<const MlirValue* const> pass_through) {
  std::string_view around = region.parent ? region.parent->name : "module";
  auto loc = [&] { return region.parent ? LocationText(region.parent->loc) : std::string(); };
  if (region.blocks.size() != 1)
    return Unimplemented("'", around, "': a region with ", region.blocks.size(), " blocks").At(loc());
  Computation* computation = module_.module().AddComputation(std::string(name));
  BlockImporter inner(module_, computation);
  const MlirBlock& block = *region.blocks[0];
  STROP_TRY(bind(inner, block));
  STROP_ASSIGN(std::vector<Instruction*> results, inner.Run(block));
  for (const MlirValue* v : pass_through) {
    STROP_ASSIGN(Instruction * value, inner.Value(*v, *block.ops.back()));
    results.push_back(value);
  }
  if (results.size() == 1 && !always_tuple) {
    computation->set_root(results[0]);
    return computation;
  }
  std::vector<Shape> shapes;
  for (Instruction* r : results) shapes.push_back(r->shape());
  computation->set_root(computation->Add(Op::Tuple, Shape::Tuple(std::move(shapes)), results, NoAttrs{}));
  return computation;
}

}  // namespace strop
