#include "strop/cpu/kernel_family.h"

namespace strop::cpu {
namespace {

constexpr const KernelFamily* kFamilies[] = {
    &kUpdateFamily, &kScatterFamily, &kSelectAndScatterFamily, &kSortFamily, &kLoopFamily,
};

}  // namespace

std::span<const KernelFamily* const> KernelFamilies() { return kFamilies; }

const KernelFamily* FindFamily(const Instruction& kernel, std::string* why_not) {
  for (const KernelFamily* family : kFamilies) {
    const Decision d = family->matches(kernel);
    if (d) return family;
    if (why_not && d.why_not() != kOtherOp)
      StrAppend(*why_not, why_not->empty() ? "" : "; ", family->name, ": ", d.why_not());
  }
  return nullptr;
}

}  // namespace strop::cpu
