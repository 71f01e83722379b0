// Programs through the plugin's function table: compiling, running, donating, keeping; and what is refused.
#include "strop/pjrt/fixture.h"
#include "strop/pjrt/named_values.h"

namespace strop {
namespace {

using namespace pjrt_test;

// ---- programs

TEST_F(Pjrt, CompileRefusals) {
  PJRT_LoadedExecutable* none = nullptr;
  EXPECT_NE(Compile("mlir", "", &none).message, "");
  EXPECT_NE(Compile("mlir", "nonsense", &none).message, "");
  EXPECT_NE(Compile("hlo", "\xff\xff", &none).message.find("HloModuleProto"), std::string::npos);
  EXPECT_NE(Compile("wasm", "x", &none).message.find("\"wasm\""), std::string::npos);
  EXPECT_NE(Compile("mlir", kAddOne, &none, "garbage options").message.find("CompileOptionsProto"), std::string::npos);
  // Replicas on more devices than there are: {3: {4: 5}}
  EXPECT_NE(Compile("mlir", kAddOne, &none, std::string("\x1a\x02\x20\x05", 4)).message.find("5 devices"),
            std::string::npos);
}

// {7: {key, {1: value}}}
std::string Override(const std::string& key, const std::string& value) {
  auto field = [](char tag, const std::string& bytes) {
    return std::string(1, tag) + static_cast<char>(bytes.size()) + bytes;
  };
  return field('\x3a', field('\x0a', key) + field('\x12', field('\x0a', value)));
}

TEST_F(Pjrt, OptionsOfOneCompilation) {
  PJRT_LoadedExecutable* executable = nullptr;
  for (auto [key, value] : {std::pair("xla_embed_ir_in_executable", "true"), {"xla_backend_optimization_level", "0"}}) {
    ASSERT_EQ(Compile("mlir", kAddOne, &executable, Override(key, value)).message, "");
    Free(executable);
  }
  const std::string unknown = Compile("mlir", kAddOne, &executable, Override("invalid_key", "x")).message;
  EXPECT_TRUE(unknown.starts_with("No such compile option: 'invalid_key'; there are log, num_threads")) << unknown;
  EXPECT_EQ(Compile("mlir", kAddOne, &executable, Override("xla_dmp_to", "x")).message,
            "No such compile option: 'xla_dmp_to'; did you mean 'xla_dump_to'?");
  EXPECT_EQ(Compile("mlir", kAddOne, &executable, Override("xla_hlo_profile", "perhaps")).message,
            "compile option xla_hlo_profile: 'perhaps' is not a valid bool value.");
  EXPECT_EQ(Compile("mlir", kAddOne, &executable, Override("xla_backend_optimization_level", "x")).code, kInvalid);
  EXPECT_EQ(Compile("mlir", kAddOne, &executable, Override("strop_num_threads", "many")).code, kInvalid);
}

TEST_F(Pjrt, ExecuteRefusals) {
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_EQ(Compile("mlir", kAddOne, &executable).message, "");
  PJRT_Buffer *good = Floats({1, 2, 3, 4}), *short_one = Floats({1});
  auto move = MakeArgs<PJRT_Buffer_CopyToDevice_Args>();
  move.buffer = good;
  move.dst_device = device[1];
  EXPECT_OK(Api().Buffer_CopyToDevice(&move));
  std::vector<PJRT_Buffer*> outputs(1);
  auto run = [&](std::vector<PJRT_Buffer*> arguments, auto change) {
    auto args = Execution(executable, arguments, outputs);
    change(args);
    return Api().LoadedExecutable_Execute(&args);
  };
  auto as_is = [](auto&) {};
  EXPECT_ERROR(run({}, as_is), kInvalid, "expected 1");
  EXPECT_ERROR(run({good, good}, as_is), kInvalid, "expected 1");
  EXPECT_ERROR(run({short_one}, as_is), kInvalid, "expected f32[4]");
  EXPECT_ERROR(run({nullptr}, as_is), kInvalid, "null");
  EXPECT_ERROR(run({move.dst_buffer}, as_is), kInvalid, "device 1");
  EXPECT_ERROR(run({good}, [](auto& a) { a.num_devices = 2; }), kInvalid, "2 devices");
  EXPECT_ERROR(run({good}, [](auto& a) { a.output_lists = nullptr; }), kInvalid, "null");
  EXPECT_ERROR(run({good}, [](auto& a) { a.execute_device = reinterpret_cast<PJRT_Device*>(&a); }), kInvalid,
               "another client");
  EXPECT_ERROR(run({good}, [](auto& a) { a.options->num_non_donatable_input_indices = 3; }), kInvalid, "null");
  // A program for one device runs on any that the caller names; and with no options, events or newer fields at all.
  EXPECT_OK(run({move.dst_buffer}, [&](auto& a) { a.execute_device = device[1], a.device_complete_events = nullptr; }));
  EXPECT_EQ(Read(outputs[0], 4), (std::vector<float>{2, 3, 4, 5}));
  Destroy(outputs[0]);
  EXPECT_OK(run({good}, [](auto& a) { a.options->struct_size = 80, a.device_complete_events = nullptr; }));
  Destroy(outputs[0]);
  auto remove = MakeArgs<PJRT_LoadedExecutable_Delete_Args>();
  remove.executable = executable;
  EXPECT_OK(Api().LoadedExecutable_Delete(&remove));
  EXPECT_ERROR(run({good}, as_is), PJRT_Error_Code_FAILED_PRECONDITION, "deleted");
  for (PJRT_Buffer* b : {good, short_one, move.dst_buffer}) Destroy(b);
  Free(executable);
}

// Large enough to be launched on a thread of the device otherwise.
constexpr const char* kSlow = R"(func.func public @main(%a: tensor<4194304xf32>) -> tensor<4194304xf32> {
  %0 = stablehlo.tanh %a : tensor<4194304xf32>
  %1 = stablehlo.exponential %0 : tensor<4194304xf32>
  return %1 : tensor<4194304xf32>
})";

