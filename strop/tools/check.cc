// strop check: reads and verifies programs. Exit code 0: all are legal; else the first violation is told.
#include "strop/driver/load.h"
#include "strop/import/import.h"
#include "strop/tools/command.h"

namespace strop::tools {

Status RunCheck(Arguments& arguments) {
  STROP_ASSIGN(std::vector<std::string> files, arguments.Files(1, SIZE_MAX));
  for (const std::string& file : files) {
    STROP_ASSIGN(std::string bytes, ReadFile(file));
    if (Trim(bytes).empty()) return InvalidArgument(file, " is empty: expected a program");
    const ProgramFormat format = FormatOf(bytes);
    if (format == ProgramFormat::MlirText || format == ProgramFormat::MlirBytecode) {  // each function, called or not
      STROP_TRY(CheckMlir({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}, file));
      continue;
    }
    STROP_ASSIGN(std::vector<std::unique_ptr<Module>> modules, LoadPrograms(bytes, file));
    for (const std::unique_ptr<Module>& module : modules) {
      Status status = VerifyLoaded(*module, bytes, file);
      if (!status.ok()) return std::move(status).Note(StrCat("in ", file));
    }
  }
  return OkStatus();
}

}  // namespace strop::tools
