#include "strop/import/text_parser.h"

#include <gtest/gtest.h>

#include "strop/base/mutator.h"

namespace strop {
namespace {

std::string Parse(std::string_view text, bool locations = false) {
  Result<std::unique_ptr<MlirModule>> m = ParseMlirText(text, "t.mlir");
  return m.ok() ? PrintGeneric(*(*m)->root, locations) : m.status().ToString();
}

// The generic form of `text`, one op of a function with these arguments.
std::string Body(std::string_view op) {
  std::string text =
      Parse(StrCat("func.func @main(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>, %i: tensor<i32>, %p: tensor<4x8xi1>) {\n",
                   op, "\n func.return\n}"));
  size_t begin = text.find("i1>):\n");
  if (begin == std::string::npos) return text;
  begin += 6;
  size_t end = text.rfind("    \"func.return\"");
  std::string body = text.substr(begin, end - begin);
  while (!body.empty() && (body.back() == '\n' || body.back() == ' ')) body.pop_back();
  return body.substr(body.find_first_not_of(' '));
}

// A second definition used to send the parser back behind the first one, for ever.
TEST(MlirText, AliasesAreDefinedOnce) {
  EXPECT_NE(Parse("!a = f32\n!a = f32\n").find("the alias !a is defined a second time"), std::string::npos);
  EXPECT_NE(Parse("#a = 1 : i32\n#b = #a\n#a = 2 : i32\n").find("the alias #a is defined a second time"),
            std::string::npos);
}

TEST(MlirText, PrettyForms) {
  EXPECT_EQ(Body("%0 = stablehlo.add %a, %b : tensor<4x8xf32>"),
            "%0 = \"stablehlo.add\"(%arg0, %arg1) : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>");
  EXPECT_EQ(Body("%0 = stablehlo.compare LT, %a, %b, FLOAT : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>"),
            "%0 = \"stablehlo.compare\"(%arg0, %arg1) <{compare_type = #stablehlo<comparison_type FLOAT>, "
            "comparison_direction = "
            "#stablehlo<comparison_direction LT>}> : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>");
  EXPECT_EQ(Body("%0 = stablehlo.slice %a [0:4:2, 1:8] : (tensor<4x8xf32>) -> tensor<2x7xf32>"),
            "%0 = \"stablehlo.slice\"(%arg0) <{limit_indices = array<i64: 4, 8>, start_indices = array<i64: 0, 1>, "
            "strides = array<i64: "
            "2, 1>}> : (tensor<4x8xf32>) -> tensor<2x7xf32>");
  EXPECT_EQ(Body("%0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [1], precision = [HIGH, DEFAULT] : "
                 "(tensor<4x8xf32>, "
                 "tensor<4x8xf32>) -> tensor<4x4xf32>"),
            "%0 = \"stablehlo.dot_general\"(%arg0, %arg1) <{dot_dimension_numbers = "
            "#stablehlo.dot<lhs_contracting_dimensions = [1], "
            "rhs_contracting_dimensions = [1]>, precision_config = [#stablehlo<precision HIGH>, #stablehlo<precision "
            "DEFAULT>]}> : "
            "(tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x4xf32>");
  EXPECT_EQ(Body("%0 = stablehlo.select %p, %a, %b : tensor<4x8xi1>, tensor<4x8xf32>"),
            "%0 = \"stablehlo.select\"(%arg3, %arg0, %arg1) : (tensor<4x8xi1>, tensor<4x8xf32>, tensor<4x8xf32>) -> "
            "tensor<4x8xf32>");
  EXPECT_EQ(Body("%0 = stablehlo.reduce_precision %a, format = e5m10 : tensor<4x8xf32>"),
            "%0 = \"stablehlo.reduce_precision\"(%arg0) <{exponent_bits = 5 : i32, mantissa_bits = 10 : i32}> : "
            "(tensor<4x8xf32>) -> tensor<4x8xf32>");
  EXPECT_EQ(Body("%0:2 = stablehlo.optimization_barrier %a, %i : tensor<4x8xf32>, tensor<i32>"),
            "%0:2 = \"stablehlo.optimization_barrier\"(%arg0, %arg2) : (tensor<4x8xf32>, tensor<i32>) -> "
            "(tensor<4x8xf32>, tensor<i32>)");
  EXPECT_EQ(Body("check.expect_almost_eq_const %a, dense<0.5> : tensor<4x8xf32>, tolerance = 0.1 : f64"),
            "\"check.expect_almost_eq_const\"(%arg0) <{tolerance = 1.000000e-01 : f64, value = dense<5.000000e-01> : "
            "tensor<4x8xf32>}> : "
            "(tensor<4x8xf32>) -> ()");
  EXPECT_EQ(Body("%0:2 = chlo.top_k(%a, k = 2) : tensor<4x8xf32> -> (tensor<4x2xf32>, tensor<4x2xi32>)"),
            "%0:2 = \"chlo.top_k\"(%arg0) <{k = 2 : i64}> : (tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)");
}

TEST(MlirText, Regions) {
  EXPECT_EQ(Body("%c = stablehlo.constant dense<0.0> : tensor<f32>\n"
                 "%0 = stablehlo.reduce(%a init: %c) across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> "
                 "tensor<4xf32>\n"
                 " reducer(%x: tensor<f32>, %y: tensor<f32>) { stablehlo.return %x : tensor<f32> }"),
            "%0 = \"stablehlo.constant\"() <{value = dense<0.000000e+00> : tensor<f32>}> : () -> tensor<f32>\n"
            "    %1 = \"stablehlo.reduce\"(%arg0, %0) <{dimensions = array<i64: 1>}> ({\n"
            "    ^bb0(%arg4: tensor<f32>, %arg5: tensor<f32>):\n"
            "      \"stablehlo.return\"(%arg4) : (tensor<f32>) -> ()\n"
            "    }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>");
  EXPECT_EQ(Body("%0 = stablehlo.while(%k = %i) : tensor<i32> cond { %q = \"t.x\"(%k) : (tensor<i32>) -> tensor<i1>\n "
                 "stablehlo.return %q : "
                 "tensor<i1> } do { stablehlo.return %k : tensor<i32> }"),
            "%0 = \"stablehlo.while\"(%arg2) ({\n"
            "    ^bb0(%arg4: tensor<i32>):\n"
            "      %1 = \"t.x\"(%arg4) : (tensor<i32>) -> tensor<i1>\n"
            "      \"stablehlo.return\"(%1) : (tensor<i1>) -> ()\n"
            "    }, {\n"
            "    ^bb0(%arg5: tensor<i32>):\n"
            "      \"stablehlo.return\"(%arg5) : (tensor<i32>) -> ()\n"
            "    }) : (tensor<i32>) -> tensor<i32>");
}

// What a block uses may be defined by a later one, and the first block may be jumped to.
TEST(MlirText, Blocks) {
  const std::string text = Parse(
      "func.func @main(%a: i1) {\n  \"t.jump\"()[^second] : () -> ()\n"
      "^third:\n  \"t.use\"(%late#1, %b, %a) : (i32, f32, i1) -> ()\n  \"t.jump\"()[^second, ^third] : () -> ()\n"
      "^second:\n  %late:2 = \"t.make\"() : () -> (i8, i32)\n  \"t.jump\"(%a)[^fourth] : (i1) -> ()\n"
      "^fourth(%b: f32):\n  \"t.regions\"() ({\n  }, {\n  ^one:\n  }, {\n  ^one:\n    \"t.jump\"()[^one] : () -> ()\n"
      "  }) : () -> ()\n}");
  EXPECT_NE(text.find("\"t.use\"(%0#1, %arg1, %arg0)"), std::string::npos) << text;
  EXPECT_NE(text.find("%0:2 = \"t.make\"()"), std::string::npos) << text;
  EXPECT_NE(text.find("({\n    }, {\n    ^bb0:\n    }, {\n    ^bb0:\n      \"t.jump\"()[^bb0]"), std::string::npos)
      << text;
  EXPECT_EQ(Parse(text), text);
}

TEST(MlirText, LocationsOfADeclaration) {
  EXPECT_EQ(Parse("func.func private @f(f32 loc(\"x\"), i1 {a} loc(unknown))"),
            Parse("func.func private @f(f32, i1 {a})"));
}

// Attributes hold 64 bits of a number: wider floats used to be read behind them.
TEST(MlirText, NoConstantsOfWideFloats) {
  for (std::string_view attr : {"0x7F : f80", "array<f80: 0x7F>", "array<f128: 1.0>", "dense<0x7F> : tensor<2xf80>",
                                "dense<\"0x000000000000000000000000000000000000\"> : tensor<1xcomplex<complex<f32>>>"})
    EXPECT_NE(Parse(StrCat("module attributes {a = ", attr, "} {}")).find("not supported"), std::string::npos) << attr;
}

TEST(MlirText, AttributesAndTypes) {
  auto round = [](std::string_view attr) {
    std::string text = Parse(StrCat("module attributes {a = ", attr, "} {}"));
    size_t begin = text.find("{a = ");
    return begin == std::string::npos ? text : text.substr(begin + 5, text.rfind("} : () -> ()") - begin - 5);
  };
  for (std::string_view same :
       {"dense<[[1, 2], [3, -4]]> : tensor<2x2xi8>",
        "dense<(1.000000e+00,2.000000e+00)> : tensor<3xcomplex<f32>>",
        "dense<0x7F800000> : tensor<f32>",
        "array<i64: 1, -2>",
        "array<i1: true, false>",
        "@a::@\"b c\"",
        "\"a\\0Ab\"",
        "{x, y = [1 : i64, 2.500000e+00 : f32]}",
        "#stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>",
        "#stablehlo.channel_handle<handle = 1, type = 0>",
        "tensor<4x?xf32, #stablehlo.bounds<?, 8>>",
        "!quant.uniform<i8<-127:127>:f32:1, {1.000000e-01:3, 2.000000e-01}>",
        "(tensor<*xf32>) -> (f8E4M3FN, !stablehlo.token)",
        "#sdy.sharding<@m, [{\"a\", \"b\":(1)2, ?}p3, {}], replicated={\"c\"}>",
        "#sdy.mesh<[\"a\"=2], device_ids=[1, 0]>",
        "#other.thing<[1, 2], {a = \"x>\"}>",
        "255 : ui8",
        "sparse<[[0, 0], [1, 2]], [1, 5]> : tensor<3x4xi32>",
        "sparse<[[0], [0]], 5> : tensor<3xi32>",
        "sparse<> : tensor<3xf32>",
        "!quant.uniform<i8:f32, 1.000000e-310>",
        "#stablehlo.mesh<axes=[<name = \"x\", size = 2>]>",
        "-1 : i64",
        "dense<1> : tensor<0x3xi32>",
        "#stablehlo.result_accuracy<ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>",
        "#sdy.op_sharding_rule<([i, j])->([i]) {i=2, j=4}, custom>"}) {
    EXPECT_EQ(round(same), same);
  }
  EXPECT_EQ(round("dense<[2, 2]> : tensor<2xi4>"), "dense<2> : tensor<2xi4>");
  EXPECT_EQ(round("dense<\"0x0000803F00000040\"> : tensor<2xf32>"),
            "dense<[1.000000e+00, 2.000000e+00]> : tensor<2xf32>");
}

TEST(MlirText, AliasesAndLocations) {
  std::string text = Parse(
      "#loc1 = loc(\"x\")\n!t = tensor<2xf32>\nmodule {\n  func.func @main(%a: !t loc(\"a\")) -> !t {\n    return %a : "
      "!t loc(#loc2)\n  } loc(#loc)\n} "
      "loc(#loc)\n#loc = loc(unknown)\n#loc2 = loc(callsite(#loc1 at \"f.py\":1:2 to :7))\n",
      true);
  EXPECT_NE(text.find("loc(callsite(\"x\" at \"f.py\":1:2 to :7))"), std::string::npos) << text;
  EXPECT_NE(text.find("%arg0: tensor<2xf32> loc(\"a\")"), std::string::npos) << text;
  // An operation that names no location has the one of its text.
  EXPECT_NE(Parse("module {\n\n  func.func private @f()\n}", true).find("loc(\"t.mlir\":3:3)"), std::string::npos);
}

TEST(MlirText, Resources) {
  std::string text =
      "module attributes {a = dense_resource<blob> : tensor<2xi32>} {}\n{-#\n  dialect_resources: {\n    builtin: {\n  "
      "    blob: "
      "\"0x040000000100000002000000\"\n    }\n  }\n#-}\n";
  Result<std::unique_ptr<MlirModule>> m = ParseMlirText(text, "t");
  ASSERT_TRUE(m.ok()) << m.status().ToString();
  const MlirAttr* a = (*m)->root->Attr("a");
  ASSERT_TRUE(a);
  EXPECT_EQ(a->data.size(), 8u);
}

TEST(MlirText, Errors) {
  struct Case {
    std::string_view text, error;
  } cases[] = {
      {"%0 = stablehlo.add %a, %x : tensor<4x8xf32>", "use of undeclared value %x [at t.mlir:2:24]"},
      {"%0 = stablehlo.add %a, %b : tensor<4xf32>", "%a has the type tensor<4x8xf32>, but is used as tensor<4xf32>"},
      {"%0 = stablehlo.frobnicate %a : tensor<4xf32>", "operation 'stablehlo.frobnicate' is not known"},
      {"%0 = stablehlo.gather %a : tensor<4xf32>", "must be written in the generic form"},
      {"%0 = \"t.x\"(%a) : () -> tensor<f32>", "has 1 operands, but 0 types"},
      {"%0 = stablehlo.constant dense<[1, 2]> : tensor<3xi32>",
       "the elements have the shape [2], which does not match tensor<3xi32>"},
      {"%0 = stablehlo.constant dense<[[1], [2, 3]]> : tensor<2x1xi32>",
       "a list of 2 elements where the others have 1"},
      {"%0 = stablehlo.constant dense<300> : tensor<2xi8>", "integer 300 does not fit in i8"},
      {"%0 = stablehlo.constant dense<1.5> : tensor<2xi8>", "expected an integer of type i8, found 1.5"},
      {"%a = stablehlo.negate %b : tensor<4x8xf32>", "%a is defined twice"},
      {"%0 = stablehlo.compare XX, %a, %b : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xi1>",
       "'XX' is no stablehlo.comparison_direction"},
      {"\"t.x\"() {a = 1, a = 2} : () -> ()", "attribute 'a' is given twice"},
      {"\"t.x\"() {a = \"open} : () -> ()", "this string has no end"},
      {"\"t.x\"() {a = #nope} : () -> ()", "attribute alias #nope is not defined"},
      {"\"t.x\"() ({ \"t.y\"() : () -> ()", "found the end of the input"},
  };
  for (const Case& c : cases) {
    std::string text = Body(c.text);
    EXPECT_NE(text.find(c.error), std::string::npos) << c.text << "\n  gave " << text;
  }
  EXPECT_NE(Parse("module attributes {a = #x} {}\n#x = #y\n#y = #x\n").find("refers to itself"), std::string::npos);
  std::string deep = "module attributes {a = " + std::string(100000, '[') + "} {}";
  EXPECT_NE(Parse(deep).find("nested deeper than"), std::string::npos);
  std::string regions;
  for (int i = 0; i < 5000; ++i) regions += "\"t.x\"() ({";
  EXPECT_NE(Parse(regions).find("nested deeper than"), std::string::npos);
}

TEST(MlirText, TruncatedAndChangedText) {
  const std::string good =
      "module @m attributes {a = {b = dense<[[1, 2]]> : tensor<1x2xi8>}} {\n  func.func @main(%a: "
      "tensor<4x!quant.uniform<i8:f32, 0.1:2>>, %b: "
      "tensor<2x2xf32>) -> tensor<2xf32> {\n    %c = stablehlo.constant dense<0.0> : tensor<f32>\n    %0 = "
      "stablehlo.reduce(%b init: %c) applies "
      "stablehlo.add across dimensions = [1] : (tensor<2x2xf32>, tensor<f32>) -> tensor<2xf32> loc(\"x\"(\"f\":1:2))\n "
      "   %1 = "
      "stablehlo.convolution(%b, %b) dim_numbers = [b, f]x[i, o]->[b, f], window = {stride = [], pad = []} "
      "{batch_group_count = 1 : i64, "
      "feature_group_count = 1 : i64} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>\n    return %0 : "
      "tensor<2xf32>\n  }\n}\n";
  ASSERT_TRUE(ParseMlirText(good, "t").ok()) << Parse(good);
  for (size_t n = 0; n < good.size(); ++n) Parse(std::string_view(good).substr(0, n));
  Mutator mutate("(){}[]<>\"#!@%^:,=-x?0129 \nabdefloc\\");
  for (int64_t round = mutate.Rounds(20000); round > 0; --round) Parse(mutate(good), true);
}

}  // namespace
}  // namespace strop
