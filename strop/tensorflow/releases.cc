#include "strop/tensorflow/releases.h"

namespace strop::tensorflow {
namespace {

// Names as the compiler mangles them; those with abseil's types carry its version.
struct Release {
  const char* version;
  const char* wrap_client;  // xla::WrapClientAroundCApi
  const char* status_text;  // absl::Status::ToStringSlow
  size_t use_device_api;    // offset in XlaOpsCommonFlags
};

constexpr Release kReleases[] = {
    {"2.21.0",
     "_ZN3xla20WrapClientAroundCApiEPK8PJRT_ApiRKN4absl12lts_2025081413flat_hash_mapINSt7__cxx1112basic_"
     "stringIcSt11char_traitsIcESaIcEEESt7variant"
     "IJSB_blSt6vectorIlSaIlEEfEENS4_18container_internal10StringHashENSH_8StringEqESaISt4pairIKSB_SG_EEEESt10shared_"
     "ptrINS_22KeyValueStore"
     "InterfaceEE",
     "_ZN4absl12lts_202508146Status12ToStringSlowB5cxx11EmNS0_18StatusToStringModeE", 8},
};

// These are the same in every release so far.
constexpr char kSetClient[] =
    "_ZN10tensorflow38SetPjRtClientInTFGlobalResourceManagerERKN3tsl10DeviceTypeESt10unique_"
    "ptrIN3xla10PjRtClientESt14default_deleteIS6_EE";
constexpr char kOpsFlags[] = "_ZN10tensorflow20GetXlaOpsCommonFlagsEv";

template <class Function>
Status Find(const Lookup& lookup, const char* symbol, Function*& function) {
  function = reinterpret_cast<Function*>(lookup(symbol));
  if (function) return OkStatus();
  return FailedPrecondition("this build of TensorFlow has no symbol ", symbol);
}

}  // namespace

std::string KnownReleases() {
  std::string out;
  for (const Release& release : kReleases) out += (out.empty() ? "" : ", ") + std::string(release.version);
  return out;
}

Result<Framework> Recognize(const Lookup& lookup) {
  VersionFunction* version = nullptr;
  STROP_TRY(Find(lookup, "TF_Version", version));
  const std::string found = version();
  for (const Release& release : kReleases) {
    if (found != release.version) continue;
    Framework framework{.version = release.version, .use_device_api = release.use_device_api};
    STROP_TRY(Find(lookup, release.wrap_client, framework.wrap_client));
    STROP_TRY(Find(lookup, release.status_text, framework.status_text));
    STROP_TRY(Find(lookup, kSetClient, framework.set_client));
    STROP_TRY(Find(lookup, kOpsFlags, framework.ops_flags));
    return framework;
  }
  return FailedPrecondition("TensorFlow ", found, " is installed, and Strop knows ", KnownReleases());
}

}  // namespace strop::tensorflow
