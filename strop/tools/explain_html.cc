// The report as a page: explain.html with the JSON inside.
#include "strop/tools/explain_page.h"
#include "strop/tools/explain_report.h"

namespace strop::tools {

std::string ReportHtml(const ExplainReport& report) {
  constexpr std::string_view kMark = "{{STROP_EXPLAIN_DATA}}";
  const std::string_view page = kExplainPage;
  const size_t at = page.find(kMark);
  std::string out(page.substr(0, at));
  for (char c : ReportJson(report)) {  // nothing closes the script early
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  out += page.substr(at + kMark.size());
  return out;
}

}  // namespace strop::tools
