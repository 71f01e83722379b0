// Two compilations, as their dumps tell them: folders of STROP_DUMP or of XLA's xla_dump_to.
//
// The modules in them are paired by name and order. Within a pair, the steps are followed until the first after which
// the modules differ (structurally, see module_diff.h) or of which only one changed anything; then the plans, and the
// code of kernels, are compared as text.
#pragma once
#include <string>

#include "strop/base/status.h"

namespace strop::tools {

struct RunDiff {
  bool equal = true;
  std::string text;  // what differs first, for people; for JSON the same under "text"
};
// NotFound if a folder holds no dump.
Result<RunDiff> DiffRuns(const std::string& was, const std::string& is, int64_t context);

}  // namespace strop::tools
