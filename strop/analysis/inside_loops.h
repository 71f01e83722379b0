// What runs again and again.
#pragma once
#include <set>

#include "strop/ir/module.h"

namespace strop {

// Computations that run in every trip of some loop, the bodies of loops themselves included.
std::set<const Computation*> InsideLoops(const Module& module);

}  // namespace strop
