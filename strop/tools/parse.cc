// strop parse: is this a program, and does its text come out as it went in? Nothing is verified beyond that: see strop
// check.
#include <cstdio>

#include "strop/driver/load.h"
#include "strop/ir/printer.h"
#include "strop/text/parser.h"
#include "strop/tools/command.h"

namespace strop::tools {
namespace {

// Prints, reads and prints again; the two texts must be equal, in each style.
Status CheckFixpoint(const Module& module, const std::string& path) {
  PrintOptions long_style;
  long_style.operand_shapes = true;
  const std::string once = PrintModule(module);
  for (const PrintOptions& style : {PrintOptions(), PrintOptions::Short(), long_style}) {
    Result<std::unique_ptr<Module>> again = ParseHloModule(PrintModule(module, style), path + " (printed)");
    if (!again.ok())
      return Internal("what was printed is not read: ", again.status().message())
          .At(again.status().location())
          .Note("this is a mistake of Strop, not of the program");
    if (PrintModule(**again) != once)
      return Internal("the printed text of ", path, " changes when it is read and printed again");
  }
  return OkStatus();
}

}  // namespace

Status RunParse(Arguments& arguments) {
  const bool verbose = arguments.TakeFlag("--verbose");
  STROP_ASSIGN(std::vector<std::string> files, arguments.Files(1, SIZE_MAX));
  for (const std::string& file : files) {
    STROP_ASSIGN(std::string bytes, ReadFile(file));
    STROP_ASSIGN(std::vector<std::unique_ptr<Module>> modules, LoadPrograms(bytes, file));
    for (const std::unique_ptr<Module>& module : modules) {
      STROP_TRY(CheckFixpoint(*module, file));
      if (verbose)
        std::printf("%s: %s, %zu computations, %lld instructions\n", file.c_str(), module->name().c_str(),
                    module->computations().size(), static_cast<long long>(module->instruction_count()));
    }
  }
  return OkStatus();
}

}  // namespace strop::tools
