#include "strop/runtime/ffi.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "strop/runtime/executable.h"
#include "strop/runtime/ffi_attributes.h"

namespace strop {
namespace {

TEST(FfiAttributes, EveryKind) {
  auto parsed = FfiAttributes::Parse(
      R"({n = 4 : i64, b = true, f = 5.000000e-01 : f32, inf = 0x7F800000 : f32, u = 200 : ui8, s = "a\"b", z = {k = 1 : i32},
          arr = array<i64: 2, 3>, none = array<i32>, t = dense<[[1, 2], [3, 4]]> : tensor<2x2xi16>, splat = dense<7> : tensor<3xi8>})");
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  const XLA_FFI_Attrs& attrs = (*parsed)->attrs();
  ASSERT_EQ(attrs.size, 11);
  auto find = [&](std::string_view name) -> void* {
    for (int64_t i = 0; i < attrs.size; ++i) {
      if (i > 0) {
        EXPECT_LT(std::string_view(attrs.names[i - 1]->ptr, attrs.names[i - 1]->len),
                  std::string_view(attrs.names[i]->ptr, attrs.names[i]->len));
      }
      if (std::string_view(attrs.names[i]->ptr, attrs.names[i]->len) == name) return attrs.attrs[i];
    }
    return nullptr;
  };
  EXPECT_EQ(*static_cast<int64_t*>(static_cast<XLA_FFI_Scalar*>(find("n"))->value), 4);
  EXPECT_EQ(*static_cast<float*>(static_cast<XLA_FFI_Scalar*>(find("f"))->value), 0.5f);
  EXPECT_EQ(*static_cast<float*>(static_cast<XLA_FFI_Scalar*>(find("inf"))->value), INFINITY);
  EXPECT_EQ(*static_cast<uint8_t*>(static_cast<XLA_FFI_Scalar*>(find("u"))->value), 200);
  auto* text = static_cast<XLA_FFI_ByteSpan*>(find("s"));
  EXPECT_EQ(std::string(text->ptr, text->len), "a\"b");
  auto* array = static_cast<XLA_FFI_Array*>(find("arr"));
  ASSERT_EQ(array->size, 2u);
  EXPECT_EQ(static_cast<int64_t*>(array->data)[1], 3);
  EXPECT_EQ(static_cast<XLA_FFI_Array*>(find("none"))->size, 0u);
  auto* tensor = static_cast<XLA_FFI_Array*>(find("t"));
  ASSERT_EQ(tensor->size, 4u);
  EXPECT_EQ(static_cast<int16_t*>(tensor->data)[3], 4);
  EXPECT_EQ(static_cast<int8_t*>(static_cast<XLA_FFI_Array*>(find("splat"))->data)[2], 7);
  EXPECT_EQ(static_cast<XLA_FFI_Attrs*>(find("z"))->size, 1);
}

TEST(FfiAttributes, Refusals) {
  for (const char* text : {"{", "{a = }", "{a = 1 : q7}", "{a = dense<[1, 2]> : tensor<3xi32>}", "{a = 1} x",
                           "{a = array<i64: z>}", "{a = dense<1> : tensor<99999999999xi32>}", "[1]",
                           // types that are none, values that are not of the type, names twice
                           "{a = array<token>}", "{a = array<opaque>}", "{a = 1 : token}", "{a = 1 : c64}",
                           "{a = 1 : s32}", "{a = true : i64}", "{a = array<i64: true>}", "{a = 300 : i8}",
                           "{a = -129 : i8}", "{a = -1 : ui8}", "{a = 2 : i1}", "{a = 0x100 : i8}", "{a = 0xzz : f32}",
                           "{a = 1.5 : i32}", "{a = dense<\"0x0g\"> : tensor<1xi8>}", "{a = 1, a = 2}", "{a, \"a\"}"}) {
    EXPECT_FALSE(FfiAttributes::Parse(text).ok()) << text;
  }
  std::string deep(100, '{');
  EXPECT_FALSE(FfiAttributes::Parse(deep).ok());
  EXPECT_EQ((*FfiAttributes::Parse(""))->attrs().size, 0);
}

TEST(FfiAttributes, TheEndsOfTypes) {
  auto parsed = FfiAttributes::Parse(
      "{a = 255 : i8, b = -128 : i8, c = 18446744073709551615 : ui64, d = -9223372036854775808 : i64, "
      "e = 0xFF : f8E4M3FN, f = dense<> : tensor<0xi64>, g = dense<5> : tensor<0x3xi32>, h = -8 : i4, "
      "i = dense<true> : tensor<2xi1>, j = dense<\"0x0aFF\"> : tensor<2xui8>}");
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  const XLA_FFI_Attrs& attrs = (*parsed)->attrs();
  ASSERT_EQ(attrs.size, 10);
  auto scalar = [&](int i) { return static_cast<XLA_FFI_Scalar*>(attrs.attrs[i])->value; };
  auto array = [&](int i) { return static_cast<XLA_FFI_Array*>(attrs.attrs[i]); };
  EXPECT_EQ(*static_cast<int8_t*>(scalar(0)), -1);
  EXPECT_EQ(*static_cast<int8_t*>(scalar(1)), -128);
  EXPECT_EQ(*static_cast<uint64_t*>(scalar(2)), UINT64_MAX);
  EXPECT_EQ(*static_cast<int64_t*>(scalar(3)), INT64_MIN);
  EXPECT_EQ(array(5)->size, 0u);
  EXPECT_EQ(array(6)->size, 0u);
  ASSERT_EQ(array(8)->size, 2u);
  EXPECT_EQ(static_cast<uint8_t*>(array(8)->data)[1], 1);
  EXPECT_EQ(static_cast<uint8_t*>(array(9)->data)[1], 255);
}

bool IsProbe(XLA_FFI_CallFrame* frame) {
  if (!frame->extension_start || frame->extension_start->type != XLA_FFI_Extension_Metadata) return false;
  auto* metadata = reinterpret_cast<XLA_FFI_Metadata_Extension*>(frame->extension_start)->metadata;
  metadata->api_version.major_version = 0;
  metadata->api_version.minor_version = 3;
  return true;
}

// results[0] = operands[0] + user data; sees the attribute "fail".
XLA_FFI_Error* AddUserData(XLA_FFI_CallFrame* frame) {
  if (IsProbe(frame)) return nullptr;
  if (frame->attrs.size > 0) {
    XLA_FFI_Error_Create_Args error = {sizeof error, nullptr, "as asked", static_cast<XLA_FFI_Error_Code>(9)};
    return frame->api->Error_Create(&error);
  }
  XLA_FFI_TypeId type = {42};
  XLA_FFI_ExecutionContext_Get_Args get = {sizeof get, nullptr, frame->ctx, &type, nullptr};
  if (XLA_FFI_Error* error = frame->api->ExecutionContext_Get(&get)) return error;
  auto* in = static_cast<XLA_FFI_Buffer*>(frame->args.args[0]);
  auto* out = static_cast<XLA_FFI_Buffer*>(frame->rets.rets[0]);
  *static_cast<int32_t*>(out->data) = *static_cast<int32_t*>(in->data) + *static_cast<int32_t*>(get.data);
  return nullptr;
}

XLA_FFI_Error* OtherVersion(XLA_FFI_CallFrame* frame) {
  if (IsProbe(frame))
    reinterpret_cast<XLA_FFI_Metadata_Extension*>(frame->extension_start)->metadata->api_version.major_version = 7;
  return nullptr;
}

// Takes the error as jaxlib does: its first word is an absl::Status, that is a pointer to what has a text at offset 8.
XLA_FFI_Error* AskForStream(XLA_FFI_CallFrame* frame) {
  if (IsProbe(frame)) return nullptr;
  XLA_FFI_Stream_Get_Args get = {};
  XLA_FFI_Error* error = frame->api->Stream_Get(&get);
  const uintptr_t word = *reinterpret_cast<const uintptr_t*>(error);
  EXPECT_EQ(word & 3, 0u);
  const auto* code = reinterpret_cast<const int*>(word) + 1;
  const auto* text = reinterpret_cast<const std::string*>(word + 8);
  EXPECT_EQ(*code, static_cast<int>(StatusCode::kUnimplemented));
  EXPECT_NE(text->find("XLA FFI GPU context is not available"), text->npos) << *text;
  return error;
}

CustomCallSite Site(std::string target, std::string attributes) {
  CustomCallSite site;
  site.target = std::move(target);
  site.api = CustomCallApi::kTypedFfi;
  site.opaque = std::move(attributes);
  site.operands = site.results = {Shape::Scalar(ElementType::S32)};
  return site;
}

TEST(Ffi, ACpuHasNoStream) {
  CustomCallRegistry registry;
  FfiHandlerBundle bundle;
  bundle.execute = reinterpret_cast<void*>(&AskForStream);
  ASSERT_TRUE(registry.RegisterFfi("ask", bundle, 0).ok());
  auto call = BindFfi(registry, Site("ask", ""));
  ASSERT_TRUE(call.ok()) << call.status().ToString();
  int32_t in = 3, out = 0;
  void* operands[] = {&in};
  void* results[] = {&out};
  RunArgs run;
  EXPECT_EQ((*call)->Run({operands, results, run}).code(), StatusCode::kUnimplemented);
}

TEST(Ffi, RunsWithUserData) {
  CustomCallRegistry registry;
  FfiHandlerBundle bundle;
  bundle.execute = reinterpret_cast<void*>(&AddUserData);
  ASSERT_TRUE(registry.RegisterFfi("add", bundle, 0).ok());
  auto call = BindFfi(registry, Site("add", ""));
  ASSERT_TRUE(call.ok()) << call.status().ToString();
  int32_t in = 3, out = 0, data = 4;
  void* operands[] = {&in};
  void* results[] = {&out};
  FfiContext context;
  RunArgs run;
  run.ffi_context = &context;
  EXPECT_EQ((*call)->Run({operands, results, run}).code(), StatusCode::kNotFound);
  ASSERT_TRUE(context.Add(42, &data).ok());
  EXPECT_FALSE(context.Add(42, &data).ok());
  Status status = (*call)->Run({operands, results, run});
  EXPECT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(out, 7);
}

TEST(Ffi, ErrorsOfHandlers) {
  CustomCallRegistry registry;
  FfiHandlerBundle bundle, other;
  bundle.execute = reinterpret_cast<void*>(&AddUserData);
  other.execute = reinterpret_cast<void*>(&OtherVersion);
  ASSERT_TRUE(registry.RegisterFfi("add", bundle, 0).ok());
  ASSERT_TRUE(registry.RegisterFfi("other", other, 0).ok());
  RunArgs run;
  Status status = (*BindFfi(registry, Site("add", "{fail = true}")))->Run({{}, {}, run});
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(), "as asked");
  EXPECT_NE(BindFfi(registry, Site("other", "")).status().message().find("FFI API 7"), std::string::npos);
  EXPECT_EQ(BindFfi(registry, Site("absent", "")).status().code(), StatusCode::kNotFound);
}

TEST(Ffi, TypeIds) {
  Result<int64_t> first = RegisterFfiType("ffi_test.A", 0, nullptr);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(*RegisterFfiType("ffi_test.A", 0, nullptr), *first);
  EXPECT_FALSE(RegisterFfiType("ffi_test.A", *first + 1000, nullptr).ok());
  EXPECT_FALSE(RegisterFfiType("ffi_test.B", *first, nullptr).ok());
  EXPECT_EQ(*RegisterFfiType("ffi_test.C", 7357244197867843242, nullptr), 7357244197867843242);
}

}  // namespace
}  // namespace strop
