// Programs for several devices: random shardings for a module, and a run on all its devices.
#pragma once
#include <memory>
#include <vector>

#include "strop/backend/backend.h"
#include "strop/ir/module.h"

namespace strop::fuzz {

// The module for 2 to 8 partitions: shardings of parameters and of the result, and constraints in between; some do not
// divide what they cut, some list devices in an order of their own. Null: it has ops that say which device they are on.
std::unique_ptr<Module> WithShardings(const Module& module, uint64_t seed);
// The same program for one device.
Result<std::unique_ptr<Module>> OnOneDevice(const Module& sharded);
// Cuts the arguments, runs all partitions, and puts the results together. Internal if copies of a shard differ.
Result<Literal> RunOnDevices(const Module& sharded, const std::vector<Literal>& arguments, const Backend& backend);

}  // namespace strop::fuzz
