// The attributes of a typed FFI call: the text of an MLIR dictionary as the C structs that handlers read.
//
//   {lower = true, n = 4 : i64, scale = 0.5 : f32, name = "x", sizes = array<i64: 2, 3>, t = dense<[1, 2]> :
//   tensor<2xi32>, d = {a = 1 : i32}}
#pragma once
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "strop/base/cursor.h"
#include "strop/runtime/ffi_api.h"
#include "strop/types/element_type.h"

namespace strop {

class FfiAttributes {
 public:
  // Empty text is an empty dictionary. Errors give the position in the text.
  static Result<std::unique_ptr<FfiAttributes>> Parse(std::string_view text);
  // Sorted by name; lives as long as this object.
  const XLA_FFI_Attrs& attrs() const { return attrs_; }

 private:
  // Everything the structs point to; deques keep addresses.
  struct Memory {
    std::deque<std::string> bytes;
    std::deque<XLA_FFI_ByteSpan> spans;
    std::deque<XLA_FFI_Scalar> scalars;
    std::deque<XLA_FFI_Array> arrays;
    std::deque<XLA_FFI_Attrs> dictionaries;
    std::deque<std::vector<XLA_FFI_AttrType>> types;
    std::deque<std::vector<XLA_FFI_ByteSpan*>> names;
    std::deque<std::vector<void*>> values;
  };
  struct Value {
    XLA_FFI_AttrType type = XLA_FFI_AttrType_SCALAR;
    void* value = nullptr;
  };
  Status ParseDictionary(Cursor& at, XLA_FFI_Attrs& out, int depth);
  Result<Value> ParseValue(Cursor& at, int depth);
  Result<Value> ParseNumber(Cursor& at);
  Result<Value> ParseArray(Cursor& at);  // array<i64: 1, 2>
  Result<Value> ParseDense(Cursor& at);  // dense<...> : tensor<...>
  Value Scalar(ElementType type, std::string bytes);
  Value Array(ElementType type, std::string bytes);

  Memory memory_;
  XLA_FFI_Attrs attrs_ = {};
};

}  // namespace strop
