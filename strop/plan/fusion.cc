// Fusion: which instructions are computed inside the kernel of their users, and never written to memory.
//
// One walk from the last instruction to the first decides for each: it becomes the root of a kernel, or it is inlined
// into the kernels of all its users. Nothing is inlined into more kernels than it is cheap to compute again, so the
// work and the size of the program stay linear; since a kernel is one root and its inlined ancestors, no cycle can
// arise.
//
//   %e = exponential(%x); %s = add(%e, %y)   ->   %s = fusion(%x, %y), calls={ exponential, add }
//
// An instruction is inlined if
//   - it computes an element from a bounded number of operand elements (elementwise, data movement, iota, scalar
//   constant);
//   - every user is a kernel root that takes inlined operands there, or is itself inlined;
//   - it would be computed once per element, or is cheap: a broadcast repeats its operand, two kernels repeat it twice,
//     so do two slices of it in one kernel;
//   - the kernels that compute it do not read more for it than if one of them kept it for the others.
#include <algorithm>
#include <functional>
#include <unordered_map>
#include <utility>

#include "strop/analysis/pairwise.h"
#include "strop/analysis/rows_told_apart.h"
#include "strop/ir/contraction.h"
#include "strop/plan/fusion_cost.h"
#include "strop/plan/plan.h"
#include "strop/plan/taken_inlined.h"
#include "strop/plan/values.h"

namespace strop {
namespace {

using namespace plan_internal;

constexpr int kMaxCheapKernels = 8;          // kernels that repeat a cheap instruction
constexpr size_t kMaxPlaces[] = {16, 4, 2};  // index maps in a kernel at which an instruction is computed, by Cost
constexpr int64_t kKernelBytes = 1 << 17;    // what a kernel costs besides, in bytes that are read
constexpr int64_t kManyLookedUp = 1024;      // elements: as many are worth a kernel that computes the table
constexpr int64_t kJoinedALookUp = 2;        // elements of a table of parts that a kernel writes while one is looked up
constexpr int64_t kFewParts = 4;             // that a look-up tells apart as fast as it reads
constexpr int64_t kMaxPadding = 2;           // times that a cheap instruction is computed for positions of padding

struct Node {
  bool inlined = false;
  int64_t repeat = 1;            // times that an element is computed, over the worst path to a root
  int64_t padded = 1;            // the part of it that is due to padding
  int64_t looked_up = 1;         // the part of it that is due to gathers
  int64_t look_ups = 0;          // by which a gather finds it
  int64_t row = 0;               // inlined, and each element is used along one row of so many elements only; 0: not so
  std::vector<int32_t> kernels;  // roots (numbers of nodes) that compute it; a root has itself
  std::vector<int32_t> places;   // index maps at which they do (numbers of places); a root has one
};

// An index map from the elements of a kernel's result to those of an instruction inside. Instructions along a chain of
// elementwise ops share one; a slice, a transposition, a concatenation make others of it. Code is emitted once a place.
struct Place {
  int32_t kernel;                     // root
  const Instruction* made_by;         // the user whose operand is read here; null: the root's own
  int64_t operand;                    // of the user
  std::vector<int32_t> further = {};  // places made from this one
  bool part = false;                  // not all elements are read here, or some of them in vain
};

class Fuser {
 public:
  Fuser(Module& module, Computation& computation, const TargetInfo& target, std::vector<FusionLimit>* limits)
      : module_(module), computation_(computation), target_(target), limits_(limits) {}

  Status Run() {
    order_ = computation_.PostOrder();
    for (size_t n = 0; n < order_.size(); ++n) number_[order_[n]] = static_cast<int32_t>(n);
    nodes_.resize(order_.size());
    kernel_size_.assign(order_.size(), 1);
    if (limits_) why_.resize(order_.size());
    for (size_t n = order_.size(); n-- > 0;) Decide(static_cast<int32_t>(n));
    DropUselessReshapes();
    for (size_t n = 0; n < order_.size(); ++n) STROP_TRY(Emit(static_cast<int32_t>(n)));
    if (limits_) TellLimits();
    for (size_t n = order_.size(); n-- > 0;) {
      Instruction* i = order_[n];
      if (nodes_[n].inlined && i->use_count() == 0 && i != computation_.root()) computation_.Remove(i);
    }
    return OkStatus();
  }

