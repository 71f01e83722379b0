// Reductions along columns that read one large array are made one, which reads it once:
//
//   %s = f32[64] reduce(f32[32768,64] %x, %zero), dimensions={0}, to_apply=%add
//   %q = f32[64] reduce(multiply(%x, %x), %zero), dimensions={0}, to_apply=%add
//   ->
//   %both = (f32[64], f32[64]) reduce(%x, multiply(%x, %x), %zero, %zero), dimensions={0}, to_apply=%adds
//
// These are the mean and the mean square of a batch's features, their gradients, means beside maxima. Each result's
// elements are combined in the order that they would have had: a lane is a column.
#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "strop/analysis/combiner.h"
#include "strop/analysis/pairwise.h"
#include "strop/ir/builder.h"
#include "strop/passes/joined_reductions.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

constexpr int64_t kLeastBytes = 1 << 16;  // of what all read
constexpr size_t kMostJoined = 4;         // results, whose sums are in registers
constexpr size_t kMostInstructions = 64;  // between an array and what is reduced
constexpr size_t kMostMoved = 512;        // instructions that are looked at for what has to come earlier
constexpr int64_t kGap = 4096;            // places between two instructions, for what is put in front of the second
static_assert(kGap > static_cast<int64_t>(kMostJoined * (kMostMoved + 2)));

// Of one array, along dimensions that do not include the last one.
bool ReducesColumns(const Instruction& i) {
  if (i.op() != Op::Reduce || i.operand_count() != 2 || !i.shape().IsArray() || i.IsRoot() || i.HasControlEdges())
    return false;
  const Shape& from = i.operand(0)->shape();
  if (!from.IsStatic() || from.rank() < 2 || IsComplex(from.type()) || from.byte_size() < kLeastBytes) return false;
  if (IsShortReduce(i)) return false;                                 // its users compute it
  if (IsFloat(from.type()) && Bits(from.type()) < 32) return false;   // its sums are rounded once, at the end
  if (RecognizeCombiner(*i.to_apply()).op == Op::kEnd) return false;  // each is combined by itself
  return std::ranges::find(i.dimensions(), from.rank() - 1) == i.dimensions().end();
}

// The large arrays that `i` is computed from by kernels that compute elements.
std::unordered_set<const Instruction*> ArraysOf(const Instruction* i) {
  const int64_t elements = i->shape().num_elements();
  std::unordered_set<const Instruction*> arrays, seen;
  std::vector<const Instruction*> stack = {i};
  while (!stack.empty() && seen.size() < kMostInstructions) {
    const Instruction* at = stack.back();
    stack.pop_back();
    if (!at->shape().IsArray() || at->shape().num_elements() < elements || !seen.insert(at).second) continue;
    const bool computed = IsElementwise(at->op()) || at->op() == Op::Reshape || at->op() == Op::Bitcast;
    if (at->op() == Op::Broadcast || at->op() == Op::Iota || at->op() == Op::Constant) continue;
    if (!computed) arrays.insert(at);
    for (int64_t k = 0; computed && k < at->operand_count(); ++k) stack.push_back(at->operand(k));
  }
  return arrays;
}

class Joiner {
 public:
  explicit Joiner(Computation& computation) : computation_(computation) {}

  int64_t Run() {
    std::vector<Instruction*> reduces;
    for (Instruction* i : computation_.instructions())
      if (ReducesColumns(*i)) reduces.push_back(i);
    if (reduces.size() < 2) return 0;
    Number();
    int64_t joined = 0;
    for (size_t first = 0; first < reduces.size(); ++first) {
      std::vector<Instruction*> group = {reduces[first]};
      BeginGroup(*group[0]);
      const std::unordered_set<const Instruction*> arrays = ArraysOf(group[0]->operand(0));
      for (size_t next = first + 1; next < reduces.size() && group.size() < kMostJoined; ++next) {
        if (!reduces[next] || !ReadsTheSame(*group[0], arrays, *reduces[next]) || !MoveInFront(*reduces[next], group))
          continue;
        group.push_back(reduces[next]);
        reduces[next] = nullptr;
      }
      if (group.size() == 1) continue;
      Join(group);
      // One that was moved is the first of those that it was behind.
      reduces.erase(std::remove(reduces.begin() + static_cast<std::ptrdiff_t>(first) + 1, reduces.end(), nullptr),
                    reduces.end());
      std::sort(reduces.begin() + static_cast<std::ptrdiff_t>(first) + 1, reduces.end(),
                [this](const Instruction* a, const Instruction* b) { return places_.at(a) < places_.at(b); });
      joined += static_cast<int64_t>(group.size());
    }
    return joined;
  }

