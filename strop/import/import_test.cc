#include "strop/import/import.h"

#include <gtest/gtest.h>

#include "strop/base/mutator.h"
#include "strop/import/convert.h"
#include "strop/import/text_parser.h"

namespace strop {
namespace {

std::span<const uint8_t> Bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

Result<std::unique_ptr<Module>> Import(std::string_view text) {
  return ImportMlir(Bytes(text), {.file_name = "t.mlir"});
}

std::string Error(std::string_view text) {
  Result<std::unique_ptr<Module>> m = Import(text);
  return m.ok() ? "imported" : m.status().ToString();
}

// The HLO of a function with these ops, without metadata, from the entry on.
std::string Hlo(std::string_view text) {
  Result<std::unique_ptr<Module>> m = Import(text);
  if (!m.ok()) return m.status().ToString();
  for (Computation* c : (*m)->computations()) {
    for (Instruction* i : c->instructions()) i->set_metadata(std::shared_ptr<const OpMetadata>());
  }
  return (*m)->ToString();
}

#define EXPECT_HAS(text, part) EXPECT_NE((text).find(part), std::string::npos) << (text)

TEST(Import, Elementwise) {
  std::string hlo = Hlo(R"(module @m {
    func.func public @main(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xi1> {
      %0 = stablehlo.add %a, %b : tensor<4xf32>
      %1 = stablehlo.compare LT, %0, %b, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
      return %1 : tensor<4xi1>
    }})");
  EXPECT_HAS(hlo, "HloModule m");
  EXPECT_HAS(hlo, "add(%Arg_0, %Arg_1)");
  EXPECT_HAS(hlo, "direction=LT");
  EXPECT_EQ(hlo.find("type=FLOAT"), std::string::npos) << hlo;
}

TEST(Import, ResultsAreOneValueOrATuple) {
  EXPECT_HAS(Hlo("func.func @f(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }"), "ROOT %Arg_0");
  EXPECT_HAS(
      Hlo("func.func @f(%a: tensor<f32>) -> (tensor<f32>, tensor<f32>) { return %a, %a : tensor<f32>, tensor<f32> }"),
      "tuple(%Arg_0, %Arg_0)");
  EXPECT_HAS(Hlo("func.func @f() { return }"), "() tuple()");
}

TEST(Import, SplatsAreBroadcasts) {
  std::string hlo =
      Hlo("func.func @f() -> tensor<1000000x1000000xf32> { %0 = stablehlo.constant dense<0.5> : "
          "tensor<1000000x1000000xf32>\n return %0 : "
          "tensor<1000000x1000000xf32> }");
  EXPECT_HAS(hlo, "constant(0.5)");
  EXPECT_HAS(hlo, "broadcast(");
}

TEST(Import, BroadcastInDimExpandsAndPermutes) {
  std::string hlo =
      Hlo("func.func @f(%a: tensor<1x3xf32>) -> tensor<3x2x4xf32> { %0 = stablehlo.broadcast_in_dim %a, dims = [1, 0] "
          ": (tensor<1x3xf32>) -> "
          "tensor<3x2x4xf32>\n return %0 : tensor<3x2x4xf32> }");
  EXPECT_HAS(hlo, "transpose(%Arg_0), dimensions={1,0}");
  EXPECT_HAS(hlo, "f32[3] reshape(");
  EXPECT_HAS(hlo, "dimensions={0}");
}

// Regions see values from outside: conditionals and loops carry them, constants are made again.
TEST(Import, CapturedValues) {
  std::string hlo = Hlo(R"(
    func.func @f(%p: tensor<i1>, %a: tensor<f32>) -> tensor<f32> {
      %c = stablehlo.constant dense<2.0> : tensor<f32>
      %0 = "stablehlo.if"(%p) ({
        %1 = stablehlo.multiply %a, %c : tensor<f32>
        stablehlo.return %1 : tensor<f32>
      }, {
        stablehlo.return %c : tensor<f32>
      }) : (tensor<i1>) -> tensor<f32>
      return %0 : tensor<f32>
    })");
  EXPECT_HAS(hlo, "(f32[]) tuple(%Arg_1)");
  EXPECT_HAS(hlo, "() tuple()");
  EXPECT_HAS(hlo, "true_computation=%branch, false_computation=%branch");
  hlo = Hlo(R"(
    func.func @f(%n: tensor<i32>, %step: tensor<i32>) -> tensor<i32> {
      %zero = stablehlo.constant dense<0> : tensor<i32>
      %0 = stablehlo.while(%i = %zero) : tensor<i32>
      cond {
        %1 = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
        stablehlo.return %1 : tensor<i1>
      } do {
        %1 = stablehlo.add %i, %step : tensor<i32>
        stablehlo.return %1 : tensor<i32>
      }
      return %0 : tensor<i32>
    })");
  EXPECT_HAS(hlo, "(s32[], s32[], s32[]) while(");
  EXPECT_HAS(Error(R"(
    func.func @f(%a: tensor<4xf32>, %z: tensor<f32>) -> tensor<f32> {
      %0 = stablehlo.reduce(%a init: %z) across dimensions = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
       reducer(%x: tensor<f32>, %y: tensor<f32>) {
        %1 = stablehlo.add %x, %z : tensor<f32>
        stablehlo.return %1 : tensor<f32>
      }
      return %0 : tensor<f32>
    })"),
             "its region uses values from outside that are no constants [at t.mlir:3:12]");
}

TEST(Import, Calls) {
  std::string hlo = Hlo(R"(module {
    func.func private @g(%x: tensor<f32>) -> (tensor<f32>, tensor<f32>) { return %x, %x : tensor<f32>, tensor<f32> }
    func.func @main(%a: tensor<f32>) -> tensor<f32> {
      %0:2 = call @g(%a) : (tensor<f32>) -> (tensor<f32>, tensor<f32>)
      %1 = stablehlo.composite "my.op" %0#1 {composite_attributes = {k = 2 : i64}, decomposition = @h, version = 3 : i32} : (tensor<f32>) -> tensor<f32>
      return %1 : tensor<f32>
    }
    func.func private @h(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }
    func.func private @unused(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }})");
  EXPECT_HAS(hlo, "to_apply=%g");
  EXPECT_HAS(hlo, "is_composite=true");
  EXPECT_HAS(hlo, "composite.name=\"my.op\"");
  EXPECT_HAS(hlo, "composite.version=\"3\"");
  EXPECT_EQ(hlo.find("unused"), std::string::npos);
  EXPECT_HAS(Error("module { func.func @main() { call @main() : () -> ()\n return } }"), "calls itself");
  EXPECT_HAS(Error("module { func.func @main() { call @g() : () -> ()\n return } }"),
             "there is no function @g [at t.mlir:1:30]");
  EXPECT_HAS(Error("module { func.func @a() { return }\n func.func @b() { return } }"), "none is called @main");
}

TEST(Import, CustomCalls) {
  std::string hlo = Hlo(R"(func.func @f(%a: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<i32>) {
      %0:2 = stablehlo.custom_call @target(%a) {has_side_effect = true, mhlo.backend_config = {uplo = 76 : ui8}, mhlo.frontend_attributes = {k = "v"},
        operand_layouts = [dense<[0, 1]> : tensor<2xindex>], result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>],
        output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>]}
        : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<i32>)
      return %0#0, %0#1 : tensor<2x3xf32>, tensor<i32>
    })");
  EXPECT_HAS(hlo, "(f32[2,3]{0,1}, s32[]) custom-call(%Arg_0), custom_call_target=\"target\"");
  EXPECT_HAS(hlo, "operand_layout_constraints={f32[2,3]{0,1}}");
  EXPECT_HAS(hlo, "custom_call_has_side_effect=true");
  EXPECT_HAS(hlo, "output_to_operand_aliasing={{0}: (0, {})}");
  EXPECT_HAS(hlo, "api_version=API_VERSION_TYPED_FFI");
  EXPECT_HAS(hlo, "{uplo = 76 : ui8}");
  EXPECT_HAS(hlo, "frontend_attributes={k=\"v\"}");
}

