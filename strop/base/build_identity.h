// Which build of Strop this is: other code, other text. What two builds of one version exchange may not fit.
#pragma once
#include <string_view>

namespace strop {

// The linker's identity of the program or library that this code is in (GNU build id, as hexadecimal digits), which
// follows from its contents; of one that was linked without, the time at which it was written.
std::string_view BuildIdentity();

}  // namespace strop
