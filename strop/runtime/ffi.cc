// The handler's side of the XLA FFI C API. An execution context is a small object on the stack of the call; what
// outlives the call (instance state, types) is in FfiCall and in the process-wide type table.
#include "strop/runtime/ffi.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>

#include "strop/runtime/executable.h"
#include "strop/runtime/ffi_api.h"
#include "strop/runtime/ffi_attributes.h"
#include "strop/runtime/launch_queue.h"
#include "strop/runtime/sub_byte.h"

// jaxlib's own handlers do not always ask for an error's code and message: they take its first word for an absl::Status
// and delete the object. So the first word is one. Most are of the kind without a message: the code, shifted by two,
// and the bit that says so. A word without that bit points to what StatusWithText lays out as abseil does (x86-64 and
// ARM, libstdc++); such texts live for ever, and so many references are counted that nobody ends them.
struct StatusWithText {
  std::atomic<int32_t> references = 1 << 30;
  strop::StatusCode code;
  std::string message;
  void* payloads = nullptr;
  void* later_fields[4] = {};
};
static_assert(sizeof(strop::StatusCode) == 4 && sizeof(void*) == 8, "not laid out as absl::Status");

struct XLA_FFI_Error {
  XLA_FFI_Error(strop::StatusCode error_code, std::string text)
      : status_word(static_cast<uintptr_t>(error_code) << 2 | 1), code(error_code), message(std::move(text)) {}
  explicit XLA_FFI_Error(const StatusWithText& lasting)
      : status_word(reinterpret_cast<uintptr_t>(&lasting)), code(lasting.code), message(lasting.message) {}
  uintptr_t status_word;
  strop::StatusCode code;
  std::string message;
};

struct XLA_FFI_Future {
  strop::EventRef event;
};

struct XLA_FFI_ExecutionContext {
  // State that handlers keep per call site, one value a stage.
  struct State {
    int64_t type_id = 0;
    void* value = nullptr;
  };
  const strop::RunArgs* run = nullptr;  // null while instantiating
  State* states = nullptr;              // [4], by XLA_FFI_ExecutionStage
};

