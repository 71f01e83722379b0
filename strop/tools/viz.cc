// strop viz: programs as pictures. A page (.html) opens computations in place, searches, and shows two modules side by
// side: several files, or one program before and after passes.
#include <algorithm>

#include "strop/driver/load.h"
#include "strop/driver/pipeline.h"
#include "strop/picture/dot.h"
#include "strop/picture/html.h"
#include "strop/tools/command.h"

namespace strop::tools {
namespace {

constexpr int64_t kMostFiles = 8;

struct Shown {
  std::string title;
  std::unique_ptr<Module> module;
};

// Runs the pipeline over a copy; what each pass that changed it leaves is another module to show.
Status AppendPasses(PassPipeline pipeline, std::vector<Shown>& shown) {
  std::unique_ptr<Module> module = shown.back().module->Clone();
  pipeline.set_observer([&](std::string_view, std::string_view pass, const Module& m, bool changed) {
    if (changed) shown.push_back({StrCat(shown.size(), " after ", pass), m.Clone()});
  });
  PassContext context;
  return pipeline.Run(*module, context).status();
}

std::string Ending(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == path.npos ? "" : std::string(path.substr(dot + 1));
}

}  // namespace

Status RunViz(Arguments& arguments) {
  STROP_ASSIGN(std::string out, arguments.TakeValue("-o"));
  STROP_ASSIGN(std::string passes, arguments.TakeValue("--passes"));
  const bool compile = arguments.TakeFlag("--compile");
  const std::string format = out.empty() ? "svg" : Ending(out);
  if (format != "svg" && format != "dot" && format != "html")
    return InvalidArgument("-o takes an .html, .svg or .dot file, not ", out);
  if (format != "html" && (compile || !passes.empty()))
    return InvalidArgument("--passes and --compile show several modules, which only a page can: -o OUT.html");
  STROP_ASSIGN(std::vector<std::string> files, arguments.Files(1, format == "html" ? kMostFiles : 1));
  if (files.size() > 1 && (compile || !passes.empty())) return InvalidArgument("--passes and --compile take one file");
  std::vector<Shown> shown;
  for (const std::string& file : files) {
    STROP_ASSIGN(std::unique_ptr<Module> module, LoadFile(file));
    shown.push_back({files.size() > 1 ? file : StrCat(module->name(), " as read"), std::move(module)});
  }
  if (format == "dot") return WriteFile(out, picture::ModuleToDot(*shown[0].module));
  if (format == "svg") {
    STROP_ASSIGN(std::string svg, picture::DotToSvg(picture::ModuleToDot(*shown[0].module)));
    return WriteFile(out, svg);
  }
  if (!passes.empty()) {
    STROP_ASSIGN(PassPipeline pipeline, PassPipeline::FromNames("viz", passes));
    STROP_TRY(AppendPasses(std::move(pipeline), shown));
  } else if (compile) {
    STROP_ASSIGN(const Backend* backend, FindBackend(arguments.options().backend));
    STROP_ASSIGN(const CompileSettings settings, SettingsFrom(arguments.options()));
    STROP_TRY(AppendPasses(CompilePipeline(*backend, settings), shown));
  }
  std::vector<picture::TitledModule> titled;
  for (const Shown& s : shown) titled.push_back({s.title, s.module.get()});
  return WriteFile(out, picture::ModulesToHtml(titled));
}

}  // namespace strop::tools
