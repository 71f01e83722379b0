// What XLA's dump flags ask for, under the names that XLA gives its files, so that what people know and what reads
// such folders goes on working:
//
//   DIR/module_0001.jit_f.before_optimizations.txt
//   DIR/module_0001.jit_f.0003.compile.after_simplify.before_cse.txt     with xla_dump_hlo_pass_re; "compile" is the
//                                                                        pipeline
//   DIR/module_0001.jit_f.cpu_after_optimizations.txt                    and -plan.txt: kernels, order, buffers
//
// As proto the ending is .hlo.pb. Strop's own dump (dump.h) shows more of how a program is compiled.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "strop/base/status.h"
#include "strop/driver/compile.h"
#include "strop/passes/pipeline.h"

namespace strop {

class XlaDump {
 public:
  // Nothing is written if options.to is empty or the module's name is not asked for. InvalidArgument: a regular
  // expression that is none.
  static Result<XlaDump> Create(const XlaDumpOptions& options, const Module& module);

  bool on() const { return on_; }
  Status BeforeOptimizations(const Module& module);
  // Writes what the pass before left, if that one or this one is asked for, and remembers what this one leaves.
  Status AfterPass(std::string_view pipeline, std::string_view pass, const Module& module);
  Status AfterOptimizations(const Module& module, std::string_view backend);
  Status Text(const std::string& middle, const std::function<std::string()>& text);

 private:
  struct File {
    std::string_view ending;
    std::string bytes;
  };
  bool WantsPass(const std::string& pass) const;
  // The module in the forms that are asked for.
  Result<std::vector<File>> Print(const Module& module) const;
  Status Write(const std::string& middle, const std::vector<File>& files) const;

  bool on_ = false;
  XlaDumpOptions options_;
  std::string prefix_;  // "DIR/module_0001.jit_f."
  // What the pass before left, kept until the next one's name is known.
  std::string last_pipeline_, last_pass_;
  std::vector<File> last_;
  int step_ = 0;
};

}  // namespace strop
