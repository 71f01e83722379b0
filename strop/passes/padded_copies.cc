// Reads a loop's state from its padded copy, where it would have to be kept beside the new state otherwise:
//
//   body: %u, %v of the state; %p = pad(%u), %q = pad(%v), of which stencils read many shifts
//         new u: f(%p, %u, %v); new v: g(%q, %u, %v)           %u and %v are needed until both are known, so that each
//                                                              is computed elsewhere and copied into its place
//   ->    %u' = slice(%p), %v' = slice(%q)
//         new u: f(%p, %u', %v'); new v: g(%q, %u', %v')       %u and %v are free once %p and %q are made
#include <algorithm>
#include <set>

#include "strop/ir/builder.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

// Slices of a padded array from which on fusion keeps it in memory.
constexpr size_t kFewestShifts = 5;

// Is all of its operand inside, and read shifted so often that it will be in memory?
bool IsCopy(const Instruction& pad) {
  if (pad.op() != Op::Pad || pad.HasControlEdges() || !pad.operand(1)->IsConstant()) return false;
  for (const PaddingDim& d : pad.attrs<PadAttrs>().padding)
    if (d.low < 0 || d.high < 0 || d.interior != 0) return false;
  std::set<std::vector<int64_t>> shifts;
  for (const Use& use : pad.uses()) {
    if (use.user->op() != Op::Slice) return false;
    std::vector<int64_t> start;
    for (const SliceDim& d : use.user->attrs<SliceAttrs>().slice) start.push_back(d.start);
    shifts.insert(std::move(start));
  }
  return shifts.size() >= kFewestShifts;
}

// The padded copy of an element of the state, and the reshape that it is made of if that is not the element itself.
struct Copy {
  Instruction* pad = nullptr;
  Instruction* of = nullptr;
};
Copy CopyOf(Instruction* state) {
  for (const Use& use : state->uses()) {
    if (IsCopy(*use.user) && use.operand_number == 0) return {use.user, state};
    if (use.user->op() != Op::Reshape || use.user->HasControlEdges()) continue;
    for (const Use& further : use.user->uses())
      if (IsCopy(*further.user) && further.operand_number == 0) return {further.user, use.user};
  }
  return {};
}

// Does another element of the new state depend on it, by other ways than its copy?
bool OthersDepend(const Instruction& state, const Copy& copy, const Instruction& root) {
  std::set<const Instruction*> seen = {copy.pad};
  std::vector<const Instruction*> stack = {&state};
  while (!stack.empty()) {
    const Instruction* at = stack.back();
    stack.pop_back();
    for (const Use& use : at->uses()) {
      if (use.user == &root && static_cast<int64_t>(use.operand_number) != state.tuple_index()) return true;
      if (use.user != &root && seen.insert(use.user).second) stack.push_back(use.user);
    }
  }
  return false;
}

// A kernel that computes it element by element can read the copy, at another place.
bool ReadsElements(const Instruction& user) {
  return IsElementwise(user.op()) || user.op() == Op::Slice || user.op() == Op::Pad || user.op() == Op::Broadcast;
}

bool ReadFromCopy(Instruction* state, Instruction* root) {
  const Copy copy = CopyOf(state);
  if (!copy.pad || root->operand(state->tuple_index()) == state || !OthersDepend(*state, copy, *root)) return false;
  Builder b(state->parent());
  SliceDims inside;
  for (int64_t d = 0; d < copy.of->shape().rank(); ++d) {
    const int64_t low = copy.pad->attrs<PadAttrs>().padding[static_cast<size_t>(d)].low;
    inside.push_back({low, low + copy.of->shape().dim(d), 1});
  }
  // Sums read the state as it lies, before it is overwritten if their turn comes so early.
  const auto stays = [&](const Instruction* user) {
    return user == copy.of || user == copy.pad || user == root || user->op() == Op::Reduce;
  };
  std::vector<Use> of_state, of_reshaped;
  for (const Use& use : state->uses())
    if (!stays(use.user)) of_state.push_back(use);
  if (copy.of != state)
    for (const Use& use : copy.of->uses())
      if (!stays(use.user)) of_reshaped.push_back(use);
  const auto reads_elements = [](const Use& use) { return ReadsElements(*use.user); };
  if (!std::ranges::all_of(of_state, reads_elements) || !std::ranges::all_of(of_reshaped, reads_elements)) return false;
  b.set_insert_before(copy.pad->next());
  Instruction* slice = b.Make(Op::Slice, {copy.pad}, SliceAttrs{inside});
  Instruction* whole = b.Reshape(slice, state->shape().dims());
  if (!b.status().ok()) return false;
  for (const Use& use : of_state) use.user->SetOperand(use.operand_number, whole);
  for (const Use& use : of_reshaped) use.user->SetOperand(use.operand_number, slice);
  return true;
}

struct PaddedCopies final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t read = 0;
    std::vector<Computation*> bodies;
    for (Computation* c : module.computations())
      for (Instruction* i : c->instructions())
        if (i->op() == Op::While && std::ranges::find(bodies, i->body()) == bodies.end()) bodies.push_back(i->body());
    for (Computation* body : bodies) {
      if (body->root()->op() != Op::Tuple) continue;
      std::vector<Instruction*> states;
      for (Instruction* i : body->instructions())
        if (i->op() == Op::GetTupleElement && i->operand(0) == body->parameter(0) && i->shape().IsArray() &&
            i->shape().IsStatic())
          states.push_back(i);
      int64_t of_body = 0;
      for (Instruction* state : states) of_body += ReadFromCopy(state, body->root());
      if (of_body > 0) body->SortTopologically();
      read += of_body;
    }
    context.Count("padded-copies.read", read);
    return read > 0;
  }
};

}  // namespace

std::unique_ptr<Pass> MakePaddedCopies() { return std::make_unique<PaddedCopies>(); }

}  // namespace strop