TEST(Import, EntryAttributes) {
  Result<std::unique_ptr<Module>> m =
      Import(R"(module attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
      sdy.mesh @mesh = <["a"=2, "b"=4]>
      func.func @main(%x: tensor<8x4xf32> {tf.aliasing_output = 1 : i32, sdy.sharding = #sdy.sharding<@mesh, [{"b"}, {}]>},
                      %y: tensor<4xf32> {jax.buffer_donor = true, mhlo.memory_kind = "pinned_host", mhlo.sharding = "{replicated}"})
          -> (tensor<4xf32> {mhlo.memory_kind = "device"}, tensor<8x4xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {"b"}]>}) {
        return %y, %x : tensor<4xf32>, tensor<8x4xf32>
      }})");
  ASSERT_TRUE(m.ok()) << m.status().ToString();
  const ModuleConfig& config = (*m)->config();
  EXPECT_EQ(config.num_partitions, 8);
  ASSERT_EQ(config.input_output_alias.size(), 1u);
  EXPECT_EQ(config.input_output_alias[0], (InputOutputAlias{{1}, 0, {}, false}));
  ASSERT_EQ(config.buffer_donors.size(), 1u);
  EXPECT_EQ(config.buffer_donors[0], (BufferDonor{1, {}}));
  EXPECT_EQ(config.parameter_memory_kinds, (std::vector<std::string>{"", "pinned_host"}));
  EXPECT_EQ(config.result_memory_kinds, (std::vector<std::string>{"device", ""}));
  EXPECT_EQ(config.frontend_attributes.at("xla.sdy.meshes"), "{mesh = #sdy.mesh<[\"a\"=2, \"b\"=4]>}");
  Computation* entry = (*m)->entry();
  ASSERT_TRUE(entry->parameter(0)->sharding());
  EXPECT_EQ(entry->parameter(0)->sharding()->ToString(), "{devices=[4,1,2]<=[2,4]T(1,0) last_tile_dim_replicate}");
  EXPECT_EQ(entry->parameter(0)->frontend_attributes().at("xla.sdy.sharding"), "#sdy.sharding<@mesh, [{\"b\"}, {}]>");
  EXPECT_EQ(entry->parameter(1)->sharding()->ToString(), "{replicated}");
  ASSERT_TRUE(entry->root()->sharding());
  EXPECT_EQ(entry->root()->sharding()->ToString(), "{{unknown}, {devices=[2,4]<=[8]}}");
}

