#include "strop/import/import.h"
namespace strop {
Result<std::unique_ptr<Module>> ImportMlir(std::span<const uint8_t>, std::string_view) { return Unimplemented("stub"); }
Result<std::vector<std::unique_ptr<Module>>> ImportMlirText(std::string_view, std::string_view) { return Unimplemented("stub"); }
}