class Synchronous : public Pjrt {
 protected:
  void SetUp() override {
    pjrt::NamedValues values;
    values.Add("synchronous", std::string("true"));
    auto create = MakeArgs<PJRT_Client_Create_Args>();
    create.create_options = values.data();
    create.num_options = values.size();
    ASSERT_EQ(Take(Api().Client_Create(&create)).message, "");
    client = create.client;
    auto list = MakeArgs<PJRT_Client_AddressableDevices_Args>();
    list.client = client;
    EXPECT_OK(Api().Client_AddressableDevices(&list));
    device[0] = list.addressable_devices[0];
  }
};

TEST_F(Synchronous, HasRunWhenExecuteReturns) {
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_EQ(Compile("mlir", kSlow, &executable).message, "");
  std::vector<PJRT_Buffer*> arguments = {Floats(std::vector<float>(4194304))}, outputs(1);
  for (int i = 0; i < 3; ++i) {
    auto args = Execution(executable, arguments, outputs);
    EXPECT_OK(Api().LoadedExecutable_Execute(&args));
    auto ready = MakeArgs<PJRT_Event_IsReady_Args>();
    ready.event = complete;
    EXPECT_OK(Api().Event_IsReady(&ready));
    EXPECT_TRUE(ready.is_ready);
    EXPECT_EQ(Await(complete).message, "");
    EXPECT_EQ(Read(outputs[0], 4194304)[4194303], 1.0f);
    Destroy(outputs[0]);
  }
  Destroy(arguments[0]);
  Free(executable);
}

// One row and one column of a result are not meant: (2, 3) of (3, 4).
constexpr const char* kBounded = R"(
func.func public @main(%a: tensor<12xf32>, %n: tensor<1xf32>) -> tensor<?x?xf32, #stablehlo.bounds<3, 4>> {
  %two = stablehlo.constant dense<2> : tensor<i32>
  %one = stablehlo.reshape %n : (tensor<1xf32>) -> tensor<f32>
  %three = stablehlo.convert %one : (tensor<f32>) -> tensor<i32>
  %0 = stablehlo.reshape %a : (tensor<12xf32>) -> tensor<3x4xf32>
  %1 = "stablehlo.set_dimension_size"(%0, %two) {dimension = 0 : i64}
      : (tensor<3x4xf32>, tensor<i32>) -> tensor<?x4xf32, #stablehlo.bounds<3, ?>>
  %2 = "stablehlo.set_dimension_size"(%1, %three) {dimension = 1 : i64}
      : (tensor<?x4xf32, #stablehlo.bounds<3, ?>>, tensor<i32>) -> tensor<?x?xf32, #stablehlo.bounds<3, 4>>
  return %2 : tensor<?x?xf32, #stablehlo.bounds<3, 4>>
})";

