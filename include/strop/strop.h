// Strop as a library: one include. Programs in, results out: strop/capi/program.h; everything else is under strop/, room by room.
#pragma once
#include "strop/capi/program.h"  // IWYU pragma: export
