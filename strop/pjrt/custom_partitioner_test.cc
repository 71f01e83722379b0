// Custom partitioners and inspected shardings through the plugin's function table, with callbacks as a framework has.
#include "strop/pjrt/fixture.h"

namespace strop {
namespace {

using namespace pjrt_test;

// {3: {4: 1, 5: 2}}: two partitions
const std::string kTwoPartitions("\x1a\x04\x20\x01\x28\x02", 6);

const PJRT_Custom_Partitioner_Extension& Extension() {
  const auto* extension = static_cast<const PJRT_Extension_Base*>(Api().extension_start);
  while (extension->type != PJRT_Extension_Type_Custom_Partitioner) extension = extension->next;
  return *reinterpret_cast<const PJRT_Custom_Partitioner_Extension*>(extension);
}

// What the callbacks return, and were asked.
struct Owner {
  JAX_CustomCallPartitioner_Callbacks callbacks;
  std::string program;  // empty: an error
  bool returns_shardings = true;
  std::string config;
  size_t asked = 0, cleaned = 0;
};

// Operands and results stay as they lie.
void Partition(JAX_CustomCallPartitioner_Callbacks* data, JAX_CustomCallPartitioner_Partition_Args* args) {
  auto& owner = *static_cast<Owner*>(data->private_data);
  ++owner.asked;
  owner.config.assign(args->backend_config.data, args->backend_config.size);
  args->header.data = &owner;
  args->header.cleanup_fn = [](void* made) { ++static_cast<Owner*>(made)->cleaned; };
  if (owner.program.empty()) {
    args->header.has_error = true;
    args->header.code = PJRT_Error_Code_INTERNAL;
    args->header.error_msg = {"not today", 9};
    return;
  }
  static JAX_CustomCallPartitioner_string lists[1];
  lists[0] = args->op_args[0].sharding;
  args->args_sharding = owner.returns_shardings ? lists : nullptr;
  args->result_sharding = args->op_args[0].sharding;
  args->mlir_module = {owner.program.data(), owner.program.size()};
}

std::string Local(std::string_view type) {
  return StrCat("func.func public @main(%a: ", type, ") -> ", type, " {\n  %r = stablehlo.add %a, %a : ", type,
                "\n  return %r : ", type, "\n}");
}

constexpr const char* kProgram = R"(module attributes {mhlo.num_partitions = 2 : i32} {
func.func public @main(%a: tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> (tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) {
  %r = stablehlo.custom_call @test.twice(%a) {backend_config = "some bytes", api_version = 2 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}})";

// Never freed: the plugin keeps what is registered.
Owner& Register(const char* name) {
  auto* owner = new Owner;
  owner->callbacks = {0, owner, nullptr, &Partition, nullptr, nullptr, false};
  auto args = MakeArgs<PJRT_Register_Custom_Partitioner_Args>();
  args.name = name;
  args.name_size = std::strlen(name);
  args.callbacks = &owner->callbacks;
  EXPECT_OK(Extension().register_custom_partitioner(&args));
  return *owner;
}

TEST_F(Pjrt, CustomPartitioner) {
  Owner& owner = Register("test.twice");
  owner.program = Local("tensor<2xf32>");
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_EQ(Compile("mlir", kProgram, &executable, kTwoPartitions).message, "");
  EXPECT_EQ(owner.asked, 1u);
  EXPECT_EQ(owner.cleaned, 1u);
  EXPECT_EQ(owner.config, "some bytes");
  const std::vector<std::vector<float>> results = RunOnBoth(executable, {1, 2}, {3, 4});
  EXPECT_EQ(results[0], (std::vector<float>{2, 4}));
  EXPECT_EQ(results[1], (std::vector<float>{6, 8}));
  Free(executable);
}

TEST_F(Pjrt, CustomPartitionersThatFail) {
  Owner& owner = Register("test.twice");
  PJRT_LoadedExecutable* none = nullptr;
  auto refused = [&](std::string program, std::string_view why) {
    owner.program = std::move(program);
    const Error error = Compile("mlir", kProgram, &none, kTwoPartitions);
    EXPECT_EQ(error.code, kInvalid) << error.message;
    EXPECT_NE(error.message.find(why), std::string::npos) << error.message;
  };
  refused("", "not today");
  refused(Local("tensor<3xf32>"), "cuts operand 0 to f32[2], what it returned works on f32[3]");
  refused("func.func public @main() {\n  return\n}", "1 shardings and 0 parameters for 1 operands");
  refused(
      "func.func public @main(%a: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {\n"
      "  return %a, %a : tensor<2xf32>, tensor<2xf32>\n}",
      "returned 2 results for 1");
  owner.returns_shardings = false;
  refused(Local("tensor<2xf32>"), "returned no shardings of operands");
  EXPECT_EQ(owner.asked, owner.cleaned);

  auto args = MakeArgs<PJRT_Register_Custom_Partitioner_Args>();
  EXPECT_ERROR(Extension().register_custom_partitioner(&args), kInvalid, "without name or callbacks");
  JAX_CustomCallPartitioner_Callbacks newer = {};
  newer.version = 7;
  args.name = "x";
  args.name_size = 1;
  args.callbacks = &newer;
  EXPECT_ERROR(Extension().register_custom_partitioner(&args), kInvalid, "version 7");
}

TEST_F(Pjrt, InspectedSharding) {
  struct Seen {
    std::string sharding;
    bool refuses = false;
  } seen;
  const JAX_InspectSharding_Callback callback = {[](void* data, JAX_InspectSharding_Callback_Args* args) {
                                                   auto& mine = *static_cast<Seen*>(data);
                                                   mine.sharding.assign(args->sharding_spec, args->sharding_spec_size);
                                                   if (mine.refuses) args->error_txt = "I do not like it";
                                                 },
                                                 &seen};
  std::string config;  // as MLIR writes bytes
  for (size_t i = 0; i < sizeof callback; ++i) {
    constexpr const char* kDigits = "0123456789ABCDEF";
    const auto byte = reinterpret_cast<const unsigned char*>(&callback)[i];
    config += {'\\', kDigits[byte >> 4], kDigits[byte & 15]};
  }
  auto program = [](const std::string& bytes) {
    return StrCat(R"(module attributes {mhlo.num_partitions = 2 : i32} {
func.func public @main(%a: tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> tensor<4xf32> {
  %r = stablehlo.negate %a : tensor<4xf32>
  %s = stablehlo.custom_call @InspectSharding(%r) {backend_config = ")",
                  bytes, R"(", has_side_effect = true} : (tensor<4xf32>) -> tensor<4xf32>
  return %r : tensor<4xf32>
}})");
  };
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_EQ(Compile("mlir", program(config), &executable, kTwoPartitions).message, "");
  // {1: 3 (tiled), 3: [2], 9: [2]}
  EXPECT_NE(seen.sharding.find(std::string("\x08\x03", 2)), std::string::npos);
  Free(executable);
  seen.refuses = true;
  Error error = Compile("mlir", program(config), &executable, kTwoPartitions);
  EXPECT_NE(error.message.find("I do not like it"), std::string::npos) << error.message;
  error = Compile("mlir", program("short"), &executable, kTwoPartitions);
  EXPECT_NE(error.message.find("5 bytes of backend_config, expected 16"), std::string::npos) << error.message;
}

}  // namespace
}  // namespace strop