 private:
  void Decide(int32_t n) {
    Node& node = nodes_[n];
    Instruction* i = order_[n];
    Decision decision = Inline(n, node);
    node.inlined = static_cast<bool>(decision);
    if (!node.inlined) {
      node.kernels = {n};
      node.places = {static_cast<int32_t>(places_.size())};
      places_.push_back({n, nullptr, 0});
      node.repeat = node.padded = 1;
      if (limits_) why_[n] = decision.why_not();
      return;
    }
    if (CostOf(*i) != Cost::Free)
      for (int32_t p : node.places) ++kernel_size_[places_[p].kernel];
  }

  // The place where operand `k` of a user at place `p` is read.
  int32_t OperandPlace(int32_t p, const Instruction& user, int64_t k) {
    const Instruction& operand = *user.operand(k);
    if (IsElementwise(user.op()) && operand.shape().SameDims(user.shape())) return p;
    // Where users do the same, operands are read at the same place. Operands of a concatenation are not.
    const bool apart = user.op() == Op::Concatenate || user.op() == Op::DynamicUpdateSlice;
    for (int32_t f : places_[p].further) {
      const Place& place = places_[f];
      const Instruction& other = *place.made_by;
      if (other.op() != user.op() || (place.operand != k && apart) || !other.shape().SameDims(user.shape())) continue;
      if (!other.operand(place.operand)->shape().SameDims(operand.shape())) continue;
      if (&other == &user || (other.operand_count() == 1 && other.any_attrs() == user.any_attrs())) return f;
    }
    const int32_t made = static_cast<int32_t>(places_.size());
    places_[p].further.push_back(made);
    places_.push_back({places_[p].kernel, &user, k});
    places_.back().part = places_[p].part || ReadsPart(user.op());
    return made;
  }

  // Adds where the use reads the instruction.
  void AddPlaces(const Use& use, const Node& user, std::vector<int32_t>& places) {
    for (int32_t p : user.places) {
      const int32_t at = OperandPlace(p, *use.user, use.operand_number);
      if (std::find(places.begin(), places.end(), at) == places.end()) places.push_back(at);
    }
  }

  // Are the rows of `row` elements read one after the other there: by the root itself, or by a reduction of them?
  bool WalksRows(int32_t p, int64_t row) const {
    const Place& place = places_[p];
    if (!place.made_by) return IsElementwise(order_[place.kernel]->op());
    const Instruction& by = *place.made_by;
    if (!IsRowReduce(by) || place.operand != 0 || by.operand(0)->shape().dims().back() != row) return false;
    const Node& node = nodes_[number_.at(&by)];
    return !node.inlined || node.row == row;
  }

  // Is this the operand of a sum of pairs, with results in groups, and repeated within them only? Then it is computed
  // once a pair.
  bool SpreadsWithinGroups(const Instruction& user, const Node& at) const {
    if (user.op() != Op::Broadcast || !at.inlined) return false;
    const Dims& to = user.dimensions();
    const auto in_group = [&](int32_t p) {
      const Place& place = places_[p];
      const Instruction& root = *order_[place.kernel];
      if (place.made_by != &root || place.operand != 0 || !ReducesPairsToGroups(root)) return false;
      return static_cast<int64_t>(to.size()) == root.dimensions()[0] + 1 && std::is_sorted(to.begin(), to.end()) &&
             to.back() == root.dimensions()[0];
    };
    return std::all_of(at.places.begin(), at.places.end(), in_group);
  }

