// Flags of XLA by name: which there are and what values they take (xla_flags.def). Users pass them as compile options
// of one jit, or to the whole process in XLA_FLAGS; a misspelt one is refused with the nearest that exists.
#pragma once
#include <optional>
#include <string_view>

#include "strop/base/status.h"

namespace strop {

// NotFound with "did you mean" if there is no such flag ("xla_dump_to"); InvalidArgument if the value is not of its
// kind. A Bool without a value ("--xla_hlo_profile") has the value "true".
Status CheckXlaFlag(std::string_view name, std::string_view value);
// true, True, 1 and their opposites; nothing for other words.
std::optional<bool> ParseXlaBool(std::string_view text);

}  // namespace strop