TEST_F(Synchronous, DevicesThatTheCallerInventedAreTheRealOnes) {
  auto lookup = MakeArgs<PJRT_Client_LookupAddressableDevice_Args>();
  lookup.client = client;
  lookup.local_hardware_id = 3;
  EXPECT_OK(Api().Client_LookupAddressableDevice(&lookup));
  EXPECT_EQ(lookup.addressable_device, device[0]);
  lookup.local_hardware_id = -1;
  EXPECT_ERROR(Api().Client_LookupAddressableDevice(&lookup), kInvalid, "-1");
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_EQ(Compile("mlir", kAddOne, &executable, std::string("\x1a\x02\x08\x03", 4)).message, "");  // {3: {1: 3}}
  Free(executable);
}

TEST_F(Synchronous, BoundedResultsHaveTheirSize) {
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_EQ(Compile("mlir", kBounded, &executable).message, "");
  std::vector<PJRT_Buffer*> arguments = {Floats({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}), nullptr}, outputs(1);
  for (const auto& [columns, expected] :
       {std::pair<float, std::vector<float>>{3, {0, 1, 2, 4, 5, 6}}, {4, {0, 1, 2, 3, 4, 5, 6, 7}}, {0, {}}}) {
    arguments[1] = Floats({columns});
    auto args = Execution(executable, arguments, outputs);
    EXPECT_OK(Api().LoadedExecutable_Execute(&args));
    EXPECT_EQ(Await(complete).message, "");
    auto sizes = MakeArgs<PJRT_Buffer_UnpaddedDimensions_Args>();
    sizes.buffer = outputs[0];
    EXPECT_OK(Api().Buffer_UnpaddedDimensions(&sizes));
    ASSERT_EQ(sizes.num_dims, 2u);
    EXPECT_EQ(sizes.unpadded_dims[0], 2);
    EXPECT_EQ(sizes.unpadded_dims[1], static_cast<int64_t>(columns));
    EXPECT_EQ(Read(outputs[0], expected.size()), expected);
    Destroy(outputs[0]);
    Destroy(arguments[1]);
  }
  Destroy(arguments[0]);
  Free(executable);
}

TEST_F(Pjrt, SerializedExecutables) {
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_EQ(Compile("mlir", kAddOne, &executable).message, "");
  auto get = MakeArgs<PJRT_LoadedExecutable_GetExecutable_Args>();
  get.loaded_executable = executable;
  EXPECT_OK(Api().LoadedExecutable_GetExecutable(&get));
  auto serialize = MakeArgs<PJRT_Executable_Serialize_Args>();
  serialize.executable = get.executable;
  EXPECT_OK(Api().Executable_Serialize(&serialize));
  const std::string bytes(serialize.serialized_bytes, serialize.serialized_bytes_size);
  serialize.serialized_executable_deleter(serialize.serialized_executable);
  auto load = MakeArgs<PJRT_Executable_DeserializeAndLoad_Args>();
  load.client = client;
  load.serialized_executable = bytes.data();
  load.serialized_executable_size = bytes.size();
  EXPECT_OK(Api().Executable_DeserializeAndLoad(&load));
  Free(load.loaded_executable);
  for (size_t size = 0; size < bytes.size(); size += 7) {
    load.serialized_executable_size = size;
    EXPECT_NE(Take(Api().Executable_DeserializeAndLoad(&load)).code, 0) << size;
  }
  // The size that a framework of 0.75 knows is written, and not a byte more.
  struct {
    PJRT_Executable_GetCompiledMemoryStats_Args args;
  } stats;
  std::memset(&stats, 0x5a, sizeof stats);
  stats.args.struct_size = 112;
  stats.args.executable = get.executable;
  EXPECT_OK(Api().Executable_GetCompiledMemoryStats(&stats.args));
  EXPECT_EQ(stats.args.argument_size_in_bytes, 16);
  EXPECT_EQ(stats.args.total_size_in_bytes, 0x5a5a5a5a5a5a5a5a);
  auto free = MakeArgs<PJRT_Executable_Destroy_Args>();
  free.executable = get.executable;
  EXPECT_OK(Api().Executable_Destroy(&free));
  Free(executable);
}