TEST(Import, AliasOfTheOnlyResult) {
  Result<std::unique_ptr<Module>> m = Import(R"(
    module attributes {mhlo.input_output_alias = [{alias = {kind = "may_alias", parameter_index = array<i64>, parameter_number = 0 : i64}, output_index = array<i64: 0>}]} {
      func.func @main(%x: tensor<f32>) -> tensor<f32> { return %x : tensor<f32> }
    })");
  ASSERT_TRUE(m.ok()) << m.status().ToString();
  ASSERT_EQ((*m)->config().input_output_alias.size(), 1u);
  EXPECT_EQ((*m)->config().input_output_alias[0], (InputOutputAlias{{}, 0, {}, false}));
}

TEST(Import, Shardings) {
  struct Case {
    std::string_view mesh, sharding, hlo;
  } cases[] = {
      {"[\"a\"=2, \"b\"=4]", "[{\"a\"}, {\"b\"}]", "{devices=[2,4]<=[8]}"},
      {"[\"a\"=2, \"b\"=4]", "[{\"a\", \"b\"}, {}]", "{devices=[8,1]<=[8]}"},
      {"[\"a\"=2, \"b\"=4]", "[{\"b\", \"a\"}, {?}]", "{devices=[8,1]<=[2,4]T(1,0)}"},
      {"[\"a\"=2, \"b\"=4]", "[{}, {}]", "{replicated}"},
      {"[\"a\"=2, \"b\"=4]", "[{\"b\":(1)2}, {}]", "{devices=[2,1,4]<=[2,2,2]T(1,0,2) last_tile_dim_replicate}"},
      {"[\"a\"=2, \"b\"=4]", "[{\"b\":(2)2}, {}]", "{devices=[2,1,4]<=[4,2]T(1,0) last_tile_dim_replicate}"},
      {"[\"a\"=2, \"b\"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]", "[{\"a\"}, {\"b\"}]",
       "{devices=[2,4]7,6,5,4,3,2,1,0}"},
      {"[], device_ids=[3]", "[]", "{maximal device=3}"},
  };
  for (const Case& c : cases) {
    Result<std::unique_ptr<Module>> m =
        Import(StrCat("module attributes {mhlo.num_partitions = 8 : i32} { sdy.mesh @mesh = <", c.mesh,
                      ">\n func.func @main(%x: tensor<8x8xf32> {sdy.sharding = #sdy.sharding<@mesh, ", c.sharding,
                      ">}) -> tensor<8x8xf32> { return %x : tensor<8x8xf32> } }"));
    ASSERT_TRUE(m.ok()) << m.status().ToString();
    const Sharding* sharding = (*m)->entry()->parameter(0)->sharding();
    ASSERT_TRUE(sharding) << c.sharding;
    EXPECT_EQ(sharding->ToString(), c.hlo) << c.sharding;
  }
}