  // The length of the rows along which alone the use reads each element, or 0. Such a value is computed once a row.
  int64_t RowOfUse(const Instruction& i, const Instruction& user, const Node& at) const {
    if (SpreadsAlongRows(user)) {
      const int64_t row = user.shape().dims().back();
      const auto walks = [&](int32_t p) { return WalksRows(p, row); };
      return at.inlined && std::all_of(at.places.begin(), at.places.end(), walks) ? row : 0;
    }
    const bool passes = IsElementwise(user.op()) || user.op() == Op::Reshape || user.op() == Op::Broadcast;
    return at.inlined && passes && user.shape().num_elements() == i.shape().num_elements() ? at.row : 0;
  }

  // How often it is looked up where its user is: of a part of several, as much less often as it is smaller.
  static int64_t LookUpsOf(const Instruction& i, const Instruction& user, const Node& at) {
    if (user.op() != Op::Concatenate || at.look_ups == 0) return at.look_ups;
    const int64_t parts = user.shape().num_elements() / std::max<int64_t>(i.shape().num_elements(), 1);
    return at.look_ups / std::max<int64_t>(parts, 1);
  }

  // How many parts one element is looked for in, joined and joined again.
  static int64_t PartsOf(const Instruction& i, int depth = 0) {
    constexpr int kDeepest = 8;
    const bool joins = i.op() == Op::Concatenate;
    if (depth == kDeepest || (!joins && !IsElementwise(i.op()) && i.op() != Op::Reshape)) return 1;
    int64_t parts = 0;
    for (const Instruction* o : i.operands())
      if (joins || o->shape().num_elements() == i.shape().num_elements()) parts += PartsOf(*o, depth + 1);
    return std::max<int64_t>(parts, 1);
  }

  // Does a kernel that computes it reduce it, or what it moves of it, by one of these?
  bool IsReduced(const Node& node, const std::function<bool(const Instruction&)>& by) const {
    return std::ranges::any_of(node.places, [&](int32_t p) {
      const Instruction* user = places_[p].made_by;
      if (!user || by(*user)) return user != nullptr;
      const Node& moved = nodes_[number_.at(user)];
      return moved.inlined && (user->op() == Op::Reshape || user->op() == Op::Slice) && IsReduced(moved, by);
    });
  }

  static bool ReducesLargeWindows(const Instruction& i) {
    constexpr int64_t kFewElements = 9;
    return i.op() == Op::ReduceWindow && RepeatFactor(i, 0) > kFewElements;
  }

  // Are rows of so many elements parts of its own, or several of them, next to each other in what it reads as well?
  static bool KeepsNeighbours(const Instruction& i, int64_t row) {
    int64_t behind = 1;
    for (int64_t d = i.shape().rank(); d-- > 0 && behind < row;) behind *= i.shape().dim(d);
    const bool parts = row > 0 && i.shape().dims().back() % row == 0;
    if (!parts && behind != row) return false;
    const Int64Vector told_apart = RowsToldApart(i);
    return (told_apart.empty() || told_apart.front() % row == 0) && ReadsInOrder(i, /*moves=*/2);
  }

  // Is it cut into other rows before it is reduced? Each pass over those would tell place by place what it reads.
  bool IsCutIntoOtherRows(const Instruction& i, const Node& node) const {
    if (i.shape().rank() == 0 || IsMadeFromNothing(i)) return false;
    const auto cuts = [&](const Use& use) {
      if (use.user->op() != Op::Reshape || use.user->shape().rank() == 0) return false;
      const int64_t row = use.user->shape().dims().back();
      return row != i.shape().dims().back() && !KeepsNeighbours(i, row);
    };
    const auto reduces = [](const Instruction& r) { return r.op() == Op::Reduce && !IsShortReduce(r); };
    return std::ranges::any_of(i.uses(), cuts) && IsReduced(node, reduces) && !ReadsInOrder(i);
  }

