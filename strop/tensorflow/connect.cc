#include "strop/tensorflow/connect.h"

#include <algorithm>
#include <cstring>

#include "strop/pjrt/named_values.h"

namespace strop::tensorflow {
namespace {

std::string Text(const Framework& framework, const TfStatus& status) { return framework.status_text(status.rep, 0); }

Status InitializePlugin(const PJRT_Api& api) {
  PJRT_Plugin_Initialize_Args args{};
  args.struct_size = sizeof(args);
  PJRT_Error* error = api.Plugin_Initialize(&args);
  if (!error) return OkStatus();
  PJRT_Error_Message_Args message{};
  message.struct_size = sizeof(message);
  message.error = error;
  api.Error_Message(&message);
  Status status = FailedPrecondition(std::string_view(message.message, message.message_size));
  PJRT_Error_Destroy_Args destroy{};
  destroy.struct_size = sizeof(destroy);
  destroy.error = error;
  api.Error_Destroy(&destroy);
  return status;
}

// The plugin's table; the first call says which.
const PJRT_Api& Plugin(const PJRT_Api* first = nullptr) {
  static const PJRT_Api& plugin = *first;
  return plugin;
}

// TensorFlow takes results and lets go of arguments without waiting, since its own operations on a CPU have ended when
// they return.
PJRT_Error* CreateSynchronousClient(PJRT_Client_Create_Args* args) {
  pjrt::NamedValues added;
  added.Add("synchronous", std::string("true"));
  std::vector<PJRT_NamedValue> options(args->create_options, args->create_options + args->num_options);
  options.insert(options.end(), added.data(), added.data() + added.size());
  PJRT_Client_Create_Args with = *args;
  with.create_options = options.data();
  with.num_options = options.size();
  PJRT_Error* error = Plugin().Client_Create(&with);
  args->client = with.client;
  return error;
}

// The plugin's table as TensorFlow sees it.
const PJRT_Api* ForTensorFlow(const PJRT_Api* plugin) {
  static const PJRT_Api* const kTable = [plugin] {
    auto* table = new PJRT_Api();
    std::memcpy(table, &Plugin(plugin), std::min(plugin->struct_size, sizeof(PJRT_Api)));
    table->Client_Create = CreateSynchronousClient;
    return table;
  }();
  return kTable;
}

// Were the offset wrong, what lies there would hardly look like five bools.
Result<UseDeviceApi*> Switches(const Framework& framework) {
  char* flags = framework.ops_flags();
  if (!flags) return FailedPrecondition("TensorFlow has no XLA flags");
  char* switches = flags + framework.use_device_api;
  for (size_t i = 0; i < sizeof(UseDeviceApi); ++i) {
    const unsigned char value = switches[i];
    if (value > 1)
      return FailedPrecondition("TensorFlow's XLA flags are not laid out as in release ", framework.version);
  }
  return reinterpret_cast<UseDeviceApi*>(switches);
}

}  // namespace

Status Connect(const Framework& framework, const OpenPlugin& open) {
  STROP_ASSIGN(UseDeviceApi * use, Switches(framework));
  STROP_ASSIGN(const PJRT_Api* api, open());
  STROP_TRY(InitializePlugin(*api));
  const EmptyMap no_options;
  EmptyPointer no_store;
  ClientOrStatus made = framework.wrap_client(ForTensorFlow(api), no_options, &no_store);
  if (!made.status.ok())
    return FailedPrecondition("TensorFlow could not make a client: ", Text(framework, made.status));
  const TfStatus set = framework.set_client(DeviceType{"CPU"}, &made.client);
  if (!set.ok()) return FailedPrecondition("TensorFlow did not take the client: ", Text(framework, set));
  use->everywhere = true;
  use->for_gpu = false;  // a GPU, which has no client of ours, stays with XLA's
  return OkStatus();
}

}  // namespace strop::tensorflow
