// The attributes of a typed FFI call, which programs hold as text. What is read is walked as a handler would.
#include "strop/runtime/ffi_attributes.h"

#include "tests/fuzz/parsers/target.h"

namespace {

using namespace strop;

// The first and the last byte are there.
uint64_t Touch(const void* data, size_t size) {
  const auto* bytes = static_cast<const uint8_t*>(data);
  return size == 0 ? 0 : uint64_t{bytes[0]} + bytes[size - 1];
}

uint64_t Walk(const XLA_FFI_Attrs& attrs) {
  uint64_t sum = 0;
  for (int64_t i = 0; i < attrs.size; ++i) {
    const std::string_view name(attrs.names[i]->ptr, attrs.names[i]->len);
    fuzz::Insist(i == 0 || std::string_view(attrs.names[i - 1]->ptr, attrs.names[i - 1]->len) < name,
                 "the names are sorted, each once");
    const void* at = attrs.attrs[i];
    switch (attrs.types[i]) {
      case XLA_FFI_AttrType_ARRAY: {
        const auto& array = *static_cast<const XLA_FFI_Array*>(at);
        sum += Touch(array.data, array.size * static_cast<size_t>(Bytes(static_cast<ElementType>(array.dtype))));
        break;
      }
      case XLA_FFI_AttrType_SCALAR: {
        const auto& scalar = *static_cast<const XLA_FFI_Scalar*>(at);
        const int bytes = Bytes(static_cast<ElementType>(scalar.dtype));
        fuzz::Insist(bytes > 0, "a scalar has bytes");
        sum += Touch(scalar.value, static_cast<size_t>(bytes));
        break;
      }
      case XLA_FFI_AttrType_STRING: {
        const auto& text = *static_cast<const XLA_FFI_ByteSpan*>(at);
        sum += Touch(text.ptr, text.len);
        break;
      }
      case XLA_FFI_AttrType_DICTIONARY: sum += Walk(*static_cast<const XLA_FFI_Attrs*>(at)); break;
      default: fuzz::Insist(false, "a known type of attribute");
    }
  }
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Result<std::unique_ptr<FfiAttributes>> attributes = FfiAttributes::Parse(fuzz::AsText(data, size));
  if (attributes.ok()) {
    volatile uint64_t sum = Walk((*attributes)->attrs());
    (void)sum;
  }
  return 0;
}
