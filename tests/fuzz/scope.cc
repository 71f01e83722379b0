#include "tests/fuzz/scope.h"

#include <algorithm>

#include "tests/fuzz/values.h"

namespace strop::fuzz {
namespace {

constexpr ElementType kTypes[] = {
#define ELEMENT(e, number, name, bits, kind) ElementType::e,
    STROP_ELEMENT_TYPES(ELEMENT)
#undef ELEMENT
};

int TypeWeight(ElementType type) {
  switch (type) {
    case ElementType::F32: return 40;
    case ElementType::S32: return 16;
    case ElementType::Pred: return 8;
    case ElementType::F64:
    case ElementType::BF16:
    case ElementType::F16: return 7;
    case ElementType::S8:
    case ElementType::U8:
    case ElementType::S64:
    case ElementType::U32:
    case ElementType::C64: return 4;
    case ElementType::U16:
    case ElementType::S16:
    case ElementType::U64:
    case ElementType::C128: return 3;
    default: return IsArrayType(type) ? 1 : 0;
  }
}

constexpr int kMaxLiteral = 40;  // elements of a constant that is not a splat: text stays short
constexpr int kMaxParameters = 6;

}  // namespace

ElementType Scope::AnyType() {
  if (!recipe_.types.empty() && random().Chance(75)) return random().Pick(recipe_.types);
  std::vector<int> weights;
  for (ElementType type : kTypes) weights.push_back(TypeWeight(type));
  return kTypes[random().Weighted(weights)];
}

ElementType Scope::AnyType(ElementKind kind) {
  std::vector<int> weights;
  for (ElementType type : kTypes) weights.push_back(Kind(type) == kind ? TypeWeight(type) : 0);
  return kTypes[random().Weighted(weights)];
}

int64_t Scope::AnyDim() {
  static const std::vector<int64_t> kSizes = {0, 1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 16, 17, 33};
  if (!recipe_.dims.empty() && random().Chance(80)) return random().Pick(recipe_.dims);
  if (random().Chance(2)) return random().Chance(50) ? 130 : 1000;
  const int64_t size = random().Pick(kSizes);
  return size == 0 && random().Chance(70) ? 1 : size;
}

bool Scope::Fits(const Int64Vector& dims) const {
  int64_t n = 1;
  for (int64_t d : dims) n = SaturatingMultiply(n, std::max<int64_t>(d, 1));
  return n <= recipe_.max_elements;
}

Int64Vector Scope::AnyDims() {
  if (scalar_) return {};
  static constexpr int kRanks[] = {12, 30, 32, 16, 6, 3, 1};
  for (;;) {
    Int64Vector dims(random().Weighted(kRanks));
    for (int64_t& d : dims) d = AnyDim();
    if (Fits(dims)) return dims;
  }
}

Instruction* Scope::Add(Op op, std::initializer_list<Instruction*> operands, Attrs attrs, const Shape* declared) {
  Builder builder(computation_);
  return builder.Make(op, std::span<Instruction* const>(operands.begin(), operands.size()), std::move(attrs), {},
                      declared);
}

Instruction* Scope::Convert(Instruction* value, ElementType type) {
  if (!value || value->shape().type() == type) return value;
  const Shape shape = value->shape().WithType(type);
  return Add(Op::Convert, {value}, NoAttrs{}, &shape);
}

Instruction* Scope::Try(Op op, std::span<Instruction* const> operands, Attrs attrs,
                        std::span<Computation* const> called, const Shape* declared) {
  std::vector<const Shape*> shapes;
  for (Instruction* operand : operands) {
    if (!operand) return nullptr;
    shapes.push_back(&operand->shape());
  }
  Result<Shape> shape = InferShape(op, shapes, attrs, called, declared);
  if (!shape.ok() || (declared && !shape->Compatible(*declared))) return nullptr;
  for (const Shape& leaf : shape->Leaves())
    if (leaf.IsArray() && !Fits(leaf.dims())) return nullptr;
  Builder builder(computation_);
  Instruction* made = builder.Make(op, operands, std::move(attrs), called, declared);
  if (!made) return nullptr;
  --recipe_.instructions_left;
  if (made->shape().IsArray()) AddValue(made);
  if (made->shape().IsTuple()) {
    for (int64_t i = 0; i < made->shape().tuple_size(); ++i) {
      Instruction* element = builder.GetTupleElement(made, i);
      if (element && element->shape().IsArray()) AddValue(element);
    }
  }
  return made;
}

Instruction* Scope::AnyArray() {
  if (values_.empty()) {
    const Int64Vector dims = AnyDims();
    AddValue(Leaf(AnyType(), dims));
  }
  const int64_t n = static_cast<int64_t>(values_.size());
  // The later of two draws: chains grow deep, yet old values are used again.
  return values_[static_cast<size_t>(std::max(random().Below(n), random().Below(n)))];
}

Instruction* Scope::OfKind(ElementKind kind) {
  std::vector<Instruction*> candidates;
  for (Instruction* value : values_)
    if (Kind(value->shape().type()) == kind) candidates.push_back(value);
  if (!candidates.empty() && random().Chance(85)) return random().Pick(candidates);
  Instruction* any = AnyArray();
  const ElementType type = AnyType(kind);
  if (IsComplex(any->shape().type()) && kind != ElementKind::Complex) any = Add(Op::Real, {any});
  return Convert(any, type);
}

Instruction* Scope::Leaf(ElementType type, const Int64Vector& dims) {
  const Shape shape = Shape::Array(type, dims);
  const bool entry = computation_->IsEntry();
  const bool room = entry && computation_->parameter_count() < kMaxParameters;
  if (room && random().Chance(70)) {
    const int64_t number = computation_->parameter_count();
    return computation_->AddParameter(number, shape, StrCat("p", number));
  }
  static constexpr Values kKinds[] = {Values::kTame, Values::kTame, Values::kSpecial};
  const Values values = kKinds[random().Below(3)];
  if (!dims.empty() && !IsPred(type) && random().Chance(25))
    if (Instruction* iota = Add(Op::Iota, {}, IotaAttrs{random().Below(shape.rank())}, &shape)) return iota;
  if (shape.num_elements() <= kMaxLiteral && (dims.empty() || random().Chance(60)))
    return Add(Op::Constant, {}, ConstantAttrs{RandomLiteral(shape, values, random())});
  Instruction* scalar = Add(Op::Constant, {}, ConstantAttrs{RandomLiteral(Shape::Scalar(type), values, random())});
  return dims.empty() ? scalar : Add(Op::Broadcast, {scalar}, DimensionsAttrs{}, &shape);
}

Instruction* Scope::Value(ElementType type, const Int64Vector& dims) {
  std::vector<Instruction*> same, other_type, same_count;
  const int64_t count = Shape::Array(type, dims).num_elements();
  for (Instruction* value : values_) {
    const Shape& shape = value->shape();
    if (shape.dims() == dims)
      (shape.type() == type ? same : other_type).push_back(value);
    else if (shape.type() == type && shape.num_elements() == count)
      same_count.push_back(value);
  }
  if (!same.empty() && random().Chance(80)) return random().Pick(same);
  if (!other_type.empty() && random().Chance(50)) {
    Instruction* value = random().Pick(other_type);
    if (!IsComplex(value->shape().type()) || IsComplex(type)) return Convert(value, type);
  }
  const Shape shape = Shape::Array(type, dims);
  if (!same_count.empty() && random().Chance(50))
    return Add(Op::Reshape, {random().Pick(same_count)}, ReshapeAttrs{}, &shape);
  return Leaf(type, dims);
}

void Scope::Grow(int64_t n) {
  std::vector<int> weights;
  for (const OpInfo& info : kOps) {
    const bool fits = !scalar_ || IsElementwise(info.op);
    weights.push_back(MakeFunction(info.op) && fits ? WeightOf(info.op) : 0);
  }
  int64_t made = 0;
  for (int64_t attempt = 0; attempt < 8 * n && made < n && recipe_.instructions_left > 0; ++attempt) {
    const Op op = kOps[random().Weighted(weights)].op;
    if (MakeFunction(op)(*this, op)) ++made;
  }
}

}  // namespace strop::fuzz
