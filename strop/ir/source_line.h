#pragma once
#include <string>

namespace strop {

class Instruction;

// "model.py:12", the line of the user's program that an instruction comes from; "" if nobody said. Where the innermost
// line is one of an installed package, the stack of calls, if there is one, tells who called it.
std::string SourceLine(const Instruction& instruction);

}  // namespace strop