namespace strop {
namespace {

XLA_FFI_Error* MakeError(const Status& status) {
  return status.ok() ? nullptr : new XLA_FFI_Error(status.code(), std::string(status.message()));
}

// ---- types: names and ids of the process

struct TypeTable {
  struct Type {
    int64_t id;
    void (*deleter)(void* object);
  };
  std::mutex mutex;
  std::map<std::string, Type> types;
  int64_t next_id = 1;
};
TypeTable& Types() {
  static TypeTable* const kTypes = new TypeTable;
  return *kTypes;
}

void (*DeleterOf(int64_t type_id))(void*) {
  std::lock_guard<std::mutex> lock(Types().mutex);
  for (const auto& [name, type] : Types().types)
    if (type.id == type_id) return type.deleter;
  return nullptr;
}

// ---- the functions behind frame->api

XLA_FFI_Error* ErrorCreate(XLA_FFI_Error_Create_Args* args) {
  return new XLA_FFI_Error(static_cast<StatusCode>(args->errc), args->message ? args->message : "");
}
void ErrorGetMessage(XLA_FFI_Error_GetMessage_Args* args) {
  args->message = args->error ? args->error->message.c_str() : "";
}
void ErrorDestroy(XLA_FFI_Error_Destroy_Args* args) { delete args->error; }

XLA_FFI_Error* HandlerRegister(XLA_FFI_Handler_Register_Args*) {
  return MakeError(Unimplemented("handlers are registered through the framework, not through the call frame's API"));
}

// JAX shows this one to Python through the first word; users and its tests know the sentence.
XLA_FFI_Error* StreamGet(XLA_FFI_Stream_Get_Args*) {
  static const StatusWithText* const kNoStream = new StatusWithText{
      .code = StatusCode::kUnimplemented, .message = "XLA FFI GPU context is not available: a CPU has no stream"};
  return new XLA_FFI_Error(*kNoStream);
}

XLA_FFI_Error* TypeRegister(XLA_FFI_Type_Register_Args* args) {
  Result<int64_t> id = RegisterFfiType(std::string(args->name.ptr, args->name.len), args->type_id->type_id,
                                       args->type_info ? args->type_info->deleter : nullptr);
  if (!id.ok()) return MakeError(id.status());
  args->type_id->type_id = *id;
  return nullptr;
}

XLA_FFI_Error* ContextGet(XLA_FFI_ExecutionContext_Get_Args* args) {
  const auto* context = args->ctx->run ? static_cast<const FfiContext*>(args->ctx->run->ffi_context) : nullptr;
  args->data = context ? context->Find(args->type_id->type_id) : nullptr;
  if (args->data) return nullptr;
  return MakeError(NotFound("the execution context has no user data of type id ", args->type_id->type_id));
}

XLA_FFI_Error* StateSet(XLA_FFI_State_Set_Args* args) {
  if (args->stage < 0 || args->stage > XLA_FFI_ExecutionStage_EXECUTE)
    return MakeError(InvalidArgument("unknown stage"));
  XLA_FFI_ExecutionContext::State& state = args->ctx->states[args->stage];
  if (state.value) return MakeError(Status(StatusCode::kAlreadyExists, "the handler's state is set already"));
  state = {args->type_id->type_id, args->state};
  return nullptr;
}
XLA_FFI_Error* StateGet(XLA_FFI_State_Get_Args* args) {
  if (args->stage < 0 || args->stage > XLA_FFI_ExecutionStage_EXECUTE)
    return MakeError(InvalidArgument("unknown stage"));
  const XLA_FFI_ExecutionContext::State& state = args->ctx->states[args->stage];
  if (state.value && state.type_id != args->type_id->type_id)
    return MakeError(
        InvalidArgument("the handler's state has type id ", state.type_id, ", asked for ", args->type_id->type_id));
  args->state = state.value;  // null if there is none: handlers without that stage ask as well
  return nullptr;
}

XLA_FFI_Error* MemoryAllocate(XLA_FFI_DeviceMemory_Allocate_Args* args) {
  const size_t alignment = std::max<size_t>(args->alignment, kBufferAlignment);
  if ((alignment & (alignment - 1)) != 0)
    return MakeError(InvalidArgument("alignment ", alignment, " is no power of two"));
  const size_t size = (std::max<size_t>(args->size, 1) + alignment - 1) / alignment * alignment;
  args->data = size < args->size ? nullptr : std::aligned_alloc(alignment, size);
  return args->data ? nullptr : MakeError(ResourceExhausted("no memory for ", args->size, " bytes of a custom call"));
}
XLA_FFI_Error* MemoryFree(XLA_FFI_DeviceMemory_Free_Args* args) {
  std::free(args->data);
  return nullptr;
}

XLA_FFI_Error* PoolSchedule(XLA_FFI_ThreadPool_Schedule_Args* args) {
  ThreadPool* pool = args->ctx->run ? args->ctx->run->pool : nullptr;
  if (pool) {
    pool->Schedule([task = args->task, data = args->data] { task(data); });
  } else {
    args->task(args->data);
  }
  return nullptr;
}
XLA_FFI_Error* PoolNumThreads(XLA_FFI_ThreadPool_NumThreads_Args* args) {
  ThreadPool* pool = args->ctx->run ? args->ctx->run->pool : nullptr;
  *args->num_threads = pool ? pool->num_threads() : 1;
  return nullptr;
}

XLA_FFI_Error* FutureCreate(XLA_FFI_Future_Create_Args* args) {
  args->future = new XLA_FFI_Future{Make<Event>()};
  return nullptr;
}
XLA_FFI_Error* FutureSetAvailable(XLA_FFI_Future_SetAvailable_Args* args) {
  EventRef event = args->future->event;  // the waiting side deletes the future
  event->Set(OkStatus());
  return nullptr;
}
XLA_FFI_Error* FutureSetError(XLA_FFI_Future_SetError_Args* args) {
  EventRef event = args->future->event;
  std::unique_ptr<XLA_FFI_Error> error(args->error);
  event->Set(error ? Status(error->code, error->message) : Internal("a custom call failed without saying why"));
  return nullptr;
}

XLA_FFI_Error* RunIdGet(XLA_FFI_RunId_Get_Args* args) {
  args->run_id = args->ctx->run ? args->ctx->run->run_id : 0;
  return nullptr;
}
XLA_FFI_Error* DeviceOrdinalGet(XLA_FFI_DeviceOrdinal_Get_Args* args) {
  args->device_ordinal = args->ctx->run && args->ctx->run->device ? args->ctx->run->device->ordinal() : 0;
  return nullptr;
}

constexpr XLA_FFI_Api kApi = {
    .struct_size = kFfiStructSize<XLA_FFI_Api>,
    .extension_start = nullptr,
    .api_version = {kFfiStructSize<XLA_FFI_Api_Version>, nullptr, STROP_FFI_API_MAJOR, STROP_FFI_API_MINOR},
    .internal_api = nullptr,
    .Error_Create = ErrorCreate,
    .Error_GetMessage = ErrorGetMessage,
    .Error_Destroy = ErrorDestroy,
    .Handler_Register = HandlerRegister,
    .Stream_Get = StreamGet,
    .Type_Register = TypeRegister,
    .ExecutionContext_Get = ContextGet,
    .State_Set = StateSet,
    .State_Get = StateGet,
    .DeviceMemory_Allocate = MemoryAllocate,
    .DeviceMemory_Free = MemoryFree,
    .ThreadPool_Schedule = PoolSchedule,
    .ThreadPool_NumThreads = PoolNumThreads,
    .Future_Create = FutureCreate,
    .Future_SetAvailable = FutureSetAvailable,
    .Future_SetError = FutureSetError,
    .RunId_Get = RunIdGet,
    .DeviceOrdinal_Get = DeviceOrdinalGet,
};

// ---- one call site

// Copies of what a handler expects packed; everything else is handed over as it is. A result in the memory of an
// operand stays in its copy.
class Packed {
 public:
  Packed(const CustomCallSite& site, const CustomCallFrame& call) : site_(site), call_(call) {}

