#include "strop/picture/dot.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "strop/ir/printer.h"

namespace strop::picture {
namespace {

std::string NodeName(const Instruction* i) { return StrCat("n", i->id()); }

std::string Quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
  return out + "\"";
}

std::string_view Colour(Op op) {
  switch (KindOf(op)) {
    case OpKind::Source: return "#fff3cd";
    case OpKind::Collective: return "#f8d7da";
    case OpKind::Call: return "#d1c4e9";
    case OpKind::Movement: return "#d4edda";
    case OpKind::Elementwise: return "#ffffff";
    case OpKind::Heavy: return "#cfe2ff";
  }
  return "";
}

void AppendNode(std::string& out, const Instruction* i) {
  std::string label = StrCat(Name(i->op()), "\n%", i->name(), "\n", i->shape().ToString());
  if (i->IsConstant() && i->literal().has_values() && i->shape().IsArray() && i->shape().num_elements() <= 4)
    StrAppend(label, "\n", i->literal().ToString());
  if (!i->metadata().op_name.empty()) StrAppend(label, "\n", i->metadata().op_name);
  StrAppend(out, "    ", NodeName(i), " [label=", Quoted(label), ", fillcolor=\"", Colour(i->op()), "\"",
            i->IsRoot() ? ", penwidth=3" : "", "];\n");
}

void AppendEdges(std::string& out, const Instruction* i) {
  for (int64_t k = 0; k < i->operand_count(); ++k) {
    StrAppend(out, "    ", NodeName(i->operand(k)), " -> ", NodeName(i));
    if (i->operand_count() > 1) StrAppend(out, " [headlabel=\"", k, "\"]");
    out += ";\n";
  }
  for (const Instruction* p : i->control_predecessors())
    StrAppend(out, "    ", NodeName(p), " -> ", NodeName(i), " [style=dotted];\n");
}

}  // namespace

OpKind KindOf(Op op) {
  if (op == Op::Parameter || op == Op::Constant || op == Op::Iota) return OpKind::Source;
  if (Is(op, kCollective | kAsync | kSideEffect)) return OpKind::Collective;
  if (Is(op, kControlFlow) || op == Op::Fusion || op == Op::CustomCall) return OpKind::Call;
  if (Is(op, kDataMovement)) return OpKind::Movement;
  return IsElementwise(op) ? OpKind::Elementwise : OpKind::Heavy;
}

std::string ModuleToDot(const Module& module) {
  std::string out = StrCat("digraph ", Quoted(module.name()),
                           " {\n  compound=true;\n  node [shape=box, style=\"rounded,filled\", fontname=\"Helvetica\", "
                           "fontsize=10];\n  edge [fontsize=8];\n");
  std::string calls;
  for (const Computation* c : module.PostOrder()) {
    StrAppend(out, "  subgraph cluster_", c->id(),
              " {\n    label=", Quoted(StrCat(c->IsEntry() ? "ENTRY " : "", "%", c->name())),
              ";\n    style=rounded;\n");
    for (const Instruction* i : c->instructions()) {
      AppendNode(out, i);
      AppendEdges(out, i);
      for (const Computation* callee : i->called())
        if (callee && callee->root())
          StrAppend(calls, "  ", NodeName(callee->root()), " -> ", NodeName(i), " [style=dashed, ltail=cluster_",
                    callee->id(), "];\n");
    }
    out += "  }\n";
  }
  return StrCat(out, calls, "}\n");
}

Result<std::string> DotToSvg(const std::string& dot) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) return FailedPrecondition("no folder for temporary files: ", error.message());
  std::string path = (folder / "strop_viz_XXXXXX").string();
  const int file = ::mkstemp(path.data());
  if (file < 0) return FailedPrecondition("cannot write in ", folder.string());
  std::FILE* out = ::fdopen(file, "wb");
  bool ok = std::fwrite(dot.data(), 1, dot.size(), out) == dot.size();
  ok &= std::fclose(out) == 0;
  std::string svg;
  int status = -1;
  if (std::FILE* pipe = ok ? ::popen(StrCat("dot -Tsvg ", path, " 2>/dev/null").c_str(), "r") : nullptr) {
    char block[1 << 16];
    while (size_t n = std::fread(block, 1, sizeof block, pipe)) svg.append(block, n);
    status = ::pclose(pipe);
  }
  std::filesystem::remove(path, error);
  if (status != 0 || svg.empty())
    return FailedPrecondition(
        "SVG needs Graphviz (the program `dot`, Debian package graphviz); --to=dot needs nothing");
  return svg;
}

}  // namespace strop::picture
