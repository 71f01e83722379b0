#include "strop/base/xla_flags.h"

#include <algorithm>
#include <vector>

#include "strop/base/strings.h"

namespace strop {
namespace {

enum class Kind { Bool, Int, Float, Text, Other };
struct Flag {
  std::string_view name;
  Kind kind;
};
constexpr Flag kFlags[] = {
#define XLA_FLAG(name, kind) {#name, Kind::kind},
#include "strop/base/xla_flags.def"
#undef XLA_FLAG
};
// Found by bisection.
static_assert(std::is_sorted(std::begin(kFlags), std::end(kFlags),
                             [](const Flag& a, const Flag& b) { return a.name < b.name; }));

}  // namespace

std::optional<bool> ParseXlaBool(std::string_view text) {
  if (text == "true" || text == "True" || text == "1") return true;
  if (text == "false" || text == "False" || text == "0") return false;
  return std::nullopt;
}

Status CheckXlaFlag(std::string_view name, std::string_view value) {
  const Flag* flag = std::lower_bound(std::begin(kFlags), std::end(kFlags), name,
                                      [](const Flag& a, std::string_view wanted) { return a.name < wanted; });
  if (flag == std::end(kFlags) || flag->name != name) {
    std::vector<std::string_view> names;
    for (const Flag& known : kFlags) names.push_back(known.name);
    const std::string_view near = Nearest(name, names);
    if (near.empty()) return NotFound("XLA has no flag '", CEscape(name), "'");
    return NotFound("XLA has no flag '", CEscape(name), "'; did you mean '", near, "'?");
  }
  if (flag->kind == Kind::Bool && !ParseXlaBool(value))
    return InvalidArgument("'", CEscape(value), "' is not a valid bool value.");
  if (flag->kind == Kind::Int && !ParseNumber<int64_t>(value))
    return InvalidArgument("'", CEscape(value), "' is not a valid number.");
  if (flag->kind == Kind::Float && !ParseNumber<double>(value))
    return InvalidArgument("'", CEscape(value), "' is not a valid number.");
  return OkStatus();
}

}  // namespace strop