// A result of bounded size: the caller hears how much of it is meant, takes no more than that to the host, and a
// program that it is passed to knows it as well.
TEST_F(Pjrt, BoundedResult) {
  PJRT_LoadedExecutable *cut = nullptr, *sum = nullptr;
  ASSERT_EQ(
      Compile("mlir",
              R"(func.func public @main(%x: tensor<4xf32>, %n: tensor<1xf32>) -> tensor<?xf32, #stablehlo.bounds<4>> {
    %0 = stablehlo.convert %n : (tensor<1xf32>) -> tensor<1xi32>
    %1 = stablehlo.reshape %0 : (tensor<1xi32>) -> tensor<i32>
    %2 = stablehlo.set_dimension_size %x, %1, dim = 0 : (tensor<4xf32>, tensor<i32>) -> tensor<?xf32, #stablehlo.bounds<4>>
    return %2 : tensor<?xf32, #stablehlo.bounds<4>> })",
              &cut)
          .message,
      "");
  ASSERT_EQ(
      Compile(
          "mlir",
          R"(func.func public @main(%x: tensor<?xf32, #stablehlo.bounds<4>>) -> (tensor<?xf32, #stablehlo.bounds<4>>, tensor<1xf32>) {
    %0 = stablehlo.constant dense<0.0> : tensor<f32>
    %1 = stablehlo.add %x, %x : tensor<?xf32, #stablehlo.bounds<4>>
    %2 = stablehlo.reduce(%1 init: %0) applies stablehlo.add across dimensions = [0] : (tensor<?xf32, #stablehlo.bounds<4>>, tensor<f32>) -> tensor<f32>
    %3 = stablehlo.reshape %2 : (tensor<f32>) -> tensor<1xf32>
    return %x, %3 : tensor<?xf32, #stablehlo.bounds<4>>, tensor<1xf32> })",
          &sum)
          .message,
      "");
  std::vector<PJRT_Buffer*> arguments = {Floats({1, 2, 3, 4}), Floats({3})}, part(1), sums(2);
  auto args = Execution(cut, arguments, part);
  args.device_complete_events = nullptr;
  EXPECT_OK(Api().LoadedExecutable_Execute(&args));
  auto size = [](PJRT_Buffer* buffer) {
    auto dims = MakeArgs<PJRT_Buffer_UnpaddedDimensions_Args>();
    dims.buffer = buffer;
    EXPECT_OK(Api().Buffer_UnpaddedDimensions(&dims));
    return dims.num_dims == 1 ? dims.unpadded_dims[0] : -1;
  };
  EXPECT_EQ(size(part[0]), 3);
  EXPECT_EQ(Read(part[0], 3), (std::vector<float>{1, 2, 3}));
  args = Execution(sum, part, sums);
  args.device_complete_events = nullptr;
  EXPECT_OK(Api().LoadedExecutable_Execute(&args));
  EXPECT_EQ(size(sums[0]), 3);
  EXPECT_EQ(Read(sums[0], 3), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(Read(sums[1], 1), (std::vector<float>{12}));
  for (PJRT_Buffer* b : {arguments[0], arguments[1], part[0], sums[0], sums[1]}) Destroy(b);
  Free(cut);
  Free(sum);
}

TEST_F(Pjrt, OptimizedProgramIsAskedTwice) {
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_EQ(Compile("mlir", kAddOne, &executable).message, "");
  auto get = MakeArgs<PJRT_LoadedExecutable_GetExecutable_Args>();
  get.loaded_executable = executable;
  EXPECT_OK(Api().LoadedExecutable_GetExecutable(&get));
  PJRT_Program program = {kStructSize<PJRT_Program>, nullptr, nullptr, 0, nullptr, 0};
  auto optimized = MakeArgs<PJRT_Executable_OptimizedProgram_Args>();
  optimized.executable = get.executable;
  optimized.program = &program;
  EXPECT_OK(Api().Executable_OptimizedProgram(&optimized));
  EXPECT_EQ(std::string(program.format, program.format_size), "hlo_with_config");
  std::string code(program.code_size, '\0');
  program.code = code.data();
  program.code_size = 3;
  EXPECT_ERROR(Api().Executable_OptimizedProgram(&optimized), kInvalid, "room for 3");
  program.code_size = code.size();
  EXPECT_OK(Api().Executable_OptimizedProgram(&optimized));
  PJRT_LoadedExecutable* again = nullptr;
  EXPECT_EQ(Compile("hlo_with_config", code, &again).message, "");  // what we write, we read
  Free(again);
  auto free = MakeArgs<PJRT_Executable_Destroy_Args>();
  free.executable = get.executable;
  EXPECT_OK(Api().Executable_Destroy(&free));
  Free(executable);
}

TEST_F(Pjrt, ErrorBuffersPoisonExecutions) {
  const int64_t dims[] = {4};
  auto make = MakeArgs<PJRT_Client_CreateErrorBuffer_Args>();
  make.client = client;
  make.error_code = PJRT_Error_Code_ABORTED;
  make.error_message = "the producer died";
  make.error_message_size = 17;
  make.shape_dims = dims;
  make.shape_num_dims = 1;
  make.shape_element_type = PJRT_Buffer_Type_F32;
  make.memory = Memory(0, 0);
  EXPECT_OK(Api().Client_CreateErrorBuffer(&make));
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_EQ(Compile("mlir", kAddOne, &executable).message, "");
  std::vector<PJRT_Buffer*> arguments = {make.buffer}, outputs(1);
  auto execute = Execution(executable, arguments, outputs);
  EXPECT_OK(Api().LoadedExecutable_Execute(&execute));
  Error error = Await(complete);
  EXPECT_EQ(error.code, PJRT_Error_Code_ABORTED);
  EXPECT_NE(error.message.find("the producer died"), std::string::npos);
  Destroy(outputs[0]);
  Destroy(make.buffer);
  Free(executable);
}

TEST_F(Pjrt, AliasBuffers) {
  const int64_t dims[] = {4};
  auto make = MakeArgs<PJRT_Client_CreateAliasBuffer_Args>();
  make.client = client;
  make.memory = Memory(0, 0);
  make.shape_dims = dims;
  make.shape_num_dims = 1;
  make.shape_element_type = PJRT_Buffer_Type_F32;
  EXPECT_OK(Api().Client_CreateAliasBuffer(&make));
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_EQ(Compile("mlir", kAddOne, &executable).message, "");
  std::vector<PJRT_Buffer*> arguments = {make.alias_buffer}, outputs(1);
  auto execute = Execution(executable, arguments, outputs);
  EXPECT_OK(Api().LoadedExecutable_Execute(&execute));  // waits for the alias
  PJRT_Buffer* source = Floats({1, 2, 3, 4});
  auto fulfil = MakeArgs<PJRT_Client_FulfillAliasBuffer_Args>();
  fulfil.client = client;
  fulfil.buffer = source;
  fulfil.fulfill_alias_buffer_cb = make.fulfill_alias_buffer_cb;
  EXPECT_OK(Api().Client_FulfillAliasBuffer(&fulfil));
  EXPECT_EQ(Await(complete).message, "");
  EXPECT_EQ(Read(outputs[0], 4), (std::vector<float>{2, 3, 4, 5}));
  for (PJRT_Buffer* b : {source, make.alias_buffer, outputs[0]}) Destroy(b);
  Free(executable);
}

TEST_F(Pjrt, ExternalReferencesForbidOverwriting) {
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_EQ(Compile("mlir", kDonate, &executable).message, "");
  PJRT_Buffer* buffer = Floats({1, 2, 3, 4});
  auto hold = MakeArgs<PJRT_Buffer_IncreaseExternalReferenceCount_Args>();
  hold.buffer = buffer;
  EXPECT_OK(Api().Buffer_IncreaseExternalReferenceCount(&hold));
  auto pointer = MakeArgs<PJRT_Buffer_OpaqueDeviceMemoryDataPointer_Args>();
  pointer.buffer = buffer;
  EXPECT_OK(Api().Buffer_OpaqueDeviceMemoryDataPointer(&pointer));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(pointer.device_memory_ptr) % 64, 0u);
  std::vector<PJRT_Buffer*> arguments = {buffer}, outputs(1);
  auto execute = Execution(executable, arguments, outputs);
  EXPECT_OK(Api().LoadedExecutable_Execute(&execute));
  Await(complete);
  EXPECT_EQ(static_cast<float*>(pointer.device_memory_ptr)[0], 1);  // somebody looks at it
  EXPECT_EQ(Read(outputs[0], 4)[0], -1);
  auto deleted = MakeArgs<PJRT_Buffer_IsDeleted_Args>();
  deleted.buffer = buffer;
  EXPECT_OK(Api().Buffer_IsDeleted(&deleted));
  EXPECT_TRUE(deleted.is_deleted);
  auto drop = MakeArgs<PJRT_Buffer_DecreaseExternalReferenceCount_Args>();
  drop.buffer = buffer;
  EXPECT_OK(Api().Buffer_DecreaseExternalReferenceCount(&drop));
  EXPECT_ERROR(Api().Buffer_DecreaseExternalReferenceCount(&drop), kInvalid, "zero reference");
  Destroy(buffer);
  Destroy(outputs[0]);
  Free(executable);
}

// Two replicas, each on a device of its own, exchange data: by a sum, and by what no reduction of collectives is.
TEST_F(Pjrt, ReplicasMeetInCollectives) {
  struct Case {
    const char *collective, *combine, *result;
    std::vector<float> want[2];  // of {1, 2, 3, 4} and {10, 20, 30, 40}
  };
  for (const Case& c :
       std::vector<Case>{{"all_reduce", "add", "tensor<4xf32>", {{11, 22, 33, 44}, {11, 22, 33, 44}}},
                         {"all_reduce", "subtract", "tensor<4xf32>", {{-9, -18, -27, -36}, {-9, -18, -27, -36}}},
                         {"reduce_scatter", "add", "tensor<2xf32>", {{11, 22}, {33, 44}}},
                         {"reduce_scatter", "subtract", "tensor<2xf32>", {{-9, -18}, {-27, -36}}}}) {
    const std::string scatter = std::string(c.collective) == "reduce_scatter" ? "scatter_dimension = 0 : i64, " : "";
    const std::string program = R"(module attributes {mhlo.num_replicas = 2 : i32} {
    func.func public @main(%x: tensor<4xf32>) -> )" +
                                std::string(c.result) + R"( {
      %0 = "stablehlo.)" + c.collective +
                                R"("(%x) <{)" + scatter + R"(replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.)" + c.combine +
                                R"( %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<4xf32>) -> )" +
                                c.result + R"(
      return %0 : )" + c.result +
                                R"(
    }
  })";
    PJRT_LoadedExecutable* executable = nullptr;
    ASSERT_EQ(Compile("mlir", program, &executable, std::string("\x1a\x02\x20\x02", 4)).message, "") << program;
    PJRT_Buffer* first = Floats({1, 2, 3, 4});
    PJRT_Buffer* there = Floats({10, 20, 30, 40});
    auto move = MakeArgs<PJRT_Buffer_CopyToDevice_Args>();
    move.buffer = there;
    move.dst_device = device[1];
    EXPECT_OK(Api().Buffer_CopyToDevice(&move));
    PJRT_Buffer *const args0[] = {first}, *const args1[] = {move.dst_buffer}, *const * lists[] = {args0, args1};
    PJRT_Buffer *out0[1], *out1[1], **outs[] = {out0, out1};
    PJRT_Event* done[2];
    auto execute = MakeArgs<PJRT_LoadedExecutable_Execute_Args>();
    execute.executable = executable;
    execute.argument_lists = lists;
    execute.output_lists = outs;
    execute.num_devices = 2;
    execute.num_args = 1;
    execute.device_complete_events = done;
    EXPECT_OK(Api().LoadedExecutable_Execute(&execute));
    for (PJRT_Event* event : done) EXPECT_EQ(Await(event).message, "");
    EXPECT_EQ(Read(out0[0], c.want[0].size()), c.want[0]) << c.collective << " by " << c.combine;
    EXPECT_EQ(Read(out1[0], c.want[1].size()), c.want[1]) << c.collective << " by " << c.combine;
    for (PJRT_Buffer* b : {first, there, move.dst_buffer, out0[0], out1[0]}) Destroy(b);
    Free(executable);
  }
}

