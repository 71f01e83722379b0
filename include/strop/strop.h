// Strop as a library: one include. Programs in, results out: strop/capi/function.h; everything else is under strop/,
// room by room.
#pragma once
#include "strop/capi/function.h"  // IWYU pragma: export
