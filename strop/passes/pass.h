// A pass: one rewrite of a module under one name. One pass is one .cc (an anonymous struct), one row in passes.def, one
// .hlo test of the same name. The driver (pipeline.h) gives every pass its switch, timer, verifier and dump.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "strop/ir/module.h"

namespace strop {

namespace spmd {
class CallOwners;
}

struct PassOptions {
  std::vector<std::string> disabled_passes;
  std::vector<std::string> disabled_rules;
  int64_t rule_limit = -1;   // at most so many rewrites by rules, in all passes together; -1: no limit
  bool verify_each = false;  // VerifyModule after every pass that changed something; a violation is an Internal error
  bool collect_decisions = false;
  const spmd::CallOwners* call_owners = nullptr;  // of custom calls that others cut (spmd/call_owners.h); may be null
};

// Why something was done or not, for `strop explain`.
struct PassDecision {
  std::string_view pass;
  std::string where;  // "model.py:12" or "%name"
  std::string text;
};

struct PassRun {
  std::string_view pass;
  double milliseconds = 0;
  bool changed = false;
  int64_t instructions_after = 0;
};

// What passes share during one run of a pipeline.
class PassContext {
 public:
  PassContext() = default;
  explicit PassContext(PassOptions options) : options_(std::move(options)), rule_limit_(options_.rule_limit) {}

  const PassOptions& options() const { return options_; }
  int64_t* rule_limit() { return &rule_limit_; }

  // Counters, by what was done ("cse.merged", a rule's name).
  void Count(std::string_view what, int64_t n = 1) {
    if (n) counters_[std::string(what)] += n;
  }
  const std::map<std::string, int64_t>& counters() const { return counters_; }

  // Evaluated only when someone asked for decisions.
  template <class... Parts>
  void Decide(const Instruction& at, const Parts&... parts) {
    if (options_.collect_decisions) decisions_.push_back({current_pass_, at.Where(), StrCat(parts...)});
  }
  const std::vector<PassDecision>& decisions() const { return decisions_; }
  const std::vector<PassRun>& runs() const { return runs_; }

 private:
  friend class PassPipeline;
  PassOptions options_;
  int64_t rule_limit_ = -1;
  std::string_view current_pass_;
  int64_t changes_ = 0;                          // of the module, so far
  std::map<std::string_view, int64_t> settled_;  // what `changes_` was when a pass found nothing to do
  std::map<std::string, int64_t> counters_;
  std::vector<PassDecision> decisions_;
  std::vector<PassRun> runs_;
};

class Pass {
 public:
  virtual ~Pass() = default;
  // True if the module changed.
  virtual Result<bool> Run(Module& module, PassContext& context) = 0;
};

// The passes of this room, one per row of passes.def.
enum class PassId : uint8_t {
#define PASS(name, ...) name,
#include "strop/passes/passes.def"
#undef PASS
  kEnd
};

struct PassInfo {
  std::string_view name;  // "call-inliner"
  Stage earliest;         // runs on modules of this stage or later
  std::string_view sentence;
  std::unique_ptr<Pass> (*make)();
};

const PassInfo& Info(PassId id);
// All of them, in the order of passes.def.
std::span<const PassInfo> AllPasses();
// XLA's names of passes that are here under another one, or are several here: aliases.def.
struct PassAlias {
  std::string_view xla_name;
  std::string_view names;  // "dot-canonicalizer,convolution-canonicalizer"
};
std::span<const PassAlias> PassAliases();
// By name, by XLA's name (which may stand for several), or by the name of one of `others`; '_' is as good as '-'.
// NotFound with the nearest known one.
Result<std::vector<PassInfo>> FindPasses(std::string_view name, std::span<const PassInfo> others = {});

#define PASS(name, ...) std::unique_ptr<Pass> Make##name();
#include "strop/passes/passes.def"
#undef PASS

}  // namespace strop
