// Runs one CollectiveStep: finds this device's group and rank, then calls the transport. Groups of one are copies.
#pragma once
#include <span>

#include "strop/runtime/executable.h"

namespace strop {

Status RunCollective(const CollectiveStep& step, const RunArgs& run, std::span<void* const> args);

}  // namespace strop
