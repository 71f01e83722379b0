// Where neighbours in a computed array are not neighbours in what is read:
//
//   multiply(f32[128,51] %x, broadcast(f32[128] %w), dimensions={0})      rows of 51
//   slice(f32[100,64,3] %image), slice={[0:100], [1:63], [0:3]}           rows of 62 * 3
//
// Code that walks across such rows asks for each element, or each vector, in which row it is.
#pragma once
#include "strop/ir/module.h"

namespace strop {

// The elements of the rows that what an element by element computation reads tells apart, the shortest first. It sees
// broadcasts, iotas, transposes, gathers and what cuts or joins arrays, but not through them, nor what is a result.
Int64Vector RowsToldApart(const Instruction& value);

}  // namespace strop
