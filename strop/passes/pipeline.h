// PassPipeline: passes in order, some of them in groups that repeat until nothing changes.
//
// Its name stands in the names of dumped files and in errors; a pipeline added to another one keeps its own.
//
//   PassPipeline p("cpu");
//   p.Add(PassId::CallInliner).AddRepeated({PassId::Simplify, PassId::Cse, PassId::Dce}, 8);
//   STROP_TRY(p.Run(module, context));
#pragma once
#include <functional>
#include <initializer_list>
#include <span>

#include "strop/passes/pass.h"

namespace strop {

class PassPipeline {
 public:
  explicit PassPipeline(std::string name) : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  PassPipeline& Add(PassId pass);
  // A pass of another room (a backend's own), or of a library (library.h).
  PassPipeline& Add(const PassInfo& pass);
  // Another pipeline's passes, in their order, under that one's name. Its observer is not asked.
  PassPipeline& Add(const PassPipeline& pipeline);
  // The group runs again while one of its passes changes the module, `rounds` times at most.
  PassPipeline& AddRepeated(std::span<const PassId> passes, int rounds);
  PassPipeline& AddRepeated(std::initializer_list<PassId> passes, int rounds) {
    return AddRepeated(std::span<const PassId>(passes.begin(), passes.size()), rounds);
  }
  // "dce,cse": names in order, as FindPasses knows them; a name that nobody knows is an error.
  static Result<PassPipeline> FromNames(std::string_view pipeline_name, std::string_view names,
                                        std::span<const PassInfo> others = {});
  std::vector<std::string_view> names() const;

  // Called after each pass with its pipeline's name, its own, the module, and whether it changed: dumps,
  // --print-changed.
  using Observer =
      std::function<void(std::string_view pipeline, std::string_view pass, const Module& module, bool changed)>;
  void set_observer(Observer observer) { observer_ = std::move(observer); }

  // True if anything changed. An error carries the pass as a note; a module that does not verify after a pass is our
  // bug.
  Result<bool> Run(Module& module, PassContext& context) const;

 private:
  struct Group {
    std::vector<PassInfo> passes;
    int rounds = 1;
    std::string pipeline;
  };
  Result<bool> RunOne(const Group& group, const PassInfo& info, Module& module, PassContext& context) const;
  std::string name_;
  std::vector<Group> groups_;
  Observer observer_;
};

}  // namespace strop