  // Is element n of it made of elements n of what is in memory, whatever rows it is cut into? Or of those of
  // something that is so, and was moved (sliced, concatenated) up to so many times.
  static bool ReadsInOrder(const Instruction& root, int moves = 0) {
    constexpr size_t kMostLookedAt = 32;
    std::vector<const Instruction*> found = {&root};
    for (size_t n = 0; n < found.size(); ++n) {
      const Instruction& i = *found[n];
      if (!IsInlinable(i) || i.shape().num_elements() == 1) continue;  // in memory, or a number
      if (i.op() == Op::Broadcast && i.operand(0)->shape().num_elements() == 1) continue;
      if (!IsElementwise(i.op()) && i.op() != Op::Reshape) {
        const auto in_order = [&](const Instruction* operand) { return ReadsInOrder(*operand, moves - 1); };
        if (moves == 0 || !std::ranges::all_of(i.operands(), in_order)) return false;
        continue;
      }
      if (found.size() > kMostLookedAt) return false;
      for (int64_t k = 0; k < i.operand_count(); ++k) found.push_back(i.operand(k));
    }
    return true;
  }

  // Computed at more places of one kernel than its cost allows?
  Decision FewPlaces(const Instruction& i, const Node& node, Cost cost) const {
    // Parts that are chosen for each of several passes over a row cost more than to write it.
    if (i.op() == Op::Concatenate && IsReduced(node, IsRowReduce)) cost = Cost::Expensive;
    for (int32_t k : node.kernels) {
      const size_t n = static_cast<size_t>(
          std::count_if(node.places.begin(), node.places.end(), [&](int32_t p) { return places_[p].kernel == k; }));
      if (n > kMaxPlaces[static_cast<size_t>(cost)])
        return Decision::No("the kernel of %", order_[k]->name(), " would compute it at ", n, " places");
    }
    return Decision::Yes();
  }

  Decision UserTakesInlined(const Use& use, const Node& at) const {
    const Instruction& user = *use.user;
    if (at.inlined) return Decision::Yes();
    if (IsAlias(user)) return Decision::No("%", user.name(), " passes it on");
    if (IsComputedByParts(user)) return Decision::No("it is computed where it lies in %", user.name());
    if (Decision d = TakesInlined(user, use.operand_number, target_); !d)
      return Decision::No("%", user.name(), ": ", d.why_not());
    if (target_.supports && !target_.supports(user)) return Decision::No("%", user.name(), " is not compiled");
    return Decision::Yes();
  }

  // Into how many kernels, and at how many places of them, does not matter.
  Decision InlineFromNothing(const Instruction& i) const {
    if (target_.supports && !target_.supports(i)) return Decision::No("it is not compiled");
    for (const Use& use : i.uses()) {
      const Node& at = nodes_[number_.at(use.user)];
      if (Decision d = UserTakesInlined(use, at); !d) return d;
      if (!target_.can_fuse) continue;
      for (int32_t k : at.kernels)
        if (Decision d = target_.can_fuse(i, *use.user, *order_[k]); !d) return d;
    }
    return Decision::Yes();
  }

