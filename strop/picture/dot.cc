#include "strop/picture/dot.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "strop/ir/attr_text.h"
#include "strop/ir/printer.h"

namespace strop::picture {
namespace {

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

// A fusion in a fusion in a fusion is a picture of its own; and one computation that many fusions call is drawn as
// often as that, within bounds.
constexpr int kMostNested = 4;
constexpr int64_t kMostNodes = 20000;

std::string Label(const Instruction* i) {
  std::string label(Name(i->op()));
  if (i->op() == Op::CustomCall) StrAppend(label, " ", i->attrs<CustomCallAttrs>().target);
  if (i->op() == Op::Fusion) StrAppend(label, " ", AttrText(i->attrs<FusionAttrs>().kind));
  StrAppend(label, "\n%", i->name(), "\n", i->shape().ToStringWithLayout());
  if (i->IsConstant() && i->literal().has_values() && i->shape().IsArray() && i->shape().num_elements() <= 4)
    StrAppend(label, "\n", i->literal().ToString());
  if (i->sharding()) StrAppend(label, "\nsharding ", i->sharding()->ToString());
  if (!i->metadata().op_name.empty()) StrAppend(label, "\n", i->metadata().op_name);
  return label;
}

// The whole picture. A place is a computation as it is drawn: on its own, or inside a fusion that is inside others;
// `path` names it ("f12_"), so that what is drawn twice has two names.
class Drawing {
 public:
  explicit Drawing(const Module& module) : module_(module) {}

  std::string Draw() {
    std::vector<const Computation*> on_their_own;
    std::set<const Computation*> in_fusions;
    for (const Computation* c : module_.computations())
      for (const Instruction* i : c->instructions())
        if (i->op() == Op::Fusion) in_fusions.insert(i->called(0));
    for (const Computation* c : module_.PostOrder())
      if (!in_fusions.count(c)) on_their_own.push_back(c);
    for (size_t n = 0; n < on_their_own.size(); ++n) {
      const Computation* c = on_their_own[n];
      StrAppend(out_, "  subgraph cluster_", c->id(),
                " {\n    label=", Quoted(StrCat(c->IsEntry() ? "ENTRY " : "", "%", c->name())),
                ";\n    style=rounded;\n");
      Append(*c, "", 0);
      out_ += "  }\n";
      for (const Computation* closed : closed_)
        if (std::find(on_their_own.begin(), on_their_own.end(), closed) == on_their_own.end())
          on_their_own.push_back(closed);
      closed_.clear();
    }
    return out_ + calls_;
  }

 private:
  bool IsOpen(const Instruction* i, int depth) const {
    return i->op() == Op::Fusion && depth < kMostNested && nodes_ < kMostNodes && i->called(0)->root();
  }

  // What edges from `i` begin at: of an open fusion its result.
  std::string Node(const Instruction* i, std::string path) const {
    for (; opened_.count(StrCat(path, i->id())); i = i->called(0)->root()) StrAppend(path, i->id(), "_");
    return StrCat("n", path, i->id());
  }

  void Append(const Computation& c, const std::string& path, int depth) {
    for (const Instruction* i : c.instructions()) {
      ++nodes_;
      if (IsOpen(i, depth))
        AppendOpen(*i, path, depth);
      else
        AppendClosed(*i, path);
      for (const Instruction* p : i->control_predecessors())
        StrAppend(out_, "    ", Node(p, path), " -> ", Node(i, path), " [style=dotted];\n");
    }
  }

  void AppendOpen(const Instruction& i, const std::string& path, int depth) {
    const std::string inside = StrCat(path, i.id(), "_");
    opened_.insert(StrCat(path, i.id()));
    StrAppend(out_, "    subgraph cluster_n", inside, " {\n    label=", Quoted(Label(&i)),
              ";\n    style=\"rounded,filled\"; fillcolor=\"", Colour(Op::Fusion), "80\"; fontsize=10;\n");
    Append(*i.called(0), inside, depth + 1);
    out_ += "    }\n";
    for (int64_t k = 0; k < std::min(i.operand_count(), i.called(0)->parameter_count()); ++k)
      StrAppend(out_, "    ", Node(i.operand(k), path), " -> ", Node(i.called(0)->parameter(k), inside), ";\n");
  }

  void AppendClosed(const Instruction& i, const std::string& path) {
    const std::string node = StrCat("n", path, i.id());
    StrAppend(out_, "    ", node, " [label=", Quoted(Label(&i)), ", fillcolor=\"", Colour(i.op()), "\"",
              i.IsRoot() ? ", penwidth=3" : "", "];\n");
    for (int64_t k = 0; k < i.operand_count(); ++k) {
      StrAppend(out_, "    ", Node(i.operand(k), path), " -> ", node);
      if (i.operand_count() > 1) StrAppend(out_, " [headlabel=\"", k, "\"]");
      out_ += ";\n";
    }
    if (i.op() == Op::Fusion) closed_.push_back(i.called(0));
    for (const Computation* callee : i.called())
      if (callee && callee->root())
        StrAppend(calls_, "  n", callee->root()->id(), " -> ", node, " [style=dashed, ltail=cluster_", callee->id(),
                  "];\n");
  }

  const Module& module_;
  std::string out_, calls_;
  int64_t nodes_ = 0;
  std::set<std::string> opened_;            // paths of fusions that are boxes
  std::vector<const Computation*> closed_;  // of fusions that are not
};

}  // namespace

OpKind KindOf(Op op) {
  if (op == Op::Parameter || op == Op::Constant || op == Op::Iota) return OpKind::Source;
  if (Is(op, kCollective | kAsync | kSideEffect)) return OpKind::Collective;
  if (Is(op, kControlFlow) || op == Op::Fusion || op == Op::CustomCall) return OpKind::Call;
  if (Is(op, kDataMovement)) return OpKind::Movement;
  return IsElementwise(op) ? OpKind::Elementwise : OpKind::Heavy;
}

std::string ModuleToDot(const Module& module) {
  return StrCat("digraph ", Quoted(module.name()),
                " {\n  compound=true; fontname=\"Helvetica\";\n  node [shape=box, style=\"rounded,filled\", "
                "fontname=\"Helvetica\", "
                "fontsize=10];\n  edge [fontsize=8];\n",
                Drawing(module).Draw(), "}\n");
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
