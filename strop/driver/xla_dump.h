// What XLA's dump flags ask for, under the names that XLA gives its files, so that what people know and what reads
// such folders goes on working:
//
//   DIR/module_0001.jit_f.before_optimizations.txt
//   DIR/module_0001.jit_f.0003.compile.after_simplify.before_cse.txt     with xla_dump_hlo_pass_re; "compile" is the
//                                                                        pipeline
//   DIR/module_0001.jit_f.cpu_after_optimizations.txt                    and -plan.txt: kernels, order, buffers
//
// As proto the ending is .hlo.pb, as a graph .dot, as a page .html; .url holds the page's URL, which is a file's: there
// is no server that pictures are given to. Strop's own dump (dump.h) shows more of how a program is compiled.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <span>
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
  // Null if they are not asked for. Of the module before optimizations.
  Result<std::shared_ptr<const Snapshots>> MakeSnapshots(const Module& module, std::string_view platform) const;
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
  // The module in the forms that are asked for; `title` is what a page says above it.
  Result<std::vector<File>> Print(const Module& module, const std::string& title) const;
  Status Write(const std::string& middle, const std::vector<File>& files) const;

  bool on_ = false;
  XlaDumpOptions options_;
  std::string prefix_;  // "DIR/module_0001.jit_f."
  // What the pass before left, kept until the next one's name is known.
  std::string last_pipeline_, last_pass_;
  std::vector<File> last_;
  int step_ = 0;
};

// xla_dump_hlo_snapshots: a HloSnapshot of every execution, DIR/module_0001.jit_f.execution_0000.hlo_snapshot.pb. The
// program in it is the one before optimizations, which anything can run.
class Snapshots {
 public:
  Snapshots(std::string prefix, std::string hlo_proto, std::string platform)
      : prefix_(std::move(prefix)), hlo_proto_(std::move(hlo_proto)), platform_(std::move(platform)) {}
  Status Write(std::span<const Literal> arguments, const Literal& result) const;

 private:
  std::string prefix_, hlo_proto_, platform_;
  mutable std::atomic<int> executions_{0};
};

}  // namespace strop
