// What changed between two reports of `strop explain --json`, of two builds or two versions of a program: kernels,
// bytes, memory and, where both were measured, time.
//
// Kernels are named anew by every compilation, so they are paired by what they do: program, op, ops inside, shape and
// the shapes of operands. Those that do the same count together.
#pragma once
#include <string>
#include <string_view>

#include "strop/base/status.h"

namespace strop::tools {

// Could this be a report, rather than a program?
bool LooksLikeReport(std::string_view contents);

struct ReportDiff {
  bool equal = true;  // but for times
  std::string text, json;
};
// `most`: rows of a list in the text. InvalidArgument, with the path, for what is no report.
Result<ReportDiff> DiffReports(std::string_view was, const std::string& was_path, std::string_view is,
                               const std::string& is_path, size_t most);

}  // namespace strop::tools
