// Passes of one's own, outside Strop's tree: a shared object that `strop opt --load=./libmine.so --passes=mine` runs.
// It is built against an installation (find_package(strop), target strop::passes) and says in one of its files:
//
//   struct Mine final : strop::Pass {
//     strop::Result<bool> Run(strop::Module& module, strop::PassContext& context) override { ... }
//   };
//   STROP_PASS_LIBRARY(strop::PassOf<Mine>("mine", "Does what I want."))
//
// The library holds its own copy of what it calls of Strop and works on the caller's modules, so both must agree on
// every type: it must come from the same version, and is refused if not. (docs/how-to/write-a-pass-outside-the-tree.md)
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>

#include "strop/base/hash.h"
#include "strop/base/version.h"
#include "strop/passes/pass.h"

namespace strop {

// What the function strop_pass_library() returns. `format` comes first, for ever; what follows it is told by its value.
struct PassLibrary {
  uint32_t format;
  const char* version;  // kVersion where it was built
  uint64_t layout;      // PassLibraryLayout() where it was built
  const PassInfo* passes;
  size_t pass_count;
};
inline constexpr uint32_t kPassLibraryFormat = 1;
inline constexpr char kPassLibraryEntry[] = "strop_pass_library";
using PassLibraryEntry = const PassLibrary* (*)();

// Differs where two builds disagree on the ops or on the size of what passes hold in their hands.
constexpr uint64_t PassLibraryLayout() {
  Fnv1a hash;
  for (const OpInfo& op : kOps) hash.Add(op.text);
  for (size_t size : {sizeof(Module), sizeof(ModuleConfig), sizeof(Computation), sizeof(Instruction), sizeof(Attrs),
                      sizeof(Shape), sizeof(Literal), sizeof(OpMetadata), sizeof(Sharding), sizeof(Status),
                      sizeof(PassContext), sizeof(PassOptions), sizeof(PassInfo), sizeof(std::string), sizeof(void*)})
    hash.AddStep(size);
  return hash.value();
}

// The row of a pass: P needs a constructor without arguments; a new P is made for every run.
template <class P>
constexpr PassInfo PassOf(std::string_view name, std::string_view sentence, Stage earliest = Stage::Imported) {
  return {name, earliest, sentence, []() -> std::unique_ptr<Pass> { return std::make_unique<P>(); }};
}

}  // namespace strop

// Once in a library, outside all namespaces: its passes, one PassOf each.
#define STROP_PASS_LIBRARY(...)                                                                                        \
  extern "C" __attribute__((visibility("default"))) const strop::PassLibrary* strop_pass_library() {                   \
    static const strop::PassInfo passes[] = {__VA_ARGS__};                                                             \
    static const strop::PassLibrary library = {strop::kPassLibraryFormat, strop::kVersion, strop::PassLibraryLayout(), \
                                               passes, std::size(passes)};                                             \
    return &library;                                                                                                   \
  }
