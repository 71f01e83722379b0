#include "strop/driver/xla_dump.h"

#include <regex.h>

#include <atomic>
#include <cstdio>

#include "strop/driver/dump.h"
#include "strop/ir/printer.h"
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
  dump.options_.as_text |= !options.as_proto;
  dump.prefix_ = StrCat(options.to, "/", NextNumber(), DumpFileName(module.name()), ".");
  return dump;
}

bool XlaDump::WantsPass(const std::string& pass) const { return Pattern(options_.pass_re).Finds(pass); }

Result<std::vector<XlaDump::File>> XlaDump::Print(const Module& module) const {
  std::vector<File> files;
  if (options_.as_text) files.push_back({".txt", PrintModule(module)});
  if (options_.as_proto) {
    STROP_ASSIGN(std::string bytes, SerializeHloProto(module));
    files.push_back({".hlo.pb", std::move(bytes)});
  }
  return files;
}

Status XlaDump::Write(const std::string& middle, const std::vector<File>& files) const {
  for (const File& file : files)
    STROP_TRY(WriteDumpFile(StrCat(prefix_, middle, file.ending), file.bytes, "xla_dump_to"));
  return OkStatus();
}

Status XlaDump::BeforeOptimizations(const Module& module) {
  if (!on_) return OkStatus();
  STROP_ASSIGN(last_, Print(module));
  last_pass_ = "pipeline-start";
  return Write("before_optimizations", last_);
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
  STROP_ASSIGN(last_, Print(module));
  last_pass_ = name;
  last_pipeline_ = pipeline;
  return OkStatus();
}

Status XlaDump::AfterOptimizations(const Module& module, std::string_view backend) {
  if (!on_) return OkStatus();
  STROP_TRY(AfterPass(last_pipeline_, "pipeline-end", module));
  STROP_ASSIGN(last_, Print(module));
  return Write(StrCat(backend, "_after_optimizations"), last_);
}

Status XlaDump::Text(const std::string& middle, const std::function<std::string()>& text) {
  if (!on_) return OkStatus();
  return Write(middle, {{".txt", text()}});
}

}  // namespace strop