  Decision Inline(int32_t n, Node& node) {
    Instruction* i = order_[n];
    if (i == computation_.root()) return Decision::No("it is the result");
    if (i->use_count() == 0) return Decision::No("it is not used");
    if (i->op() == Op::Bitcast && IsOfOtherSize(*i)) return Decision::No("it is its operand's memory");
    const bool reduces = IsRowReduce(*i);
    const bool multiplies = i->op() == Op::Dot && target_.products_in_kernels && i->shape().IsArray();
    if (!IsInlinable(*i) && !reduces && !multiplies)
      return Decision::No(Name(i->op()), " is not computed element by element");
    const Cost cost = CostOf(*i);
    if (IsMadeFromNothing(*i)) return InlineFromNothing(*i);
    const bool scalar = i->shape().num_elements() == 1;
    for (const Use& use : i->uses()) {
      const Instruction& user = *use.user;
      const Node& at = nodes_[number_.at(use.user)];
      if (Decision d = UserTakesInlined(use, at); !d) return d;
      const int64_t row = RowOfUse(*i, user, at);
      node.row = &use == &i->uses().front() || node.row == row ? row : 0;
      const bool once = row > 0 || SpreadsWithinGroups(user, at);
      const int64_t factor = once ? 1 : RepeatFactor(user, use.operand_number);
      int64_t repeat = SaturatingMultiply(at.repeat, factor);
      node.repeat = std::max(node.repeat, repeat);
      const bool looks_up = user.op() == Op::Gather && use.operand_number == 0;
      node.looked_up =
          std::max(node.looked_up, SaturatingMultiply(at.inlined ? at.looked_up : 1, looks_up ? factor : 1));
      node.look_ups = std::max(
          {node.look_ups, at.inlined ? LookUpsOf(*i, user, at) : 0, looks_up ? user.shape().num_elements() : 0});
      AddPlaces(use, at, node.places);
      if (node.places.size() > kMaxPlaces[0] * kMaxCheapKernels && !scalar)
        return Decision::No("it would be computed at too many places");
      node.padded = std::max(node.padded,
                             SaturatingMultiply(at.inlined ? at.padded : 1, PaddingFactor(user, use.operand_number)));
      for (int32_t k : at.kernels) {
        if (std::find(node.kernels.begin(), node.kernels.end(), k) != node.kernels.end()) continue;
        const bool contracted = ContractedOperand(user) == use.operand_number;
        if (kernel_size_[k] >= MostInKernel(*order_[k]) && !contracted)
          return Decision::No("the kernel of %", order_[k]->name(), " is full");
        if (target_.can_fuse)
          if (Decision d = target_.can_fuse(*i, user, *order_[k]); !d) return d;
        node.kernels.push_back(k);
        if (node.kernels.size() > 1 && cost == Cost::Expensive)
          return Decision::No("%", order_[node.kernels[0]]->name(), " and %", order_[k]->name(),
                              " would both compute it, and it is expensive");
        if (node.kernels.size() > kMaxCheapKernels)
          return Decision::No("more than ", kMaxCheapKernels, " kernels would compute it");
      }
    }
    if (target_.supports && !target_.supports(*i)) return Decision::No("it is not compiled");
    if (reduces && (node.row != i->operand(0)->shape().dims().back() || node.kernels.size() > 1))
      return Decision::No("not only the row that it reduces uses it");
    if (std::ranges::any_of(i->uses(), [&](const Use& use) { return CrossesParts(*use.user, *i); }))
      return Decision::No("it is sliced across its parts");
    if (std::ranges::any_of(i->uses(), [&](const Use& use) { return ReordersShortRuns(*i, *use.user); }))
      return Decision::No("it is joined with others, and reads short runs in another order");
    // (Of parts that are summed with each other it is known which is which.)
    const auto sums_each = [&](const Instruction& r) {
      return r.op() == Op::Reduce && !IsShortReduce(r) && !Contains(r.dimensions(), i->dimensions()[0]);
    };
    if (JoinsShortRuns(*i) && IsReduced(node, sums_each))
      return Decision::No("its short parts would be told apart for each sum");
    if (JoinsStacks(*i) && IsComputedByParts(*i))
      return Decision::No("its parts are stacks, each of which has a loop of its own");
    if (i->op() == Op::Concatenate && node.look_ups >= kManyLookedUp &&
        SaturatingMultiply(node.look_ups, kJoinedALookUp) >= i->shape().num_elements() && PartsOf(*i) > kFewParts)
      return Decision::No("its parts would be told apart for each of ", node.look_ups, " look-ups");
    if (i->op() == Op::Concatenate && IsReduced(node, ReducesLargeWindows))
      return Decision::No("its parts would be told apart for each element of a window");
    if (IsCutIntoOtherRows(*i, node)) return Decision::No("it is cut into other rows, which are reduced");
    if (!scalar)
      if (Decision d = FewPlaces(*i, node, cost); !d) return d;
    if (node.kernels.size() > 1 && (IsSumOfExpensive(*i) || (!OnlyCheapOperands(*i, 0) && !IsMadeOfLittle(*i))))
      return Decision::No("several kernels would compute it");
    if (Decision d = RepeatsLessThanItSaves(*i, node, cost); !d) return d;
    if (node.padded > kMaxPadding && cost != Cost::Free && !scalar)
      return Decision::No("padding would compute each element ", node.padded, " times");
    if (node.looked_up > 1 && cost != Cost::Free && !scalar &&
        SaturatingMultiply(i->shape().num_elements(), node.looked_up) >= kManyLookedUp)
      return Decision::No("each element would be looked up, and computed, ", node.looked_up, " times");
    if (node.repeat > 1 && !scalar && (cost == Cost::Expensive || IsSumOfExpensive(*i)))
      return Decision::No("each element would be computed ", node.repeat, " times");
    return Decision::Yes();
  }

