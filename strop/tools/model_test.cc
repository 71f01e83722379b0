// Programs that are linked (include/strop/model.h) beside the same programs compiled in the process.
#include <gtest/gtest.h>

#include <cstring>

#include "include/strop/model.h"
#include "strop/cpu/isa.h"
#include "strop/cpu/load/processor.h"
#include "strop/cpu/load/recipe.h"
#include "strop/cpu/model_object.h"
#include "strop/driver/load.h"
#include "strop/tools/execute.h"
#include "strop/tools/inputs.h"

namespace strop::tools {
namespace {

// The second result is the first argument, the third is the first result, the fourth a constant.
constexpr char kProgram[] = R"(HloModule m
add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }
ENTRY main {
  x = f32[48,64] parameter(0) w = f32[64,16] parameter(1) k = f32[1,9,9,4] parameter(2) v = f32[3,3,4,8] parameter(3)
  y = f32[48,16] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  e = f32[48,16] exponential(y) zero = f32[] constant(0)
  s = f32[48] reduce(e, zero), dimensions={1}, to_apply=add
  b = f32[48,16] broadcast(s), dimensions={0} q = f32[48,16] divide(e, b)
  c = f32[1,7,7,8] convolution(k, v), window={size=3x3}, dim_labels=b01f_01io->b01f
  n = f32[3] constant({1, 2, 3})
  ROOT t = (f32[48,16], f32[48,64], f32[48,16], f32[3], f32[1,7,7,8]) tuple(q, x, q, n, c)
})";

Result<Program> Compiled(std::string_view text, std::string_view name = "cpu") {
  STROP_ASSIGN(std::unique_ptr<Module> module, LoadProgram(text, "test"));
  STROP_ASSIGN(const Backend* backend, FindBackend(name));
  return Program::Compile(std::move(module), *backend, {});
}

struct Array {
  alignas(64) uint8_t bytes[48 * 64 * 4];
};

TEST(Model, GivesTheBitsOfTheCompiledProgram) {
  const Result<Program> program = Compiled(kProgram);
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  std::vector<Literal> arguments;
  auto inputs = std::make_unique<Array[]>(4);
  const void* in[4];
  for (int k = 0; k < 4; ++k) {
    arguments.push_back(*RandomValue(program->compiled().entry.parameters[k].WithoutLayout(), 7 + k));
    std::memcpy(inputs[k].bytes, arguments[k].bytes().data(), arguments[k].bytes().size());
    in[k] = inputs[k].bytes;
  }
  const Result<Literal> expected = program->Run(arguments);
  ASSERT_TRUE(expected.ok()) << expected.status().ToString();

  const std::string artifact = *cpu::ModelBytes(program->compiled().executable->spec(), cpu::Isa::OfHost().features);
  const auto kinds = cpu::AllRecipeKinds();
  // Objects align their data; so does this.
  auto storage = std::make_unique<uint8_t[]>(artifact.size() + 64);
  uint8_t* bytes = storage.get() + (64 - reinterpret_cast<uintptr_t>(storage.get()) % 64);
  std::memcpy(bytes, artifact.data(), artifact.size());
  const StropModelData data = {bytes, artifact.size(), reinterpret_cast<const void* const*>(kinds.data()),
                               kinds.size()};
  for (int threads : {1, 3}) {
    StropModel* model = nullptr;
    const char* error = strop_model_create(&data, threads, &model);
    ASSERT_EQ(error, nullptr) << error;
    auto outputs = std::make_unique<Array[]>(5);
    void* out[5];
    for (int k = 0; k < 5; ++k) out[k] = outputs[k].bytes;
    error = strop_model_run(model, in, out);
    ASSERT_EQ(error, nullptr) << error;
    for (int k = 0; k < 5; ++k) {
      const std::span<const uint8_t> right = expected->elements()[static_cast<size_t>(k)].bytes();
      EXPECT_EQ(std::memcmp(out[k], right.data(), right.size()), 0) << k;
    }
    strop_model_destroy(model);
  }
  bytes[100] ^= 1;
  StropModel* model = nullptr;
  EXPECT_NE(std::string(strop_model_create(&data, 1, &model)).find("damaged"), std::string::npos);
  EXPECT_EQ(model, nullptr);
}

TEST(Model, RefusesWhatNeedsTheEvaluator) {
  const Result<Program> program =
      Compiled("HloModule m\nENTRY main { x = f32[4] parameter(0) ROOT y = f32[4] negate(x) }", "null");
  ASSERT_TRUE(program.ok()) << program.status().ToString();
  const Result<std::string> object = cpu::ModelObject("m", program->compiled().executable->spec(),
                                                      cpu::Isa::OfHost().features, cpu::ModelUse::kLinked);
  EXPECT_NE(object.status().message().find("(negate) is interpreted"), std::string::npos) << object.status().ToString();
}

TEST(Model, FeaturesOfTheProcessor) {
  EXPECT_EQ(cpu::MissingFeatures("-avx512f,-gfni,+nothing-known,+sse4.2"), "");
  EXPECT_EQ(cpu::MissingFeatures(""), "");
}

}  // namespace
}  // namespace strop::tools
