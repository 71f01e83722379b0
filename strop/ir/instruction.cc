#include "strop/ir/instruction.h"

#include <algorithm>
#include <unordered_set>

#include "strop/ir/module.h"
#include "strop/ir/printer.h"
#include "strop/ir/source_line.h"

namespace strop {

std::optional<Op> ParseOp(std::string_view text) {
  static const std::map<std::string_view, Op>* const kByText = [] {
    auto* map = new std::map<std::string_view, Op>;
    for (const OpInfo& info : kOps) map->emplace(info.text, info.op);
    return map;
  }();
  auto it = kByText->find(text);
  if (it == kByText->end()) return std::nullopt;
  return it->second;
}

Attrs DefaultAttrs(Op op) {
  switch (op) {
#define OP(e, text, arity, traits, A, callees) \
  case Op::e: return A{};
#include "strop/ir/ops.def"
#undef OP
    case Op::kEnd: break;
  }
  return NoAttrs{};
}

AttrsKind AttrsKindOfOp(Op op) {
  switch (op) {
#define OP(e, text, arity, traits, A, callees) \
  case Op::e: return AttrsKindOf<A>::kind;
#include "strop/ir/ops.def"
#undef OP
    case Op::kEnd: break;
  }
  return AttrsKind::kNoAttrs;
}

Module* Instruction::module() const { return parent_->module(); }
bool Instruction::IsRoot() const { return parent_->root() == this; }

std::vector<Instruction*> Instruction::operands() const {
  std::vector<Instruction*> out;
  out.reserve(operands_.size());
  for (const Operand& o : operands_) out.push_back(o.value);
  return out;
}

std::vector<Instruction*> Instruction::users() const {
  std::vector<Instruction*> out;
  out.reserve(uses_.size());
  for (const Use& u : uses_) out.push_back(u.user);
  std::sort(out.begin(), out.end(), [](Instruction* a, Instruction* b) { return a->id() < b->id(); });
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

// ---- use edges: operands_[i].use_index names the entry in the operand's uses_, and that entry names i
// ----------------

void Instruction::Link(int64_t i, Instruction* value) {
  operands_[i] = Operand{value, static_cast<uint32_t>(value->uses_.size())};
  value->uses_.push_back(Use{this, static_cast<uint32_t>(i)});
}

void Instruction::Unlink(int64_t i) {
  const Operand edge = operands_[i];
  std::vector<Use>& uses = edge.value->uses_;
  uses[edge.use_index] = uses.back();
  const Use& moved = uses[edge.use_index];
  moved.user->operands_[moved.operand_number].use_index = edge.use_index;
  uses.pop_back();
}

void Instruction::SetOperand(int64_t i, Instruction* value) {
  if (operands_[i].value == value) return;
  Unlink(i);
  Link(i, value);
}

void Instruction::AppendOperand(Instruction* value) {
  operands_.push_back(Operand{});
  Link(operand_count() - 1, value);
}

void Instruction::RemoveOperand(int64_t i) {
  Unlink(i);
  for (int64_t k = i; k + 1 < operand_count(); ++k) {
    operands_[k] = operands_[k + 1];
    operands_[k].value->uses_[operands_[k].use_index].operand_number = static_cast<uint32_t>(k);
  }
  operands_.pop_back();
}

void Instruction::ReplaceAllUsesWith(Instruction* other) {
  STROP_CHECK(other != this);
  size_t kept = 0;  // uses in `other` itself stay
  while (uses_.size() > kept) {
    Use use = uses_[kept];
    if (use.user == other)
      ++kept;
    else
      use.user->SetOperand(use.operand_number, other);
  }
  if (parent_ && parent_->root() == this) parent_->set_root(other);
  if (!other->has_metadata() && has_metadata()) other->set_metadata(shared_metadata());
  if (other->frontend_attributes().empty() && !frontend_attributes().empty())
    other->set_frontend_attributes(frontend_attributes());
}

// ---- extras ---------------------------------------------------------------------------------------------------------

namespace {
const InstructionExtra& NoExtra() {
  static const InstructionExtra kNone;
  return kNone;
}
}  // namespace

InstructionExtra& Instruction::extra() {
  if (!extra_) extra_ = std::make_unique<InstructionExtra>();
  return *extra_;
}

const OpMetadata& Instruction::metadata() const {
  static const OpMetadata kNone;
  return has_metadata() ? *extra_->metadata : kNone;
}
const FrontendAttributes& Instruction::frontend_attributes() const {
  return (extra_ ? *extra_ : NoExtra()).frontend_attributes;
}
const std::string& Instruction::backend_config() const { return (extra_ ? *extra_ : NoExtra()).backend_config; }
const std::string& Instruction::origin() const { return (extra_ ? *extra_ : NoExtra()).origin; }
const std::string& Instruction::statistics() const { return (extra_ ? *extra_ : NoExtra()).statistics; }
const std::vector<Instruction*>& Instruction::control_predecessors() const {
  return (extra_ ? *extra_ : NoExtra()).control_predecessors;
}
const std::vector<Instruction*>& Instruction::control_successors() const {
  return (extra_ ? *extra_ : NoExtra()).control_successors;
}

void Instruction::AddControlPredecessor(Instruction* predecessor) {
  std::vector<Instruction*>& list = extra().control_predecessors;
  if (std::find(list.begin(), list.end(), predecessor) != list.end()) return;
  list.push_back(predecessor);
  predecessor->extra().control_successors.push_back(this);
}

void Instruction::ClearControlEdges() {
  if (!extra_) return;
  auto erase = [this](std::vector<Instruction*>& list) {
    list.erase(std::remove(list.begin(), list.end(), this), list.end());
  };
  for (Instruction* p : extra_->control_predecessors) erase(p->extra().control_successors);
  for (Instruction* s : extra_->control_successors) erase(s->extra().control_predecessors);
  extra_->control_predecessors.clear();
  extra_->control_successors.clear();
}

void Instruction::CopyExtrasFrom(const Instruction& other) {
  if (!other.extra_) return;
  InstructionExtra& mine = extra();
  const InstructionExtra& theirs = *other.extra_;
  mine.metadata = theirs.metadata;
  mine.sharding = theirs.sharding;
  mine.frontend_attributes = theirs.frontend_attributes;
  mine.backend_config = theirs.backend_config;
  mine.origin = theirs.origin;
  mine.statistics = theirs.statistics;
}

std::string Instruction::Where() const {
  std::string location = SourceLine(*this);
  if (!location.empty()) return location;
  return "%" + name_;
}

std::string Instruction::ToString() const { return PrintInstruction(*this); }

namespace {
bool HasOwnSideEffect(const Instruction& i) {
  return Is(i.op(), kSideEffect | kCollective) ||
         (i.op() == Op::CustomCall && i.attrs<CustomCallAttrs>().has_side_effect);
}
}  // namespace

bool Instruction::HasSideEffect() const {
  if (HasOwnSideEffect(*this)) return true;
  if (called_.empty()) return false;
  std::unordered_set<const Computation*> seen;
  std::vector<const Computation*> pending(called_.begin(), called_.end());
  while (!pending.empty()) {
    const Computation* c = pending.back();
    pending.pop_back();
    if (!seen.insert(c).second) continue;
    for (const Instruction* i : c->instructions()) {
      if (HasOwnSideEffect(*i)) return true;
      pending.insert(pending.end(), i->called().begin(), i->called().end());
    }
  }
  return false;
}

bool Instruction::IsSplat(double value) const {
  const Instruction* at = this;
  while (at->op_ == Op::Broadcast) at = at->operand(0);
  return at->op_ == Op::Constant && at->literal().shape().IsArray() && at->literal().IsAllEqualTo(value);
}

}  // namespace strop
