// Compiled programs on disk, for later processes and for those beside this one: one file an entry, an artifact that is
// mapped as it is, named by the hash of its key, with the key inside.
//
// Writers write to a file of their own and rename it, so that readers see all of an entry or nothing, whoever is killed
// when. Readers look at hash and key before anything else; what is damaged is removed and compiled again. Nothing
// locks. The folder is this user's alone: who may write there could have this process run anything.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "strop/driver/compile.h"
#include "strop/runtime/artifact.h"

namespace strop {

class ProgramCache {
 public:
  // FailedPrecondition if the folder is another user's or others may write to it. None if settings ask for none, or for
  // reports and dumps, which only compiling makes; or if the folder cannot be made, which is logged.
  static Result<std::optional<ProgramCache>> Open(const CompileSettings& settings);
  ~ProgramCache();
  ProgramCache(ProgramCache&& other) noexcept;
  ProgramCache& operator=(ProgramCache&&) = delete;

  // The key of a program: `source` tells it and what its front end was asked for, of which 128 bits of hash and the
  // size count; the rest is what this process and `settings` add to what comes out.
  static std::string KeyOf(std::string_view source, const Backend& backend, const CompileSettings& settings);
  // The entry of this key, which counts as used; none if there is none that is whole.
  std::optional<Artifact> Find(std::string_view key) const;
  // Adds an entry. What goes wrong is logged and changes nothing.
  void Keep(std::string_view key, ArtifactWriter entry) const;

 private:
  ProgramCache(std::string path, int folder, int64_t most_bytes)
      : path_(std::move(path)), folder_(folder), most_bytes_(most_bytes) {}
  void Evict() const;

  std::string path_;  // for people
  int folder_;        // open
  int64_t most_bytes_;
};

// Compile(), or what it gave for the same module before.
Result<std::shared_ptr<const CompiledProgram>> CompileOrFind(std::unique_ptr<Module> module, const Backend& backend,
                                                             const CompileSettings& settings);
// The same where the program's own bytes are known, which `load` reads only if it has to.
Result<std::shared_ptr<const CompiledProgram>> CompileOrFind(
    std::string_view source, const Backend& backend, const CompileSettings& settings,
    const std::function<Result<std::unique_ptr<Module>>()>& load);

}  // namespace strop
