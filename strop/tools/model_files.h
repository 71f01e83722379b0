// What `strop compile` writes for programs in C and C++: an object for the linker or a shared object, and a header.
#pragma once
#include <string>
#include <string_view>

#include "strop/runtime/executable.h"

namespace strop::tools {

// `out`: NAME.o, or NAME.so or libNAME.so, for which the system's C++ compiler links what the program needs of Strop's
// libraries into it. The header is NAME.h beside it. `features`: of the processor that it is for (Isa::features).
Status WriteModel(const ExecutableSpec& spec, std::string_view features, const std::string& out);

}  // namespace strop::tools
