#include "strop/codegen/kept_rows.h"

#include <algorithm>
#include <unordered_set>

#include "strop/ir/unrounded.h"

namespace strop {
namespace {

constexpr int64_t kLine = 64;
constexpr int64_t kMostOfLong = 1 << 14;  // bytes: what the first-level cache holds beside the row itself
// Instructions: a result in 16 bits, a store and a load, and what is left out at least.
constexpr int64_t kRounding = 6, kMoving = 2, kLeastSaved = 4;

bool IsCostly(const Instruction& i) {
  if (!Is(i.op(), kFloatMath) || !i.shape().IsArray()) return false;
  const ElementType type = i.shape().type();
  return type == ElementType::F32 || type == ElementType::F64 || type == ElementType::BF16 || type == ElementType::F16;
}

// Instructions a vector that computing `i` from what lies in memory takes, about.
int64_t WorkOf(const Instruction& i, int64_t row_size, std::unordered_set<const Instruction*>& seen) {
  const bool moves = i.op() == Op::Reshape || i.op() == Op::Broadcast;
  if ((!IsElementwise(i.op()) && !moves) || !i.shape().IsArray() || i.shape().rank() == 0) return 0;
  if (i.shape().dims().back() != row_size || !seen.insert(&i).second) return 0;  // once a row
  const ElementType type = i.shape().type();
  const bool rounds =
      (type == ElementType::BF16 || type == ElementType::F16) && i.op() != Op::Select && !MayStayUnrounded(i);
  int64_t work = moves ? 0 : rounds ? kRounding : 1;
  for (int64_t k = 0; k < i.operand_count(); ++k) work += WorkOf(*i.operand(k), row_size, seen);
  return work;
}

// Cheap operations, but so many that to write them and to read them is less; where their ways part.
bool IsLong(const Instruction& i, int64_t row_size) {
  if (i.use_count() < 2 || !i.shape().IsArray() || !IsFloat(i.shape().type())) return false;
  const int64_t bytes = Bytes(i.shape().type());
  if (row_size * bytes > kMostOfLong || !IsElementwise(i.op())) return false;
  std::unordered_set<const Instruction*> seen;
  return WorkOf(i, row_size, seen) >= (bytes < 4 ? kRounding : kMoving) + kLeastSaved;
}

// One result, along rows of this length.
bool ReducesRows(const Instruction& i, int64_t row_size) {
  if (i.op() != Op::Reduce || !i.shape().IsArray() || i.dimensions().size() != 1) return false;
  const Shape& operand = i.operand(0)->shape();
  return i.dimensions()[0] == operand.rank() - 1 && operand.dims().back() == row_size;
}

// Follows a value to where it ends up without leaving its element.
class Uses {
 public:
  Uses(const KernelBody& body, int64_t row_size) : body_(body), row_size_(row_size) {}

  // No: some use is elsewhere.
  bool Follow(const Instruction& i) {
    if (!seen_.insert(&i).second) return true;
    if (std::find(body_.roots.begin(), body_.roots.end(), &i) != body_.roots.end()) reaches_root = true;
    for (const Use& use : i.uses()) {
      const Instruction& user = *use.user;
      if (user.op() == Op::Tuple) continue;
      if (ReducesRows(user, row_size_) && use.operand_number < user.operand_count() / 2) {
        reduces.push_back(&user);
        continue;
      }
      const bool stays = IsElementwise(user.op()) || user.op() == Op::Reshape;
      if (!stays || user.shape().num_elements() != i.shape().num_elements() || !Follow(user)) return false;
    }
    return true;
  }

  bool reaches_root = false;
  std::vector<const Instruction*> reduces;

 private:
  const KernelBody& body_;
  const int64_t row_size_;
  std::unordered_set<const Instruction*> seen_;
};

}  // namespace

std::vector<KeptRow> ChooseKeptRows(const KernelBody& body, const LoopSpace& space, int64_t* bytes) {
  *bytes = 0;
  std::vector<KeptRow> kept;
  if (!space.whole_rows || space.uniform || space.interleaved > 1 || space.step > 1) return kept;
  const std::vector<const Instruction*> computed = body.Computed();  // operands first
  for (const Instruction* i : computed) {
    if (i->shape().IsTuple() || i->shape().num_elements() != space.num_elements()) continue;
    if (!IsCostly(*i) && !IsLong(*i, space.row_size)) continue;
    Uses uses(body, space.row_size);
    if (!uses.Follow(*i) || uses.reduces.empty()) continue;
    const auto first = std::find_first_of(computed.begin(), computed.end(), uses.reduces.begin(), uses.reduces.end());
    const bool again = std::any_of(uses.reduces.begin(), uses.reduces.end(),
                                   [&](const Instruction* r) { return r != uses.reduces.front(); });
    if (!uses.reaches_root && !again) continue;
    kept.push_back({i, *first, *bytes});
    *bytes += (space.row_size * Bytes(i->shape().type()) + kLine - 1) / kLine * kLine;
  }
  // What is kept first may be needed for what is kept later.
  std::stable_sort(kept.begin(), kept.end(), [&](const KeptRow& a, const KeptRow& b) {
    return std::find(computed.begin(), computed.end(), a.reduce) <
           std::find(computed.begin(), computed.end(), b.reduce);
  });
  return kept;
}

}  // namespace strop
