// The PJRT C API 0.112 as one include: the function table behind GetPjrtApi. A header of our own, exact to the byte
// (layout.cc); its parts lie in c_api/ by object.
#pragma once
#include "strop/pjrt/c_api/base.h"
#include "strop/pjrt/c_api/buffer.h"
#include "strop/pjrt/c_api/client.h"
#include "strop/pjrt/c_api/device.h"
#include "strop/pjrt/c_api/executable.h"

struct PJRT_Api {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Api_Version pjrt_api_version;
#define SLOT(index, name) PJRT_Error* (*name)(PJRT_##name##_Args * args);
#define VOID_SLOT(index, name) void (*name)(PJRT_##name##_Args * args);
#include "strop/pjrt/c_api/slots.def"
#undef SLOT
#undef VOID_SLOT
};
inline constexpr size_t kNumSlots = 138;
static_assert(sizeof(PJRT_Api) == 40 + 8 * kNumSlots);
#define SLOT(index, name) static_assert(offsetof(PJRT_Api, name) == 40 + 8 * (index));
#define VOID_SLOT SLOT
#include "strop/pjrt/c_api/slots.def"
#undef SLOT
#undef VOID_SLOT

extern "C" const PJRT_Api* GetPjrtApi();
