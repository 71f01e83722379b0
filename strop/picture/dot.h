// A module as a graph for people: Graphviz's language, and SVG where Graphviz is installed.
#pragma once
#include <string>

#include "strop/ir/module.h"

namespace strop::picture {

// One cluster a computation, callees first; a fusion is a box with its instructions in it. Data edges are solid,
// control edges dotted, calls dashed.
std::string ModuleToDot(const Module& module);
// What is drawn alike.
enum class OpKind { Source, Collective, Call, Movement, Elementwise, Heavy };
OpKind KindOf(Op op);
// Runs `dot -Tsvg`; FailedPrecondition if it cannot be run.
Result<std::string> DotToSvg(const std::string& dot);

}  // namespace strop::picture
