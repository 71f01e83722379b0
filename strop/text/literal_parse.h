// Reads the constants of HLO text at the cursor: the inverse of Literal::AppendText.
#pragma once
#include "strop/base/cursor.h"
#include "strop/types/literal.h"

namespace strop {

// "{ { 1, 2 }, { 3, 4 } }", "(1, -2)" for complex, "( 1, {2, 3} )" for a tuple.
// Memory is taken only for as many elements as the text can hold.
Result<Literal> ParseLiteral(Cursor& at, const Shape& shape);

// Values for `{...}`, where a text left out those of a large constant. As in XLA (a fresh process of it), 32-bit words
// that count up from `next_word` through the module: arbitrary, but never all the same. Beyond kMaxElidedBytes there
// are none (Literal::WithoutValues).
Literal ElidedLiteral(const Shape& shape, uint32_t& next_word);
inline constexpr int64_t kMaxElidedBytes = int64_t{1} << 27;
// Consumes `{...}` if it is next.
bool ConsumeElided(Cursor& at);

// "s32[2]{0} {1, 2}" or a tuple of such.
Result<Literal> ParseTypedLiteral(Cursor& at);

}  // namespace strop