TEST(Import, AnEmptyShardingIsNone) {
  Result<std::unique_ptr<Module>> m =
      Import("func.func @f(%x: tensor<4xf32> {mhlo.sharding = \"\"}) -> tensor<4xf32> { return %x : tensor<4xf32> }");
  ASSERT_TRUE(m.ok()) << m.status().ToString();
  EXPECT_FALSE((*m)->entry()->parameter(0)->sharding());
}

TEST(Import, ManualComputation) {
  constexpr std::string_view kText = R"(module attributes {mhlo.num_partitions = %N : i32} { sdy.mesh @mesh = <["a"=%N]>
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = sdy.manual_computation(%x) in_shardings=[<@mesh, [{"a"}]>] out_shardings=[<@mesh, [{"a"}]>] manual_axes={"a"} (%y: tensor<%Kxf32>) {
        %1 = stablehlo.negate %y : tensor<%Kxf32>
        sdy.return %1 : tensor<%Kxf32>
      } : (tensor<8xf32>) -> tensor<8xf32>
      %1 = sdy.sharding_constraint %0 <@mesh, [{"a"}]> : tensor<8xf32>
      return %1 : tensor<8xf32>
    }})";
  auto with = [&](std::string_view n, std::string_view k) {
    std::string text(kText);
    for (size_t at; (at = text.find("%N")) != std::string::npos;) text.replace(at, 2, n);
    for (size_t at; (at = text.find("%K")) != std::string::npos;) text.replace(at, 2, k);
    return text;
  };
  std::string one = Hlo(with("1", "8"));
  EXPECT_HAS(one, "call(%Arg_0), to_apply=%xla.sdy.manual_computation_body");
  EXPECT_EQ(one.find("custom-call"), std::string::npos) << one;
  std::string two = Hlo(with("2", "4"));
  EXPECT_HAS(two, "custom_call_target=\"xla.sdy.GlobalToLocalShape\"");
  EXPECT_HAS(two, "custom_call_target=\"xla.sdy.LocalToGlobalShape\"");
  EXPECT_HAS(two, "custom_call_target=\"Sharding\", sharding={devices=[2]<=[2]}");
}

