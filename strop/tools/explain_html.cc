// The report as a page: explain.html with the JSON inside.
#include "strop/picture/html.h"
#include "strop/tools/explain_page.h"
#include "strop/tools/explain_report.h"

namespace strop::tools {

std::string ReportHtml(const ExplainReport& report) {
  return picture::PageWithData(kExplainPage, "{{STROP_EXPLAIN_DATA}}", ReportJson(report));
}

}  // namespace strop::tools
