// Parts of a concatenation that are computed where they lie in it, which takes no step and no second copy of them.
//
//   %a = f32[50,20] transpose(...)            bytes [0, 4000) of %c
//   %b = f32[30,20] dot(...)                  bytes [4000, 6400)
//   %c = f32[80,20] concatenate(%a, %b), dimensions={0}
//
// Only along dimensions that no other one of more than one element is outside of, so that a part is one piece of
// memory. The whole is alive from when its first part is written. What cannot be computed there (an argument, a part
// that stands there twice, what others write over) is copied. fusion_cost.h says which parts get kernels of their own.
#include <algorithm>

#include "strop/plan/fusion_cost.h"
#include "strop/plan/values.h"

namespace strop::plan_internal {
namespace {

constexpr int64_t kLeastBytes = 1024;  // of a part: less is copied as fast as a kernel is called

// Do those who read the array read it at any address? (Who reads a view of it is not asked.)
bool IsReadAnywhere(const Instruction& array, const TargetInfo& target) {
  return std::ranges::all_of(array.uses(), [&](const Use& use) {
    const Instruction& user = *use.user;
    if ((user.op() == Op::Bitcast && IsOfOtherSize(user)) || ViewOf(user, target.buffer_alignment)) return false;
    if (HandsOnItsOperand(user.op())) return IsReadAnywhere(user, target);
    return user.op() == Op::Concatenate || (user.op() == Op::Tuple && user.IsRoot()) || target.takes_any_address(user);
  });
}

class PartFinder {
 public:
  PartFinder(const Graph& graph, const TargetInfo& target) : graph_(graph), target_(target) {}

  bool MayLieAt(int64_t offset, const Instruction& operand, int32_t part) const {
    const Value& value = graph_.values[part];
    const Group& group = graph_.groups[value.group];
    const Instruction* at = &operand;
    while (HandsOnItsOperand(at->op())) at = at->operand(0);
    if (group.base != Base::None || group.values.size() != 1 || value.loop >= 0 || value.branch >= 0 ||
        value.def != at || !IsLeftAlone(operand) || !IsWrittenAfresh(*at, part))
      return false;
    return offset % target_.buffer_alignment == 0 ||
           (target_.takes_any_address && target_.takes_any_address(*at) && IsReadAnywhere(*at, target_));
  }

 private:
  // By a kernel, and over none of its operands?
  bool IsWrittenAfresh(const Instruction& kernel, int32_t part) const {
    const auto step = std::find_if(graph_.steps.rbegin(), graph_.steps.rend(),
                                   [&](const ProtoStep& s) { return s.instruction == &kernel; });
    if (step == graph_.steps.rend() || !step->is_kernel || step->args.back() != std::pair(part, Access::kWrite))
      return false;
    for (int64_t k = 0; k < kernel.operand_count(); ++k)
      if (CanReuseOperand(kernel, k, 0) == InPlace::Required) return false;
    return true;
  }

  const Graph& graph_;
  const TargetInfo& target_;
};

}  // namespace

std::vector<bool> PartsInPlace(const Graph& graph, const Instruction& concatenate, std::span<const int32_t> parts,
                               const TargetInfo& target) {
  std::vector<bool> in_place(parts.size(), false);
  if (!JoinsOnePieces(concatenate, kLeastBytes)) return in_place;
  const PartFinder finder(graph, target);
  int64_t offset = 0, saved = 0;
  for (size_t k = 0; k < parts.size(); ++k) {
    const Instruction& operand = *concatenate.operand(static_cast<int64_t>(k));
    const bool again = std::find(parts.begin(), parts.begin() + static_cast<int64_t>(k), parts[k]) !=
                       parts.begin() + static_cast<int64_t>(k);
    in_place[k] = !again && finder.MayLieAt(offset, operand, parts[k]);
    if (in_place[k]) saved += operand.shape().byte_size();
    offset += operand.shape().byte_size();
  }
  if (2 * saved < offset) in_place.assign(parts.size(), false);
  return in_place;
}

}  // namespace strop::plan_internal
