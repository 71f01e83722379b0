#include "strop/picture/html.h"

#include <nlohmann/json.hpp>

#include "strop/analysis/cost.h"
#include "strop/ir/attr_text.h"
#include "strop/ir/printer.h"
#include "strop/picture/dot.h"
#include "strop/picture/viewer_page.h"

namespace strop::picture {
namespace {

using Json = nlohmann::json;

// Names of the groups in the page (KINDS).
std::string_view NameOf(OpKind kind) {
  switch (kind) {
    case OpKind::Source: return "source";
    case OpKind::Collective: return "collective";
    case OpKind::Call: return "call";
    case OpKind::Movement: return "movement";
    case OpKind::Elementwise: return "elementwise";
    case OpKind::Heavy: return "heavy";
  }
  return "";
}

std::string LayoutText(const Shape& shape) {
  if (!shape.IsArray()) return "";
  const std::string whole = shape.ToStringWithLayout(), plain = shape.ToString();
  return whole.size() > plain.size() ? whole.substr(plain.size()) : "";
}

Json InstructionJson(const Instruction& i) {
  PrintOptions style;
  style.large_constants = false;
  Json out = {{"id", i.id()},
              {"name", i.name()},
              {"op", Name(i.op())},
              {"kind", NameOf(KindOf(i.op()))},
              {"shape", i.shape().ToString()},
              {"layout", LayoutText(i.shape())},
              {"flops", Flops(i)},
              {"bytes", BytesAccessed(i)},
              {"root", i.IsRoot()},
              {"text", PrintInstruction(i, style)},
              {"operands", Json::array()},
              {"calls", Json::array()}};
  for (const Instruction* o : i.operands()) out["operands"].push_back(o->id());
  for (const Computation* c : i.called())
    if (c) out["calls"].push_back(c->id());
  const OpMetadata& metadata = i.metadata();
  out["op_name"] = metadata.op_name;
  out["source"] = metadata.Location();
  if (i.sharding()) out["sharding"] = i.sharding()->ToString();
  if (i.IsConstant() && i.literal().has_values() && i.shape().IsArray() && i.shape().num_elements() <= 4)
    out["value"] = i.literal().ToString();
  if (i.IsParameter()) out["value"] = std::to_string(i.parameter_number());
  if (i.op() == Op::CustomCall) out["value"] = i.attrs<CustomCallAttrs>().target;
  if (i.op() == Op::Fusion) out["value"] = AttrText(i.attrs<FusionAttrs>().kind);
  return out;
}

Json ModuleJson(const TitledModule& titled) {
  Json computations = Json::array();
  for (const Computation* c : titled.module->PostOrder()) {
    Json instructions = Json::array();
    for (const Instruction* i : c->instructions()) instructions.push_back(InstructionJson(*i));
    computations.push_back(
        {{"id", c->id()}, {"name", c->name()}, {"entry", c->IsEntry()}, {"instructions", std::move(instructions)}});
  }
  return {{"title", titled.title}, {"name", titled.module->name()}, {"computations", std::move(computations)}};
}

}  // namespace

std::string PageWithData(std::string_view page, std::string_view mark, std::string_view json) {
  const size_t at = page.find(mark);
  std::string out(page.substr(0, at));
  for (char c : json) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  out += page.substr(at + mark.size());
  return out;
}

std::string ModulesToHtml(std::span<const TitledModule> modules) {
  Json all = Json::array();
  for (const TitledModule& m : modules) all.push_back(ModuleJson(m));
  // Names are the user's bytes: what is not UTF-8 is replaced.
  const std::string data = Json{{"modules", std::move(all)}}.dump(-1, ' ', false, Json::error_handler_t::replace);
  return PageWithData(kViewerPage, "{{STROP_VIEWER_DATA}}", data);
}

}  // namespace strop::picture
