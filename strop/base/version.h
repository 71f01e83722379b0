// Which Strop this is. CMakeLists.txt reads the project's version from here.
#pragma once

namespace strop {

inline constexpr char kVersion[] = "0.1.0";

}  // namespace strop
