#include "strop/import/bytecode_writer.h"

#include <gtest/gtest.h>

#include "strop/import/bytecode_cursor.h"
#include "strop/import/bytecode_sink.h"
#include "strop/import/import.h"

namespace strop {
namespace {

std::span<const uint8_t> BytesOf(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

TEST(ByteSink, WritesWhatTheCursorReads) {
  const uint64_t values[] = {0,          1,          127,        128,        16383,
                             16384,      (1u << 21), 1ull << 35, 1ull << 48, (1ull << 56) - 1,
                             1ull << 56, 1ull << 62, 1ull << 63, ~0ull};
  ByteSink sink;
  for (uint64_t v : values) {
    sink.Varint(v);
    sink.SignedVarint(static_cast<int64_t>(v));
    sink.SignedVarint(-static_cast<int64_t>(v >> 1));
  }
  ByteCursor cursor(BytesOf(sink.bytes()), 0);
  for (uint64_t v : values) {
    EXPECT_EQ(cursor.Varint(), v);
    EXPECT_EQ(cursor.SignedVarint(), static_cast<int64_t>(v));
    EXPECT_EQ(cursor.SignedVarint(), -static_cast<int64_t>(v >> 1));
  }
  EXPECT_TRUE(cursor.ok());
  EXPECT_TRUE(cursor.empty());
}

// The program from every release that can say it is the one that went in.
void ExpectRoundTrip(std::string_view program, int first) {
  Result<std::string> before = MlirToGenericText(BytesOf(program));
  ASSERT_TRUE(before.ok()) << before.status().ToString();
  for (int minor = 0; minor <= 20; ++minor) {
    Result<std::string> artifact = WritePortableArtifact(BytesOf(program), StrCat("1.", minor, ".0"));
    ASSERT_EQ(artifact.ok(), minor >= first) << minor << ": " << artifact.status().ToString();
    if (!artifact.ok()) continue;
    Result<std::string> after = MlirToGenericText(BytesOf(*artifact));
    ASSERT_TRUE(after.ok()) << after.status().ToString();
    EXPECT_EQ(*before, *after) << minor;
  }
}

TEST(PortableArtifact, RegionsNestAndValuesKeepTheirNumbers) {
  ExpectRoundTrip(R"(
func.func @main(%n: tensor<i32>, %x: tensor<4xf32>) -> (tensor<i32>, tensor<4xf32>) {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %0:2 = stablehlo.while(%i = %n, %v = %x) : tensor<i32>, tensor<4xf32>
   cond {
    %limit = stablehlo.constant dense<10> : tensor<i32>
    %c = stablehlo.compare LT, %i, %limit : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  } do {
    %even = stablehlo.constant dense<true> : tensor<i1>
    %w = "stablehlo.if"(%even) ({
      %t = stablehlo.add %v, %x : tensor<4xf32>
      stablehlo.return %t : tensor<4xf32>
    }, {
      stablehlo.return %v : tensor<4xf32>
    }) : (tensor<i1>) -> tensor<4xf32>
    %j = stablehlo.add %i, %one : tensor<i32>
    stablehlo.return %j, %w : tensor<i32>, tensor<4xf32>
  }
  %s = "stablehlo.sort"(%0#1) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.compare GT, %a, %b, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %c : tensor<i1>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0#0, %s : tensor<i32>, tensor<4xf32>
})",
                  0);
}

TEST(PortableArtifact, QuantizedTypesAndDynamicSizes) {
  ExpectRoundTrip(R"(
func.func @main(%x: tensor<?x2xf32>, %n: tensor<2xi64>) -> tensor<?x2xf32> {
  %q = stablehlo.uniform_quantize %x : (tensor<?x2xf32>) -> tensor<?x2x!quant.uniform<i8:f32:1, {1.000000e-01:-30,5.000000e-01:-20}>>
  %d = stablehlo.uniform_dequantize %q : (tensor<?x2x!quant.uniform<i8:f32:1, {1.000000e-01:-30,5.000000e-01:-20}>>) -> tensor<?x2xf32>
  %r = stablehlo.dynamic_reshape %d, %n : (tensor<?x2xf32>, tensor<2xi64>) -> tensor<?x2xf32>
  %p = stablehlo.uniform_quantize %r : (tensor<?x2xf32>) -> tensor<?x2x!quant.uniform<u8:f32, 3.400000e-01:16>>
  %e = stablehlo.uniform_dequantize %p : (tensor<?x2x!quant.uniform<u8:f32, 3.400000e-01:16>>) -> tensor<?x2xf32>
  return %e : tensor<?x2xf32>
})",
                  0);
}

TEST(PortableArtifact, WhatCameLaterNeedsItsRelease) {
  ExpectRoundTrip("func.func @main(%x: tensor<2xi2>) -> tensor<2xi2> { return %x : tensor<2xi2> }", 2);
  ExpectRoundTrip("func.func @main(%x: tensor<2xf8E3M4>) -> tensor<2xf8E3M4> { return %x : tensor<2xf8E3M4> }", 7);
  ExpectRoundTrip(R"(
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = "stablehlo.sqrt"(%x) <{result_accuracy = #stablehlo.result_accuracy<ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>}> : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
})",
                  10);
  ExpectRoundTrip(R"(
func.func @main(%x: tensor<2x3xf32>, %i: tensor<2x1xi32>) -> tensor<2x1xf32> {
  %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<2x3xf32>, tensor<2x1xi32>) -> tensor<2x1xf32>
  return %0 : tensor<2x1xf32>
})",
                  1);
}

TEST(PortableArtifact, OtherDialectsAreRefused) {
  Result<std::string> artifact = WritePortableArtifact(BytesOf(R"(
func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {
  %0 = chlo.erf %x : tensor<2xf32> -> tensor<2xf32>
  return %0 : tensor<2xf32>
})"));
  ASSERT_FALSE(artifact.ok());
  EXPECT_EQ(artifact.status().message(), "'chlo.erf' has no form in a portable artifact");
  EXPECT_NE(artifact.status().location().find(":3:"), std::string::npos) << artifact.status().location();
}

}  // namespace
}  // namespace strop
