// Reads the constants of HLO text at the cursor: the inverse of Literal::AppendText.
#pragma once
#include "strop/base/cursor.h"
#include "strop/types/literal.h"

namespace strop {

// "{ { 1, 2 }, { 3, 4 } }", "(1, -2)" for complex, "( 1, {2, 3} )" for a tuple; `{...}` gives zeros.
// Memory is taken only for as many elements as the text can hold (elided constants: up to kMaxElidedBytes).
Result<Literal> ParseLiteral(Cursor& at, const Shape& shape);
inline constexpr int64_t kMaxElidedBytes = int64_t{1} << 30;

// "s32[2]{0} {1, 2}" or a tuple of such.
Result<Literal> ParseTypedLiteral(Cursor& at);

}  // namespace strop
