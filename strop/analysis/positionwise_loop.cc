#include "strop/analysis/positionwise_loop.h"

#include <algorithm>
#include <unordered_set>

#include "strop/analysis/combiner.h"
#include "strop/analysis/trip_count.h"

namespace strop {
namespace {

constexpr int64_t kMaxTrips = 1 << 14;     // a task is not asked between trips whether it is cancelled
constexpr int64_t kGuessedTrips = 16;      // of a loop that ends when something holds
constexpr int64_t kMaxInstructions = 200;  // of a trip: registers end

using Role = PositionwiseLoop::Role;

class Finder {
 public:
  explicit Finder(const Instruction& loop) : loop_(loop), state_(loop.body()->parameter(0)) {}

  std::optional<PositionwiseLoop> Find() {
    const Instruction *init = loop_.operand(0), *root = loop_.body()->root();
    if (init->op() != Op::Tuple || root->op() != Op::Tuple) return std::nullopt;
    const std::optional<Counter> counter = FindCounter(loop_);
    if (counter && (counter->trips < 2 || counter->trips > kMaxTrips)) return std::nullopt;
    if (!counter && (!FindConditions(loop_.condition()->root()) || found_.going_on < 0)) return std::nullopt;
    found_.trips = counter ? counter->trips : kGuessedTrips;
    for (int64_t k = 0; k < root->operand_count(); ++k) {
      const Instruction* next = root->operand(k);
      const Shape& shape = next->shape();
      if (!shape.IsArray() || !shape.IsStatic()) return std::nullopt;
      if (StateElement(next) == k) {
        found_.roles.push_back(Role::kInvariant);
      } else if (shape.rank() == 0) {
        found_.roles.push_back(Role::kUniform);
      } else {
        if (found_.elements > 0 && shape.num_elements() != found_.elements) return std::nullopt;
        found_.elements = shape.num_elements();
        found_.roles.push_back(Role::kCarried);
      }
    }
    if (found_.elements == 0) return std::nullopt;
    if (found_.going_on >= 0 && found_.roles[found_.going_on] != Role::kCarried) return std::nullopt;
    for (const Instruction* limit : found_.limits)
      if (!IsUniform(limit)) return std::nullopt;
    for (int64_t k = 0; k < root->operand_count(); ++k) {
      if (found_.roles[k] == Role::kUniform && !IsUniform(root->operand(k))) return std::nullopt;
      if (found_.roles[k] != Role::kCarried) continue;
      if (!IsPositionwise(root->operand(k))) return std::nullopt;
      if (found_.going_on >= 0 && !StaysWhereEnded(root->operand(k), k)) return std::nullopt;
    }
    return found_;
  }

 private:
  // Which element of the state this is, or -1.
  int64_t StateElement(const Instruction* i) const {
    return i->op() == Op::GetTupleElement && i->operand(0) == state_ ? i->tuple_index() : -1;
  }

  // The predicate of which the loop asks whether any element is true, and scalars beside it.
  bool FindConditions(const Instruction* root) {
    if (root->op() == Op::And) return FindConditions(root->operand(0)) && FindConditions(root->operand(1));
    if (root->op() != Op::Reduce) {
      found_.limits.push_back(root);
      return true;
    }
    if (found_.going_on >= 0 || root->operand_count() != 2) return false;
    const Instruction *all = root->operand(0), *init = root->operand(1);
    if (RecognizeCombiner(*root->to_apply()).op != Op::Or || !init->IsConstant() || !init->literal().IsAllEqualTo(0))
      return false;
    if (all->op() != Op::GetTupleElement || !all->operand(0)->IsParameter() || !IsPred(all->shape().type()))
      return false;
    found_.going_on = all->tuple_index();
    return true;
  }
  // A scalar of scalars, the same for all positions
  bool IsUniform(const Instruction* i) {
    if (!i->shape().IsScalar()) return false;
    if (i->IsConstant() || uniform_.contains(i)) return true;
    if (i->op() == Op::GetTupleElement && i->operand(0)->IsParameter()) {
      const Role role = found_.roles[static_cast<size_t>(i->tuple_index())];
      return role != Role::kCarried;
    }
    if (!IsElementwise(i->op()) || ++found_.instructions > kMaxInstructions) return false;
    for (int64_t k = 0; k < i->operand_count(); ++k)
      if (!IsUniform(i->operand(k))) return false;
    uniform_.insert(i);
    return true;
  }
  // Is it false wherever a position has ended?
  bool IsFalseWhereEnded(const Instruction* i) {
    if (--steps_ < 0) return false;
    if (StateElement(i) == found_.going_on) return true;
    if (i->op() == Op::And) return IsFalseWhereEnded(i->operand(0)) || IsFalseWhereEnded(i->operand(1));
    return i->op() == Op::Constant && i->literal().IsAllEqualTo(0);
  }
  // Is it, wherever a position has ended, element k of the state?
  bool StaysWhereEnded(const Instruction* i, int64_t k) {
    if (--steps_ < 0) return false;
    if (StateElement(i) == k) return true;
    if (k == found_.going_on) return IsFalseWhereEnded(i);
    if (i->op() != Op::Select) return false;
    const Instruction* p = i->operand(0);
    if (IsFalseWhereEnded(p)) return StaysWhereEnded(i->operand(2), k);
    if (p->op() == Op::Not && IsFalseWhereEnded(p->operand(0))) return StaysWhereEnded(i->operand(1), k);
    return StaysWhereEnded(i->operand(1), k) && StaysWhereEnded(i->operand(2), k);
  }
  bool IsInvariant(const Instruction* i) const {
    const int64_t k = StateElement(i);
    return i->op() == Op::Constant || (k >= 0 && found_.roles[k] == Role::kInvariant);
  }
  bool IsWhole(const Instruction* i) const {
    return i->shape().IsArray() && i->shape().num_elements() == found_.elements;
  }

  // Is its element a function of elements at the same position?
  bool IsPositionwise(const Instruction* root) {
    std::vector<const Instruction*> stack = {root};
    while (!stack.empty()) {
      const Instruction* i = stack.back();
      stack.pop_back();
      if (IsInvariant(i) || !seen_.insert(i).second) continue;
      if (i->HasControlEdges() || !IsWhole(i)) return false;
      if (const int64_t k = StateElement(i); k >= 0) {
        if (found_.roles[k] != Role::kCarried) return false;
        continue;
      }
      if (++found_.instructions > kMaxInstructions) return false;
      if (i->op() == Op::Broadcast) {
        if (!IsInvariant(i->operand(0)) && !IsUniform(i->operand(0))) return false;
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
  std::unordered_set<const Instruction*> seen_, uniform_;
  int64_t steps_ = 4 * kMaxInstructions;  // of searches that may come to an instruction by several ways
};

}  // namespace

std::optional<PositionwiseLoop> FindPositionwiseLoop(const Instruction& loop) {
  if (loop.op() != Op::While) return std::nullopt;
  return Finder(loop).Find();
}

}  // namespace strop