  // Several kernels that compute it read its operands each; if it is kept, one does, writes it, and each reads that.
  // So a chain of sums that each layer of a network adds to is not added up from its beginning in every layer.
  Decision RepeatsLessThanItSaves(const Instruction& i, const Node& node, Cost cost) const {
    const auto kernels = static_cast<int64_t>(node.kernels.size());
    if (kernels < 3 || cost == Cost::Free) return Decision::Yes();
    if (std::any_of(node.places.begin(), node.places.end(), [&](int32_t p) { return places_[p].part; }))
      return Decision::Yes();
    const int64_t own = i.shape().byte_size(), reads = BytesRead(i);
    const int64_t repeated = SaturatingMultiply(kernels, reads);
    const int64_t kept = SaturatingAdd(SaturatingAdd(reads, own), SaturatingMultiply(kernels, own));
    if (repeated <= SaturatingAdd(kept, kKernelBytes)) return Decision::Yes();
    return Decision::No(kernels, " kernels would read what it is computed from");
  }

  // What several kernels repeat must not pull in a long chain: its operands are leaves or nearly so.
  bool OnlyCheapOperands(const Instruction& i, int depth) const {
    if (CostOf(i) == Cost::Expensive || depth > 3) return false;
    for (int64_t k = 0; k < i.operand_count(); ++k) {
      const Instruction& o = *i.operand(k);
      if (!IsInlinable(o) || CostOf(o) == Cost::Expensive) continue;  // will be in memory
      if (o.use_count() > 1) continue;                                // judged on its own
      if (!OnlyCheapOperands(o, depth + 1)) return false;
    }
    return true;
  }

  // Of values that are expensive, which nobody else reads? They would be in memory instead.
  static bool IsSumOfExpensive(const Instruction& i, int depth = 0) {
    constexpr int kMostSums = 8;
    if (CostOf(i) != Cost::Cheap || i.operand_count() != 2 || depth == kMostSums) return false;
    return std::ranges::all_of(i.operands(), [&](const Instruction* o) {
      if (!IsInlinable(*o) || o->use_count() != 1 || o->shape().byte_size() < i.shape().byte_size()) return false;
      return CostOf(*o) == Cost::Expensive || IsSumOfExpensive(*o, depth + 1);
    });
  }

  // Does a little cheap arithmetic make it from arrays that are much smaller (a choice by an index of each row)? Then
  // it costs less to make it again than to read it.
  bool IsMadeOfLittle(const Instruction& i) const {
    constexpr size_t kMostSteps = 16;
    constexpr int64_t kLeastBytes = 1 << 16, kTimesSmaller = 64;
    const int64_t own = i.shape().byte_size();
    if (own < kLeastBytes) return false;
    std::vector<const Instruction*> found = {&i};
    for (size_t n = 0; n < found.size(); ++n) {
      const Instruction& at = *found[n];
      if (at.shape().byte_size() <= own / kTimesSmaller) continue;
      if (!IsInlinable(at) || CostOf(at) == Cost::Expensive) return false;
      for (const Instruction* o : at.operands())
        if (std::ranges::find(found, o) == found.end()) found.push_back(o);
      if (found.size() > kMostSteps) return false;
    }
    return true;
  }

