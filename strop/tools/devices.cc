// strop devices: what can run programs here.
#include <cstdio>

#include "strop/tools/command.h"

namespace strop::tools {

Status RunDevices(Arguments& arguments) {
  STROP_ASSIGN(std::vector<std::string> none, arguments.Files(0, 0));
  for (const Backend* backend : Backends()) {
    std::printf("%s\n", backend->Describe().c_str());
    std::printf("  memory: %s\n", Join(backend->MemorySpaces(), ", ").c_str());
  }
  return OkStatus();
}

}  // namespace strop::tools
