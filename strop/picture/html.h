// Modules as one self-contained HTML page (viewer.html): boxes that open, search, costs, two modules side by side.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "strop/ir/module.h"

namespace strop::picture {

struct TitledModule {
  std::string title;  // "after simplify"
  const Module* module;
};

// `page` with JSON in place of `mark`, which stands in a script: nothing in it closes the script early.
std::string PageWithData(std::string_view page, std::string_view mark, std::string_view json);

// The page reads nothing else, from the network or from disk. At least one module.
std::string ModulesToHtml(std::span<const TitledModule> modules);

}  // namespace strop::picture
