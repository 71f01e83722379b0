#include "strop/passes/pipeline.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "strop/ir/builder.h"
#include "strop/passes/library.h"

namespace strop {
namespace {

struct First final : Pass {
  Result<bool> Run(Module& module, PassContext&) override {
    module.set_name(module.name() + ".first");
    return true;
  }
};
struct Second final : Pass {
  Result<bool> Run(Module& module, PassContext&) override {
    module.set_name(module.name() + ".second");
    return false;
  }
};
struct Throws final : Pass {
  Result<bool> Run(Module&, PassContext&) override { throw std::runtime_error("on purpose"); }
};

constexpr PassInfo kOwn[] = {PassOf<First>("first_one", "The first."), PassOf<Second>("second", "The second.")};

void MakeTrivial(Module& module) {
  Builder b(module.AddComputation("main"));
  module.set_entry(b.computation());
  ASSERT_TRUE(b.Finish(b.Parameter(0, Shape::Scalar(ElementType::F32))).ok());
}

TEST(PassPipeline, RunsInOrderUnderNames) {
  Module module("m");
  MakeTrivial(module);
  PassPipeline inner("inner");
  inner.Add(kOwn[0]).Add(kOwn[1]);
  PassPipeline pipeline("outer");
  pipeline.Add(kOwn[1]).Add(inner).Add(kOwn[0]);
  std::vector<std::string> seen;
  pipeline.set_observer([&](std::string_view name, std::string_view pass, const Module&, bool changed) {
    seen.push_back(StrCat(name, "/", pass, changed ? "*" : ""));
  });
  PassContext context;
  Result<bool> changed = pipeline.Run(module, context);
  ASSERT_TRUE(changed.ok());
  EXPECT_TRUE(*changed);
  EXPECT_EQ(module.name(), "m.second.first.second.first");
  EXPECT_EQ(seen, (std::vector<std::string>{"outer/second", "inner/first_one*", "inner/second", "outer/first_one*"}));
}

TEST(PassPipeline, NamesOfOthersAndOfXla) {
  Result<PassPipeline> pipeline = PassPipeline::FromNames("p", "first-one, algsimp,transpose_folding,", kOwn);
  ASSERT_TRUE(pipeline.ok()) << pipeline.status().ToString();
  EXPECT_EQ(pipeline->names(), (std::vector<std::string_view>{"first_one", "simplify", "dot-canonicalizer",
                                                              "convolution-canonicalizer", "dce"}));
  EXPECT_EQ(PassPipeline::FromNames("p", "second").status().code(), StatusCode::kNotFound);
  for (const PassAlias& alias : PassAliases()) {
    EXPECT_TRUE(FindPasses(alias.xla_name).ok()) << alias.xla_name;
    for (const PassInfo& pass : AllPasses()) EXPECT_NE(pass.name, alias.xla_name);
  }
}

TEST(PassPipeline, ExceptionsOfOthersAreErrors) {
  Module module("m");
  MakeTrivial(module);
  PassPipeline pipeline("p");
  pipeline.Add(PassOf<Throws>("throws", "Throws."));
  PassContext context;
  EXPECT_EQ(pipeline.Run(module, context).status().code(), StatusCode::kInternal);
}

}  // namespace
}  // namespace strop
