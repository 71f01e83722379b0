// Typed access to the text of a backend_config, JSON or not, without a copy of it:
//   {"triton_gemm_config":{"block_m":"64"}}       ConfigValue(c, "triton_gemm_config.block_m") == "64"
//   {scale=[0.00391965],storage_type=si8}         ConfigValue(c, "scale") == "[0.00391965]"
#pragma once
#include <optional>
#include <string>
#include <string_view>

namespace strop {

// The value at a path of keys separated by dots: the contents of a string, the text of anything else ("64", "[1,2]",
// "{...}"). Nullopt if the text is no object or has no such value. Keys are quoted or not, followed by ':' or '='.
std::optional<std::string> ConfigValue(std::string_view config, std::string_view path);

}  // namespace strop
