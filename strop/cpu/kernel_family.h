// Kernel families: the ways to turn a kernel of the plan into machine code. The list is explicit and in order of
// preference; the first family that matches takes the kernel. (Ops that are not generated but bound to a library are in
// library/.)
//
// To add one: a file in families/ that defines a KernelFamily, its row in families.cc, a test beside it.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "strop/backend/backend.h"
#include "strop/cpu/load/recipe.h"

namespace llvm {
class Module;
}

namespace strop {
class KernelFrame;
class VectorBuilder;
}  // namespace strop

namespace strop::cpu {

// What a family's emit() may use.
struct EmitContext {
  VectorBuilder& b;
  std::string function;  // the name that the kernel's function must have
};

// What emit() decided about the kernel's launch.
struct EmittedKernel {
  int64_t num_tasks = 1;
  int64_t scratch_bytes = 0;
  std::string tiles = {};  // for reports
  std::string cut = {};    // which elements each task computes: equal cuts, equal tasks
};

inline constexpr std::string_view kOtherOp = "another op";

struct KernelFamily {
  std::string_view name;
  // Yes, or why not (kOtherOp: the family has nothing to do with such kernels). Looks at the kernel alone (a fusion or
  // a single instruction), so that it can answer Supports() too.
  Decision (*matches)(const Instruction& kernel);
  // Machine code inside the frame: a function of its own, or a place in a region. Equal kernels (same text, same
  // in_place) must give equal code: it is shared and cached.
  Result<EmittedKernel> (*emit)(const KernelSpec& spec, KernelFrame& frame) = nullptr;
  // Instead of emit: adds function `context.function` that is no KernelFn but called by a step in C++ (a sort's
  // comparator), and states the recipe of that step.
  Status (*emit_function)(const KernelSpec& spec, EmitContext& context) = nullptr;
  std::string (*recipe)(const KernelSpec& spec, const CodeRef& function) = nullptr;
};

std::span<const KernelFamily* const> KernelFamilies();
// The family that takes this kernel, or null and the reasons of all.
const KernelFamily* FindFamily(const Instruction& kernel, std::string* why_not = nullptr);

// Adds the kernel's function, or the region's, to the module that the builder writes to.
Result<EmittedKernel> EmitFunction(const KernelSpec& spec, const KernelFamily* family, EmitContext& context);
// The recipe of the step that calls the function which EmitFunction added.
Result<std::string> RecipeOf(const KernelSpec& spec, const KernelFamily* family, const EmittedKernel& emitted,
                             const CodeRef& function);
// Can the loops of this kernel be cut into tasks of so many elements (0: some number of them)?
Decision LoopIsCutEvery(const Instruction& kernel, int64_t elements, int vector_bytes);
// Is this dot computed by the library, wherever it stands, and into the layout of its shape?
Decision WritesInLayout(const Instruction& dot);
// May the kernel's code be part of a region: emitted in place, and too small to be cut into tasks?
Decision JoinsRegion(const Instruction& kernel);
// The same in a task of a region, where other threads have their own.
Decision JoinsTask(const Instruction& kernel);
Result<EmittedKernel> EmitRegion(const KernelSpec& spec, EmitContext& context);
// Recipes of the library kernels that the region's code calls.
Result<std::vector<std::string>> CallsOfRegion(const Region& region);

// ---- the families (families/<name>.cc)
extern const KernelFamily
    kLoopFamily;  // elementwise, broadcast, data movement, reductions: everything that is element by element
extern const KernelFamily kUpdateFamily;  // dynamic-update-slice in place
extern const KernelFamily kScatterFamily;
extern const KernelFamily kSelectAndScatterFamily;
extern const KernelFamily kScanFamily;  // reduce-window to the end of a dimension
extern const KernelFamily kSortFamily;  // by any comparator

}  // namespace strop::cpu