  // A reshape of something in memory is free outside a kernel, and costs index arithmetic inside.
  void DropUselessReshapes() {
    for (size_t n = 0; n < order_.size(); ++n) {
      Node& node = nodes_[n];
      if (!node.inlined || order_[n]->op() != Op::Reshape) continue;
      if (!nodes_[number_.at(order_[n]->operand(0))].inlined) {
        node.inlined = false;
        node.kernels = {static_cast<int32_t>(n)};
      }
    }
  }

  void TellLimits() const {
    for (size_t n = 0; n < order_.size(); ++n) {
      const Instruction* i = order_[n];
      if (!nodes_[n].inlined && !IsAlias(*i) && !i->IsParameter() && !i->IsConstant()) limits_->push_back({i, why_[n]});
    }
  }

  // Makes the fusion instruction of root n, if anything was inlined into it.
  Status Emit(int32_t n) {
    Instruction* root = order_[n];
    if (nodes_[n].inlined || IsAlias(*root)) return OkStatus();
    std::vector<Instruction*> members;  // inlined ancestors of the root, operands first
    CollectMembers(root, members);
    if (members.empty()) return OkStatus();
    std::sort(members.begin(), members.end(),
              [this](Instruction* a, Instruction* b) { return number_.at(a) < number_.at(b); });
    if (std::all_of(members.begin(), members.end(), [](Instruction* m) { return m->op() == Op::Constant; }) &&
        !IsInlinable(*root) && root->op() != Op::DynamicUpdateSlice)
      return OkStatus();  // reduce with a constant initial value: the instruction says it all
    Computation* fused = module_.AddComputation("fused_computation");
    std::unordered_map<const Instruction*, Instruction*> inside;
    std::vector<Instruction*> operands;
    const bool updates = root->op() == Op::DynamicUpdateSlice;
    const bool separate_buffer = updates && !ReadsOnlyTheUpdatedWindow(*root, members);
    members.push_back(root);
    for (Instruction* m : members) {
      std::vector<Instruction*> args;
      for (int64_t k = 0; k < m->operand_count(); ++k) {
        Instruction* o = m->operand(k);
        auto it = inside.find(o);
        // The buffer that is overwritten is a parameter apart from one that is read elsewhere: the plan will copy.
        if (it == inside.end() || (m == root && k == 0 && separate_buffer)) {
          Instruction* p =
              fused->AddParameter(static_cast<int64_t>(operands.size()), o->shape(), StrCat("param_", operands.size()));
          operands.push_back(o);
          inside[o] = p;
          args.push_back(p);
          continue;
        }
        args.push_back(it->second);
      }
      inside[m] = fused->AddClone(*m, m->shape(), args);
    }
    fused->set_root(inside.at(root));
    FusionAttrs attrs;
    attrs.kind = root->op() == Op::Reduce || root->op() == Op::ReduceWindow ? FusionKind::Input : FusionKind::Loop;
    Instruction* fusion = computation_.Add(Op::Fusion, root->shape(), operands, attrs, FusionName(members), root);
    fusion->set_called({fused});
    if (root->has_metadata()) fusion->set_metadata(root->shared_metadata());
    for (Instruction* p : root->control_predecessors()) fusion->AddControlPredecessor(p);
    for (Instruction* s : root->control_successors()) s->AddControlPredecessor(fusion);
    root->ClearControlEdges();
    root->ReplaceAllUsesWith(fusion);
    number_[fusion] = n;
    order_[n] = fusion;  // later kernels take it as operand
    computation_.Remove(root);
    return OkStatus();
  }

