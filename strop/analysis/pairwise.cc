#include "strop/analysis/pairwise.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

namespace strop {
namespace {

constexpr int64_t kMostOfShort = 8;         // elements
constexpr int64_t kMostOfPairs = 16;        // the same of pairs that are chosen among: coordinates of differences
constexpr int64_t kLongestGroup = 8;        // registers end
constexpr int64_t kFewestGroups = 12;       // most of a vector
constexpr int64_t kLeastRatio = 12;         // elements of a pairwise array to those that it is made of
constexpr int64_t kLeastRatioOfChoice = 4;  // the same where one of the pairs is chosen

int64_t ReducedElements(const Instruction& reduce) {
  int64_t n = 1;
  for (int64_t d : reduce.dimensions()) n = SaturatingMultiply(n, reduce.operand(0)->shape().dim(d));
  return n;
}

// Is it made of arrays that are all small beside it?
bool IsMadeOfFew(const Instruction& array, int64_t ratio = kLeastRatio) {
  const int64_t few = array.shape().num_elements() / ratio;
  std::unordered_set<const Instruction*> seen;
  std::vector<const Instruction*> stack = {&array};
  while (!stack.empty()) {
    const Instruction* i = stack.back();
    stack.pop_back();
    if (!i->shape().IsArray() || !i->control_predecessors().empty()) return false;
    if (i->shape().num_elements() <= few || i->op() == Op::Iota || !seen.insert(i).second) continue;
    const bool spreads = i->op() == Op::Broadcast || i->op() == Op::Reshape;
    if (!spreads && !IsElementwise(i->op()) && !IsShortReduce(*i)) return false;
    for (int64_t k = 0; k < i->operand_count(); ++k) stack.push_back(i->operand(k));
  }
  return true;
}

// Do choices (argmin) alone read it, perhaps after elementwise ops?
bool IsChosenFrom(const Instruction& i) {
  constexpr size_t kMost = 16;  // instructions that are looked at
  std::vector<const Instruction*> found = {&i};
  for (size_t n = 0; n < found.size(); ++n) {
    if (found[n]->use_count() == 0 || found[n]->IsRoot() || found.size() > kMost) return false;
    for (const Use& use : found[n]->uses()) {
      if (use.user->op() == Op::Reduce && use.user->operand_count() > 2) continue;
      if (!IsElementwise(use.user->op())) return false;
      if (std::find(found.begin(), found.end(), use.user) == found.end()) found.push_back(use.user);
    }
  }
  return true;
}

}  // namespace

bool IsShortReduce(const Instruction& i) {
  if (i.op() != Op::Reduce || !i.shape().IsArray() || i.operand_count() != 2) return false;
  const int64_t n = ReducedElements(i);
  return n <= kMostOfShort || (n <= kMostOfPairs && IsChosenFrom(i) && IsMadeOfFew(*i.operand(0), kLeastRatioOfChoice));
}

bool ChoosesAmongPairs(const Instruction& i) {
  if (i.op() != Op::Reduce || i.operand_count() < 4) return false;
  bool found = false;
  std::unordered_set<const Instruction*> seen;
  std::vector<const Instruction*> stack = {i.operand(0)};
  while (!stack.empty()) {
    const Instruction* x = stack.back();
    stack.pop_back();
    if (x->op() == Op::Broadcast || x->op() == Op::Iota || !seen.insert(x).second) continue;
    if (IsShortReduce(*x) && IsMadeOfFew(*x->operand(0), kLeastRatioOfChoice)) {
      found = true;
    } else if (IsElementwise(x->op()) && x->shape().IsArray()) {
      for (int64_t k = 0; k < x->operand_count(); ++k) stack.push_back(x->operand(k));
    } else {
      return false;
    }
  }
  return found;
}

// Is each element made of nothing but its place and constants? `known`: what has been asked.
static bool IsKnownByPlace(const Instruction& i, std::unordered_map<const Instruction*, bool>& known) {
  if (i.op() == Op::Iota) return true;
  if (i.op() == Op::Constant) return i.shape().num_elements() == 1;
  if (!IsElementwise(i.op()) && i.op() != Op::Broadcast && i.op() != Op::Reshape) return false;
  const auto [at, asked] = known.try_emplace(&i, false);
  if (!asked) return at->second;
  bool all = true;
  for (int64_t k = 0; k < i.operand_count() && all; ++k) all = IsKnownByPlace(*i.operand(k), known);
  return known[&i] = all;
}

// Can groups of so many elements be dealt out to lanes, a group a lane, by few shuffles each?
static bool IsDealtOut(int64_t size, ElementType type) {
  constexpr int64_t kMost = 32, kMostOfHalves = 16, kMostOddOfHalves = 5, kMostShuffles = 80;
  const int bits = IsFloat(type) ? std::max(32, Bits(type)) : Bits(type);  // as they are in registers
  if (size < 2 || size > (bits < 32 ? kMostOfHalves : kMost)) return false;
  if (bits >= 32) return true;
  // By halves, and what is odd each to each. Of fewer bits, elements of several vectors are put together in more steps.
  int64_t odd = size, halvings = 0;
  for (; odd % 2 == 0; odd /= 2) ++halvings;
  return odd <= (bits < 16 ? 1 : kMostOddOfHalves) && size * (halvings + odd - 1) <= kMostShuffles;
}

bool ReducesNeighbours(const Instruction& i) {
  constexpr int64_t kMostCode = 320, kCodeOfGather = 4;  // instructions
  if (i.op() != Op::Reduce || i.operand_count() > 4 || i.dimensions().size() != 1) return false;
  const Shape& operand = i.operand(0)->shape();
  const int64_t size = operand.rank() > 0 ? operand.dim(operand.rank() - 1) : 0;
  if (i.dimensions()[0] != operand.rank() - 1 || !IsDealtOut(size, operand.type())) return false;
  // What is computed for each element, but for what its place says alone; what is read in another order gains nothing.
  // What is gathered is at any place, but its indices are read in order.
  int64_t code = i.called(0)->instruction_count() - i.operand_count();
  std::unordered_map<const Instruction*, bool> places;
  std::unordered_set<const Instruction*> seen;
  std::vector<const Instruction*> stack;
  for (int64_t k = 0; k < i.operand_count() / 2; ++k) stack.push_back(i.operand(k));
  while (!stack.empty()) {
    const Instruction* x = stack.back();
    stack.pop_back();
    if (!x->shape().IsArray()) return false;
    if (x->op() == Op::Parameter || x->op() == Op::Constant || !seen.insert(x).second) continue;
    if (x->op() == Op::Gather && x->operand(0)->op() == Op::Parameter) {
      code += kCodeOfGather;
      stack.push_back(x->operand(1));
      continue;
    }
    const bool plain = IsElementwise(x->op()) && !Is(x->op(), kFloatMath);
    if (!plain && x->op() != Op::Broadcast && x->op() != Op::Reshape && x->op() != Op::Iota) return false;
    if (IsKnownByPlace(*x, places)) continue;
    code += 1;
    for (int64_t k = 0; k < x->operand_count(); ++k) stack.push_back(x->operand(k));
  }
  return code * size <= kMostCode;
}

bool ReducesPairsToGroups(const Instruction& i) {
  if (i.op() != Op::Reduce || !i.shape().IsArray() || i.operand_count() != 2 || i.dimensions().size() != 1)
    return false;
  const Shape& operand = i.operand(0)->shape();
  const int64_t reduced = i.dimensions()[0];
  int64_t before = 1, group = 1;
  for (int64_t d = 0; d < reduced; ++d) before *= operand.dim(d);
  for (int64_t d = reduced + 1; d < operand.rank(); ++d) group *= operand.dim(d);
  if (group < 2 || group > kLongestGroup || before < kFewestGroups || operand.dim(reduced) <= kMostOfShort)
    return false;
  return IsMadeOfFew(*i.operand(0));
}

}  // namespace strop