// The same, each device's launch a call of its own from a thread of its own, with a program of its own (x + device
// before the sum); four times, so that launches of one device run ahead of the other's.
TEST_F(Pjrt, SeparateLaunchesMeetInCollectives) {
  constexpr int kTimes = 4;
  const std::string begin = R"(module attributes {mhlo.num_replicas = 2 : i32} {
    func.func public @main(%x: tensor<2xf32>) -> tensor<2xf32> {
)";
  const std::string own[] = {"      %y = stablehlo.negate %x : tensor<2xf32>\n", R"(
      %one = stablehlo.constant dense<1.0> : tensor<2xf32>
      %y = stablehlo.add %x, %one : tensor<2xf32>
)"};
  const std::string end = R"(
      %0 = "stablehlo.all_reduce"(%y) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
      ^bb0(%a: tensor<f32>, %b: tensor<f32>):
        %s = stablehlo.add %a, %b : tensor<f32>
        stablehlo.return %s : tensor<f32>
      }) : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32>
    }
  })";
  std::vector<float> sums[2];
  auto run = [&](int which) {
    PJRT_LoadedExecutable* executable = nullptr;
    ASSERT_EQ(Compile("mlir", begin + own[which] + end, &executable, std::string("\x1a\x02\x20\x02", 4)).message, "");
    const std::vector<int64_t> dims = {2};
    std::vector<PJRT_Buffer*> all;
    std::vector<PJRT_Event*> done(kTimes);
    for (int i = 0; i < kTimes; ++i) {
      const float data[] = {i * (which + 1.0f), 10.0f * which};
      auto put = FromHost(data, PJRT_Buffer_Type_F32, dims);
      put.device = device[which];
      EXPECT_OK(Api().Client_BufferFromHostBuffer(&put));
      Await(put.done_with_host_buffer);
      PJRT_Buffer *const arguments[] = {put.buffer}, *const *const lists[] = {arguments};
      PJRT_Buffer *out[1], **outs[] = {out};
      auto execute = MakeArgs<PJRT_LoadedExecutable_Execute_Args>();
      execute.executable = executable;
      execute.argument_lists = lists;
      execute.output_lists = outs;
      execute.num_devices = 1;
      execute.num_args = 1;
      execute.execute_device = device[which];
      execute.device_complete_events = &done[i];
      EXPECT_OK(Api().LoadedExecutable_Execute(&execute));
      all.insert(all.end(), {put.buffer, out[0]});
    }
    for (int i = 0; i < kTimes; ++i) {
      EXPECT_EQ(Await(done[i]).message, "");
      for (float value : Read(all[2 * i + 1], 2)) sums[which].push_back(value);
    }
    for (PJRT_Buffer* buffer : all) Destroy(buffer);
    Free(executable);
  };
  std::thread other(run, 1);
  run(0);
  other.join();
  EXPECT_EQ(sums[0], (std::vector<float>{1, 11, 2, 11, 3, 11, 4, 11}));
  EXPECT_EQ(sums[1], sums[0]);
}