  // Do the members read the buffer that `root` (a dynamic-update-slice) updates only where, and when, it is
  // overwritten: through a slice of the same window whose elements reach the update one by one?
  static bool ReadsOnlyTheUpdatedWindow(const Instruction& root, const std::vector<Instruction*>& members) {
    const Instruction* buffer = root.operand(0);
    const Shape& update = root.operand(1)->shape();
    std::unordered_map<const Instruction*, bool> member;
    for (const Instruction* m : members) member[m] = true;
    for (const Use& use : buffer->uses()) {
      const Instruction* reader = use.user;
      if (reader == &root && use.operand_number == 0) continue;
      if (!member.count(reader)) continue;
      if (use.operand_number != 0 || !ReadsWindow(*reader, root)) return false;
      std::vector<const Instruction*> stack = {reader};
      while (!stack.empty()) {
        const Instruction* at = stack.back();
        stack.pop_back();
        for (const Use& u : at->uses()) {
          if (u.user == &root && u.operand_number == 1) continue;
          if (u.user == &root) return false;  // the data decides where to write
          if (!member.count(u.user)) continue;
          if (!IsElementwise(u.user->op()) || !u.user->shape().SameDims(update)) return false;
          stack.push_back(u.user);
        }
      }
    }
    return true;
  }

  void CollectMembers(Instruction* root, std::vector<Instruction*>& members) {
    std::vector<Instruction*> stack = {root};
    ++epoch_;
    seen_.resize(module_.id_bound(), 0);
    while (!stack.empty()) {
      Instruction* at = stack.back();
      stack.pop_back();
      for (int64_t k = 0; k < at->operand_count(); ++k) {
        Instruction* o = at->operand(k);
        if (!nodes_[number_.at(o)].inlined || seen_[o->id()] == epoch_) continue;
        seen_[o->id()] = epoch_;
        members.push_back(o);
        stack.push_back(o);
      }
    }
  }

  // "exponential_add_fusion": the last few ops, so that profiles can be read.
  static std::string FusionName(const std::vector<Instruction*>& members) {
    std::vector<std::string_view> words;
    for (size_t n = members.size(); n-- > 0 && words.size() < 3;) {
      Op op = members[n]->op();
      if (op == Op::Constant || op == Op::Broadcast) continue;
      words.insert(words.begin(), Name(op));
    }
    std::string name;
    for (std::string_view w : words) StrAppend(name, w, "_");
    return name + "fusion";
  }

  Module& module_;
  Computation& computation_;
  const TargetInfo& target_;
  std::vector<FusionLimit>* limits_;
  std::vector<std::string> why_;  // by node, if limits_
  std::vector<Instruction*> order_;
  std::unordered_map<const Instruction*, int32_t> number_;
  std::vector<Node> nodes_;
  std::vector<Place> places_;
  std::vector<int> kernel_size_;
  std::vector<int64_t> seen_;
  int64_t epoch_ = 0;
};

}  // namespace

namespace plan_internal {

std::vector<Computation*> StepComputations(const Module& module) {
  std::vector<Computation*> out, stack = {module.entry()};
  std::unordered_map<Computation*, bool> seen;
  while (!stack.empty()) {
    Computation* at = stack.back();
    stack.pop_back();
    if (std::exchange(seen[at], true)) continue;
    out.push_back(at);
    for (Instruction* i : at->instructions())
      if (Is(i->op(), kControlFlow))
        for (Computation* c : i->called()) stack.push_back(c);
  }
  return out;
}

}  // namespace plan_internal

Status FuseModule(Module& module, const TargetInfo& target, std::vector<FusionLimit>* limits) {
  for (Computation* c : plan_internal::StepComputations(module)) {
    plan_internal::WriteProductsTransposed(*c, target);
    plan_internal::ReinterpretInMemory(*c);
    plan_internal::MakeWhatIsWrittenOverApart(*c);
    STROP_TRY(Fuser(module, *c, target, limits).Run());
    plan_internal::FormBands(module, *c, target, limits);
  }
  module.set_stage(Stage::Fused);
  return OkStatus();
}

}  // namespace strop
