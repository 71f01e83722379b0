#include "strop/driver/xla_dump.h"

#include <regex.h>

#include <atomic>
#include <cstdio>
#include <filesystem>

#include "strop/driver/dump.h"
#include "strop/ir/printer.h"
#include "strop/picture/dot.h"
#include "strop/picture/html.h"
#include "strop/proto/module_proto.h"

namespace strop {
namespace {

// POSIX extended, found anywhere in the text.
class Pattern {
 public:
  explicit Pattern(const std::string& pattern)
      : error_(regcomp(&compiled_, pattern.c_str(), REG_EXTENDED | REG_NOSUB)) {}
  ~Pattern() {
    if (error_ == 0) regfree(&compiled_);
  }
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;

  Status Check(std::string_view option, const std::string& pattern) const {
    if (error_ == 0) return OkStatus();
    char why[100];
    regerror(error_, &compiled_, why, sizeof why);
    return InvalidArgument(option, ": '", CEscape(pattern), "' is no regular expression: ", why);
  }
  bool Finds(const std::string& text) const {
    return error_ == 0 && regexec(&compiled_, text.c_str(), 0, nullptr, 0) == 0;
  }

 private:
  regex_t compiled_;
  const int error_;
};

// "module_0001.", counted over the process.
std::string NextNumber() {
  static std::atomic<int> number{0};
  char text[32];
  std::snprintf(text, sizeof text, "module_%04d.", number++);
  return text;
}

// What a browser opens: everything but letters, digits and a few marks is written as %XX.
std::string FileUrl(const std::string& path) {
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  std::string url = "file://";
  for (char c : error ? path : whole.string()) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       std::string_view("/._-~").find(c) != std::string_view::npos;
    char escaped[4];
    std::snprintf(escaped, sizeof escaped, "%%%02X", static_cast<unsigned char>(c));
    url += plain ? std::string(1, c) : escaped;
  }
  return url;
}

}  // namespace

Result<XlaDump> XlaDump::Create(const XlaDumpOptions& options, const Module& module) {
  XlaDump dump;
  if (options.to.empty()) return dump;
  const Pattern modules(options.module_re), passes(options.pass_re);
  STROP_TRY(modules.Check("xla_dump_hlo_module_re", options.module_re));
  STROP_TRY(passes.Check("xla_dump_hlo_pass_re", options.pass_re));
  if (!modules.Finds(module.name())) return dump;
  dump.on_ = true;
  dump.options_ = options;
  const bool other_form = options.as_proto || options.as_dot || options.as_html || options.as_url;
  dump.options_.as_text |= !other_form;
  dump.options_.as_html |= options.as_url;
  dump.prefix_ = StrCat(options.to, "/", NextNumber(), DumpFileName(module.name()), ".");
  return dump;
}

bool XlaDump::WantsPass(const std::string& pass) const { return Pattern(options_.pass_re).Finds(pass); }

Result<std::vector<XlaDump::File>> XlaDump::Print(const Module& module, const std::string& title) const {
  std::vector<File> files;
  PrintOptions style;
  style.large_constants = options_.large_constants;
  if (options_.as_text) files.push_back({".txt", PrintModule(module, style)});
  if (options_.as_proto) {
    STROP_ASSIGN(std::string bytes, SerializeHloProto(module));
    files.push_back({".hlo.pb", std::move(bytes)});
  }
  if (options_.as_dot) files.push_back({".dot", picture::ModuleToDot(module)});
  if (options_.as_html) {
    const picture::TitledModule titled = {title, &module};
    files.push_back({".html", picture::ModulesToHtml({&titled, 1})});
  }
  return files;
}

Status XlaDump::Write(const std::string& middle, const std::vector<File>& files) const {
  for (const File& file : files) {
    const std::string path = StrCat(prefix_, middle, file.ending);
    STROP_TRY(WriteDumpFile(path, file.bytes, "xla_dump_to"));
    if (!options_.as_url || file.ending != ".html") continue;
    const std::string url = StrCat(FileUrl(path), "\n");
    std::fprintf(stderr, "%s --> %s", middle.c_str(), url.c_str());
    STROP_TRY(WriteDumpFile(StrCat(prefix_, middle, ".url"), url, "xla_dump_to"));
  }
  return OkStatus();
}

Status XlaDump::BeforeOptimizations(const Module& module) {
  if (!on_) return OkStatus();
  STROP_ASSIGN(last_, Print(module, "before optimizations"));
  last_pass_ = "pipeline-start";
  return Write("before_optimizations", last_);
}

Result<std::shared_ptr<const Snapshots>> XlaDump::MakeSnapshots(const Module& module, std::string_view platform) const {
  if (!on_ || !options_.snapshots) return std::shared_ptr<const Snapshots>();
  STROP_ASSIGN(std::string bytes, SerializeHloProto(module));
  return std::shared_ptr<const Snapshots>(
      std::make_shared<Snapshots>(prefix_, std::move(bytes), std::string(platform)));
}

Status Snapshots::Write(std::span<const Literal> arguments, const Literal& result) const {
  STROP_ASSIGN(const std::string bytes, SerializeSnapshot(hlo_proto_, arguments, result, platform_));
  char name[48];
  std::snprintf(name, sizeof name, "execution_%04d.hlo_snapshot.pb", executions_++);
  return WriteDumpFile(prefix_ + name, bytes, "xla_dump_to");
}

Status XlaDump::AfterPass(std::string_view pipeline, std::string_view pass, const Module& module) {
  if (!on_ || options_.pass_re.empty()) return OkStatus();
  const std::string name(pass);
  if (WantsPass(last_pass_) || WantsPass(name)) {
    char step[16];
    std::snprintf(step, sizeof step, "%04d", step_++);
    STROP_TRY(Write(
        StrCat(step, ".", DumpFileName(pipeline), ".after_", DumpFileName(last_pass_), ".before_", DumpFileName(name)),
        last_));
  }
  STROP_ASSIGN(last_, Print(module, StrCat("after ", name)));
  last_pass_ = name;
  last_pipeline_ = pipeline;
  return OkStatus();
}

Status XlaDump::AfterOptimizations(const Module& module, std::string_view backend) {
  if (!on_) return OkStatus();
  STROP_TRY(AfterPass(last_pipeline_, "pipeline-end", module));
  STROP_ASSIGN(last_, Print(module, StrCat(backend, " after optimizations")));
  return Write(StrCat(backend, "_after_optimizations"), last_);
}

Status XlaDump::Text(const std::string& middle, const std::function<std::string()>& text) {
  if (!on_) return OkStatus();
  return Write(middle, {{".txt", text()}});
}

}  // namespace strop
