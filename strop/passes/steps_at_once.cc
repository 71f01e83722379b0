// What each trip computes of the inputs it takes by its number, and of nothing that trips hand on, is computed for all
// trips at once in front of the loop, where vectors are full:
//
//   body: %x = f32[1] dynamic-slice(%xs, %i)            %all = f32[2000] tanh(%xs)
//         %t = f32[] tanh(reshape(%x))            ->    body: %t = reshape(dynamic-slice(%all, %i))
//         %h = f32[] multiply(%h', %t)                        %h = multiply(%h', %t)
//
// So are random numbers of a chain that takes a key a step (jax.random.split before lax.scan): the rounds of threefry
// are a loop of their own, which is unrolled first, as loops over large arrays are. It is a vmap of these instructions
// over the trips. Values of a trip are small; larger ones fill vectors inside the loop as well. A product that a sum
// adds unrounded stays beside it, as do values of 16 bits, which are not rounded between two operations
// (docs/adr/0014-contraction.md).
#include "strop/passes/steps_at_once.h"

#include <algorithm>

#include "strop/ir/builder.h"
#include "strop/ir/contraction.h"
#include "strop/passes/loop_unroller.h"

namespace strop {
namespace {

constexpr int64_t kFewestSteps = 16, kMostElements = 64;  // of a step's values
constexpr int64_t kLeastCode = 16, kFloatMathCode = 20;   // an element: less is computed as soon as read
constexpr int64_t kMostBytes = int64_t{8} << 20;          // of what is put aside for all trips

bool IsSmallArray(const Instruction& i) {
  return i.shape().IsArray() && i.shape().IsStatic() && i.shape().num_elements() <= kMostElements;
}

// Each shape with the trips in front.
Int64Vector WithSteps(int64_t steps, const Int64Vector& dims) {
  Int64Vector all = {steps};
  for (int64_t d : dims) all.push_back(d);
  return all;
}

// What unrolled bodies hand on in tuples, directly.
void ReadTuplesDirectly(Computation* body) {
  std::vector<Instruction*> reads;
  for (Instruction* i : body->instructions())
    if (i->op() == Op::GetTupleElement && i->operand(0)->op() == Op::Tuple) reads.push_back(i);
  for (Instruction* i : reads) i->ReplaceAllUsesWith(i->operand(0)->operand(i->tuple_index()));
}

}  // namespace

// A slice of one step of an array of all of them, by the index that all such slices have in common.
bool StepsAtOnce::TakesStep(Instruction& i, const IsInvariant& invariant) {
  if (i.op() != Op::DynamicSlice || i.HasControlEdges() || !invariant(*i.operand(0))) return false;
  const Shape& all = i.operand(0)->shape();
  if (!all.IsStatic() || all.rank() == 0 || i.shape().dim(0) != 1 || all.dim(0) < kFewestSteps ||
      all.dim(0) > 2 * counter_.trips || counter_.trips < kFewestSteps || i.operand_count() != 1 + all.rank())
    return false;
  for (int64_t d = 1; d < all.rank(); ++d)
    if (i.shape().dim(d) != all.dim(d)) return false;
  if (!index_) {
    index_ = i.operand(1);
    steps_ = all.dim(0);
  }
  return index_ == i.operand(1) && steps_ == all.dim(0);
}

bool StepsAtOnce::MayBatch(const Instruction& i) const {
  if (i.HasControlEdges() || !IsSmallArray(i)) return false;
  switch (i.op()) {
    case Op::Broadcast:
    case Op::Reshape:
    case Op::Slice:
    case Op::Concatenate: return true;
    case Op::BitcastConvert: return Bits(i.shape().type()) == Bits(i.operand(0)->shape().type());
    default: return IsElementwise(i.op()) && i.operand_count() > 0;
  }
}

// A product that a sum of the trip adds without rounding stays with it.
bool StepsAtOnce::KeepContracted() {
  bool kept = false;
  for (const Instruction* i : body_->instructions()) {
    const int64_t k = ContractedOperand(*i);
    if (k < 0 || IsOfInputs(i) || !IsOfInputs(i->operand(k))) continue;
    kept |= kept_.insert(i->operand(k)).second;
  }
  return kept;
}

// Instructions come before their users in the list.
void StepsAtOnce::FindOfInputs(const IsInvariant& invariant) {
  kept_.clear();
  do {
    index_ = nullptr;
    of_inputs_.assign(body_->module()->id_bound(), false);
    for (Instruction* i : body_->instructions()) {
      if (TakesStep(*i, invariant)) {
        of_inputs_[static_cast<size_t>(i->id())] = IsSmallArray(*i);
        continue;
      }
      bool some = false, all = MayBatch(*i) && !kept_.contains(i);
      for (int64_t k = 0; all && k < i->operand_count(); ++k) {
        const Instruction* operand = i->operand(k);
        some |= IsOfInputs(operand);
        all = IsOfInputs(operand) || (invariant(*operand) && IsSmallArray(*operand));
      }
      of_inputs_[static_cast<size_t>(i->id())] = some && all;
    }
  } while (KeepContracted());
}

bool StepsAtOnce::UnrollLoopsOfInputs(const IsInvariant& invariant) {
  FindOfInputs(invariant);
  std::vector<std::pair<Instruction*, int64_t>> loops;
  for (Instruction* i : body_->instructions()) {
    if (i->op() != Op::While || i->operand(0)->op() != Op::Tuple || i->IsRoot()) continue;
    bool some = false, all = true;
    for (const Instruction* operand : i->operand(0)->operands()) {
      some |= IsOfInputs(operand);
      all &= IsOfInputs(operand) || (invariant(*operand) && IsSmallArray(*operand));
    }
    const std::optional<Counter> counter = some && all ? FindCounter(*i) : std::nullopt;
    if (counter && IsShortElementwiseLoop(*i, counter->trips)) loops.push_back({i, counter->trips});
  }
  for (auto [loop, trips] : loops) UnrollLoop(loop, trips);
  if (!loops.empty()) ReadTuplesDirectly(body_);
  return !loops.empty();
}

// Of one trip: what is computed of inputs alone, once each.
int64_t StepsAtOnce::CodeOf(const Instruction& root) const {
  std::vector<const Instruction*> found = {&root};
  int64_t code = 0;
  for (size_t n = 0; n < found.size() && code < kLeastCode; ++n) {
    const Instruction& i = *found[n];
    if (i.op() == Op::DynamicSlice) continue;
    if (IsElementwise(i.op())) code += Is(i.op(), kFloatMath) ? kFloatMathCode : 1;
    for (const Instruction* operand : i.operands())
      if (IsOfInputs(operand) && std::find(found.begin(), found.end(), operand) == found.end())
        found.push_back(operand);
  }
  return code;
}

// An operand for all trips, in the dimensions that elementwise users have.
Instruction* StepsAtOnce::AllLike(Instruction* i, const Int64Vector& dims) {
  const bool of_inputs = IsOfInputs(i);
  Instruction* all = of_inputs ? All(i) : i;
  const Int64Vector own = all->shape().dims();
  if (own == dims) return all;
  Dims at;  // a scalar in front of which the trips are, or an array behind them
  for (size_t d = 0; d < own.size(); ++d)
    at.push_back(static_cast<int64_t>(of_inputs ? d : dims.size() - own.size() + d));
  Builder b(body_);
  b.set_insert_before(before_);
  return b.Broadcast(all, dims, at);
}

Instruction* StepsAtOnce::All(Instruction* i) {
  if (const auto done = all_.find(i); done != all_.end()) return done->second;
  Builder b(body_);
  b.set_insert_before(before_);
  if (i->has_metadata()) b.set_metadata(i->shared_metadata());
  const Int64Vector dims = WithSteps(steps_, i->shape().dims());
  Instruction* all = nullptr;
  switch (i->op()) {
    case Op::DynamicSlice: all = b.Reshape(i->operand(0), dims); break;
    case Op::Reshape: all = b.Reshape(All(i->operand(0)), dims); break;
    case Op::BitcastConvert: all = b.BitcastConvert(All(i->operand(0)), i->shape().type()); break;
    case Op::Broadcast: {
      Dims at = {0};
      for (int64_t d : i->dimensions()) at.push_back(d + 1);
      all = b.Broadcast(All(i->operand(0)), dims, at);
      break;
    }
    case Op::Slice: {
      Dims start = {0}, limit = {steps_}, stride = {1};
      for (const SliceDim& d : i->attrs<SliceAttrs>().slice) {
        start.push_back(d.start);
        limit.push_back(d.limit);
        stride.push_back(d.stride);
      }
      all = b.Slice(All(i->operand(0)), start, limit, stride);
      break;
    }
    case Op::Concatenate: {
      std::vector<Instruction*> parts;
      for (Instruction* part : i->operands()) parts.push_back(AllLike(part, WithSteps(steps_, part->shape().dims())));
      all = b.Make(Op::Concatenate, parts, DimensionsAttrs{{i->dimensions()[0] + 1}}, {}, nullptr);
      break;
    }
    default: {
      std::vector<Instruction*> operands;
      for (Instruction* operand : i->operands()) operands.push_back(AllLike(operand, dims));
      all = body_->AddClone(*i, Shape::Array(i->shape().type(), dims), operands, nullptr, before_);
    }
  }
  return all_[i] = all;
}

// Values that leave what is computed of inputs alone, and are worth it.
std::vector<Instruction*> StepsAtOnce::Chosen() const {
  std::vector<Instruction*> chosen;
  int64_t bytes = 0;
  for (Instruction* i : body_->instructions()) {
    if (!IsOfInputs(i) || i->op() == Op::DynamicSlice) continue;
    const bool narrow = IsFloat(i->shape().type()) && Bits(i->shape().type()) < 32;
    const bool leaves = std::ranges::any_of(i->uses(), [&](const Use& use) { return !IsOfInputs(use.user); });
    if (!leaves || narrow || CodeOf(*i) < kLeastCode) continue;
    bytes = SaturatingAdd(bytes, SaturatingMultiply(steps_, i->shape().byte_size()));
    if (bytes > kMostBytes) break;
    chosen.push_back(i);
  }
  return chosen;
}

// The trip's own of what was computed for all, in the place of `i`.
bool StepsAtOnce::TakeOwn(Instruction* i, Instruction* all) {
  Builder b(body_);
  b.set_insert_before(i);
  if (i->has_metadata()) b.set_metadata(i->shared_metadata());
  DynamicSliceAttrs one;
  std::vector<Instruction*> operands = {all, index_};
  for (int64_t d = 0; d < all->shape().rank(); ++d) one.sizes.push_back(d == 0 ? 1 : all->shape().dim(d));
  while (static_cast<int64_t>(operands.size()) <= all->shape().rank())
    operands.push_back(b.Scalar(index_->shape().type(), 0));
  Instruction* own = b.Reshape(b.Make(Op::DynamicSlice, operands, one, {}, nullptr), i->shape().dims());
  if (!own || !b.status().ok()) return false;
  for (const Use& use : std::vector<Use>(i->uses().begin(), i->uses().end()))
    if (!IsOfInputs(use.user)) use.user->SetOperand(use.operand_number, own);
  return true;
}

std::vector<Instruction*> StepsAtOnce::Compute(const IsInvariant& invariant) {
  FindOfInputs(invariant);
  std::vector<Instruction*> made;
  if (!index_) return made;
  for (Instruction* i : Chosen()) {
    before_ = i;
    Instruction* all = All(i);
    if (!all || !TakeOwn(i, all)) break;
    made.push_back(all);
  }
  return made;
}

}  // namespace strop
