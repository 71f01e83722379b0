// The chain of extensions, and the small one.
#include "strop/pjrt/extensions.h"
#include "strop/pjrt/objects.h"
#include "strop/pjrt/slots.h"

struct PJRT_MemoryDescription {
  strop::MemoryKind kind;
};

namespace strop::pjrt {
namespace {

constexpr PJRT_MemoryDescription kMemories[kNumMemoryKinds] = {
    {MemoryKind::kDevice}, {MemoryKind::kPinnedHost}, {MemoryKind::kUnpinnedHost}};
constexpr const PJRT_MemoryDescription* kMemoryList[kNumMemoryKinds] = {&kMemories[0], &kMemories[1], &kMemories[2]};

Status MemoryDescriptions(PJRT_DeviceDescription_MemoryDescriptions_Args& args) {
  args.memory_descriptions = kMemoryList;
  args.num_memory_descriptions = kNumMemoryKinds;
  args.default_memory_index = 0;
  return OkStatus();
}

Status MemoryKindOf(PJRT_MemoryDescription_Kind_Args& args) {
  const std::string_view name = Name(args.memory_description->kind);
  args.kind = name.data();
  args.kind_size = name.size();
  args.kind_id = static_cast<int>(args.memory_description->kind);
  return OkStatus();
}

}  // namespace

PJRT_Extension_Base* MemoryDescriptionsExtension(PJRT_Extension_Base* next) {
  static PJRT_MemoryDescriptions_Extension extension = {
      {sizeof(PJRT_MemoryDescriptions_Extension), PJRT_Extension_Type_MemoryDescriptions, nullptr},
      &Entry<PJRT_DeviceDescription_MemoryDescriptions_Args, &MemoryDescriptions,
             "PJRT_DeviceDescription_MemoryDescriptions">,
      &Entry<PJRT_MemoryDescription_Kind_Args, &MemoryKindOf, "PJRT_MemoryDescription_Kind">};
  extension.base.next = next;
  return &extension.base;
}

PJRT_Extension_Base* Extensions() {
  PJRT_Extension_Base* chain = nullptr;
  chain = CustomPartitionerExtension(chain);
  chain = MemoryDescriptionsExtension(chain);
  chain = FfiExtension(chain);
  chain = ShardingsExtension(chain);
  chain = CrossHostTransfersExtension(chain);
  return LayoutsExtension(chain);
}

}  // namespace strop::pjrt
