// The functions that compiled code may call by name: libm, mem*, and Strop's own kernels in C++. A closed table: what
// is not in it does not link, whatever the process may export.
#pragma once
#include <string_view>

namespace strop::cpu {

// Address of the function, or null.
void* FindSymbol(std::string_view name);

}  // namespace strop::cpu
