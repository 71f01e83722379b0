// What tests of the plugin share: calls through its function table, as a framework makes them.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>

#include "strop/pjrt/c_api/extensions.h"

namespace strop {
namespace pjrt_test {

inline const PJRT_Api& Api() { return *GetPjrtApi(); }

template <class Args>
Args MakeArgs() {
  Args args;
  std::memset(static_cast<void*>(&args), 0, sizeof args);
  args.struct_size = kStructSize<Args>;
  return args;
}

struct Error {
  int code = 0;
  std::string message;
};

inline Error Take(PJRT_Error* error) {
  if (!error) return {};
  auto code = MakeArgs<PJRT_Error_GetCode_Args>();
  code.error = error;
  EXPECT_EQ(Api().Error_GetCode(&code), nullptr);
  auto message = MakeArgs<PJRT_Error_Message_Args>();
  message.error = error;
  Api().Error_Message(&message);
  Error out{code.code, std::string(message.message, message.message_size)};
  auto payload = MakeArgs<PJRT_Error_ForEachPayload_Args>();
  payload.error = error;
  EXPECT_EQ(Api().Error_ForEachPayload(&payload), nullptr);
  auto destroy = MakeArgs<PJRT_Error_Destroy_Args>();
  destroy.error = error;
  Api().Error_Destroy(&destroy);
  return out;
}

#define EXPECT_OK(call)                                           \
  do {                                                            \
    Error error_ = Take(call);                                    \
    EXPECT_EQ(error_.code, 0) << #call << ": " << error_.message; \
  } while (false)
#define EXPECT_ERROR(call, expected_code, text)                                                 \
  do {                                                                                          \
    Error error_ = Take(call);                                                                  \
    EXPECT_EQ(error_.code, expected_code) << #call << ": " << error_.message;                   \
    EXPECT_NE(error_.message.find(text), std::string::npos) << #call << ": " << error_.message; \
  } while (false)

constexpr int kInvalid = PJRT_Error_Code_INVALID_ARGUMENT;

class Pjrt : public testing::Test {
 protected:
  void SetUp() override {
    PJRT_NamedValue devices = {kStructSize<PJRT_NamedValue>, nullptr, "num_devices", 11, PJRT_NamedValue_kInt64, {}, 1};
    devices.value.int64_value = 2;
    auto create = MakeArgs<PJRT_Client_Create_Args>();
    create.create_options = &devices;
    create.num_options = 1;
    ASSERT_EQ(Take(Api().Client_Create(&create)).message, "");
    client = create.client;
    auto list = MakeArgs<PJRT_Client_AddressableDevices_Args>();
    list.client = client;
    EXPECT_OK(Api().Client_AddressableDevices(&list));
    ASSERT_EQ(list.num_addressable_devices, 2u);
    device[0] = list.addressable_devices[0];
    device[1] = list.addressable_devices[1];
  }
  void TearDown() override {
    auto destroy = MakeArgs<PJRT_Client_Destroy_Args>();
    destroy.client = client;
    EXPECT_OK(Api().Client_Destroy(&destroy));
  }