TEST(Import, Metadata) {
  Result<std::unique_ptr<Module>> m = Import(
      "func.func @f(%x: tensor<f32> loc(\"x\")) -> tensor<f32> {\n  %0 = stablehlo.negate %x : tensor<f32> "
      "loc(#loc1)\n  return %0 : tensor<f32>\n}\n"
      "#loc1 = loc(\"jit(f)/neg\"(callsite(\"f\"(\"a.py\":3:4 to :9) at \"g\"(\"b.py\":7:0))))\n");
  ASSERT_TRUE(m.ok()) << m.status().ToString();
  const OpMetadata& meta = (*m)->entry()->root()->metadata();
  EXPECT_EQ(meta.op_name, "jit(f)/neg");
  EXPECT_EQ(meta.source_file, "a.py");
  EXPECT_EQ(meta.source_line, 3);
  EXPECT_EQ(meta.stack_frame_id, 2);
  const StackFrames& frames = (*m)->config().stack_frames;
  EXPECT_EQ(frames.file_names, (std::vector<std::string>{"b.py", "a.py"}));
  EXPECT_EQ(frames.function_names, (std::vector<std::string>{"g", "f"}));
  ASSERT_EQ(frames.frames.size(), 2u);
  EXPECT_EQ(frames.frames[0].parent_frame_id, 0);
  EXPECT_EQ(frames.frames[1].parent_frame_id, 1);
  EXPECT_EQ((*m)->entry()->parameter(0)->metadata().op_name, "x");
}

TEST(Import, MhloLeftInStablehlo) {
  std::string fused = Hlo(R"(func.func @main(%a: tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2x3xf32>) {
    %c = mhlo.copy %a : tensor<2x3xf32>
    %0:2 = "mhlo.fusion"(%c) <{fusion_kind = #mhlo<fusion_kind kInput>}> ({
    ^bb0(%x: tensor<2x3xf32>):
      %n = stablehlo.negate %x : tensor<2x3xf32>
      %z = stablehlo.constant dense<0.0> : tensor<f32>
      %s = stablehlo.reduce(%n init: %z) applies stablehlo.add across dimensions = [1] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
      mhlo.return %s, %n : tensor<2xf32>, tensor<2x3xf32>
    }) {output_operand_aliasing = []} : (tensor<2x3xf32>) -> (tensor<2xf32>, tensor<2x3xf32>)
    return %0#0, %0#1 : tensor<2xf32>, tensor<2x3xf32>
  })");
  EXPECT_HAS(fused, "fusion(%copy), kind=kInput, calls=%fused_computation");
  std::string top = Hlo(R"(func.func @main(%a: tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>) {
    %v, %i = "mhlo.topk"(%a) <{k = 2 : i64, largest = false}> : (tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)
    return %v, %i : tensor<4x2xf32>, tensor<4x2xi32>
  })");
  EXPECT_HAS(top, "direction=LT");
  // Column-major to row-major memory: what is a transpose in logical terms.
  std::string bitcast = Hlo(R"(func.func @main(%a: tensor<2x3xf32>) -> tensor<3x2xf32> {
    %0 = "mhlo.bitcast"(%a) {source_layout = dense<[0, 1]> : tensor<2xindex>, result_layout = dense<[1, 0]> : tensor<2xindex>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    return %0 : tensor<3x2xf32>
  })");
  EXPECT_HAS(bitcast, "dimensions={1,0}");
  EXPECT_HAS(Error(R"(func.func @main(%a: tensor<2x3xf32>) -> tensor<3x2xf32> {
    %0 = "mhlo.bitcast"(%a) {source_layout = dense<[0, 0]> : tensor<2xindex>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
    return %0 : tensor<3x2xf32>
  })"),
             "source_layout");
}

TEST(Import, ApproxTopK) {
  auto with = [](const std::string& dim) {
    return StrCat(R"(module @m {
  func.func private @gt(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
    %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    return %0 : tensor<i1>
  }
  func.func public @main(%x: tensor<4x64xf32>, %i: tensor<4x64xi32>, %v: tensor<f32>, %n: tensor<i32>) -> (tensor<4x3xf32>, tensor<4x3xi32>) {
    %0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %v, %n) {called_computations = [@gt], mhlo.backend_config = {reduction_dim = )",
                  dim, R"( : i64, top_k = 3 : i64}}
      : (tensor<4x64xf32>, tensor<4x64xi32>, tensor<f32>, tensor<i32>) -> (tensor<4x3xf32>, tensor<4x3xi32>)
    return %0#0, %0#1 : tensor<4x3xf32>, tensor<4x3xi32>
  }
})");
  };
  std::string hlo = Hlo(with("1"));
  EXPECT_HAS(hlo, "dimensions={1}, is_stable=true, to_apply=%descending");
  EXPECT_HAS(hlo, "slice={[0:4], [0:3]}");
  EXPECT_HAS(Error(with("2")), "along dimension 2");
}

