// The extensions that the plugin offers, as one chain.
#pragma once
#include "strop/pjrt/c_api/extensions.h"

namespace strop::pjrt {

PJRT_Extension_Base* Extensions();  // the head; never null

// Each links itself before `next`.
PJRT_Extension_Base* LayoutsExtension(PJRT_Extension_Base* next);
PJRT_Extension_Base* ShardingsExtension(PJRT_Extension_Base* next);
PJRT_Extension_Base* CrossHostTransfersExtension(PJRT_Extension_Base* next);
PJRT_Extension_Base* FfiExtension(PJRT_Extension_Base* next);
PJRT_Extension_Base* MemoryDescriptionsExtension(PJRT_Extension_Base* next);
PJRT_Extension_Base* CustomPartitionerExtension(PJRT_Extension_Base* next);

}  // namespace strop::pjrt