// Layout modes: an argument that lies in memory column by column, a result for which the compiler may choose.
TEST_F(Pjrt, LayoutModes) {
  constexpr const char* kTranspose = R"(
func.func public @main(%a: tensor<2x3xf32> {mhlo.layout_mode = "{0,1}"}) -> (tensor<3x2xf32> {mhlo.layout_mode = "auto"}) {
  %n = stablehlo.negate %a : tensor<2x3xf32>
  %r = stablehlo.transpose %n, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %r : tensor<3x2xf32>
})";
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_EQ(Compile("mlir", kTranspose, &executable).message, "");
  const float data[] = {1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> dims = {2, 3};
  const int64_t minor_to_major[] = {0, 1};
  PJRT_Buffer_MemoryLayout layout = {};
  layout.struct_size = kStructSize<PJRT_Buffer_MemoryLayout>;
  layout.layout.tiled.minor_to_major = minor_to_major;
  layout.layout.tiled.minor_to_major_size = 2;
  auto rows = FromHost(data, PJRT_Buffer_Type_F32, dims), columns = FromHost(data, PJRT_Buffer_Type_F32, dims);
  columns.device_layout = &layout;
  EXPECT_OK(Api().Client_BufferFromHostBuffer(&rows));
  EXPECT_OK(Api().Client_BufferFromHostBuffer(&columns));
  std::vector<PJRT_Buffer*> outputs(1), wrong = {rows.buffer}, right = {columns.buffer};
  auto args = Execution(executable, wrong, outputs);
  EXPECT_ERROR(Api().LoadedExecutable_Execute(&args), kInvalid, "f32[2,3]{1,0} in memory");
  args = Execution(executable, right, outputs);
  args.device_complete_events = nullptr;
  EXPECT_OK(Api().LoadedExecutable_Execute(&args));
  auto told = MakeArgs<PJRT_Buffer_GetMemoryLayout_Args>();
  told.buffer = outputs[0];
  EXPECT_OK(Api().Buffer_GetMemoryLayout(&told));
  EXPECT_EQ(told.layout.layout.tiled.minor_to_major[0], 0);
  EXPECT_EQ(Read(outputs[0], 6), (std::vector<float>{-1, -2, -3, -4, -5, -6}));  // as it was before the transpose
  for (PJRT_Event* event : {rows.done_with_host_buffer, columns.done_with_host_buffer}) Await(event);
  for (PJRT_Buffer* b : {rows.buffer, columns.buffer, outputs[0]}) Destroy(b);
  Free(executable);
  constexpr const char* kWrong = R"(
func.func public @main(%a: tensor<2xf32> {mhlo.layout_mode = "{0,1}"}) -> tensor<2xf32> {
  return %a : tensor<2xf32>
})";
  EXPECT_NE(Compile("mlir", kWrong, &executable).message.find("layout mode {0,1}"), std::string::npos);
}