TEST(Import, Checks) {
  std::string hlo =
      Hlo("func.func @f(%a: tensor<2xf32>) {\n check.expect_almost_eq_const %a, dense<[1.0, 2.0]> : tensor<2xf32>\n "
          "return }");
  EXPECT_HAS(hlo, "custom_call_target=\"check.expect_almost_eq\", custom_call_has_side_effect=true");
  EXPECT_HAS(hlo, "{tolerance = 1.000000e-04 : f64}");
}

TEST(Import, Errors) {
  EXPECT_HAS(Error("func.func @f(%a: tensor<4xf32>) {\n \"foo.bar\"(%a) : (tensor<4xf32>) -> ()\n return }"),
             "Unimplemented: operation 'foo.bar' cannot be imported [at t.mlir:2:2]");
  EXPECT_HAS(Error("func.func @f(%a: tensor<4xf32>) {\n %0 = \"stablehlo.add\"(%a) : (tensor<4xf32>) -> "
                   "tensor<4xf32>\n return }"),
             "'stablehlo.add' has 1 operands");
  EXPECT_HAS(Error("func.func @f(%a: tensor<4xf32>) -> tensor<5xf32> {\n %0 = stablehlo.reshape %a : (tensor<4xf32>) "
                   "-> tensor<5xf32>\n return %0 : tensor<5xf32> }"),
             "t.mlir:2");
  EXPECT_HAS(Error("func.func @f(%a: tensor<9223372036854775807x9xf64>) { return }"), "InvalidArgument");
  EXPECT_HAS(Error("func.func @f() -> tensor<2xf32> { %a = stablehlo.negate %b : tensor<2xf32>\n %b = stablehlo.negate "
                   "%a : tensor<2xf32>\n return %a : tensor<2xf32> }"),
             "uses a value before its definition");
  EXPECT_HAS(Error("func.func @f() -> tensor<2xf32> { }"), "has no body");
  EXPECT_HAS(Error("func.func @f()\n"), "has no body");
  EXPECT_HAS(Error(""), "expected one program, found 0");
}

TEST(Import, ChunksAndChecking) {
  constexpr std::string_view kText =
      "// a comment\n// -----\nfunc.func @a() { return }\nfunc.func @b() { return }\n// -----\nfunc.func @c() { return "
      "}\n";
  std::vector<MlirChunk> chunks = SplitMlirText(kText);
  ASSERT_EQ(chunks.size(), 2u);
  EXPECT_EQ(chunks[0].first_line, 3);
  EXPECT_EQ(chunks[1].first_line, 6);
  EXPECT_TRUE(CheckMlir(Bytes(kText)).ok());
  EXPECT_FALSE(ImportMlirText(kText, "t").ok());
  EXPECT_TRUE(ImportMlir(Bytes(chunks[0].text), {.entry = "b"}).ok());
  EXPECT_EQ(ImportMlir(Bytes(chunks[0].text), {.entry = "x"}).status().code(), StatusCode::kNotFound);
}

