// What the reducer does to a module (reducer.h): edits of the graph and of the text. They may leave a module that is
// not legal; the search throws those away.
#pragma once
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "strop/ir/module.h"

namespace strop::tools {

// How large a module is; each edit that stays makes it smaller, so that there is an end.
using ModuleSize = std::tuple<int64_t, int64_t, int64_t, int64_t>;
ModuleSize SizeOf(const Module& module);

// Removes what nothing needs, and what speaks of the entry's old signature.
void CleanUp(Module& module);

// One kind of edit, at the places begin <= k < end of count(module). False: none of them took it.
struct Edit {
  int64_t (*count)(const Module& module);
  bool (*apply)(Module& module, int64_t begin, int64_t end);
  bool several;  // makes sense at many places at once: halves are tried before single places
};
std::span<const Edit> Edits();

// The entry's value becomes that of its k-th instruction; or that of all the arrays among its first k.
bool MakeRoot(Module& module, int64_t k);
bool MakePrefixRoot(Module& module, int64_t k);

// The module written anew in every way that its shapes suggest: a smaller size in place of another, plainer element
// types.
std::vector<std::string> Rewritings(const Module& module);

}  // namespace strop::tools
