#include "strop/tools/report_diff.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

namespace strop::tools {
namespace {

using Json = nlohmann::json;

constexpr int kVersion = 1;           // of reports that are understood (explain_json.cc)
constexpr double kNoticeable = 0.05;  // times that differ by less are the same

// ---- reading --------------------------------------------------------------------------------------------------------

double Number(const Json& object, std::string_view key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_number() ? at->get<double>() : 0;
}
std::string Text(const Json& object, std::string_view key) {
  const auto at = object.find(key);
  return at != object.end() && at->is_string() ? at->get<std::string>() : "";
}
const Json& List(const Json& object, std::string_view key) {
  static const Json* const kNone = new Json(Json::array());
  const auto at = object.find(key);
  return at != object.end() && at->is_array() ? *at : *kNone;
}

// Kernels that do the same.
struct Group {
  std::string name, op, shape, family, tiles, where;
  std::string ops;
  double kernels = 0, bytes = 0, flops = 0, seconds = 0;  // all together

  // How it is done.
  bool SameAs(const Group& o) const {
    return kernels == o.kernels && bytes == o.bytes && flops == o.flops && family == o.family && tiles == o.tiles;
  }
};

struct Report {
  std::map<std::string, double> totals;
  std::map<std::string, Group> groups;
  bool measured = false;
};

std::string KeyOf(const Json& kernel) {
  std::string key = StrCat(Text(kernel, "program"), '|', Text(kernel, "kind"), '|', Text(kernel, "op"), '|',
                           Text(kernel, "shape"), '|');
  for (const Json& op : List(kernel, "ops"))
    if (op.is_string()) StrAppend(key, op.get<std::string>(), ',');
  for (const Json& operand : List(kernel, "operands")) {  // "f32[8,16] %p0"
    const std::string text = operand.is_string() ? operand.get<std::string>() : "";
    StrAppend(key, '|', text.substr(0, text.find(' ')));
  }
  return key;
}

void AddKernel(const Json& kernel, Report& report) {
  Group& g = report.groups[KeyOf(kernel)];
  if (g.kernels == 0) {
    g.name = Text(kernel, "name");
    g.op = Text(kernel, "op");
    g.shape = Text(kernel, "shape");
    g.family = Text(kernel, "family");
    if (g.family.empty()) g.family = Text(kernel, "kind");
    g.tiles = Text(kernel, "tiles");
    g.where = Text(kernel, "source");
    if (g.where.empty()) g.where = Text(kernel, "op_name");
    for (const Json& op : List(kernel, "ops"))
      if (op.is_string()) StrAppend(g.ops, g.ops.empty() ? "" : ", ", op.get<std::string>());
  }
  const double calls = std::max(Number(kernel, "calls"), 1.0);
  g.kernels += 1;
  g.bytes += Number(kernel, "bytes");
  g.flops += Number(kernel, "flops");
  g.seconds += report.measured ? Number(kernel, "measured_seconds") : Number(kernel, "estimated_seconds") * calls;
}

Result<Report> Read(std::string_view contents, const std::string& path) {
  const Json json = Json::parse(contents, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object() || !json.contains("kernels") || !json["kernels"].is_array())
    return InvalidArgument(path, " is no report of `strop explain --json`");
  if (Number(json, "version") != kVersion)
    return InvalidArgument(path, " is a report of version ", Number(json, "version"), "; version ", kVersion,
                           " is understood");
  Report report;
  report.measured = Number(json, "measured_seconds") > 0;
  for (const char* key : {"instructions", "flops", "transcendentals", "bytes", "code_bytes", "regions"})
    report.totals[key] = Number(json, key);
  report.totals["kernels"] = static_cast<double>(json["kernels"].size());
  report.totals["copies"] = static_cast<double>(List(json, "copies").size());
  report.totals["interpreted"] = static_cast<double>(List(json, "interpreted").size());
  if (json.contains("memory") && json["memory"].is_object())
    for (const char* key : {"temporaries", "peak", "constants"}) report.totals[key] = Number(json["memory"], key);
  for (const Json& kernel : json["kernels"])
    if (kernel.is_object()) AddKernel(kernel, report);
  return report;
}

// ---- comparing ------------------------------------------------------------------------------------------------------

struct Pair {
  const Group* was = nullptr;
  const Group* is = nullptr;
  double weight() const { return std::max(was ? was->bytes + was->flops : 0, is ? is->bytes + is->flops : 0); }
  double faster() const { return was->seconds - is->seconds; }
};

struct Comparison {
  std::vector<Pair> gone, fresh, otherwise, times;  // what matters most first
};

Comparison Compare(const Report& was, const Report& is) {
  Comparison c;
  for (const auto& [key, group] : was.groups) {
    const auto at = is.groups.find(key);
    if (at == is.groups.end()) {
      c.gone.push_back({&group, nullptr});
      continue;
    }
    const Pair pair{&group, &at->second};
    if (!group.SameAs(at->second)) c.otherwise.push_back(pair);
    if (was.measured && is.measured &&
        std::abs(pair.faster()) > kNoticeable * std::max(group.seconds, at->second.seconds))
      c.times.push_back(pair);
  }
  for (const auto& [key, group] : is.groups)
    if (!was.groups.contains(key)) c.fresh.push_back({nullptr, &group});
  for (std::vector<Pair>* list : {&c.gone, &c.fresh, &c.otherwise})
    std::stable_sort(list->begin(), list->end(), [](const Pair& a, const Pair& b) { return a.weight() > b.weight(); });
  std::stable_sort(c.times.begin(), c.times.end(),
                   [](const Pair& a, const Pair& b) { return std::abs(a.faster()) > std::abs(b.faster()); });
  return c;
}

// ---- telling --------------------------------------------------------------------------------------------------------

std::string Rounded(double value) {
  char text[40];
  std::snprintf(text, sizeof text, value == std::floor(value) && std::abs(value) < 1e15 ? "%.0f" : "%.4g", value);
  return text;
}

std::string Change(double was, double is) {
  if (was == is) return "";
  if (was == 0) return "new";
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f %%", 100 * (is / was - 1));
  return text;
}

std::string Describe(const Group& g) {
  return StrCat("  ", Rounded(g.kernels), " x %", g.name, " -> ", g.shape, ", ", g.ops.empty() ? g.op : g.ops, " (",
                g.family, ", ", Rounded(g.bytes), " bytes", g.where.empty() ? "" : StrCat(", ", g.where), ")\n");
}

std::string ListText(std::string_view title, const std::vector<Pair>& pairs, size_t most) {
  if (pairs.empty()) return "";
  std::string out = StrCat("\n", title, ": ", pairs.size(), "\n");
  for (size_t n = 0; n < std::min(most, pairs.size()); ++n)
    out += Describe(pairs[n].was ? *pairs[n].was : *pairs[n].is);
  if (pairs.size() > most) StrAppend(out, "  ... and ", pairs.size() - most, " more\n");
  return out;
}

std::string OtherwiseText(const std::vector<Pair>& pairs, size_t most) {
  if (pairs.empty()) return "";
  std::string out = StrCat("\ndone otherwise: ", pairs.size(), "\n");
  for (size_t n = 0; n < std::min(most, pairs.size()); ++n) {
    const Group &a = *pairs[n].was, &b = *pairs[n].is;
    out += Describe(b);
    const auto line = [&](std::string_view what, const std::string& x, const std::string& y) {
      if (x != y) StrAppend(out, "      ", what, " ", x, " -> ", y, "\n");
    };
    line("kernels", Rounded(a.kernels), Rounded(b.kernels));
    line("bytes", Rounded(a.bytes), Rounded(b.bytes));
    line("flops", Rounded(a.flops), Rounded(b.flops));
    line("family", a.family, b.family);
    line("tiles", a.tiles, b.tiles);
  }
  if (pairs.size() > most) StrAppend(out, "  ... and ", pairs.size() - most, " more\n");
  return out;
}

std::string TimesText(const Report& was, const Report& is, const std::vector<Pair>& pairs, size_t most) {
  if (!was.measured || !is.measured) return "\ntimes: not measured in both (strop explain --profile=N --json)\n";
  double before = 0, now = 0;
  for (const auto& [key, group] : was.groups) before += group.seconds;
  for (const auto& [key, group] : is.groups) now += group.seconds;
  std::string out = StrCat("\ntime in kernels: ", Rounded(before * 1e6), " us -> ", Rounded(now * 1e6), " us  ",
                           Change(before, now), "\n");
  for (size_t n = 0; n < std::min(most, pairs.size()); ++n) {
    const Group &a = *pairs[n].was, &b = *pairs[n].is;
    StrAppend(out, "  ", Rounded(a.seconds * 1e6), " us -> ", Rounded(b.seconds * 1e6), " us  ",
              Change(a.seconds, b.seconds), Describe(b));
  }
  if (pairs.size() > most) StrAppend(out, "  ... and ", pairs.size() - most, " more\n");
  return out;
}

Json GroupJson(const Group* g) {
  if (!g) return nullptr;
  return {{"name", g->name},     {"op", g->op},       {"ops", g->ops},        {"shape", g->shape},
          {"family", g->family}, {"tiles", g->tiles}, {"source", g->where},   {"kernels", g->kernels},
          {"bytes", g->bytes},   {"flops", g->flops}, {"seconds", g->seconds}};
}
Json PairsJson(const std::vector<Pair>& pairs) {
  Json out = Json::array();
  for (const Pair& p : pairs) out.push_back({{"was", GroupJson(p.was)}, {"is", GroupJson(p.is)}});
  return out;
}

}  // namespace

bool LooksLikeReport(std::string_view contents) {
  const size_t first = contents.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && contents[first] == '{';
}

Result<ReportDiff> DiffReports(std::string_view was_contents, const std::string& was_path, std::string_view is_contents,
                               const std::string& is_path, size_t most) {
  STROP_ASSIGN(const Report was, Read(was_contents, was_path));
  STROP_ASSIGN(const Report is, Read(is_contents, is_path));
  const Comparison c = Compare(was, is);
  ReportDiff diff;
  Json totals = Json::object();
  diff.text = "in all:\n";
  for (const auto& [key, value] : was.totals) {
    const auto at = is.totals.find(key);
    const double now = at == is.totals.end() ? 0 : at->second;
    totals[key] = {{"was", value}, {"is", now}};
    if (value == now) continue;
    diff.equal &= key == "code_bytes";  // that alone is no other plan
    StrAppend(diff.text, "  ", key, " ", Rounded(value), " -> ", Rounded(now), "  ", Change(value, now), "\n");
  }
  diff.equal &= c.gone.empty() && c.fresh.empty() && c.otherwise.empty();
  if (diff.text == "in all:\n") diff.text = "in all: the same\n";
  StrAppend(diff.text, ListText("kernels that are gone", c.gone, most), ListText("new kernels", c.fresh, most),
            OtherwiseText(c.otherwise, most), TimesText(was, is, c.times, most));
  const Json json = {{"equal", diff.equal},
                     {"totals", totals},
                     {"gone", PairsJson(c.gone)},
                     {"new", PairsJson(c.fresh)},
                     {"otherwise", PairsJson(c.otherwise)},
                     {"times", PairsJson(c.times)}};
  diff.json = json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  return diff;
}

}  // namespace strop::tools