// Whatever is read is either imported and verified or refused.
TEST(Import, ChangedPrograms) {
  const std::string good = R"(module attributes {mhlo.num_partitions = 2 : i32} {
  sdy.mesh @mesh = <["a"=2]>
  func.func @main(%a: tensor<4x8xf32> {tf.aliasing_output = 0 : i32, sdy.sharding = #sdy.sharding<@mesh, [{"a"}, {}]>}, %i: tensor<2x1xi32>) -> tensor<4x8xf32> {
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %1 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<4x8xf32>, tensor<2x1xi32>) -> tensor<2x8xf32>
    %2 = stablehlo.dot_general %1, %a, contracting_dims = [1] x [1] : (tensor<2x8xf32>, tensor<4x8xf32>) -> tensor<2x4xf32>
    %3 = stablehlo.pad %2, %c, low = [0, 0], high = [2, 4], interior = [0, 0] : (tensor<2x4xf32>, tensor<f32>) -> tensor<4x8xf32>
    %4 = stablehlo.slice %3 [0:4, 0:8:2] : (tensor<4x8xf32>) -> tensor<4x4xf32>
    %5 = stablehlo.concatenate %4, %4, dim = 1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x8xf32>
    %6 = stablehlo.broadcast_in_dim %0, dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
    %7 = stablehlo.transpose %6, dims = [0, 1] : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %8 = "stablehlo.all_to_all"(%7) <{split_dimension = 0 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x8xf32>) -> tensor<2x16xf32>
    return %5 : tensor<4x8xf32>
  }
})";
  ASSERT_TRUE(Import(good).ok()) << Error(good);
  Mutator random("0123456789-,[]%x@", 7);
  for (int64_t round = random.Rounds(20000); round > 0; --round) {
    std::string bad = good;
    for (size_t flips = 1 + random.Next(2); flips > 0; --flips) {
      // Mostly numbers: they reach the converters.
      size_t at = random.Next(bad.size());
      for (int tries = 0; tries < 40 && !(bad[at] >= '0' && bad[at] <= '9'); ++tries) at = (at + 1) % bad.size();
      bad[at] = "0123456789-,[]%x@"[random.Next(17)];
    }
    EXPECT_FALSE(Error(bad).empty());
  }
}

// One op, from an argument of the first type to a result of the second.
std::string OpError(const std::string& op, const std::string& from, const std::string& to) {
  return Error("func.func @f(%a: " + from + ") -> " + to + " { %0 = " + op + " : (" + from + ") -> " + to +
               "\n return %0 : " + to + " }");
}

TEST(Import, QuantizedTypesThatCannotBe) {
  const std::string f32 = "tensor<4xf32>";
  const std::string quantize = "\"stablehlo.uniform_quantize\"(%a)", transpose = "stablehlo.transpose %a, dims = [0]";
  EXPECT_HAS(OpError(quantize, f32, "tensor<4x!quant.uniform<i8:f32, 1.0:300>>"), "zero point 300 is not between");
  EXPECT_HAS(OpError(quantize, f32, "tensor<4x!quant.uniform<i8:f32, 1.0e-60>>"), "out of the range of f32");
  EXPECT_HAS(OpError(quantize, f32, "tensor<4x!quant.uniform<i8:f32:0, {1.0, 2.0}>>"), "2 scales for 4 indices");
  EXPECT_HAS(OpError(quantize, f32, "tensor<4x!quant.uniform<i8:f32:1, {1.0, 2.0}>>"), "no dimension 1");
  EXPECT_HAS(OpError(quantize, f32, "tensor<4x!quant.uniform<si8:f32, 1.0>>"), "signless");
  EXPECT_HAS(OpError(quantize, f32, "tensor<4x!quant.uniform<i8:f64, 1.0>>"), "expresses f64");
  EXPECT_HAS(OpError("\"stablehlo.abs\"(%a)", "tensor<4x!quant.uniform<i8:f32:{0:2}, {0.1, 0.2}>>", "tensor<4xf32>"),
             "blockwise");
  EXPECT_HAS(OpError(quantize, f32, "tensor<4xi8>"), "must be quantized");
  EXPECT_HAS(OpError(quantize, "tensor<?xf32>", "tensor<?x!quant.uniform<i8:f32, 1.0>>"), "dynamic shape");
  const std::string one = "tensor<4x!quant.uniform<i8:f32, 1.0>>", half = "tensor<4x!quant.uniform<i8:f32, 0.5>>";
  EXPECT_HAS(OpError(transpose, one, half), "different scales");
  EXPECT_HAS(OpError("\"stablehlo.abs\"(%a)", one, f32), "a result is not");
  EXPECT_HAS(OpError("\"stablehlo.abs\"(%a)", "tensor<1x!quant.uniform<i8:f32:0, {1.0}>>",
                     "tensor<1x!quant.uniform<i8:f32:0, {1.0}>>"),
             "one scale each");
}