  void* Operand(size_t i, void* data) {
    const Shape& shape = site_.operands[i];
    if (!IsSubByte(shape.type())) return data;
    Copy& copy = Make(shape, data);
    PackSubByte(shape.type(), shape.num_elements(), data, copy.packed.get());
    return copy.packed.get();
  }
  void* Output(size_t i, void* data) {
    const Shape& shape = site_.results[i];
    if (!IsSubByte(shape.type())) return data;
    for (Copy& copy : copies_)
      if (copy.data == data) return copy.packed.get();
    return Make(shape, data).packed.get();
  }
  void Unpack() {
    if (copies_.empty()) return;
    for (size_t i = 0; i < call_.results.size(); ++i)
      for (const Copy& copy : copies_)
        if (copy.data == call_.results[i])
          UnpackSubByte(site_.results[i].type(), site_.results[i].num_elements(), copy.packed.get(), copy.data);
  }

 private:
  struct Copy {
    void* data;
    std::unique_ptr<uint8_t[]> packed;
  };
  Copy& Make(const Shape& shape, void* data) {
    // As large as the unpacked form: some handlers write that much.
    copies_.push_back({data, std::make_unique<uint8_t[]>(static_cast<size_t>(shape.num_elements()) + 1)});
    return copies_.back();
  }

  const CustomCallSite& site_;
  const CustomCallFrame& call_;
  std::vector<Copy> copies_;
};

class FfiCall final : public CustomCall {
 public:
  FfiCall(CustomCallSite site, FfiHandlerBundle handlers, std::unique_ptr<FfiAttributes> attributes)
      : site_(std::move(site)), handlers_(handlers), attributes_(std::move(attributes)) {}

  ~FfiCall() override {
    for (XLA_FFI_ExecutionContext::State& state : states_) {
      if (!state.value) continue;
      if (auto* deleter = DeleterOf(state.type_id)) deleter(state.value);
    }
  }

