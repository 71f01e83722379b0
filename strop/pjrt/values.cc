// Element types, shapes and create options, from C and back.
#include <array>

#include "strop/base/log.h"
#include "strop/pjrt/objects.h"

namespace strop::pjrt {
namespace {

struct TypePair {
  PJRT_Buffer_Type pjrt;
  ElementType type;
};
constexpr TypePair kTypes[] = {
    {PJRT_Buffer_Type_INVALID, ElementType::Invalid},
    {PJRT_Buffer_Type_PRED, ElementType::Pred},
    {PJRT_Buffer_Type_S8, ElementType::S8},
    {PJRT_Buffer_Type_S16, ElementType::S16},
    {PJRT_Buffer_Type_S32, ElementType::S32},
    {PJRT_Buffer_Type_S64, ElementType::S64},
    {PJRT_Buffer_Type_U8, ElementType::U8},
    {PJRT_Buffer_Type_U16, ElementType::U16},
    {PJRT_Buffer_Type_U32, ElementType::U32},
    {PJRT_Buffer_Type_U64, ElementType::U64},
    {PJRT_Buffer_Type_F16, ElementType::F16},
    {PJRT_Buffer_Type_F32, ElementType::F32},
    {PJRT_Buffer_Type_F64, ElementType::F64},
    {PJRT_Buffer_Type_BF16, ElementType::BF16},
    {PJRT_Buffer_Type_C64, ElementType::C64},
    {PJRT_Buffer_Type_C128, ElementType::C128},
    {PJRT_Buffer_Type_F8E5M2, ElementType::F8E5M2},
    {PJRT_Buffer_Type_F8E4M3FN, ElementType::F8E4M3FN},
    {PJRT_Buffer_Type_F8E4M3B11FNUZ, ElementType::F8E4M3B11FNUZ},
    {PJRT_Buffer_Type_F8E5M2FNUZ, ElementType::F8E5M2FNUZ},
    {PJRT_Buffer_Type_F8E4M3FNUZ, ElementType::F8E4M3FNUZ},
    {PJRT_Buffer_Type_S4, ElementType::S4},
    {PJRT_Buffer_Type_U4, ElementType::U4},
    {PJRT_Buffer_Type_TOKEN, ElementType::Token},
    {PJRT_Buffer_Type_S2, ElementType::S2},
    {PJRT_Buffer_Type_U2, ElementType::U2},
    {PJRT_Buffer_Type_F8E4M3, ElementType::F8E4M3},
    {PJRT_Buffer_Type_F8E3M4, ElementType::F8E3M4},
    {PJRT_Buffer_Type_F8E8M0FNU, ElementType::F8E8M0FNU},
    {PJRT_Buffer_Type_F4E2M1FN, ElementType::F4E2M1FN},
    {PJRT_Buffer_Type_S1, ElementType::S1},
    {PJRT_Buffer_Type_U1, ElementType::U1},
};
constexpr bool InOrder() {
  for (size_t i = 0; i < std::size(kTypes); ++i)
    if (static_cast<size_t>(kTypes[i].pjrt) != i) return false;
  return std::size(kTypes) == PJRT_Buffer_Type_U1 + 1;
}
static_assert(InOrder());

// What frameworks pass to any plugin; it must not be taken for a typing error of an option of ours. JoinProcesses reads
// the first two.
bool IsForeign(std::string_view name) {
  for (std::string_view known : {"node_id", "num_nodes", "partition_index", "slice_index", "max_inflight_computations"})
    if (name == known) return true;
  return false;
}

Result<std::string> OptionText(const PJRT_NamedValue& v, std::string_view name) {
  switch (v.type) {
    case PJRT_NamedValue_kString:
      if (!v.value.string_value) return std::string();
      return std::string(v.value.string_value, v.value_size);
    case PJRT_NamedValue_kInt64: return StrCat(v.value.int64_value);
    case PJRT_NamedValue_kBool: return std::string(v.value.bool_value ? "true" : "false");
    case PJRT_NamedValue_kFloat: return StrCat(v.value.float_value);
    case PJRT_NamedValue_kInt64List: return InvalidArgument("create option ", name, " is a list");
  }
  return InvalidArgument("create option ", name, " has the unknown type ", static_cast<int>(v.type));
}

}  // namespace

Result<ElementType> ElementTypeFrom(PJRT_Buffer_Type type) {
  const auto number = static_cast<size_t>(type);
  if (number == 0 || number >= std::size(kTypes))
    return InvalidArgument("unknown buffer type ", static_cast<int>(type));
  return kTypes[number].type;
}

PJRT_Buffer_Type BufferTypeOf(ElementType type) {
  static constexpr auto kOfElement = [] {
    std::array<PJRT_Buffer_Type, kNumElementTypes> types{};  // PJRT_Buffer_Type_INVALID is 0
    for (const TypePair& pair : kTypes) types[static_cast<size_t>(pair.type)] = pair.pjrt;
    return types;
  }();
  return kOfElement[static_cast<size_t>(type)];
}

Result<Shape> ShapeFrom(PJRT_Buffer_Type type, const int64_t* dims, size_t num_dims) {
  STROP_ASSIGN(ElementType element_type, ElementTypeFrom(type));
  if (element_type == ElementType::Token) return Shape::Token();
  if (num_dims > 64) return InvalidArgument("a buffer of rank ", num_dims, "; at most 64 is supported");
  if (num_dims > 0 && !dims) return InvalidArgument("a buffer of rank ", num_dims, " whose list of dimensions is null");
  for (size_t i = 0; i < num_dims; ++i)
    if (dims[i] < 0) return InvalidArgument("dimension ", i, " of a buffer has size ", dims[i]);
  Shape shape = Shape::Array(element_type, Int64Vector(dims, dims + num_dims)).WithDefaultLayout();
  STROP_TRY(shape.Validate());
  return shape;
}

Status ApplyCreateOptions(const PJRT_NamedValue* values, size_t count, Options& options) {
  if (count > 0 && !values)
    return InvalidArgument("PJRT_Client_Create: ", count, " create options behind a null pointer");
  for (size_t i = 0; i < count; ++i) {
    const PJRT_NamedValue& v = values[i];
    if (!v.name) return InvalidArgument("create option ", i, " has no name");
    std::string name(v.name, v.name_size);
    if (name == "device_count") name = "num_devices";  // the name that XLA's own plugins use
    if (IsForeign(name)) continue;
    STROP_ASSIGN(std::string text, OptionText(v, name));
    Status status = SetOption(options, name, text, StrCat("create option ", name));
    if (status.ok()) continue;
    if (HasOption(name) || status.message().find("did you mean") != std::string::npos) return status;
    STROP_LOG_AT(2, "create option ", name, " means nothing to Strop");
  }
  return OkStatus();
}

}  // namespace strop::pjrt