 private:
  void Number() {
    int64_t n = 0;
    for (const Instruction* i : computation_.instructions()) places_[i] = n += kGap;
  }

  // What is put in front of `first` from now on gets the places between the one before it and its own.
  void BeginGroup(const Instruction& first) {
    if (places_.at(&first) % kGap != 0) Number();  // it was moved itself
    next_place_ = places_.at(&first) - kGap + 1;
  }

  static bool ReadsTheSame(const Instruction& a, const std::unordered_set<const Instruction*>& arrays,
                           const Instruction& b) {
    const Shape &from = a.operand(0)->shape(), &other = b.operand(0)->shape();
    if (!from.SameDims(other) || from.type() != other.type() || a.dimensions() != b.dimensions()) return false;
    const std::unordered_set<const Instruction*> others = ArraysOf(b.operand(0));
    int64_t both = 0, all = 0;
    for (const Instruction* i : arrays) all += i->shape().byte_size();
    for (const Instruction* i : others) (arrays.contains(i) ? both : all) += i->shape().byte_size();
    return 2 * both >= all;
  }

  // What `reduce` needs goes in front of the first of the group. False: it needs one of them, or something that must
  // stay where it is.
  bool MoveInFront(const Instruction& reduce, const std::vector<Instruction*>& group) {
    const int64_t begin = places_.at(group[0]);
    // It was moved for another one of the group, and its users with it.
    if (places_.at(&reduce) < begin) return false;
    std::map<int64_t, Instruction*> needed;  // in order
    std::vector<Instruction*> stack = reduce.operands();
    while (!stack.empty()) {
      Instruction* i = stack.back();
      stack.pop_back();
      const auto place = places_.find(i);
      if (place == places_.end()) return false;
      if (place->second < begin) continue;
      if (std::ranges::find(group, i) != group.end() || i->HasControlEdges()) return false;
      if (i->HasSideEffect()) return false;
      if (!needed.emplace(place->second, i).second) continue;
      if (needed.size() > kMostMoved) return false;
      for (int64_t k = 0; k < i->operand_count(); ++k) stack.push_back(i->operand(k));
    }
    for (auto [place, i] : needed) {
      computation_.MoveBefore(i, group[0]);
      places_[i] = next_place_++;
    }
    return true;
  }

  void Join(const std::vector<Instruction*>& group) {
    Instruction* joined = JoinedReduction(group, group[0]);
    Builder b(&computation_);
    b.set_insert_before(group[0]);
    places_[joined] = next_place_++;
    std::vector<Instruction*> elements;
    for (size_t k = 0; k < group.size(); ++k) {
      elements.push_back(b.GetTupleElement(joined, static_cast<int64_t>(k)));
      places_[elements.back()] = next_place_++;
    }
    for (size_t k = 0; k < group.size(); ++k) computation_.Replace(group[k], elements[k]);
  }

  Computation& computation_;
  // In the order of the computation; multiples of kGap but for what was put in front of others.
  std::unordered_map<const Instruction*, int64_t> places_;
  int64_t next_place_ = 0;
};

struct ReductionJoiner final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t joined = 0;
    for (Computation* c : module.PostOrder()) joined += Joiner(*c).Run();
    context.Count("reduction-joiner.joined", joined);
    return joined > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeReductionJoiner() { return std::make_unique<ReductionJoiner>(); }

}  // namespace strop