  // Asks the handler which API it was built with, and lets it prepare this call site.
  Status Bind() {
    XLA_FFI_Metadata metadata = {};
    metadata.struct_size = kFfiStructSize<XLA_FFI_Metadata>;
    metadata.api_version.struct_size = kFfiStructSize<XLA_FFI_Api_Version>;
    XLA_FFI_Metadata_Extension extension = {
        {kFfiStructSize<XLA_FFI_Metadata_Extension>, XLA_FFI_Extension_Metadata, nullptr}, &metadata};
    XLA_FFI_CallFrame frame = Frame(XLA_FFI_ExecutionStage_EXECUTE, nullptr);
    frame.extension_start = &extension.extension_base;
    STROP_TRY(Call(handlers_.execute, frame));
    if (metadata.api_version.major_version != STROP_FFI_API_MAJOR)
      return InvalidArgument("custom call target ", site_.target, " was built for FFI API ",
                             metadata.api_version.major_version, ".", metadata.api_version.minor_version, ", this is ",
                             STROP_FFI_API_MAJOR, ".", STROP_FFI_API_MINOR);
    if (!handlers_.instantiate) return OkStatus();
    XLA_FFI_ExecutionContext context{nullptr, states_};
    XLA_FFI_CallFrame instantiate = Frame(XLA_FFI_ExecutionStage_INSTANTIATE, &context);
    return Call(handlers_.instantiate, instantiate);
  }

  Status Run(const CustomCallFrame& call) override {
    XLA_FFI_ExecutionContext::State states[4];
    states[XLA_FFI_ExecutionStage_INSTANTIATE] = states_[XLA_FFI_ExecutionStage_INSTANTIATE];
    XLA_FFI_ExecutionContext context{&call.run, states};
    std::vector<XLA_FFI_Buffer> buffers;
    std::vector<void*> pointers;
    buffers.reserve(call.operands.size() + call.results.size());
    Packed packed(site_, call);
    for (size_t i = 0; i < call.operands.size(); ++i)
      buffers.push_back(BufferOf(site_.operands[i], packed.Operand(i, call.operands[i])));
    for (size_t i = 0; i < call.results.size(); ++i)
      buffers.push_back(BufferOf(site_.results[i], packed.Output(i, call.results[i])));
    for (XLA_FFI_Buffer& buffer : buffers) pointers.push_back(&buffer);
    std::vector<XLA_FFI_ArgType> arg_types(call.operands.size(), XLA_FFI_ArgType_BUFFER);
    std::vector<XLA_FFI_RetType> ret_types(call.results.size(), XLA_FFI_RetType_BUFFER);
    const struct {
      void* handler;
      XLA_FFI_ExecutionStage stage;
    } stages[] = {{handlers_.prepare, XLA_FFI_ExecutionStage_PREPARE},
                  {handlers_.initialize, XLA_FFI_ExecutionStage_INITIALIZE},
                  {handlers_.execute, XLA_FFI_ExecutionStage_EXECUTE}};
    Status status;
    for (const auto& stage : stages) {
      if (!stage.handler || !status.ok()) continue;
      XLA_FFI_CallFrame frame = Frame(stage.stage, &context);
      frame.args.size = static_cast<int64_t>(arg_types.size());
      frame.args.types = arg_types.data();
      frame.args.args = pointers.data();
      frame.rets.size = static_cast<int64_t>(ret_types.size());
      frame.rets.types = ret_types.data();
      frame.rets.rets = pointers.data() + arg_types.size();
      status = Call(stage.handler, frame);
    }
    for (int stage = XLA_FFI_ExecutionStage_PREPARE; stage <= XLA_FFI_ExecutionStage_EXECUTE; ++stage) {
      if (!states[stage].value) continue;
      if (auto* deleter = DeleterOf(states[stage].type_id)) deleter(states[stage].value);
    }
    if (status.ok()) packed.Unpack();
    return status;
  }

