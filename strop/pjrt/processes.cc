#include "strop/pjrt/processes.h"

#include <atomic>

#include "strop/pjrt/error.h"
#include "strop/pjrt/objects.h"
#include "strop/pjrt/slots.h"

namespace strop::pjrt {
namespace {

constexpr int64_t kMaxProcesses = 1 << 16;

// How the framework's callbacks make errors that we read.
PJRT_Error* CallbackError(PJRT_Error_Code code, const char* message, size_t size) {
  return MakeError(StatusFrom(code, message, size));
}

Status TakeStatus(PJRT_Error* error) {
  if (!error) return OkStatus();
  Status status = StatusFrom(error->code, error->message.data(), error->message.size());
  DestroyError(error);
  return status;
}

template <class Args>
Args ArgsFor(std::string_view key, PJRT_CallbackError* callback_error, void* user_arg) {
  Args args = {};
  args.struct_size = kStructSize<Args>;
  args.key = key.data();
  args.key_size = key.size();
  args.callback_error = callback_error;
  args.user_arg = user_arg;
  return args;
}

template <class Args>
std::string TakeValue(const Args& args) {
  std::string value(args.value ? args.value : "", args.value ? args.value_size : 0);
  if (args.value && args.value_deleter_callback) args.value_deleter_callback(args.value);
  return value;
}

// The framework's store, by its callbacks.
class CallbackStore : public KeyValueStore {
 public:
  explicit CallbackStore(const PJRT_Client_Create_Args& args)
      : get_(args.kv_get_callback),
        get_arg_(args.kv_get_user_arg),
        put_(args.kv_put_callback),
        put_arg_(args.kv_put_user_arg) {
    if (!STROP_PJRT_HAS(args, kv_try_get_user_arg)) return;
    try_get_ = args.kv_try_get_callback;
    try_get_arg_ = args.kv_try_get_user_arg;
  }

  Status Put(std::string_view key, std::string_view value) override {
    auto args = ArgsFor<PJRT_KeyValuePutCallback_Args>(key, &error_, put_arg_);
    args.value = value.data();
    args.value_size = value.size();
    return TakeStatus(put_(&args));
  }

  Result<std::string> Get(std::string_view key, Milliseconds timeout) override {
    auto args = ArgsFor<PJRT_KeyValueGetCallback_Args>(key, &error_, get_arg_);
    args.timeout_in_ms = static_cast<int>(timeout.count());
    STROP_TRY(TakeStatus(get_(&args)));
    return TakeValue(args);
  }

  Result<std::string> TryGet(std::string_view key) override {
    if (!try_get_) return NotFound("the framework cannot look without waiting");
    auto args = ArgsFor<PJRT_KeyValueTryGetCallback_Args>(key, &error_, try_get_arg_);
    STROP_TRY(TakeStatus(try_get_(&args)));
    return TakeValue(args);
  }

 private:
  PJRT_CallbackError error_ = &CallbackError;
  PJRT_KeyValueGetCallback get_;
  void* get_arg_;
  PJRT_KeyValuePutCallback put_;
  void* put_arg_;
  PJRT_KeyValueTryGetCallback try_get_ = nullptr;
  void* try_get_arg_ = nullptr;
};

Result<int64_t> CreateOption(const PJRT_Client_Create_Args& args, std::string_view name, int64_t fallback) {
  for (size_t i = 0; i < args.num_options; ++i) {
    const PJRT_NamedValue& v = args.create_options[i];
    if (!v.name || std::string_view(v.name, v.name_size) != name) continue;
    if (v.type == PJRT_NamedValue_kInt64) return v.value.int64_value;
    std::optional<int64_t> number;
    if (v.type == PJRT_NamedValue_kString && v.value.string_value)
      number = ParseNumber<int64_t>({v.value.string_value, v.value_size});
    if (!number) return InvalidArgument("create option ", name, " is not a number");
    return *number;
  }
  return fallback;
}

// Everybody writes how many devices it has, and reads it of everybody.
Result<std::vector<int>> ExchangeDevices(KeyValueStore& store, const std::string& prefix, const ProcessPlace& place,
                                         int num_devices) {
  STROP_TRY(store.Put(StrCat(prefix, "/devices/", place.rank), StrCat(num_devices)));
  std::vector<int> out;
  for (int32_t process = 0; process < place.size; ++process) {
    Result<std::string> text = store.Get(StrCat(prefix, "/devices/", process), place.timeout);
    if (!text.ok())
      return std::move(text).status().Note(StrCat("process ", place.rank, " waited for process ", process,
                                                  " to say how many devices it has (option collectives-timeout)"));
    const std::optional<int> count = ParseNumber<int>(*text);
    if (!count || *count < 1)
      return Internal("process ", process, " says that it has \"", CEscape(*text), "\" devices");
    out.push_back(*count);
  }
  return out;
}

}  // namespace

Result<Processes> JoinProcesses(const PJRT_Client_Create_Args& args, const Options& options, int num_devices) {
  STROP_ASSIGN(const int64_t rank, CreateOption(args, "node_id", 0));
  STROP_ASSIGN(const int64_t size, CreateOption(args, "num_nodes", 1));
  Processes out;
  out.devices_of = {num_devices};
  if (size <= 1) return out;
  if (size > kMaxProcesses || rank < 0 || rank >= size)
    return InvalidArgument("create options: node_id ", rank, " of num_nodes ", size);
  if (!args.kv_get_callback || !args.kv_put_callback)
    return InvalidArgument("a client over ", size, " processes needs the framework's key-value store");
  const ProcessPlace place{.rank = static_cast<int32_t>(rank),
                           .size = static_cast<int32_t>(size),
                           .address = options.collectives_address,
                           .timeout = std::chrono::seconds(options.collectives_timeout)};
  // A framework that makes its client anew does so in all processes; keys are written once.
  static std::atomic<int> clients{0};
  const std::string prefix = StrCat("strop/", ++clients);
  auto store = std::make_shared<CallbackStore>(args);
  out.rank = static_cast<int>(rank);
  STROP_ASSIGN(out.devices_of, ExchangeDevices(*store, prefix, place, num_devices));
  std::vector<int32_t> process_of;
  for (int32_t process = 0; process < place.size; ++process)
    process_of.insert(process_of.end(), out.devices_of[process], process);
  STROP_ASSIGN(std::unique_ptr<Transport> transport,
               ConnectProcesses(options.collectives, place, StrCat(prefix, "/", options.collectives), *store));
  out.group =
      std::make_shared<ProcessGroup>(place, std::move(process_of), std::move(transport), std::move(store), prefix);
  return out;
}

}  // namespace strop::pjrt
