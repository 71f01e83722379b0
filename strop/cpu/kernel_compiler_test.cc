// Generated kernels against the evaluator.
#include "strop/cpu/kernel_compiler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "strop/codegen/loop_space.h"
#include "strop/cpu/testing/differential.h"
#include "strop/interp/interpreter.h"
#include "strop/ir/builder.h"
#include "strop/ir/contraction.h"

namespace strop::cpu {
namespace {

TEST(KernelCompiler, ElementwiseFusionOfFloats) {
  Module m("m");
  const Shape shape = Shape::Array(ElementType::F32, {7, 33});
  Differential d(m);
  Builder b(d.body());
  Instruction* x = b.Parameter(0, shape);
  Instruction* y = b.Parameter(1, shape);
  b.Make(Op::Multiply, {b.Make(Op::Add, {x, y}), b.Splat(ElementType::F32, 0.5, shape.dims())});
  ASSERT_TRUE(b.Finish().ok()) << b.status().ToString();
  EXPECT_EQ(d.Check(), "");
}

// x transposed `times` times over, as a fusion.
Instruction* Transposes(Module& m, Computation* entry, int times) {
  const Shape shape = Shape::Array(ElementType::F32, {4, 4});
  Builder b(m.AddComputation("body"));
  Instruction* x = b.Parameter(0, shape);
  for (int n = 0; n < times; ++n) x = b.Transpose(x, {1, 0});
  EXPECT_TRUE(b.Finish().ok()) << b.status().ToString();
  Instruction* fusion = entry->Add(Op::Fusion, shape, {entry->parameter(0)}, FusionAttrs{});
  fusion->set_called({b.computation()});
  return fusion;
}

// Regions that differ only in how their trips are shared out have code of their own.
TEST(KernelCompiler, KeysOfRegionsSayHowTheirTasksAreCut) {
  Region loop;
  loop.buffers = {RegionBuffer{.size = 4, .arg = 0, .loaded = true, .written = true},
                  RegionBuffer{.size = 64, .arg = 1, .loaded = true, .stored = true, .written = true},
                  RegionBuffer{.size = 4096, .written = true}};
  loop.programs = {{RegionNode{.kind = RegionNodeKind::kWhile, .args = {0}, .programs = {1, 2}}}, {}, {}};
  std::vector<Region> regions(7, loop);
  for (size_t k = 1; k < regions.size(); ++k) {
    regions[k].tasks = 8;
    regions[k].number = 0;
  }
  regions[2].tasks = 4;
  regions[3].number = 1;
  regions[4].local_bytes = 4096;
  regions[5].buffers[1].in_parts = true;
  regions[6].buffers[2].local = 0;
  std::set<std::string> keys;
  for (const Region& region : regions) keys.insert(KernelKey(KernelSpec{.region = std::make_shared<Region>(region)}));
  EXPECT_EQ(keys.size(), regions.size());
}

// Kernels are compiled in groups: one that turns out to be impossible must not take the others with it.
TEST(KernelCompiler, GroupWithAnImpossibleKernel) {
  Module m("m");
  Computation* entry = m.AddComputation("main");
  entry->AddParameter(0, Shape::Array(ElementType::F32, {4, 4}));
  std::vector<KernelSpec> specs;
  for (int times : {1, 1000, 3, 1}) specs.push_back(KernelSpec{Transposes(m, entry, times), {-1}});
  KernelCompiler compiler;
  Result<GeneratedKernels> compiled = compiler.Compile(specs, {});
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  ASSERT_EQ(compiled->kernels.size(), 4u);
  const auto* impossible = std::get_if<HostStep>(&compiled->kernels[1].body);
  ASSERT_TRUE(impossible);
  EXPECT_TRUE(impossible->interpreted);
  float in[16], out[16];
  for (int k = 0; k < 16; ++k) in[k] = static_cast<float>(k);
  void* args[] = {in, out};
  for (size_t k : {0, 2, 3}) {
    const auto* step = std::get_if<KernelStep>(&compiled->kernels[k].body);
    ASSERT_TRUE(step);
    std::fill(std::begin(out), std::end(out), -1.0f);
    step->fn(args, 0, 1, nullptr);
    EXPECT_EQ(out[1], 4.0f);
    EXPECT_EQ(out[15], 15.0f);
  }
  // Equal kernels are one.
  EXPECT_EQ(std::get<KernelStep>(compiled->kernels[0].body).fn, std::get<KernelStep>(compiled->kernels[3].body).fn);
}

// A sum is marked to take its product unrounded, but another kernel has made the product: it is an operand like any.
TEST(KernelCompiler, ContractedSumWithoutItsProduct) {
  Module m("m");
  Computation* entry = m.AddComputation("main");
  Builder b(entry);
  const Shape shape = Shape::Array(ElementType::F32, {4});
  Instruction* x = b.Parameter(0, shape);
  Instruction* y = b.Parameter(1, shape);
  Instruction* sum = b.Make(Op::Add, {b.Make(Op::Multiply, {x, y}), x});
  ASSERT_TRUE(b.Finish().ok()) << b.status().ToString();
  sum->set_frontend_attribute(kContractionMark, "0");
  KernelCompiler compiler;
  const KernelSpec specs[] = {{sum, {-1}}};
  Result<GeneratedKernels> compiled = compiler.Compile(specs, {});
  ASSERT_TRUE(compiled.ok()) << compiled.status().ToString();
  float product[] = {10, 20, 30, 40}, other[] = {1, 2, 3, 4}, out[4];
  void* args[] = {product, other, out};
  const auto* step = std::get_if<KernelStep>(&compiled->kernels[0].body);
  ASSERT_TRUE(step);
  step->fn(args, 0, 1, nullptr);
  for (int k = 0; k < 4; ++k) EXPECT_EQ(out[k], product[k] + other[k]);
}

// Rows of seven are walked in periods of seven vectors; quick code walks the same elements row by row.
TEST(KernelCompiler, QuickCodeWalksShortRowsOneByOne) {
  constexpr int kVectorBytes = 64;
  Module m("m");
  Builder b(m.AddComputation("body"));
  const Shape shape = Shape::Array(ElementType::F32, {3, 1000, 7});
  Instruction* x = b.Parameter(0, shape);
  Instruction* row = b.Parameter(1, Shape::Array(ElementType::F32, {3, 1000}));
  b.Make(Op::Subtract, {x, b.Broadcast(row, shape.dims(), {0, 1})});
  ASSERT_TRUE(b.Finish().ok()) << b.status().ToString();
  Computation* entry = m.AddComputation("main");
  Instruction* fusion = entry->Add(
      Op::Fusion, shape, {entry->AddParameter(0, shape), entry->AddParameter(1, row->shape())}, FusionAttrs{});
  fusion->set_called({b.computation()});
  const KernelBody body = KernelBody::Of(*fusion);
  LoopSpace space = ChooseLoopSpace(body, kVectorBytes, true);
  EXPECT_EQ(space.period, 112);
  EXPECT_EQ(space.rows * space.row_size, 21000);
  EXPECT_EQ(WalkShortRows(space), 3000);
  EXPECT_EQ(space.period, 16);
  EXPECT_EQ(ChooseLoopSpace(body, 32, true).period, 56);  // nor by masked vectors, where there are none
  EXPECT_EQ(space.rows, 3000);
  EXPECT_EQ(space.row_size, 7);
  EXPECT_EQ(WalkShortRows(space), 0) << "they are walked so already";
}

}  // namespace
}  // namespace strop::cpu