 private:
  static XLA_FFI_Buffer BufferOf(const Shape& shape, void* data) {
    // Handlers do not write dimensions, but the interface has no const.
    return {kFfiStructSize<XLA_FFI_Buffer>,
            nullptr,
            static_cast<XLA_FFI_DataType>(shape.type()),
            data,
            shape.rank(),
            const_cast<int64_t*>(shape.dims().data())};
  }

  XLA_FFI_CallFrame Frame(XLA_FFI_ExecutionStage stage, XLA_FFI_ExecutionContext* context) const {
    XLA_FFI_CallFrame frame = {};
    frame.struct_size = kFfiStructSize<XLA_FFI_CallFrame>;
    frame.api = &kApi;
    frame.ctx = context;
    frame.stage = stage;
    frame.args.struct_size = kFfiStructSize<XLA_FFI_Args>;
    frame.rets.struct_size = kFfiStructSize<XLA_FFI_Rets>;
    frame.attrs = attributes_->attrs();
    return frame;
  }

  // A handler may finish later, through a future; the device goes on with other launches meanwhile.
  Status Call(void* handler, XLA_FFI_CallFrame& frame) const {
    std::unique_ptr<XLA_FFI_Error> error;
    {
      LaunchQueue::BlockingScope may_block;  // host callbacks re-enter the runtime
      error.reset(reinterpret_cast<XLA_FFI_Handler*>(handler)(&frame));
    }
    std::unique_ptr<XLA_FFI_Future> future(frame.future);
    if (error) return Status(error->code == StatusCode::kOk ? StatusCode::kUnknown : error->code, error->message);
    return future ? future->event->Await() : OkStatus();
  }

  const CustomCallSite site_;
  const FfiHandlerBundle handlers_;
  const std::unique_ptr<FfiAttributes> attributes_;
  XLA_FFI_ExecutionContext::State states_[4];  // set while binding, constant after
};

}  // namespace

Status FfiContext::Add(int64_t type_id, void* data) {
  if (std::ranges::any_of(data_, [&](const UserData& other) { return other.type_id == type_id; }))
    return Status(StatusCode::kAlreadyExists,
                  StrCat("the execution context has user data of type id ", type_id, " already"));
  data_.push_back({type_id, data});
  return OkStatus();
}

void* FfiContext::Find(int64_t type_id) const {
  for (const UserData& user : data_)
    if (user.type_id == type_id) return user.data;
  return nullptr;
}

Result<int64_t> RegisterFfiType(const std::string& name, int64_t type_id, void (*deleter)(void* object)) {
  TypeTable& table = Types();
  std::lock_guard<std::mutex> lock(table.mutex);
  auto known = table.types.find(name);
  if (known != table.types.end()) {
    if (type_id != 0 && known->second.id != type_id)
      return InvalidArgument("FFI type ", name, " has the id ", known->second.id, ", not ", type_id);
    return known->second.id;
  }
  for (const auto& [other, type] : table.types)
    if (type_id != 0 && type.id == type_id) return InvalidArgument("FFI type id ", type_id, " is ", other, "'s");
  if (type_id == 0) {
    auto taken = [&](int64_t id) {
      for (const auto& [other, type] : table.types)
        if (type.id == id) return true;
      return false;
    };
    while (taken(table.next_id)) ++table.next_id;
    type_id = table.next_id++;
  }
  table.types[name] = {type_id, deleter};
  return type_id;
}

Result<std::shared_ptr<CustomCall>> BindFfi(const CustomCallRegistry& registry, CustomCallSite site) {
  STROP_ASSIGN(CustomCallRegistry::Target target, registry.Find(site.target, CustomCallApi::kTypedFfi));
  if (!target.ffi.execute) return Internal("custom call target ", site.target, " has no execute handler");
  Result<std::unique_ptr<FfiAttributes>> attributes = FfiAttributes::Parse(site.opaque);
  if (!attributes.ok())
    return std::move(attributes).status().Note(StrCat("in the attributes of custom call ", site.target));
  auto call = std::make_shared<FfiCall>(std::move(site), target.ffi, *std::move(attributes));
  STROP_TRY(call->Bind());
  return std::shared_ptr<CustomCall>(std::move(call));
}

}  // namespace strop
