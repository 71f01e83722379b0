// A TensorFlow of a few functions: which releases are taken, what is refused and how, and that nothing changes after a
// refusal.
#include "strop/tensorflow/connect.h"

#include <gtest/gtest.h>

#include <cstring>

#include "strop/pjrt/named_values.h"

namespace strop::tensorflow {
namespace {

// What the functions below were told, and what they shall answer.
struct Fake {
  const char* version = "2.21.0";
  uintptr_t wrap_status = TfStatus::kOk, set_status = TfStatus::kOk;
  bool plugin_fails = false;
  char flags[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 1};
  const PJRT_Api* api = nullptr;
  std::string type;
  void* client = nullptr;
  std::vector<std::string> options;
};
Fake* fake = nullptr;

int the_client = 0;

const char* Version() { return fake->version; }
ClientOrStatus WrapClient(const PJRT_Api* api, const EmptyMap& options, EmptyPointer* store) {
  EXPECT_EQ(options.words[0] + options.words[1], 0u);
  EXPECT_EQ(store->words[0], nullptr);
  fake->api = api;
  if (fake->wrap_status != TfStatus::kOk) return {TfStatus(fake->wrap_status), ClientPointer()};
  return {TfStatus(), ClientPointer(&the_client)};
}
TfStatus SetClient(const DeviceType& type, ClientPointer* client) {
  fake->type = type.name;
  fake->client = std::exchange(client->client, nullptr);
  return TfStatus(fake->set_status);
}
char* OpsFlags() { return fake->flags; }
std::string StatusText(uintptr_t rep, int) { return StrCat("status ", rep); }

struct PjrtError {};
PjrtError pjrt_error;

PJRT_Error* Initialize(PJRT_Plugin_Initialize_Args*) {
  return fake->plugin_fails ? reinterpret_cast<PJRT_Error*>(&pjrt_error) : nullptr;
}
void Message(PJRT_Error_Message_Args* args) {
  args->message = "no such processor";
  args->message_size = std::strlen(args->message);
}
void Destroy(PJRT_Error_Destroy_Args*) {}
PJRT_Error* CreateClient(PJRT_Client_Create_Args* args) {
  for (size_t i = 0; i < args->num_options; ++i) {
    const PJRT_NamedValue& v = args->create_options[i];
    fake->options.push_back(std::string(v.name, v.name_size));
  }
  return nullptr;
}

Result<const PJRT_Api*> OpenFake() {
  static PJRT_Api api = {};
  api.struct_size = sizeof(PJRT_Api);
  api.Plugin_Initialize = Initialize;
  api.Error_Message = Message;
  api.Error_Destroy = Destroy;
  api.Client_Create = CreateClient;
  return &api;
}

class ConnectTest : public testing::Test {
 protected:
  ConnectTest() { fake = &state_; }
  ~ConnectTest() override { fake = nullptr; }

  // Every symbol that is asked for, but for `missing`.
  static Lookup Symbols(const std::string& missing = "") {
    return [missing](const char* name) -> void* {
      const std::string_view symbol = name;
      if (!missing.empty() && symbol.find(missing) != std::string_view::npos) return nullptr;
      const std::pair<const char*, void*> kFunctions[] = {
          {"TF_Version", reinterpret_cast<void*>(Version)},
          {"WrapClientAroundCApi", reinterpret_cast<void*>(WrapClient)},
          {"SetPjRtClientInTFGlobalResourceManager", reinterpret_cast<void*>(SetClient)},
          {"GetXlaOpsCommonFlags", reinterpret_cast<void*>(OpsFlags)},
          {"ToStringSlow", reinterpret_cast<void*>(StatusText)},
      };
      for (const auto& [part, function] : kFunctions)
        if (symbol.find(part) != std::string_view::npos) return function;
      return nullptr;
    };
  }
  Framework Known() {
    Result<Framework> framework = Recognize(Symbols());
    EXPECT_TRUE(framework.ok());
    return *framework;
  }
  // The switch that lets programs come to the client.
  bool IsOn() const { return state_.flags[8 + offsetof(UseDeviceApi, everywhere)] != 0; }

  Fake state_;
};

TEST_F(ConnectTest, AnotherReleaseIsRefused) {
  state_.version = "2.99.0-rc1";
  const Result<Framework> framework = Recognize(Symbols());
  ASSERT_FALSE(framework.ok());
  EXPECT_EQ(framework.status().message(), "TensorFlow 2.99.0-rc1 is installed, and Strop knows " + KnownReleases());
}

TEST_F(ConnectTest, ABuildWithoutASymbolIsRefused) {
  for (const char* symbol : {"TF_Version", "WrapClient", "SetPjRtClient", "GetXlaOpsCommonFlags", "ToString"}) {
    const Result<Framework> framework = Recognize(Symbols(symbol));
    ASSERT_FALSE(framework.ok()) << symbol;
    EXPECT_NE(framework.status().message().find("this build of TensorFlow has no symbol "), std::string::npos);
    EXPECT_NE(framework.status().message().find(symbol), std::string::npos);
  }
}

TEST_F(ConnectTest, GivesTheClientToTheCpu) {
  const Status status = Connect(Known(), OpenFake);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(state_.type, "CPU");
  EXPECT_EQ(state_.client, &the_client);
  EXPECT_TRUE(IsOn());
}

TEST_F(ConnectTest, ClientsAreSynchronous) {
  ASSERT_TRUE(Connect(Known(), OpenFake).ok());
  PJRT_Client_Create_Args args = {};
  args.struct_size = sizeof(args);
  EXPECT_EQ(state_.api->Client_Create(&args), nullptr);
  EXPECT_EQ(state_.options, std::vector<std::string>{"synchronous"});
}

TEST_F(ConnectTest, AfterARefusalNothingHasChanged) {
  const Framework framework = Known();
  auto refused = [&](std::string_view message, const OpenPlugin& open = OpenFake) {
    const Status status = Connect(framework, open);
    EXPECT_FALSE(status.ok());
    EXPECT_NE(status.message().find(message), std::string::npos) << status.ToString();
    EXPECT_FALSE(IsOn());
  };
  refused("no file", [] { return Result<const PJRT_Api*>(NotFound("no file")); });
  state_.plugin_fails = true;
  refused("no such processor");
  state_.plugin_fails = false;
  state_.wrap_status = 9;
  refused("TensorFlow could not make a client: status 9");
  state_.wrap_status = TfStatus::kOk;
  state_.set_status = 13;
  refused("TensorFlow did not take the client: status 13");
  state_.set_status = TfStatus::kOk;
  state_.flags[8] = 42;
  refused("TensorFlow's XLA flags are not laid out as in release 2.21.0");
}

}  // namespace
}  // namespace strop::tensorflow
