// strop explain: compiles a program and says what stands between it and the hardware.
#include <cstdio>

#include "strop/tools/checks.h"
#include "strop/tools/command.h"

namespace strop::tools {
namespace {

void PrintList(const char* title, const std::vector<std::string>& lines) {
  std::printf("%s: %zu\n", title, lines.size());
  for (const std::string& line : lines) std::printf("  %s\n", line.c_str());
}

}  // namespace

Status RunExplain(Arguments& arguments) {
  const bool plan = arguments.TakeFlag("--plan");
  STROP_ASSIGN(std::vector<std::string> files, arguments.Files(1, 1));
  STROP_ASSIGN(const Backend* backend, FindBackend(arguments.options().backend));
  STROP_ASSIGN(std::unique_ptr<Module> module, LoadFile(files[0]));
  STROP_TRY(ExtractedChecks::From(*module));  // what they compare are results like others
  const int64_t before = module->instruction_count();
  CompileSettings settings = SettingsFrom(arguments.options());
  settings.explain = true;
  STROP_ASSIGN(std::shared_ptr<const CompiledProgram> program, Compile(std::move(module), *backend, settings));
  const Executable& e = *program->executable;
  std::printf("%s on %s: %lld instructions, %lld kernels, %lld copies, %lld bytes of temporaries, %lld bytes of code\n",
              e.name().c_str(), backend->name().data(), static_cast<long long>(before),
              static_cast<long long>(e.num_steps(StepKind::kKernel) + e.num_steps(StepKind::kHost)),
              static_cast<long long>(e.num_steps(StepKind::kCopy)), static_cast<long long>(e.spec().temp_bytes),
              static_cast<long long>(e.spec().code_bytes));
  std::printf("work: %lld flops, %lld transcendentals, %lld bytes accessed\n",
              static_cast<long long>(program->cost.flops), static_cast<long long>(program->cost.transcendentals),
              static_cast<long long>(program->cost.bytes_accessed));
  for (const Timing& t : program->timings) std::printf("time: %-8s %8.3f ms\n", t.phase.c_str(), t.milliseconds);
  PrintList("interpreted", program->explanation.interpreted);
  PrintList("not fused", program->explanation.not_fused);
  PrintList("copied", program->explanation.copies);
  if (plan) std::printf("%s", program->plan_text.c_str());
  return OkStatus();
}

}  // namespace strop::tools
