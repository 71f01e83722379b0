#include "strop/ir/module.h"

#include <algorithm>
#include <set>

#include "strop/base/cursor.h"
#include "strop/ir/printer.h"

namespace strop {

std::string_view Name(Stage stage) {
  static constexpr std::string_view kNames[] = {"imported", "optimized", "partitioned",
                                                "laid-out", "fused",     "scheduled"};
  return kNames[static_cast<size_t>(stage)];
}

// ---- Computation: list
// ------------------------------------------------------------------------------------------------

bool Computation::IsEntry() const { return module_->entry() == this; }

void Computation::LinkBefore(Instruction* instruction, Instruction* before) {
  instruction->next_ = before;
  instruction->prev_ = before ? before->prev_ : last_;
  (instruction->prev_ ? instruction->prev_->next_ : first_) = instruction;
  (before ? before->prev_ : last_) = instruction;
  ++count_;
}

void Computation::UnlinkFromList(Instruction* instruction) {
  (instruction->prev_ ? instruction->prev_->next_ : first_) = instruction->next_;
  (instruction->next_ ? instruction->next_->prev_ : last_) = instruction->prev_;
  instruction->prev_ = instruction->next_ = nullptr;
  --count_;
}

void Computation::MoveBefore(Instruction* instruction, Instruction* before) {
  if (instruction == before) return;
  UnlinkFromList(instruction);
  LinkBefore(instruction, before);
}

std::vector<Instruction*> Computation::PostOrder() const {
  std::vector<Instruction*> order;
  order.reserve(count_);
  enum : uint8_t { kNew, kOpen, kDone };
  std::vector<uint8_t> state(module_->id_bound(), kNew);
  struct Frame {
    Instruction* at;
    int64_t next = 0;  // operand, then control predecessor to visit
  };
  std::vector<Frame> stack;
  for (Instruction* start : instructions()) {
    if (state[start->id()] != kNew) continue;
    stack.push_back({start});
    state[start->id()] = kOpen;
    while (!stack.empty()) {
      Frame& frame = stack.back();
      const int64_t operands = frame.at->operand_count();
      const auto& control = frame.at->control_predecessors();
      if (frame.next == operands + static_cast<int64_t>(control.size())) {
        state[frame.at->id()] = kDone;
        order.push_back(frame.at);
        stack.pop_back();
        continue;
      }
      int64_t i = frame.next++;
      Instruction* before = i < operands ? frame.at->operand(i) : control[i - operands];
      if (state[before->id()] != kNew) continue;  // an open one closes a cycle: the verifier reports it
      state[before->id()] = kOpen;
      stack.push_back({before});
    }
  }
  return order;
}

void Computation::SortTopologically() {
  std::vector<Instruction*> order = PostOrder();
  first_ = last_ = nullptr;
  count_ = 0;
  for (Instruction* i : order) LinkBefore(i, nullptr);
}

// ---- Computation: making and removing
// -----------------------------------------------------------------------------------

Instruction* Computation::Add(Op op, Shape shape, std::span<Instruction* const> operands, Attrs attrs, std::string name,
                              Instruction* before) {
  Instruction* made = module_->NewInstruction();
  made->op_ = op;
  made->shape_ = std::move(shape);
  made->set_attrs(std::move(attrs));
  made->parent_ = this;
  made->name_ = module_->instruction_names_.Unique(name.empty() ? std::string_view(Name(op)) : std::string_view(name));
  for (Instruction* o : operands) made->AppendOperand(o);
  LinkBefore(made, before);
  if (op == Op::Parameter && made->any_attrs().is<ParameterAttrs>()) {
    size_t number = static_cast<size_t>(made->parameter_number());
    // Parsers check the range before; here a lie must not allocate.
    if (number < 1u << 24) {
      if (parameters_.size() <= number) parameters_.resize(number + 1, nullptr);
      parameters_[number] = made;
    }
  }
  return made;
}

Instruction* Computation::AddConstant(Literal literal, Instruction* before) {
  Shape shape = literal.shape();
  return Add(Op::Constant, std::move(shape), {}, ConstantAttrs{std::move(literal)}, {}, before);
}

Instruction* Computation::AddParameter(int64_t number, Shape shape, std::string name) {
  ParameterAttrs attrs;
  attrs.number = number;
  return Add(Op::Parameter, std::move(shape), {}, std::move(attrs), std::move(name));
}

Instruction* Computation::AddClone(const Instruction& original, const Shape& shape,
                                   std::span<Instruction* const> operands,
                                   const std::map<const Computation*, Computation*>* callee_map, Instruction* before) {
  Instruction* made = Add(original.op(), shape, operands, NoAttrs{}, original.name(), before);
  made->attrs_ = original.attrs_;
  SmallVector<Computation*, 2> called;
  for (Computation* c : original.called()) {
    auto it = callee_map ? callee_map->find(c) : std::map<const Computation*, Computation*>::const_iterator();
    called.push_back(callee_map && it != callee_map->end() ? it->second : c);
  }
  made->set_called(called);
  made->CopyExtrasFrom(original);
  if (original.op() == Op::Parameter) {
    size_t number = static_cast<size_t>(original.parameter_number());
    if (parameters_.size() <= number) parameters_.resize(number + 1, nullptr);
    parameters_[number] = made;
  }
  return made;
}

void Computation::Remove(Instruction* instruction) {
  STROP_CHECK(instruction->parent_ == this && instruction->uses_.empty() && instruction != root_);
  for (Instruction* p : instruction->control_predecessors())
    for (Instruction* s : instruction->control_successors()) s->AddControlPredecessor(p);
  instruction->ClearControlEdges();
  while (instruction->operand_count() > 0) {
    instruction->Unlink(instruction->operand_count() - 1);
    instruction->operands_.pop_back();
  }
  UnlinkFromList(instruction);
  if (instruction->IsParameter())
    for (Instruction*& p : parameters_)
      if (p == instruction) p = nullptr;
  module_->instruction_names_.taken.erase(instruction->name_);
  instruction->parent_ = nullptr;
  instruction->called_.clear();
  instruction->attrs_ = {};
  instruction->extra_.reset();
}

void Computation::Replace(Instruction* old, Instruction* replacement) {
  old->ReplaceAllUsesWith(replacement);
  std::vector<Instruction*> dead = {old};
  while (!dead.empty()) {
    Instruction* at = dead.back();
    dead.pop_back();
    if (at->parent_ != this || !at->uses_.empty() || at == root_ || at == replacement) continue;
    if (at != old && (at->IsParameter() || at->HasSideEffect() || !at->control_successors().empty())) continue;
    std::vector<Instruction*> operands = at->operands();
    Remove(at);
    dead.insert(dead.end(), operands.begin(), operands.end());
  }
}

Instruction* Computation::ReplaceWithNew(Instruction* old, Op op, Shape shape,
                                         std::initializer_list<Instruction*> operands, Attrs attrs) {
  Instruction* made = Add(op, std::move(shape), std::span<Instruction* const>(operands.begin(), operands.size()),
                          std::move(attrs), {}, old);
  if (old->sharding()) made->set_sharding(*old->sharding());
  Replace(old, made);
  return made;
}

void Computation::RemoveParameter(int64_t i) {
  Instruction* gone = parameters_[i];
  Remove(gone);
  parameters_.erase(parameters_.begin() + i);
  for (int64_t k = i; k < parameter_count(); ++k) {
    ParameterAttrs attrs = parameters_[k]->attrs<ParameterAttrs>();
    attrs.number = k;
    parameters_[k]->set_attrs(std::move(attrs));
  }
}

std::string Computation::ToString() const { return PrintComputation(*this); }

// ---- Module
// -------------------------------------------------------------------------------------------------------------

Instruction* Module::NewInstruction() {
  instruction_pool_.emplace_back();
  instruction_pool_.back().id_ = next_id_++;
  return &instruction_pool_.back();
}

// "add" -> "add", then "add.1", "add.2"; "add.7" taken -> "add.8" or later.
// What HLO text cannot write in a name becomes '_'.
std::string Module::NameSpace::Unique(std::string_view wanted) {
  std::string clean;
  if (wanted.empty() || !IsWordStart(wanted[0]) || !std::all_of(wanted.begin(), wanted.end(), IsWordChar)) {
    clean = AsWord(wanted);
    wanted = clean;
  }
  if (taken.emplace(wanted).second) return std::string(wanted);
  std::string_view stem = wanted;
  size_t dot = wanted.rfind('.');
  if (dot != wanted.npos && dot > 0 && ParseNumber<int64_t>(wanted.substr(dot + 1))) stem = wanted.substr(0, dot);
  int64_t& suffix = last_suffix[std::string(stem)];
  for (;;) {
    std::string candidate = StrCat(stem, ".", ++suffix);
    if (taken.insert(candidate).second) return candidate;
  }
}

Computation* Module::AddComputation(std::string name) {
  computation_pool_.emplace_back();
  Computation* made = &computation_pool_.back();
  made->name_ = computation_names_.Unique(name.empty() ? "computation" : std::string_view(name));
  made->module_ = this;
  made->id_ = next_computation_id_++;
  computations_.push_back(made);
  return made;
}

void Module::RemoveComputation(Computation* computation) {
  Empty(computation);
  computations_.erase(std::find(computations_.begin(), computations_.end(), computation));
}

void Module::Empty(Computation* computation) {
  STROP_CHECK(computation != entry_);
  computation->root_ = nullptr;
  while (computation->last_) {  // users come after operands, so nothing that is removed has uses
    Instruction* last = computation->last_;
    while (!last->uses_.empty()) {  // an unsorted list: cut the edges
      Use use = last->uses_.back();
      use.user->RemoveOperand(use.operand_number);
    }
    computation->Remove(last);
  }
  computation_names_.taken.erase(computation->name_);
}

int64_t Module::RemoveDeadComputations() {
  if (!entry_) return 0;
  std::vector<bool> live(next_computation_id_, false);
  std::vector<Computation*> pending = {entry_};
  live[entry_->id()] = true;
  while (!pending.empty()) {
    Computation* at = pending.back();
    pending.pop_back();
    for (Instruction* i : at->instructions())
      for (Computation* c : i->called())
        if (!live[c->id()]) {
          live[c->id()] = true;
          pending.push_back(c);
        }
  }
  const int64_t before = static_cast<int64_t>(computations_.size());
  std::erase_if(computations_, [&](Computation* c) {
    if (live[c->id()]) return false;
    Empty(c);
    return true;
  });
  return before - static_cast<int64_t>(computations_.size());
}

std::vector<Computation*> Module::PostOrder() const {
  std::vector<Computation*> order;
  std::vector<uint8_t> seen(next_computation_id_, 0);
  struct Frame {
    Computation* at;
    std::vector<Computation*> callees;
    size_t next = 0;
  };
  auto callees = [](Computation* c) {
    std::vector<Computation*> out;
    for (Instruction* i : c->instructions())
      for (Computation* callee : i->called()) out.push_back(callee);
    return out;
  };
  std::vector<Frame> stack;
  for (Computation* start : computations_) {
    if (seen[start->id()]) continue;
    seen[start->id()] = 1;
    stack.push_back({start, callees(start)});
    while (!stack.empty()) {
      Frame& frame = stack.back();
      if (frame.next == frame.callees.size()) {
        order.push_back(frame.at);
        stack.pop_back();
        continue;
      }
      Computation* callee = frame.callees[frame.next++];
      if (seen[callee->id()]) continue;
      seen[callee->id()] = 1;
      stack.push_back({callee, callees(callee)});
    }
  }
  return order;
}

int64_t Module::instruction_count() const {
  int64_t n = 0;
  for (Computation* c : computations_) n += c->instruction_count();
  return n;
}

namespace {

// Copies the instructions of `from` into the empty computation `to`; callees must be in `callee_map` or are shared.
void CloneInto(const Computation& from, Computation* to, const std::map<const Computation*, Computation*>& callee_map,
               std::map<const Instruction*, Instruction*>& map) {
  std::vector<Instruction*> operands;
  for (Instruction* i : from.PostOrder()) {
    operands.clear();
    for (int64_t k = 0; k < i->operand_count(); ++k) operands.push_back(map.at(i->operand(k)));
    map[i] = to->AddClone(*i, i->shape(), operands, &callee_map);
  }
  for (Instruction* i : from.instructions())
    for (Instruction* p : i->control_predecessors()) map.at(i)->AddControlPredecessor(map.at(p));
  // The list order of the original (a schedule) is kept.
  for (Instruction* i : from.instructions()) to->MoveBefore(map.at(i), nullptr);
  if (from.root()) to->set_root(map.at(from.root()));
  to->set_execution_thread(from.execution_thread());
  to->set_frontend_attributes(from.frontend_attributes());
}

// `root` and everything that it calls, callees first.
std::vector<const Computation*> CallTree(const Computation& root) {
  std::vector<const Computation*> order;
  std::set<const Computation*> seen;
  std::vector<std::pair<const Computation*, bool>> stack = {{&root, false}};
  while (!stack.empty()) {
    auto [at, done] = stack.back();
    stack.pop_back();
    if (done) {
      order.push_back(at);
      continue;
    }
    if (!seen.insert(at).second) continue;
    stack.push_back({at, true});
    for (Instruction* i : at->instructions())
      for (Computation* c : i->called()) stack.push_back({c, false});
  }
  return order;
}

}  // namespace

Computation* Module::CloneComputation(const Computation& original, std::string name,
                                      std::map<const Instruction*, Instruction*>* instruction_map) {
  std::map<const Computation*, Computation*> callee_map;
  std::map<const Instruction*, Instruction*> local;
  for (const Computation* c : CallTree(original)) {
    std::string wanted = c == &original && !name.empty() ? name : c->name();
    Computation* copy = AddComputation(wanted);
    std::map<const Instruction*, Instruction*>& map = c == &original && instruction_map ? *instruction_map : local;
    CloneInto(*c, copy, callee_map, map);
    callee_map[c] = copy;
  }
  return callee_map.at(&original);
}

std::unique_ptr<Module> Module::Clone(std::string name) const {
  auto copy = std::make_unique<Module>(name.empty() ? name_ : std::move(name));
  copy->config_ = config_;
  copy->stage_ = stage_;
  std::map<const Computation*, Computation*> callee_map;
  for (Computation* c : computations_) callee_map[c] = copy->AddComputation(c->name());
  std::map<const Instruction*, Instruction*> map;
  for (Computation* c : computations_) CloneInto(*c, callee_map.at(c), callee_map, map);
  if (entry_) copy->entry_ = callee_map.at(entry_);
  return copy;
}

EntryLayout Module::EffectiveEntryLayout() const {
  if (config_.has_entry_layout) return config_.entry_layout;
  EntryLayout layout;
  for (Instruction* p : entry_->parameters()) layout.parameters.push_back(p->shape().WithDefaultLayout());
  layout.result = entry_->root()->shape().WithDefaultLayout();
  return layout;
}

std::string Module::ToString() const { return PrintModule(*this); }

}  // namespace strop