// A program on two partitions: each has one half of the argument, and gets one half of the result.
TEST_F(Pjrt, Partitions) {
  constexpr const char* kReverse = R"(module attributes {mhlo.num_partitions = 2 : i32} {
func.func public @main(%a: tensor<4xf32> {mhlo.sharding = "{devices=[2]<=[2]}"}) -> (tensor<4xf32> {mhlo.sharding = "{devices=[2]1,0}"}) {
  %r = stablehlo.reverse %a, dims = [0] : tensor<4xf32>
  return %r : tensor<4xf32>
}})";
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_EQ(Compile("mlir", kReverse, &executable, std::string("\x1a\x04\x20\x01\x28\x02", 6)).message, "");
  const std::vector<std::vector<float>> results = RunOnBoth(executable, {1, 2}, {3, 4});
  EXPECT_EQ(results[0], (std::vector<float>{2, 1}));  // partition 0 holds the second tile
  EXPECT_EQ(results[1], (std::vector<float>{4, 3}));
  Free(executable);
}

// A sharding that does not fit is refused where it stands.
TEST_F(Pjrt, PartitionsThatDoNotFit) {
  constexpr const char* kWrong = R"(module attributes {mhlo.num_partitions = 2 : i32} {
func.func public @main(%a: tensor<4xf32> {mhlo.sharding = "{devices=[4]<=[4]}"}) -> tensor<4xf32> {
  return %a : tensor<4xf32>
}})";
  PJRT_LoadedExecutable* none = nullptr;
  const Error error = Compile("mlir", kWrong, &none, std::string("\x1a\x04\x20\x01\x28\x02", 6));
  EXPECT_EQ(error.code, kInvalid);
  EXPECT_NE(error.message.find("does not name each partition once"), std::string::npos) << error.message;
}

TEST_F(Pjrt, ManyThreads) {
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_EQ(Compile("mlir", kAddOne, &executable).message, "");
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const float x = static_cast<float>(t * 100 + i);
        PJRT_Buffer* in = Floats({x, x, x, x});
        PJRT_Buffer *const args[] = {in}, *const * lists[] = {args};
        PJRT_Buffer *out[1], **outs[] = {out};
        auto execute = MakeArgs<PJRT_LoadedExecutable_Execute_Args>();
        execute.executable = executable;
        execute.argument_lists = lists;
        execute.output_lists = outs;
        execute.num_devices = execute.num_args = 1;
        EXPECT_OK(Api().LoadedExecutable_Execute(&execute));
        Destroy(in);  // the execution keeps what it reads
        EXPECT_EQ(Read(out[0], 4)[3], x + 1);
        Destroy(out[0]);
      }
    });
  for (std::thread& thread : threads) thread.join();
  Free(executable);
}

}  // namespace
}  // namespace strop
