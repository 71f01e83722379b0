// The plugin through its function table, as a framework sees it: what it does, and what it says to misuse. A crash is a
// failure of the whole program, so that no refusal can be one.
#include "strop/pjrt/fixture.h"
#include "strop/pjrt/objects.h"

namespace strop {
namespace {

using namespace pjrt_test;

// ---- every slot

TEST(PjrtSlots, NullAndShortArgsAreErrors) {
#define VOID_SLOT(index, name) Api().name(nullptr);
#define SLOT(index, name)                                           \
  EXPECT_ERROR(Api().name(nullptr), kInvalid, "PJRT_" #name);       \
  {                                                                 \
    auto args = MakeArgs<PJRT_##name##_Args>();                     \
    args.struct_size = 15;                                          \
    EXPECT_ERROR(Api().name(&args), kInvalid, "struct_size is 15"); \
  }
#include "strop/pjrt/c_api/slots.def"
#undef SLOT
#undef VOID_SLOT
}

// All pointers null: an error, or nothing to do; never a crash.
TEST(PjrtSlots, NullHandles) {
#define VOID_SLOT(index, name)                  \
  {                                             \
    auto args = MakeArgs<PJRT_##name##_Args>(); \
    Api().name(&args);                          \
  }
#define SLOT(index, name)                       \
  {                                             \
    auto args = MakeArgs<PJRT_##name##_Args>(); \
    Take(Api().name(&args));                    \
  }
#include "strop/pjrt/c_api/slots.def"
#undef SLOT
#undef VOID_SLOT
}

// The first handle given, everything else null or zero.
TEST_F(Pjrt, OnlyTheFirstHandle) {
  PJRT_Buffer* buffer = Floats({1, 2, 3, 4});
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_EQ(Compile("mlir", kAddOne, &executable).message, "");
  auto call = [&]<class Args>(PJRT_Error* (*slot)(Args*)) {
    auto args = MakeArgs<Args>();
    if constexpr (requires {
                    args.dst_memory;
                    args.buffer;
                  })
      args.buffer = buffer;
    if constexpr (requires { args.src; }) args.src = buffer;
    if constexpr (requires { args.client; }) args.client = client;
    if constexpr (std::is_same_v<Args, PJRT_LoadedExecutable_Execute_Args>) args.executable = executable;
    if constexpr (
        requires {
          args.buffer;
          args.client;
        } == false && requires { args.buffer; })
      args.buffer = buffer;
    Take(slot(&args));
  };
  call(Api().Client_Compile);
  call(Api().Client_Load);
  call(Api().Client_LookupDevice);
  call(Api().Client_DefaultDeviceAssignment);
  call(Api().Client_BufferFromHostBuffer);
  call(Api().Client_CreateViewOfDeviceBuffer);
  call(Api().Client_CreateUninitializedBuffer);
  call(Api().Client_CreateErrorBuffer);
  call(Api().Client_CreateAliasBuffer);
  call(Api().Client_FulfillAliasBuffer);
  call(Api().Client_CreateBuffersForAsyncHostToDevice);
  call(Api().Client_DmaMap);
  call(Api().Client_DmaUnmap);
  call(Api().Executable_DeserializeAndLoad);
  call(Api().LoadedExecutable_Execute);
  call(Api().Buffer_ToHostBuffer);
  call(Api().Buffer_CopyToMemory);
  call(Api().Buffer_CopyToDevice);
  call(Api().Buffer_CopyRawToHost);
  call(Api().Buffer_Bitcast);
  Free(executable);
  Destroy(buffer);
}

// ---- host data

TEST_F(Pjrt, HostDataRefusals) {
  float data[4] = {1, 2, 3, 4};
  const std::vector<int64_t> four = {4}, negative = {-4}, huge = {int64_t{1} << 40, int64_t{1} << 40},
                             terabytes = {int64_t{1} << 45};
  auto call = [&](auto change) {
    auto args = FromHost(data, PJRT_Buffer_Type_F32, four);
    change(args);
    return Api().Client_BufferFromHostBuffer(&args);
  };
  EXPECT_ERROR(call([](auto& a) { a.data = nullptr; }), kInvalid, "null");
  EXPECT_ERROR(call([](auto& a) { a.type = PJRT_Buffer_Type_INVALID; }), kInvalid, "buffer type 0");
  EXPECT_ERROR(call([](auto& a) { a.type = static_cast<PJRT_Buffer_Type>(99); }), kInvalid, "buffer type 99");
  EXPECT_ERROR(call([](auto& a) { a.dims = nullptr; }), kInvalid, "null");
  EXPECT_ERROR(call([](auto& a) { a.num_dims = 1000; }), kInvalid, "rank 1000");
  EXPECT_ERROR(call([&](auto& a) { a.dims = negative.data(); }), kInvalid, "-4");
  EXPECT_ERROR(call([&](auto& a) { a.dims = huge.data(), a.num_dims = 2; }), kInvalid, "");
  EXPECT_ERROR(call([&](auto& a) { a.dims = terabytes.data(); }), PJRT_Error_Code_RESOURCE_EXHAUSTED, "");
  EXPECT_ERROR(call([](auto& a) { a.num_byte_strides = 2; }), kInvalid, "strides");
  EXPECT_ERROR(call([](auto& a) { a.device = nullptr; }), kInvalid, "neither");
  EXPECT_ERROR(call([](auto& a) { a.device = reinterpret_cast<PJRT_Device*>(&a); }), kInvalid, "another client");
  EXPECT_ERROR(call([](auto& a) { a.memory = reinterpret_cast<PJRT_Memory*>(&a); }), kInvalid, "another client");
  EXPECT_ERROR(call([](auto& a) { a.host_buffer_semantics = static_cast<PJRT_HostBufferSemantics>(9); }), kInvalid,
               "semantics 9");
}

TEST_F(Pjrt, ZeroCopyWhereAlignedAndLarge) {
  alignas(64) static float data[4096];
  std::iota(std::begin(data), std::end(data), 0.f);
  const std::vector<int64_t> dims = {4096};
  auto args = FromHost(data, PJRT_Buffer_Type_F32, dims);
  args.host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableZeroCopy;
  EXPECT_OK(Api().Client_BufferFromHostBuffer(&args));
  auto pointer = MakeArgs<PJRT_Buffer_UnsafePointer_Args>();
  pointer.buffer = args.buffer;
  EXPECT_OK(Api().Buffer_UnsafePointer(&pointer));
  EXPECT_EQ(pointer.buffer_pointer, reinterpret_cast<uintptr_t>(data));
  auto ready = MakeArgs<PJRT_Event_IsReady_Args>();
  ready.event = args.done_with_host_buffer;
  EXPECT_OK(Api().Event_IsReady(&ready));
  EXPECT_FALSE(ready.is_ready);  // the plugin still looks at the host's memory
  Destroy(args.buffer);
  EXPECT_OK(Api().Event_IsReady(&ready));
  EXPECT_TRUE(ready.is_ready);
  Await(args.done_with_host_buffer);
}

TEST_F(Pjrt, StridesAndLayouts) {
  const float data[] = {1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> dims = {3, 2};
  const int64_t transposed[] = {4, 12};  // the 2x3 array read as 3x2
  auto args = FromHost(data, PJRT_Buffer_Type_F32, dims);
  args.byte_strides = transposed;
  args.num_byte_strides = 2;
  EXPECT_OK(Api().Client_BufferFromHostBuffer(&args));
  EXPECT_EQ(Read(args.buffer, 6), (std::vector<float>{1, 4, 2, 5, 3, 6}));
  // Read with another layout.
  const int64_t minor_to_major[] = {0, 1};
  PJRT_Buffer_MemoryLayout layout = {};
  layout.struct_size = kStructSize<PJRT_Buffer_MemoryLayout>;
  layout.layout.tiled.minor_to_major = minor_to_major;
  layout.layout.tiled.minor_to_major_size = 2;
  float out[6];
  auto read = MakeArgs<PJRT_Buffer_ToHostBuffer_Args>();
  read.src = args.buffer;
  read.host_layout = &layout;
  read.dst = out;
  read.dst_size = sizeof out;
  EXPECT_OK(Api().Buffer_ToHostBuffer(&read));
  Await(read.event);
  EXPECT_TRUE(std::equal(out, out + 6, data));
  const int64_t no_permutation[] = {0, 0};
  layout.layout.tiled.minor_to_major = no_permutation;
  EXPECT_ERROR(Api().Buffer_ToHostBuffer(&read), kInvalid, "permutation");
  layout.layout.tiled.minor_to_major = minor_to_major;
  layout.layout.tiled.num_tiles = 1;
  EXPECT_ERROR(Api().Buffer_ToHostBuffer(&read), PJRT_Error_Code_UNIMPLEMENTED, "tile");
  read.host_layout = nullptr;
  read.dst_size = 5;
  EXPECT_ERROR(Api().Buffer_ToHostBuffer(&read), kInvalid, "5 bytes");
  // A buffer that lies in memory column by column: told so, read so unless another order is asked for.
  layout.layout.tiled.num_tiles = 0;
  auto column_major = FromHost(data, PJRT_Buffer_Type_F32, dims);
  column_major.device_layout = &layout;
  EXPECT_OK(Api().Client_BufferFromHostBuffer(&column_major));
  EXPECT_EQ(Read(column_major.buffer, 6), (std::vector<float>{1, 3, 5, 2, 4, 6}));
  auto told = MakeArgs<PJRT_Buffer_GetMemoryLayout_Args>();
  told.buffer = column_major.buffer;
  EXPECT_OK(Api().Buffer_GetMemoryLayout(&told));
  EXPECT_EQ(told.layout.layout.tiled.minor_to_major[0], 0);
  const int64_t row_major[] = {1, 0};
  layout.layout.tiled.minor_to_major = row_major;
  read.src = column_major.buffer;
  read.host_layout = &layout;
  read.dst_size = sizeof out;
  EXPECT_OK(Api().Buffer_ToHostBuffer(&read));
  Await(read.event);
  EXPECT_TRUE(std::equal(out, out + 6, data));
  Await(args.done_with_host_buffer);
  Await(column_major.done_with_host_buffer);
  Destroy(column_major.buffer);
  Destroy(args.buffer);
}

// ---- buffers

TEST_F(Pjrt, ExternalReferencesAreCounted) {
  PJRT_Buffer* buffer = Floats({1, 2});
  auto more = MakeArgs<PJRT_Buffer_IncreaseExternalReferenceCount_Args>();
  auto fewer = MakeArgs<PJRT_Buffer_DecreaseExternalReferenceCount_Args>();
  more.buffer = fewer.buffer = buffer;
  EXPECT_ERROR(Api().Buffer_DecreaseExternalReferenceCount(&fewer), kInvalid, "zero references");
  for (int i = 0; i < 2; ++i) EXPECT_OK(Api().Buffer_IncreaseExternalReferenceCount(&more));
  for (int i = 0; i < 2; ++i) EXPECT_OK(Api().Buffer_DecreaseExternalReferenceCount(&fewer));
  EXPECT_ERROR(Api().Buffer_DecreaseExternalReferenceCount(&fewer), kInvalid, "zero references");
  EXPECT_OK(Api().Buffer_IncreaseExternalReferenceCount(&more));
  Destroy(buffer);  // with one that nobody gave back
}

// What is ready and has nothing to say is one handle for all; it outlives who destroys it.
TEST_F(Pjrt, ReadyEventsOfManyBuffers) {
  for (int i = 0; i < 3; ++i) {
    PJRT_Buffer* buffer = Floats({1, 2});
    auto ready = MakeArgs<PJRT_Buffer_ReadyEvent_Args>();
    ready.buffer = buffer;
    EXPECT_OK(Api().Buffer_ReadyEvent(&ready));
    auto set = MakeArgs<PJRT_Event_Set_Args>();
    set.event = ready.event;
    EXPECT_ERROR(Api().Event_Set(&set), PJRT_Error_Code_FAILED_PRECONDITION, "set already");
    EXPECT_EQ(Await(ready.event).message, "");
    Destroy(buffer);
  }
}

TEST_F(Pjrt, DeletedBuffers) {
  PJRT_Buffer* buffer = Floats({1, 2, 3, 4});
  auto remove = MakeArgs<PJRT_Buffer_Delete_Args>();
  remove.buffer = buffer;
  EXPECT_OK(Api().Buffer_Delete(&remove));
  EXPECT_OK(Api().Buffer_Delete(&remove));  // again is fine
  float out[4];
  auto read = MakeArgs<PJRT_Buffer_ToHostBuffer_Args>();
  read.src = buffer;
  read.dst = out;
  read.dst_size = sizeof out;
  EXPECT_ERROR(Api().Buffer_ToHostBuffer(&read), kInvalid, "deleted");
  auto copy = MakeArgs<PJRT_Buffer_CopyToDevice_Args>();
  copy.buffer = buffer;
  copy.dst_device = device[1];
  EXPECT_ERROR(Api().Buffer_CopyToDevice(&copy), kInvalid, "deleted");
  auto external = MakeArgs<PJRT_Buffer_IncreaseExternalReferenceCount_Args>();
  external.buffer = buffer;
  EXPECT_ERROR(Api().Buffer_IncreaseExternalReferenceCount(&external), kInvalid, "deleted");
  auto ready = MakeArgs<PJRT_Buffer_ReadyEvent_Args>();
  ready.buffer = buffer;
  EXPECT_OK(Api().Buffer_ReadyEvent(&ready));
  EXPECT_NE(Await(ready.event).message, "");
  PJRT_LoadedExecutable* executable = nullptr;
  ASSERT_EQ(Compile("mlir", kAddOne, &executable).message, "");
  std::vector<PJRT_Buffer*> arguments = {buffer}, outputs(1);
  auto execute = Execution(executable, arguments, outputs);
  EXPECT_ERROR(Api().LoadedExecutable_Execute(&execute), kInvalid, "deleted");
  Free(executable);
  Destroy(buffer);
}

TEST_F(Pjrt, CopiesBetweenDevicesAndMemories) {
  PJRT_Buffer* buffer = Floats({1, 2, 3});
  auto to_device = MakeArgs<PJRT_Buffer_CopyToDevice_Args>();
  to_device.buffer = buffer;
  to_device.dst_device = device[1];
  EXPECT_OK(Api().Buffer_CopyToDevice(&to_device));
  EXPECT_EQ(Read(to_device.dst_buffer, 3), (std::vector<float>{1, 2, 3}));
  auto where = MakeArgs<PJRT_Buffer_Device_Args>();
  where.buffer = to_device.dst_buffer;
  EXPECT_OK(Api().Buffer_Device(&where));
  EXPECT_EQ(where.device, device[1]);
  auto to_memory = MakeArgs<PJRT_Buffer_CopyToMemory_Args>();
  to_memory.buffer = buffer;
  to_memory.dst_memory = Memory(0, 1);
  EXPECT_OK(Api().Buffer_CopyToMemory(&to_memory));
  auto memory = MakeArgs<PJRT_Buffer_Memory_Args>();
  memory.buffer = to_memory.dst_buffer;
  EXPECT_OK(Api().Buffer_Memory(&memory));
  EXPECT_EQ(memory.memory, Memory(0, 1));
  EXPECT_EQ(Read(to_memory.dst_buffer, 3), (std::vector<float>{1, 2, 3}));
  for (PJRT_Buffer* b : {buffer, to_device.dst_buffer, to_memory.dst_buffer}) Destroy(b);
}

TEST_F(Pjrt, RawCopiesBitcastsAndFutures) {
  PJRT_Buffer* buffer = Floats({1, 2, 3, 4});
  float two[2] = {};
  auto raw = MakeArgs<PJRT_Buffer_CopyRawToHost_Args>();
  raw.buffer = buffer;
  raw.dst = two;
  raw.offset = 4;
  raw.transfer_size = 8;
  EXPECT_OK(Api().Buffer_CopyRawToHost(&raw));
  Await(raw.event);
  EXPECT_EQ(two[0], 2);
  raw.offset = 12;
  EXPECT_ERROR(Api().Buffer_CopyRawToHost(&raw), kInvalid, "outside");
  raw.offset = -1;
  EXPECT_ERROR(Api().Buffer_CopyRawToHost(&raw), kInvalid, "outside");
  for (bool fails : {false, true}) {
    auto future = MakeArgs<PJRT_Buffer_CopyRawToHostFuture_Args>();
    future.buffer = buffer;
    future.transfer_size = 8;
    EXPECT_OK(Api().Buffer_CopyRawToHostFuture(&future));
    PJRT_Buffer_CopyRawToHostFuture_Callback_Args ready = {kStructSize<PJRT_Buffer_CopyRawToHostFuture_Callback_Args>,
                                                           future.callback_data,
                                                           fails ? PJRT_Error_Code_ABORTED : PJRT_Error_Code_OK,
                                                           "why not",
                                                           7,
                                                           two};
    future.future_ready_callback(&ready);
    EXPECT_EQ(Await(future.event).message, fails ? "why not" : "");
    EXPECT_EQ(two[0], 1);
  }
  const int64_t dims[] = {2, 2}, three[] = {3};
  auto bitcast = MakeArgs<PJRT_Buffer_Bitcast_Args>();
  bitcast.buffer = buffer;
  bitcast.element_type = PJRT_Buffer_Type_S32;
  bitcast.dims = dims;
  bitcast.num_dims = 2;
  EXPECT_OK(Api().Buffer_Bitcast(&bitcast));
  Destroy(bitcast.out_buffer);
  bitcast.dims = three;
  bitcast.num_dims = 1;
  EXPECT_ERROR(Api().Buffer_Bitcast(&bitcast), kInvalid, "sizes differ");
  Destroy(buffer);
}

TEST_F(Pjrt, DonationWithControlDependency) {
  PJRT_Buffer* buffer = Floats({5, 6});
  auto donate = MakeArgs<PJRT_Buffer_DonateWithControlDependency_Args>();
  donate.buffer = buffer;
  EXPECT_OK(Api().Buffer_DonateWithControlDependency(&donate));
  auto ready = MakeArgs<PJRT_Buffer_ReadyEvent_Args>();
  ready.buffer = donate.out_buffer;
  EXPECT_OK(Api().Buffer_ReadyEvent(&ready));
  auto is_ready = MakeArgs<PJRT_Event_IsReady_Args>();
  is_ready.event = ready.event;
  EXPECT_OK(Api().Event_IsReady(&is_ready));
  EXPECT_FALSE(is_ready.is_ready);
  PJRT_Buffer_DonateWithControlDependency_Callback_Args done = {
      kStructSize<PJRT_Buffer_DonateWithControlDependency_Callback_Args>, donate.callback_data, PJRT_Error_Code_OK,
      nullptr, 0};
  donate.dependency_ready_callback(&done);
  EXPECT_EQ(Await(ready.event).message, "");
  EXPECT_EQ(Read(donate.out_buffer, 2), (std::vector<float>{5, 6}));
  Destroy(buffer);
  Destroy(donate.out_buffer);
}

// ---- transfers in pieces

TEST_F(Pjrt, AsyncTransfers) {
  const int64_t dims[] = {4};
  PJRT_ShapeSpec specs[2];
  for (PJRT_ShapeSpec& spec : specs) spec = {kStructSize<PJRT_ShapeSpec>, nullptr, dims, 1, PJRT_Buffer_Type_F32};
  auto create = MakeArgs<PJRT_Client_CreateBuffersForAsyncHostToDevice_Args>();
  create.client = client;
  create.shape_specs = specs;
  create.num_shape_specs = 2;
  create.memory = Memory(0, 0);
  EXPECT_OK(Api().Client_CreateBuffersForAsyncHostToDevice(&create));
  auto retrieve = MakeArgs<PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args>();
  retrieve.transfer_manager = create.transfer_manager;
  EXPECT_OK(Api().AsyncHostToDeviceTransferManager_RetrieveBuffer(&retrieve));
  PJRT_Buffer* first = retrieve.buffer_out;
  EXPECT_ERROR(Api().AsyncHostToDeviceTransferManager_RetrieveBuffer(&retrieve), PJRT_Error_Code_FAILED_PRECONDITION,
               "already");
  retrieve.buffer_index = 7;
  EXPECT_ERROR(Api().AsyncHostToDeviceTransferManager_RetrieveBuffer(&retrieve), kInvalid, "buffer 7");
  const float data[] = {1, 2, 3, 4};
  auto transfer = MakeArgs<PJRT_AsyncHostToDeviceTransferManager_TransferData_Args>();
  transfer.transfer_manager = create.transfer_manager;
  transfer.data = data;
  transfer.transfer_size = 8;
  EXPECT_OK(Api().AsyncHostToDeviceTransferManager_TransferData(&transfer));
  Await(transfer.done_with_h2d_transfer);
  transfer.data = data + 2;
  transfer.offset = 12;
  EXPECT_ERROR(Api().AsyncHostToDeviceTransferManager_TransferData(&transfer), kInvalid, "outside");
  transfer.offset = 8;
  transfer.is_last_transfer = true;
  EXPECT_OK(Api().AsyncHostToDeviceTransferManager_TransferData(&transfer));
  Await(transfer.done_with_h2d_transfer);
  EXPECT_EQ(Read(first, 4), (std::vector<float>{1, 2, 3, 4}));
  EXPECT_ERROR(Api().AsyncHostToDeviceTransferManager_TransferData(&transfer), PJRT_Error_Code_FAILED_PRECONDITION,
               "already");
  // The second one is never filled: destroying the manager makes it an error instead of letting readers wait forever.
  retrieve.buffer_index = 1;
  EXPECT_OK(Api().AsyncHostToDeviceTransferManager_RetrieveBuffer(&retrieve));
  auto destroy = MakeArgs<PJRT_AsyncHostToDeviceTransferManager_Destroy_Args>();
  destroy.transfer_manager = create.transfer_manager;
  EXPECT_OK(Api().AsyncHostToDeviceTransferManager_Destroy(&destroy));
  auto ready = MakeArgs<PJRT_Buffer_ReadyEvent_Args>();
  ready.buffer = retrieve.buffer_out;
  EXPECT_OK(Api().Buffer_ReadyEvent(&ready));
  EXPECT_EQ(Await(ready.event).code, PJRT_Error_Code_CANCELLED);
  Destroy(first);
  Destroy(retrieve.buffer_out);
}

TEST_F(Pjrt, EventsOfCallers) {
  auto create = MakeArgs<PJRT_Event_Create_Args>();
  EXPECT_OK(Api().Event_Create(&create));
  struct Seen {
    int calls = 0;
    Error error;
  } seen;
  auto on_ready = MakeArgs<PJRT_Event_OnReady_Args>();
  on_ready.event = create.event;
  on_ready.user_arg = &seen;
  on_ready.callback = [](PJRT_Error* error, void* arg) {
    static_cast<Seen*>(arg)->error = Take(error);
    ++static_cast<Seen*>(arg)->calls;
  };
  EXPECT_OK(Api().Event_OnReady(&on_ready));
  auto error = MakeArgs<PJRT_Event_Error_Args>();
  error.event = create.event;
  EXPECT_ERROR(Api().Event_Error(&error), PJRT_Error_Code_FAILED_PRECONDITION, "not ready");
  auto set = MakeArgs<PJRT_Event_Set_Args>();
  set.event = create.event;
  set.error_code = PJRT_Error_Code_DATA_LOSS;
  set.error_message = "lost";
  set.error_message_size = 4;
  EXPECT_OK(Api().Event_Set(&set));
  EXPECT_EQ(seen.calls, 1);
  EXPECT_EQ(seen.error.code, PJRT_Error_Code_DATA_LOSS);
  EXPECT_ERROR(Api().Event_Set(&set), PJRT_Error_Code_FAILED_PRECONDITION, "already");
  EXPECT_EQ(Await(create.event).message, "lost");
}

TEST_F(Pjrt, Topologies) {
  auto topology = MakeArgs<PJRT_Client_TopologyDescription_Args>();
  topology.client = client;
  EXPECT_OK(Api().Client_TopologyDescription(&topology));
  auto serialize = MakeArgs<PJRT_TopologyDescription_Serialize_Args>();
  serialize.topology = topology.topology;
  EXPECT_OK(Api().TopologyDescription_Serialize(&serialize));
  auto read = MakeArgs<PJRT_TopologyDescription_Deserialize_Args>();
  read.serialized_topology = serialize.serialized_bytes;
  read.serialized_topology_size = serialize.serialized_bytes_size;
  EXPECT_OK(Api().TopologyDescription_Deserialize(&read));
  auto first = MakeArgs<PJRT_TopologyDescription_Fingerprint_Args>(), second = first;
  first.topology = topology.topology;
  second.topology = read.topology;
  EXPECT_OK(Api().TopologyDescription_Fingerprint(&first));
  EXPECT_OK(Api().TopologyDescription_Fingerprint(&second));
  EXPECT_EQ(first.fingerprint, second.fingerprint);
  read.serialized_topology_size = 9;
  EXPECT_ERROR(Api().TopologyDescription_Deserialize(&read), kInvalid, "no topology");
  serialize.serialized_topology_deleter(serialize.serialized_topology);
  auto destroy = MakeArgs<PJRT_TopologyDescription_Destroy_Args>();
  destroy.topology = second.topology;
  EXPECT_OK(Api().TopologyDescription_Destroy(&destroy));
}

TEST_F(Pjrt, MemoriesKeepUserData) {
  PJRT_Memory* memory = Memory(1, 0);
  const auto* table = *reinterpret_cast<PJRT_Memory_FunctionTable* const*>(memory);
  static int destroyed;
  destroyed = 0;
  int key = 0, value = 7;
  auto destroy = [](void*) { ++destroyed; };
  EXPECT_EQ(table->get_user_data(memory, &key), nullptr);
  table->set_user_data(memory, &key, &value, destroy);
  EXPECT_EQ(table->get_user_data(memory, &key), &value);
  table->set_user_data(memory, &key, nullptr, nullptr);
  EXPECT_EQ(destroyed, 1);
}

TEST(PjrtClient, CreateOptions) {
  int threads = 0;
  auto create = [&threads](const char* name, const char* value) {
    PJRT_NamedValue option = {kStructSize<PJRT_NamedValue>,
                              nullptr,
                              name,
                              std::strlen(name),
                              PJRT_NamedValue_kString,
                              {},
                              std::strlen(value)};
    option.value.string_value = value;
    auto args = MakeArgs<PJRT_Client_Create_Args>();
    args.create_options = &option;
    args.num_options = 1;
    PJRT_Error* error = Api().Client_Create(&args);
    if (!error) {
      threads = args.client->device_set->pool().num_threads();
      auto destroy = MakeArgs<PJRT_Client_Destroy_Args>();
      destroy.client = args.client;
      EXPECT_OK(Api().Client_Destroy(&destroy));
    }
    return error;
  };
  EXPECT_OK(create("num_devices", "3"));
  EXPECT_EQ(threads, ThreadPool::DefaultSize());
  EXPECT_OK(create("num_threads", "3"));
  EXPECT_EQ(threads, 3);
  EXPECT_OK(create("num_threads", "1"));
  EXPECT_EQ(threads, 1);
  EXPECT_OK(create("guard", "1"));
  EXPECT_ERROR(create("guard", "3"), kInvalid, "from 0 to 2");
  EXPECT_OK(create("device_count", "3"));
  EXPECT_OK(create("preallocate", "whatever"));  // some framework's own
  EXPECT_ERROR(create("num_devices", "-3"), kInvalid, "num_devices");
  EXPECT_ERROR(create("num_devises", "3"), kInvalid, "did you mean");
  EXPECT_ERROR(create("backend", "cpv"), PJRT_Error_Code_NOT_FOUND, "cpu");
  EXPECT_OK(create("num_nodes", "1"));
  EXPECT_ERROR(create("num_nodes", "2"), kInvalid, "a client over 2 processes needs the framework's key-value store");
  EXPECT_ERROR(create("num_nodes", "two"), kInvalid, "num_nodes is not a number");
}

}  // namespace
}  // namespace strop
