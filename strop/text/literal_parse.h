// Reads the constants of HLO text at the cursor: the inverse of Literal::AppendText.
#pragma once
#include "strop/base/cursor.h"
#include "strop/types/literal.h"

namespace strop {

// Values that are not in the text. A module gets a bounded number of bytes of them: a few characters must not take any
// amount of memory.
struct MadeUpValues {
  int64_t bytes_left = int64_t{1} << 28;
  uint32_t next_word = 0;
};

// "{ { 1, 2 }, { 3, 4 } }", "(1, -2)" for complex, "( 1, {2, 3} )" for a tuple.
// Memory is taken only for as many elements as the text can hold, but for `f32[40] constant(15)`: as in XLA, the first
// element is set and the others are zero.
Result<Literal> ParseLiteral(Cursor& at, const Shape& shape, MadeUpValues& made_up);

// Values for `{...}`, where a dump left out those of a large constant. As in XLA (a fresh process of it), 32-bit words
// that count up through the module: arbitrary, but not all the same. Literal::WithoutValues when there are too many.
Literal ElidedLiteral(const Shape& shape, MadeUpValues& made_up);
// Consumes `{...}` if it is next.
bool ConsumeElided(Cursor& at);

// "s32[2]{0} {1, 2}" or a tuple of such.
Result<Literal> ParseTypedLiteral(Cursor& at);

}  // namespace strop
