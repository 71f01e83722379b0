// Layouts at the entry of an executable are of bytes: a copy between two of them moves every element.
#include "strop/tools/execute.h"

#include <gtest/gtest.h>

#include <cstring>
#include <stdexcept>

#include "strop/driver/load.h"
#include "strop/null/null_backend.h"
#include "strop/runtime/launch.h"

namespace strop::tools {
namespace {

// The bytes of the only result of `text`, run on the bytes of one argument; both as the entry's layouts have them.
std::vector<float> RunBytes(std::string_view text, const Backend& backend, const Shape& shape,
                            const std::vector<float>& argument) {
  Result<std::unique_ptr<Module>> module = LoadProgram(text, "test");
  EXPECT_TRUE(module.ok()) << module.status().ToString();
  std::unique_ptr<DeviceSet> devices = std::move(*backend.OpenDevices(1, ThreadPool::Default()));
  CompileSettings settings;
  settings.pool = &devices->pool();
  auto program = Compile(std::move(*module), backend, settings);
  EXPECT_TRUE(program.ok()) << program.status().ToString();
  if (!program.ok()) return {};
  const size_t bytes = argument.size() * sizeof(float);
  Device& device = devices->device(0);
  Ref<Storage> storage = *Storage::Allocate(device.allocator(), static_cast<int64_t>(bytes));
  std::memcpy(storage->data(), argument.data(), bytes);
  Buffer input(std::move(storage), shape, device.ordinal(), MemoryKind::kDevice, Event::Ready());
  Buffer* inputs[] = {&input};
  auto launched = Launch((*program)->executable, {.inputs = inputs, .devices = devices.get(), .device = &device});
  EXPECT_TRUE(launched.ok()) << launched.status().ToString();
  EXPECT_TRUE(launched->done->Await().ok());
  std::vector<float> out(argument.size());
  std::memcpy(out.data(), (*launched->outputs[0].Acquire())->data(), bytes);
  return out;
}

TEST(EntryLayouts, CopyMovesBytes) {
  constexpr int64_t kRows = 32, kColumns = 64;
  constexpr std::string_view kText = R"(HloModule m, entry_computation_layout={(f32[32,64]{1,0})->f32[32,64]{0,1}}
ENTRY main {
  p0 = f32[32,64]{1,0} parameter(0)
  ROOT c = f32[32,64]{0,1} copy(p0)
})";
  std::vector<float> row_major(kRows * kColumns), column_major(kRows * kColumns);
  for (int64_t r = 0; r < kRows; ++r)
    for (int64_t c = 0; c < kColumns; ++c) {
      row_major[r * kColumns + c] = static_cast<float>(r * 1000 + c);
      column_major[c * kRows + r] = static_cast<float>(r * 1000 + c);
    }
  const Shape shape = Shape::Array(ElementType::F32, {kRows, kColumns});
  for (const Backend* backend : Backends()) {
    if (backend->name() == "gpu") continue;  // runs nothing
    SCOPED_TRACE(backend->name());
    EXPECT_EQ(RunBytes(kText, *backend, shape, row_major), column_major);
  }
}

class ThrowingBackend : public null::NullBackend {
 public:
  void AddPasses(Phase, PassPipeline&) const override { throw std::out_of_range("unordered_map::at"); }
};

TEST(Compile, ReportsWhatIsThrown) {
  auto module = LoadProgram("HloModule m\nENTRY e { ROOT p = f32[] parameter(0) }", "test");
  ASSERT_TRUE(module.ok()) << module.status().ToString();
  auto program = Compile(std::move(*module), ThrowingBackend(), {});
  EXPECT_EQ(program.status().code(), StatusCode::kInternal);
  EXPECT_EQ(program.status().message(), "compiling threw: unordered_map::at");
}

}  // namespace
}  // namespace strop::tools