  PJRT_Memory* Memory(int which, int kind) {
    auto list = MakeArgs<PJRT_Device_AddressableMemories_Args>();
    list.device = device[which];
    EXPECT_OK(Api().Device_AddressableMemories(&list));
    return list.memories[kind];
  }
  PJRT_Client_BufferFromHostBuffer_Args FromHost(const void* data, PJRT_Buffer_Type type,
                                                 const std::vector<int64_t>& dims) {
    auto args = MakeArgs<PJRT_Client_BufferFromHostBuffer_Args>();
    args.client = client;
    args.data = data;
    args.type = type;
    args.dims = dims.data();
    args.num_dims = dims.size();
    args.device = device[0];
    return args;
  }
  PJRT_Buffer* Floats(const std::vector<float>& values) {
    const std::vector<int64_t> dims = {static_cast<int64_t>(values.size())};
    auto args = FromHost(values.data(), PJRT_Buffer_Type_F32, dims);
    EXPECT_OK(Api().Client_BufferFromHostBuffer(&args));
    Await(args.done_with_host_buffer);
    return args.buffer;
  }
  // A program of two partitions, each with one operand: what either gives, as long as its operand.
  std::vector<std::vector<float>> RunOnBoth(PJRT_LoadedExecutable* executable, const std::vector<float>& a,
                                            const std::vector<float>& b) {
    PJRT_Buffer *first = Floats(a), *second = Floats(b);
    auto move = MakeArgs<PJRT_Buffer_CopyToDevice_Args>();
    move.buffer = second;
    move.dst_device = device[1];
    EXPECT_OK(Api().Buffer_CopyToDevice(&move));
    PJRT_Buffer *in0[] = {first}, *in1[] = {move.dst_buffer}, *out0[] = {nullptr}, *out1[] = {nullptr};
    PJRT_Buffer* const* arguments[] = {in0, in1};
    PJRT_Buffer** outputs[] = {out0, out1};
    options = MakeArgs<PJRT_ExecuteOptions>();
    auto execute = MakeArgs<PJRT_LoadedExecutable_Execute_Args>();
    execute.executable = executable;
    execute.options = &options;
    execute.argument_lists = arguments;
    execute.output_lists = outputs;
    execute.num_devices = 2;
    execute.num_args = 1;
    EXPECT_OK(Api().LoadedExecutable_Execute(&execute));
    std::vector<std::vector<float>> results = {Read(out0[0], a.size()), Read(out1[0], b.size())};
    for (PJRT_Buffer* buffer : {first, second, move.dst_buffer, out0[0], out1[0]}) Destroy(buffer);
    return results;
  }
  Error Await(PJRT_Event* event) {
    auto await = MakeArgs<PJRT_Event_Await_Args>();
    await.event = event;
    Error error = Take(Api().Event_Await(&await));
    auto destroy = MakeArgs<PJRT_Event_Destroy_Args>();
    destroy.event = event;
    EXPECT_OK(Api().Event_Destroy(&destroy));
    return error;
  }
  std::vector<float> Read(PJRT_Buffer* buffer, size_t count) {
    std::vector<float> out(count, -1);
    auto args = MakeArgs<PJRT_Buffer_ToHostBuffer_Args>();
    args.src = buffer;
    args.dst = out.data();
    args.dst_size = count * sizeof(float);
    Error error = Take(Api().Buffer_ToHostBuffer(&args));
    EXPECT_EQ(error.message, "");
    if (args.event) {
      EXPECT_EQ(Await(args.event).message, "");
    }
    return out;
  }
  void Destroy(PJRT_Buffer* buffer) {
    auto args = MakeArgs<PJRT_Buffer_Destroy_Args>();
    args.buffer = buffer;
    EXPECT_OK(Api().Buffer_Destroy(&args));
  }
  Error Compile(std::string format, std::string code, PJRT_LoadedExecutable** out, std::string options = {}) {
    PJRT_Program program = {kStructSize<PJRT_Program>, nullptr, code.data(), code.size(), format.data(), format.size()};
    auto args = MakeArgs<PJRT_Client_Compile_Args>();
    args.client = client;
    args.program = &program;
    args.compile_options = options.data();
    args.compile_options_size = options.size();
    Error error = Take(Api().Client_Compile(&args));
    *out = args.executable;
    return error;
  }
  PJRT_LoadedExecutable_Execute_Args Execution(PJRT_LoadedExecutable* executable, std::vector<PJRT_Buffer*>& arguments,
                                               std::vector<PJRT_Buffer*>& outputs) {
    options = MakeArgs<PJRT_ExecuteOptions>();
    argument_list[0] = arguments.data();
    output_list[0] = outputs.data();
    auto args = MakeArgs<PJRT_LoadedExecutable_Execute_Args>();
    args.executable = executable;
    args.options = &options;
    args.argument_lists = argument_list;
    args.num_devices = 1;
    args.num_args = arguments.size();
    args.output_lists = output_list;
    args.device_complete_events = &complete;
    return args;
  }
  void Free(PJRT_LoadedExecutable* executable) {
    auto args = MakeArgs<PJRT_LoadedExecutable_Destroy_Args>();
    args.executable = executable;
    EXPECT_OK(Api().LoadedExecutable_Destroy(&args));
  }

  PJRT_Client* client = nullptr;
  PJRT_Device* device[2] = {};
  PJRT_ExecuteOptions options;
  PJRT_Buffer* const* argument_list[1];
  PJRT_Buffer** output_list[1];
  PJRT_Event* complete = nullptr;
};

constexpr const char* kAddOne = R"(func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {
  %c = stablehlo.constant dense<1.0> : tensor<4xf32>
  %r = stablehlo.add %a, %c : tensor<4xf32>
  return %r : tensor<4xf32>
})";
constexpr const char* kDonate =
    R"(func.func public @main(%a: tensor<4xf32> {tf.aliasing_output = 0 : i32}) -> tensor<4xf32> {
  %r = stablehlo.negate %a : tensor<4xf32>
  return %r : tensor<4xf32>
})";

}  // namespace pjrt_test
}  // namespace strop
