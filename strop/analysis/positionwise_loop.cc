#include "strop/analysis/positionwise_loop.h"

#include <algorithm>
#include <unordered_set>

#include "strop/analysis/trip_count.h"

namespace strop {
namespace {

constexpr int64_t kMaxTrips = 1 << 14;     // a task is not asked between trips whether it is cancelled
constexpr int64_t kMaxInstructions = 200;  // of a trip: registers end

using Role = PositionwiseLoop::Role;

class Finder {
 public:
  explicit Finder(const Instruction& loop) : loop_(loop), state_(loop.body()->parameter(0)) {}

  std::optional<PositionwiseLoop> Find() {
    const std::optional<Counter> counter = FindCounter(loop_);
    const Instruction *init = loop_.operand(0), *root = loop_.body()->root();
    if (!counter || counter->trips < 2 || counter->trips > kMaxTrips || init->op() != Op::Tuple ||
        root->op() != Op::Tuple)
      return std::nullopt;
    found_.trips = counter->trips;
    for (int64_t k = 0; k < root->operand_count(); ++k) {
      const Instruction* next = root->operand(k);
      const Shape& shape = next->shape();
      if (!shape.IsArray() || !shape.IsStatic()) return std::nullopt;
      if (StateElement(next) == k) {
        found_.roles.push_back(Role::kInvariant);
      } else if (k == counter->element) {
        found_.roles.push_back(Role::kCounter);
      } else {
        if (shape.rank() == 0 || (found_.elements > 0 && shape.num_elements() != found_.elements)) return std::nullopt;
        found_.elements = shape.num_elements();
        found_.roles.push_back(Role::kCarried);
      }
    }
    for (int64_t k = 0; k < root->operand_count(); ++k)
      if (found_.roles[k] == Role::kCarried && !IsPositionwise(root->operand(k))) return std::nullopt;
    return found_;
  }

 private:
  // Which element of the state this is, or -1.
  int64_t StateElement(const Instruction* i) const {
    return i->op() == Op::GetTupleElement && i->operand(0) == state_ ? i->tuple_index() : -1;
  }
  bool IsInvariant(const Instruction* i) const {
    const int64_t k = StateElement(i);
    return i->op() == Op::Constant || (k >= 0 && found_.roles[k] == Role::kInvariant);
  }
  bool IsWhole(const Instruction* i) const {
    return i->shape().IsArray() && i->shape().num_elements() == found_.elements && !IsComplex(i->shape().type());
  }

  // Is its element a function of elements at the same position?
  bool IsPositionwise(const Instruction* root) {
    std::vector<const Instruction*> stack = {root};
    while (!stack.empty()) {
      const Instruction* i = stack.back();
      stack.pop_back();
      if (IsInvariant(i) || !seen_.insert(i).second) continue;
      if (!i->control_predecessors().empty() || !i->control_successors().empty() || !IsWhole(i)) return false;
      if (const int64_t k = StateElement(i); k >= 0) {
        if (found_.roles[k] != Role::kCarried) return false;
        continue;
      }
      if (++found_.instructions > kMaxInstructions) return false;
      if (i->op() == Op::Broadcast) {
        if (!IsInvariant(i->operand(0))) return false;
      } else if (i->op() == Op::Gather) {
        if (!PicksElements(*i)) return false;
        stack.push_back(i->operand(1));
      } else if (IsElementwise(i->op()) || i->op() == Op::Reshape || i->op() == Op::Copy) {
        for (int64_t k = 0; k < i->operand_count(); ++k) stack.push_back(i->operand(k));
      } else if (i->op() != Op::Iota) {
        return false;
      }
    }
    return true;
  }

  // Single elements of what the loop does not change, one for each index.
  bool PicksElements(const Instruction& gather) const {
    const GatherAttrs& a = gather.attrs<GatherAttrs>();
    return IsInvariant(gather.operand(0)) && a.operand_batching_dims.empty() && a.start_index_map.size() == 1 &&
           std::all_of(a.slice_sizes.begin(), a.slice_sizes.end(), [](int64_t size) { return size == 1; });
  }

  const Instruction& loop_;
  const Instruction* state_;
  PositionwiseLoop found_;
  std::unordered_set<const Instruction*> seen_;
};

}  // namespace

std::optional<PositionwiseLoop> FindPositionwiseLoop(const Instruction& loop) {
  if (loop.op() != Op::While) return std::nullopt;
  return Finder(loop).Find();
}

}  // namespace strop