// What depends on a shape that is no constant stays a call of the op by name, checked as far as types go.
TEST(Import, DynamicShapesAreKept) {
  const std::string hlo =
      Hlo("func.func @f(%a: tensor<?xf32>, %s: tensor<2xi32>) -> tensor<?x?xf32> { %0 = "
          "stablehlo.dynamic_broadcast_in_dim %a, %s, dims = [1] : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf32>\n "
          "return %0 : tensor<?x?xf32> }");
  EXPECT_HAS(hlo, "f32[?,?]");
  EXPECT_HAS(hlo, "custom_call_target=\"stablehlo.dynamic_broadcast_in_dim\"");
  EXPECT_HAS(Error("func.func @f(%a: tensor<?xf32>, %s: tensor<2xi32>) -> tensor<?x?xf64> { %0 = "
                   "stablehlo.dynamic_reshape %a, %s : (tensor<?xf32>, tensor<2xi32>) -> tensor<?x?xf64>\n "
                   "return %0 : tensor<?x?xf64> }"),
             "element types f32 and f64");
}

constexpr std::string_view kOpenSizes = R"(
module @open {
  func.func @main(%n: tensor<i64>, %x: tensor<?x2xf32>) -> tensor<?x2xf32> {
    %three = stablehlo.constant dense<3> : tensor<i64>
    %m = stablehlo.multiply %n, %three : tensor<i64>
    %a = call @scale(%n, %x) : (tensor<i64>, tensor<?x2xf32>) -> tensor<?x2xf32>
    %b = call @scale(%m, %x) : (tensor<i64>, tensor<?x2xf32>) -> tensor<?x2xf32>
    return %a : tensor<?x2xf32>
  }
  func.func private @scale(%n: tensor<i64>, %x: tensor<?x2xf32>) -> tensor<?x2xf32> {
    %s = stablehlo.reshape %n : (tensor<i64>) -> tensor<1xi64>
    %two = stablehlo.constant dense<2> : tensor<1xi64>
    %dims = stablehlo.concatenate %s, %two, dim = 0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
    %i = stablehlo.dynamic_iota %dims, dim = 0 : (tensor<2xi64>) -> tensor<?x2xf32>
    %p = stablehlo.add %i, %x : tensor<?x2xf32>
    return %p : tensor<?x2xf32>
  }
})";

// Sizes that the arguments settle: through arithmetic, shape operands, inference and calls.
TEST(Import, ArgumentsSettleSizes) {
  auto import = [](std::string text, std::vector<MlirArgument> arguments) {
    return ImportMlir({reinterpret_cast<const uint8_t*>(text.data()), text.size()}, {.arguments = arguments});
  };
  const Shape size = Shape::Scalar(ElementType::S64), array = Shape::Array(ElementType::F32, {5, 2});
  std::string once(kOpenSizes);
  once.erase(once.find("    %b = call"), once.find("    return %a") - once.find("    %b = call"));
  auto module = import(once, {{size, 5}, {array, std::nullopt}});
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  EXPECT_EQ((*module)->entry()->root()->shape().WithoutLayout().ToString(), "f32[5,2]");
  EXPECT_HAS((*module)->ToString(), "iota");

  // The number contradicts the array; the array has another rank; the function is called with other sizes.
  EXPECT_EQ(import(once, {{size, 4}, {array, std::nullopt}}).status().code(), StatusCode::kInvalidArgument);
  EXPECT_HAS(import(once, {{size, 5}, {size, std::nullopt}}).status().ToString(), "the program takes f32[?,2]");
  EXPECT_HAS(import(once, {{size, 5}}).status().ToString(), "takes 2 arguments, 1 were given");
  EXPECT_HAS(import(std::string(kOpenSizes), {{size, 5}, {array, std::nullopt}}).status().ToString(),
             "function @scale called with other sizes than before");
}

}  // namespace
}  // namespace strop
