#include "strop/text/parser.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "strop/base/mutator.h"
#include "strop/ir/printer.h"
#include "strop/text/literal_parse.h"
#include "strop/text/samples.h"

namespace strop {
namespace {

std::unique_ptr<Module> MustParse(std::string_view text) {
  Result<std::unique_ptr<Module>> module = ParseHloModule(text);
  EXPECT_TRUE(module.ok()) << module.status().ToString() << "\n" << text;
  return module.ok() ? *std::move(module) : std::make_unique<Module>("broken");
}

// "message | location" of the refusal.
std::string Refusal(std::string_view text) {
  Result<std::unique_ptr<Module>> module = ParseHloModule(text);
  return module.ok() ? "accepted" : StrCat(module.status().message(), " | ", module.status().location());
}

// A body of one computation; line 1 is the header.
std::string InBody(std::string_view lines) { return StrCat("HloModule m\nENTRY e {\n", lines, "\n}\n"); }

// ---- round trips
// ------------------------------------------------------------------------------------------------------

TEST(Parser, PrintsToAFixpointInEveryStyle) {
  for (std::string_view text : samples::kAll) {
    const std::string once = PrintModule(*MustParse(text));
    EXPECT_EQ(PrintModule(*MustParse(once)), once);
    PrintOptions long_style;
    long_style.operand_shapes = true;
    for (const PrintOptions& style : {PrintOptions::Short(), long_style})
      EXPECT_EQ(PrintModule(*MustParse(PrintModule(*MustParse(text), style))), once);
  }
}

TEST(Parser, KeepsTheTextOfXlasDumps) {
  PrintOptions style;
  style.operand_shapes = true;
  // Only the blank line behind the last computation is added.
  EXPECT_EQ(PrintModule(*MustParse(samples::kLongStyle), style), StrCat(samples::kLongStyle, "\n"));
}

// The next name may begin as another dimension of the padding would.
TEST(Parser, NamesBehindPadding) {
  const std::string text = PrintModule(*MustParse(R"(HloModule m
ENTRY main {
  a = f32[2] parameter(0)
  z = f32[] constant(0)
  p = f32[4] pad(a, z), padding=1_1
  x = f32[5] pad(p, z), padding=0_1
  _y = f32[6] pad(x, z), padding=0_1
  ROOT r = (f32[6]) tuple(_y)
})"));
  EXPECT_NE(text.find("%_y = f32[6] pad(%x, %z), padding=0_1"), std::string::npos) << text;
}

TEST(Parser, KeepsEveryAttribute) {
  const std::string text = PrintModule(*MustParse(samples::kOps));
  for (std::string_view part :
       {"window={size=3x3 stride=2x2 pad=1_1x0_2 lhs_dilate=1x2 rhs_dilate=2x1 rhs_reversal=0x1}, "
        "dim_labels=bf01_oi01->bf01, "
        "operand_precision={high,default}",
        "padding=1_2\n",
        "padding=-1_2_1",
        "slice={[0:4:2]}",
        "slice={[0:1], [1:2], [2:4], [3:5]}",
        "select=%ge, scatter=%add",
        "direction=GE, type=TOTALORDER",
        "result_accuracy={tolerance={atol=0,rtol=0.5,ulps=10}}",
        "result_accuracy={mode=highest}",
        "left_side=true, lower=true, transpose_a=ADJOINT",
        "fft_type=RFFT, fft_length={4}",
        "true_computation=%branch, false_computation=%branch",
        "branch_computations={%branch, %branch, %branch}",
        "custom_call_target=\"a\\\"b\", operand_layout_constraints={f32[4]{0}, f32[4]{0}}, "
        "custom_call_has_side_effect=true, "
        "literal=s32[2]{0} {1, 2}, output_to_operand_aliasing={{}: (0, {})}, schedule=SCHEDULE_LATEST, "
        "api_version=API_VERSION_TYPED_FFI, called_computations={%add, %ge}, backend_config=\"not {json\"",
        "backend_config={scale=[0.5],zero_point=[-128]}",
        "dimensions={0}, use_global_device_ids=true",
        "replica_groups=mesh['a'=2,'b'=2] {'b'}",
        "source_target_pairs={{0,1},{1,0}}",
        "outfeed_shape=f32[4]{0}",
        "channel_id=2, is_host_transfer=true, frontend_attributes={_xla_host_transfer_rendezvous=\"r\"}",
        "domain={kind=\"sharding\", entry={maximal device=0}, exit={replicated}}",
        "slice-start(%p), async_execution_thread=\"other\", slice={[1:3]}",
        "slice-update(%start)",
        "slice-done(%update)",
        "statistics={visualizing_index=0,nan=1}, origin={({\"p\"}, {\"exp\" {0}})}",
        "profile_type={1} deduplicated_name=\"d\" scheduling_name=\"s\""})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

// Protos may have any key; XLA's text has words only.
TEST(Parser, KeysThatAreNoWordsAreQuoted) {
  const std::unique_ptr<Module> module = MustParse(
      "HloModule m, frontend_attributes={\"\"=\"1\",\"a b\\n\"={\"c\":2},plain.key=\"=\"}\n"
      "ENTRY e { ROOT p = f32[] parameter(0), frontend_attributes={\"7\"=\"x\"} }");
  EXPECT_EQ(module->config().frontend_attributes.at("a b\n"), "{\"c\":2}");
  const std::string text = PrintModule(*module);
  EXPECT_NE(text.find("frontend_attributes={\"\"=\"1\",\"a b\\n\"={\"c\":2},plain.key=\"=\"}"), std::string::npos)
      << text;
  EXPECT_NE(text.find("frontend_attributes={\"7\"=\"x\"}"), std::string::npos) << text;
  EXPECT_EQ(PrintModule(*MustParse(text)), text);
}

TEST(Parser, TakesAResultLayoutInParenthesesForTheArray) {
  auto module = MustParse(samples::kShortStyle);
  EXPECT_EQ(module->config().entry_layout.result.ToStringWithLayout(), "bf16[4,8]{1,0}");
}

TEST(Parser, ReadsLooseText) {
  auto module = MustParse(samples::kLoose);
  EXPECT_EQ(module->name(), "module_e");
  Computation* entry = module->entry();
  EXPECT_EQ(entry->root()->name(), "t");
  EXPECT_EQ(entry->root()->shape().ToString(), "(f32[2], f32[2], f32[])");
  EXPECT_EQ(entry->root()->operand(1)->operand(1)->op(), Op::Negate);
  for (Instruction* i : entry->instructions()) {
    if (i->name() != "late") continue;
    EXPECT_EQ(i->to_apply()->name(), "later");
  }
  // Callees come first in print, so that XLA's parser, which wants that, reads it.
  const std::string text = PrintModule(*module);
  EXPECT_LT(text.find("%later ("), text.find("ENTRY"));
}

TEST(Parser, ReadsOneInstruction) {
  auto module = MustParse("%sum = f32[2]{0} add(f32[2]{0} %a, f32[2]{0} %b), metadata={op_name=\"n\"}");
  EXPECT_EQ(module->entry()->parameter_count(), 2);
  EXPECT_EQ(module->entry()->root()->name(), "sum");
  EXPECT_EQ(MustParse("f32[10] add(f32[10], f32[10])")->entry()->parameter_count(), 2);
  EXPECT_NE(Refusal("x = f32[2] add(a, b)").find("needs a shape"), std::string::npos);
}

TEST(Parser, MakesNamesUniqueAcrossComputations) {
  auto module = MustParse(
      "HloModule m\nf { x = f32[] parameter(0) }\nENTRY e { x = f32[] parameter(0) y = call(x), to_apply=f }");
  EXPECT_EQ(module->entry()->parameter(0)->name(), "x.1");
}

TEST(Parser, ElidedConstantsStayElided) {
  auto module = MustParse(InBody("a = s32[3] constant({...})\nROOT b = f32[100000,100000] constant({...})"));
  EXPECT_EQ(module->entry()->first()->literal().ToString(), "{0, 1, 2}");
  EXPECT_FALSE(module->entry()->root()->literal().has_values());
  EXPECT_NE(PrintModule(*module).find("%a = s32[3] constant({...})"), std::string::npos);
  // The values that are made up for one module are bounded in all.
  std::string many;
  for (int i = 0; i < 100; ++i) StrAppend(many, "c", i, " = f32[10000000] constant({...})\n");
  module = MustParse(InBody(many));
  EXPECT_TRUE(module->entry()->first()->literal().has_values());
  EXPECT_FALSE(module->entry()->root()->literal().has_values());
}

TEST(Parser, BareConstantsSetTheFirstElement) {
  auto module = MustParse(InBody("ROOT a = s32[3] constant(15)"));
  EXPECT_EQ(module->entry()->root()->literal().ToString(), "{15, 0, 0}");
}

TEST(Parser, AsyncSugarMakesTheWrappedComputation) {
  auto module =
      MustParse(InBody("p = f32[4] parameter(0)\ns = ((f32[4]), f32[2], s32[]) slice-start(p), slice={[1:3]}\n"
                       "ROOT d = f32[2] slice-done(s)"));
  Instruction* done = module->entry()->root();
  EXPECT_EQ(done->op(), Op::AsyncDone);
  EXPECT_EQ(done->called(0), done->operand(0)->called(0));
  EXPECT_EQ(done->called(0)->root()->op(), Op::Slice);
  EXPECT_NE(Refusal(InBody("p = f32[4] parameter(0)\ns = ((f32[4]), f32[2], s32[]) slice-start(p), slice={[1:3]}\n"
                           "ROOT d = f32[2] negate-done(s)"))
                .find("'s' runs slice, not negate"),
            std::string::npos);
}

TEST(Parser, PlainAsyncComputationsOfSeveralInstructionsArePrinted) {
  const std::string_view text = R"(HloModule m
w { p = f32[4] parameter(0) n = f32[4] negate(p) ROOT a = f32[4] abs(n) }, execution_thread="t"
ENTRY e {
  x = f32[4] parameter(0)
  s = ((f32[4]), f32[4], u32[]) async-start(x), async_execution_thread="t", calls=w
  ROOT d = f32[4] async-done(s), calls=w
})";
  const std::string printed = PrintModule(*MustParse(text));
  EXPECT_NE(printed.find("async-start(%x), async_execution_thread=\"t\", calls=%w"), std::string::npos) << printed;
  EXPECT_NE(printed.find("}, execution_thread=\"t\""), std::string::npos);
  EXPECT_EQ(PrintModule(*MustParse(printed)), printed);
}

// ---- constants
// ----------------------------------------------------------------------------------------------------------

TEST(LiteralParse, ReadsWhatIsPrinted) {
  const std::pair<const char*, const char*> kCases[] = {
      {"pred[2,2]", "{ { 1, 0 }, { 0, 1 } }"},
      {"pred[]", "true"},
      {"s4[3]", "{-8, 7, 0}"},
      {"u8[]", "255"},
      {"s64[2]", "{-9223372036854775808, 9223372036854775807}"},
      {"u64[]", "18446744073709551615"},
      {"f32[5]", "{inf, -inf, nan, -nan, -0}"},
      {"f64[2]", "{0.1, nan(0x7)}"},
      {"c64[2]", "{(1, -2), (nan, inf)}"},
      {"f8e5m2[2]", "{0.25, 5.7e+04}"},
      {"f4e2m1fn[3]", "{0.5, -6, 1.5}"},
      {"bf16[1,1,1,2]", "{ { /*i0=0*/ { /*i1=0*/ { 1, 3.39e+38 } } } }"},
      {"(s32[], (f32[1], token[]))", "( 7, ( {2}, token ) )"},
      {"f32[0]", "{}"},
      {"f32[0,3]", "{  }"},
      {"f32[3,0]", "{ {}, {}, {} }"}};
  for (const auto& [shape, text] : kCases) {
    Cursor at(text);
    MadeUpValues made_up;
    Result<Literal> literal = ParseLiteral(at, *ParseShape(shape), made_up);
    ASSERT_TRUE(literal.ok()) << shape << " " << text << ": " << literal.status().ToString();
    EXPECT_EQ(literal->ToString(), text);
    EXPECT_TRUE(at.AtEnd()) << text;
  }
}

TEST(LiteralParse, Refuses) {
  for (const auto& [shape, text] : {std::pair("u8[]", "256"),
                                    {"u8[]", "-1"},
                                    {"s8[]", "-129"},
                                    {"s4[]", "8"},
                                    {"f16[]", "1e5"},
                                    {"f32[]", "1e39"},
                                    {"f64[]", "1e400"},
                                    {"f8e4m3fn[]", "1000"},
                                    {"f8e8m0fnu[]", "-1"},
                                    {"s32[]", "1.5"},
                                    {"f32[]", "true"},
                                    {"f32[2]", "{1}"},
                                    {"f32[2]", "{1, 2, 3}"},
                                    {"f32[2,2]", "{1, 2}"},
                                    {"f32[1]", "{1"},
                                    {"c64[]", "1"},
                                    {"f8e4m3fn[]", "nan(0x1)"},
                                    {"f32[1000000000000]", "{1}"},
                                    {"s32[]", "99999999999999999999999"}}) {
    Cursor at(text);
    MadeUpValues made_up;
    EXPECT_FALSE(ParseLiteral(at, *ParseShape(shape), made_up).ok()) << shape << " " << text;
  }
}

// ---- refusals
// -------------------------------------------------------------------------------------------------------------

TEST(Parser, RefusesWithLineAndColumn) {
  const std::string p = "p = f32[2] parameter(0)\n";
  const std::pair<std::string, std::string> kCases[] = {
      {"", "expected ENTRY or the name of a computation, found the end of the text | line 1, column 1"},
      {"HloModule m\n", "expected ENTRY or the name of a computation, found the end of the text | line 2, column 1"},
      {"HloModule m, is_schedule=true\nENTRY e { p = f32[] parameter(0) }",
       "a module has no attribute 'is_schedule'; did you mean is_scheduled | line 1, column 14"},
      {"HloModule m, replica_count=0\n", "expected a count of 1 to 1048576, found 0 | line 1, column 28"},
      {InBody(""), "expected an instruction (name = shape opcode(operands)) or '}', found '}' | line 4, column 1"},
      {InBody(p + "ROOT x = f32[2] negate(p)\nROOT y = f32[2] negate(p)"),
       "a second ROOT; 'x' (line 4, column 1) is one already | line 5, column 1"},
      {"HloModule m\nENTRY a { p = f32[] parameter(0) }\nENTRY b { p = f32[] parameter(0) }",
       "a second ENTRY; 'a' is one already | line 3, column 1"},
      {"HloModule m, entry_computation_layout={(f32[])->f32[]}\nENTRY a { p = f32[] parameter(0)\nn = f32[] negate(p) "
       "}",
       "computation 'a' has no ROOT: a module with an entry_computation_layout marks the result of each computation; "
       "is it 'n'? | line 3, column 1"},
      {"HloModule m, entry_computation_layout={(f32[])->f32[]}\na { ROOT p = f32[] parameter(0) }\n"
       "b { ROOT p = f32[] parameter(0) }",
       "no computation is the ENTRY: a module with an entry_computation_layout says which one is | line 1, column 1"},
      {InBody(p + "x = f32[2] negat(p)"), "there is no op 'negat'; did you mean negate | line 4, column 12"},
      {InBody(p + "x = f32[2] add(p)"), "add takes 2 operands, but has 1 | line 4, column 15"},
      {InBody(p + "x = f32[2] negate(q)"),
       "there is no instruction 'q' before this one in the computation; did you mean p | line 4, column 19"},
      {InBody("x = f32[2] negate(x)"),
       "there is no instruction 'x' before this one in the computation | line 3, column 19"},
      {InBody(p + "p = f32[2] negate(p)"),
       "instruction 'p' is defined twice, first at line 3, column 1 | line 4, column 1"},
      {InBody(p + "x = f32[1] slice(p), slic={[0:1]}"),
       "slice has no attribute 'slic'; did you mean slice | line 4, column 22"},
      {InBody(p + "x = f32[1] slice(p)"), "slice needs the attribute slice= | line 4, column 12"},
      {InBody(p + "x = f32[1] slice(p), slice={[0:1]}, slice={[0:1]}"),
       "attribute slice is given twice | line 4, column 37"},
      {InBody(p + "x = f32[] reduce(p, f32[] constant(0)), dimensions={0}, to_apply=add"),
       "there is no computation 'add' | line 4, column 66"},
      {InBody(p + "x = f32[2] negate(f32[3] p)"),
       "operand 'p' is declared as f32[3], but has shape f32[2] | line 4, column 19"},
      {InBody("p = f32[2] parameter(1)"), "computation 'e' has a parameter(1), but no parameter(0) | line 2, column 9"},
      {InBody(p + "q = f32[2] parameter(0)"), "parameter number 0 is taken by 'p' | line 4, column 22"},
      {InBody("p = f32[2] parameter(-1)"), "parameter number -1 is negative | line 3, column 22"},
      {InBody("p = f32[2] parameter(99999999)"),
       "parameter number 99999999 is larger than this computation can have parameters | line 3, column 22"},
      {InBody("p = f32[2,2]{0,0} parameter(0)"),
       "layout {0,0} is no permutation of the 2 dimensions of f32[2,2] | line 3, column 5"},
      {InBody("c = f32[2] constant({1, x})"), "expected a number (f32), found 'x' | line 3, column 25"},
      {"HloModule m\nENTRY e (p: f32[2]) -> f32[3] {\n p = f32[2] parameter(0)\n}",
       "computation 'e' is declared to return f32[3], but its root 'p' has shape f32[2] | line 2, column 24"},
      {"HloModule m\na { p = f32[] parameter(0) x = f32[] call(p), to_apply=b }\n"
       "b { q = f32[] parameter(0) y = f32[] call(q), to_apply=a }\nENTRY e { r = f32[] parameter(0) }",
       "computations call each other in a circle: a -> b -> a | line 2, column 56"},
      {InBody(p + "x = f32[2] call(p), to_apply=e"),
       "computations call each other in a circle: e -> e | line 4, column 30"},
      {InBody(p + "x = f32[] while(p), condition=c"), "while needs the attribute body= | line 4, column 11"},
      {InBody("x = add(f32[] constant(1), f32[2] constant({1,2}))"), ""},
      {InBody(p + "x = f32[2] negate(p), metadata={op_nam=\"x\"}"),
       "metadata has no field 'op_nam'; did you mean op_name | line 4, column 33"},
      {InBody(p + "x = f32[2] negate(p), backend_config=\"open"), "string has no closing \" | line 4, column 38"},
      {InBody(p + "x = f32[2] fusion(p), kind=kLop, calls=f"),
       "expected one of kLoop, kInput, kOutput, kCustom, found 'kLop' | line 4, column 28"},
  };
  for (const auto& [text, expected] : kCases) {
    const std::string refusal = Refusal(text);
    if (expected.empty())
      EXPECT_NE(refusal, "accepted") << text;
    else
      EXPECT_EQ(refusal, expected) << text;
  }
}

TEST(Parser, RefusesDepthAndSize) {
  std::string nested = "x = f32[] ";
  for (int i = 0; i < 100000; ++i) nested += "negate(f32[] ";
  EXPECT_NE(Refusal(InBody(nested)).find("nested more than"), std::string::npos);
  std::string bodies = "x = f32[] call(), to_apply=";
  for (int i = 0; i < 100000; ++i) bodies += "{ x = f32[] call(), to_apply=";
  EXPECT_NE(Refusal(InBody(bodies)).find("nested more than"), std::string::npos);
  EXPECT_NE(Refusal(InBody("x = f32[4294967296,4294967296,4294967296] iota(), iota_dimension=0")).find("does not fit"),
            std::string::npos);
  EXPECT_NE(Refusal(InBody("x = f32[1000000000000] constant({1})")).find("the text ends before"), std::string::npos);
  EXPECT_NE(Refusal(InBody(StrCat("x = (", std::string(100000, '('), ") parameter(0)"))), "accepted");
}

// ---- broken text never does worse than an error
// -------------------------------------------------------------------------

TEST(Parser, SurvivesTruncation) {
  for (std::string_view text : samples::kAll) {
    for (size_t n = 0; n < text.size(); ++n) {
      Result<std::unique_ptr<Module>> module = ParseHloModule(text.substr(0, n));
      if (module.ok())
        PrintModule(**module);
      else
        EXPECT_FALSE(module.status().location().empty()) << module.status().ToString();
    }
  }
}

TEST(Parser, SurvivesMutation) {
  Mutator mutate("{}()[],=%#\"'<>-?*:_ \n0x189aT");
  for (std::string_view text : samples::kAll) {
    for (int64_t round = mutate.Rounds(3000); round > 0; --round) {
      const std::string mutant = mutate(text);
      Result<std::unique_ptr<Module>> module = ParseHloModule(mutant);
      if (!module.ok()) continue;
      const std::string printed = PrintModule(**module);
      Result<std::unique_ptr<Module>> again = ParseHloModule(printed);
      ASSERT_TRUE(again.ok()) << again.status().ToString() << "\n" << mutant;
      EXPECT_EQ(PrintModule(**again), printed) << mutant;
    }
  }
}

// ---- the page about the text form
// ----------------------------------------------------------------------------------------

// Contents of the fenced blocks of `kind` in docs/hlo-text.md.
std::vector<std::string> DocumentBlocks(std::string_view kind) {
  std::stringstream page;
  page << std::ifstream(STROP_SOURCE_DIR "/docs/hlo-text.md").rdbuf();
  const std::string text = page.str();
  const std::string open = StrCat("```", kind, "\n");
  std::vector<std::string> blocks;
  for (size_t at = text.find(open); at != text.npos; at = text.find(open, at)) {
    at += open.size();
    blocks.push_back(text.substr(at, text.find("```", at) - at));
  }
  return blocks;
}

TEST(Parser, ReadsTheDocumentation) {
  const std::vector<std::string> modules = DocumentBlocks("hlo");
  EXPECT_GE(modules.size(), 5u);
  for (const std::string& text : modules) {
    const std::string printed = PrintModule(*MustParse(text));
    EXPECT_EQ(PrintModule(*MustParse(printed)), printed);
  }
  int shapes = 0;
  for (const std::string& block : DocumentBlocks("shape")) {
    for (std::string_view line : Split(Trim(block), '\n')) {
      Result<Shape> shape = ParseShape(line);
      ASSERT_TRUE(shape.ok()) << line << ": " << shape.status().ToString();
      EXPECT_EQ(shape->ToStringWithLayout(), line);
      ++shapes;
    }
  }
  EXPECT_GE(shapes, 5);
}

// ---- a corpus, where there is one
// ---------------------------------------------------------------------------------------------

// STROP_HLO_CORPUS names a folder of .hlo files that must all be read and printed to a fixpoint.
TEST(Parser, ReadsTheCorpus) {
  const char* folder = std::getenv("STROP_HLO_CORPUS");
  if (!folder) GTEST_SKIP() << "STROP_HLO_CORPUS is not set";
  int files = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (entry.path().extension() != ".hlo") continue;
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    Result<std::unique_ptr<Module>> module = ParseHloModule(text.str(), entry.path().filename().string());
    ++files;
    EXPECT_TRUE(module.ok()) << module.status().ToString();
    if (!module.ok()) continue;
    const std::string printed = PrintModule(**module);
    EXPECT_EQ(PrintModule(*MustParse(printed)), printed) << entry.path();
  }
  std::printf("%d files\n", files);
}

}  // namespace
}  // namespace strop
