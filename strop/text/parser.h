// HLO text -> Module. Reads both of XLA's styles and any mixture of them: names with or without %, computations with or
// without a signature, operands with or without shapes, comments, nested instructions as operands, inline computations.
//
// As in XLA: a text without `HloModule` may hold computations, or one instruction (missing operands become parameters);
// without ENTRY the last computation is the entry, without ROOT the last instruction the root.
// The module is not verified (see ir/verifier.h). Errors are InvalidArgument with line and column, and what was
// expected.
#pragma once
#include <memory>
#include <string_view>

#include "strop/ir/module.h"

namespace strop {

// `file_name` names the text in errors.
Result<std::unique_ptr<Module>> ParseHloModule(std::string_view text, std::string_view file_name = "");

// The violation that VerifyModule found in the module of this text, at the line of the instruction that it names.
Status LocateInText(const Status& violation, std::string_view text, std::string_view file_name = "");

}  // namespace strop
