#include "strop/tools/module_diff.h"

#include <gtest/gtest.h>

#include "strop/driver/load.h"

namespace strop::tools {
namespace {

std::unique_ptr<Module> Load(std::string_view text) {
  Result<std::unique_ptr<Module>> module = LoadProgram(text, "test");
  EXPECT_TRUE(module.ok()) << module.status().ToString();
  return module.ok() ? *std::move(module) : nullptr;
}

// A long chain with one instruction put into its middle: all others keep their partners.
TEST(ModuleDiff, OneInstructionInAChain) {
  const auto chain = [](int extra_at) {
    std::string text = "HloModule m\nENTRY e {\n  x0 = f32[] parameter(0)\n";
    std::string last = "x0";
    for (int k = 1; k < 200; ++k) {
      if (k == extra_at) {
        StrAppend(text, "  extra = f32[] cosine(", last, ")\n");
        last = "extra";
      }
      StrAppend(text, k == 199 ? "  ROOT " : "  ", "y", k, extra_at ? "b" : "a", " = f32[] ", k % 2 ? "tanh" : "negate",
                "(", last, ")\n");
      last = StrCat("y", k, extra_at ? "b" : "a");
    }
    return text + "}\n";
  };
  const std::unique_ptr<Module> was = Load(chain(0)), is = Load(chain(100));
  const ModuleDiff diff = DiffModules(*was, *is);
  ASSERT_EQ(diff.computations.size(), 1u);
  EXPECT_EQ(diff.computations[0].removed.size(), 0u);
  EXPECT_EQ(diff.computations[0].added.size(), 1u);
  EXPECT_EQ(diff.computations[0].changed.size(), 1u);
  EXPECT_EQ(diff.computations[0].same, 198 + 1);
  EXPECT_EQ(DiffSummary(diff), "1 added, 1 changed in 1 computation");
}

TEST(ModuleDiff, WhatIsToldOfAChange) {
  const std::unique_ptr<Module> was = Load(R"(HloModule m
f { p = f32[3] parameter(0) ROOT n = f32[3] negate(p) }
ENTRY e { x = f32[2,3] parameter(0), sharding={replicated}
  s = f32[1,3] slice(x), slice={[0:1], [0:3]}
  r = f32[3] reshape(s)
  ROOT c = f32[3] call(r), to_apply=f })");
  const std::unique_ptr<Module> is = Load(R"(HloModule m, num_partitions=2
g { p = f32[3] parameter(0) ROOT n = f32[3] negate(p) }
ENTRY e { x = f32[2,3] parameter(0)
  s = f32[1,3] slice(x), slice={[1:2], [0:3]}
  r = f32[3] reshape(s)
  ROOT c = f32[3] call(r), to_apply=g })");
  const ModuleDiff diff = DiffModules(*was, *is);
  EXPECT_EQ(diff.header, std::vector<std::string>{"num_partitions: 2, was 1"});
  ASSERT_FALSE(diff.computations.empty());
  const std::vector<ChangedInstruction>& changed = diff.computations[0].changed;
  ASSERT_EQ(changed.size(), 2u);
  EXPECT_EQ(changed[0].how, std::vector<std::string>{"sharding: none, was {replicated}"});
  EXPECT_EQ(changed[1].how, std::vector<std::string>{"attributes"});
  ASSERT_EQ(diff.computations.size(), 2u);
  EXPECT_TRUE(diff.computations[1].equal());  // f and g are the same under two names
  EXPECT_FALSE(diff.equal());
  EXPECT_TRUE(DiffModules(*was, *was->Clone()).equal());
}

TEST(ModuleDiff, ComputationsComeAndGo) {
  const std::unique_ptr<Module> was = Load("HloModule m\nENTRY e { x = f32[] parameter(0) ROOT n = f32[] negate(x) }");
  const std::unique_ptr<Module> is = Load(R"(HloModule m
f { p = f32[] parameter(0) ROOT n = f32[] negate(p) }
ENTRY e { x = f32[] parameter(0) ROOT c = f32[] call(x), to_apply=f })");
  const std::string text = DiffText(DiffModules(*was, *is), 1);
  EXPECT_NE(text.find("%f, added: 2 added"), std::string::npos) << text;
  EXPECT_NE(text.find("ENTRY %e: 1 removed, 1 added, 1 the same"), std::string::npos) << text;
}

}  // namespace
}  // namespace strop::tools
