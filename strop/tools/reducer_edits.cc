#include "strop/tools/reducer_edits.h"

#include <algorithm>
#include <set>

#include "strop/ir/builder.h"
#include "strop/ir/printer.h"
#include "strop/passes/inline.h"
#include "strop/passes/pipeline.h"

namespace strop::tools {
namespace {

bool IsPlain(ElementType type) {
  return type == ElementType::F32 || type == ElementType::S32 || type == ElementType::Pred || !IsArrayType(type);
}

// ---- cleaning up after an edit

void RemoveDead(Module& module) {
  for (Computation* c : module.computations())
    for (Instruction* i = c->last(); i;) {  // users before what they use
      Instruction* before = i->prev();
      if (i->use_count() == 0 && !i->IsRoot() && !i->IsParameter()) c->Remove(i);
      i = before;
    }
  Computation* entry = module.entry();
  for (int64_t i = entry->parameter_count() - 1; i >= 0; --i)
    if (entry->parameter(i)->use_count() == 0 && !entry->parameter(i)->IsRoot()) entry->RemoveParameter(i);
  module.RemoveDeadComputations();
}

// What speaks of the entry's old signature goes.
void ForgetSignature(Module& module) {
  ModuleConfig& config = module.config();
  config.has_entry_layout = false;
  config.entry_layout = {};
  config.input_output_alias.clear();
  config.buffer_donors.clear();
  config.allow_spmd_sharding_propagation_to_parameters.clear();
  config.allow_spmd_sharding_propagation_to_output.clear();
  config.parameter_memory_kinds.clear();
  config.result_memory_kinds.clear();
  config.parameter_layout_modes.clear();
  config.result_layout_modes.clear();
  config.is_scheduled = false;
}

// ---- edits of the graph

int64_t InstructionCount(const Module& module) { return module.instruction_count(); }
int64_t CalleeCount(const Module& module) {
  int64_t n = 0;
  for (const Computation* c : module.computations())
    for (const Instruction* i : c->instructions()) n += static_cast<int64_t>(i->called().size());
  return n;
}
int64_t ResultCount(const Module& module) {
  const Instruction* root = module.entry()->root();
  return root->op() == Op::Tuple ? root->operand_count() : 0;
}
int64_t EntryCount(const Module& module) { return module.entry()->instruction_count(); }
// Of a large entry the search by halves has found the root; single values are tried when all else is done.
int64_t SmallEntryCount(const Module& module) { return EntryCount(module) <= 64 ? EntryCount(module) : 0; }
bool MakeOneRoot(Module& module, int64_t k, int64_t) { return MakeRoot(module, k); }

// `edit` at each of the instructions number begin to end.
template <bool (*edit)(Instruction*)>
bool AtEach(Module& module, int64_t begin, int64_t end) {
  std::vector<Instruction*> at;
  int64_t k = 0;
  for (const Computation* c : module.computations())
    for (Instruction* i : c->instructions())
      if (k++ >= begin && k <= end) at.push_back(i);
  bool any = false;
  for (Instruction* i : at) any |= edit(i);
  return any;
}

bool DropResults(Module& module, int64_t begin, int64_t end) {
  std::vector<Instruction*> kept = module.entry()->root()->operands();
  end = std::min(end, static_cast<int64_t>(kept.size()));
  if (end - begin >= static_cast<int64_t>(kept.size())) return false;
  kept.erase(kept.begin() + begin, kept.begin() + end);
  Builder b(module.entry());
  module.entry()->set_root(b.Tuple(kept));
  return true;
}

// A call, a fusion, a branch, or one trip of a loop, in place. `k` counts callees.
bool InlineCallee(Module& module, int64_t k, int64_t) {
  for (Computation* c : module.computations())
    for (Instruction* i : c->instructions())
      for (int64_t callee = 0; callee < static_cast<int64_t>(i->called().size()); ++callee) {
        if (k-- > 0) continue;
        std::vector<Instruction*> arguments = i->operands();
        if (i->op() == Op::Conditional) arguments = {i->operand(callee + 1)};
        if (i->op() == Op::While && callee == 0) return false;
        const bool inlines =
            i->op() == Op::Call || i->op() == Op::Fusion || i->op() == Op::Conditional || i->op() == Op::While;
        if (!inlines || i->called(callee)->parameter_count() != static_cast<int64_t>(arguments.size())) return false;
        InlineInPlaceOf(i, *i->called(callee), arguments);
        return true;
      }
  return false;
}

template <int64_t operand>
bool Bypass(Instruction* i) {
  if (operand >= i->operand_count() || !i->operand(operand)->shape().Compatible(i->shape())) return false;
  i->ReplaceAllUsesWith(i->operand(operand));
  return true;
}

bool BecomeParameter(Instruction* i) {
  Computation* entry = i->module()->entry();
  if (i->parent() != entry || i->IsParameter() || i->IsRoot() || !i->shape().IsArray() || i->use_count() == 0)
    return false;
  const int64_t number = entry->parameter_count();
  Instruction* parameter = entry->AddParameter(number, i->shape().WithoutLayout(), StrCat(i->name(), ".in"));
  entry->MoveBefore(parameter, entry->first());
  i->ReplaceAllUsesWith(parameter);
  return true;
}

template <int64_t value>
bool BecomeConstant(Instruction* i) {
  if (!i->shape().IsArray() || i->IsRoot() || i->use_count() == 0) return false;
  const Shape shape = i->shape().WithoutLayout();
  const Instruction* splat = i->op() == Op::Broadcast ? i->operand(0) : i;
  if (splat->IsConstant() && splat->shape().IsScalar()) return false;
  if (i->IsParameter() && i->parent() == i->module()->entry()) return false;
  Builder b(i->parent());
  b.set_insert_before(i->next());
  Instruction* constant = b.Splat(shape.type(), value, shape.dims());
  if (!constant) return false;
  i->ReplaceAllUsesWith(constant);
  return true;
}

bool DropExtras(Module& module, int64_t, int64_t) {
  for (Computation* c : module.computations()) {
    c->set_frontend_attributes({});
    for (Instruction* i : c->instructions()) {
      i->set_metadata(nullptr);
      i->clear_sharding();
      i->set_frontend_attributes({});
      i->set_backend_config("");
      i->set_origin("");
    }
  }
  module.config().frontend_attributes.clear();
  module.config().stack_frames = {};
  return true;
}

constexpr PassId kCleaning[] = {
    PassId::CallInliner, PassId::TupleSimplifier, PassId::WhileSimplifier, PassId::ConditionalSimplifier, PassId::Cse,
    PassId::Dce};

bool RunPass(Module& module, int64_t k, int64_t) {
  PassPipeline pipeline("reduce");
  pipeline.Add(kCleaning[k]);
  PassContext context(PassOptions{});
  const Result<bool> changed = pipeline.Run(module, context);
  return changed.ok() && *changed;
}

// From coarse to fine.
constexpr Edit kEdits[] = {
    {[](const Module&) { return int64_t{1}; }, &DropExtras, false},
    {&SmallEntryCount, &MakeOneRoot, false},
    {&ResultCount, &DropResults, true},
    {&InstructionCount, &AtEach<&BecomeParameter>, true},
    {[](const Module&) { return static_cast<int64_t>(std::size(kCleaning)); }, &RunPass, false},
    {&CalleeCount, &InlineCallee, false},
    {&InstructionCount, &AtEach<&Bypass<0>>, true},
    {&InstructionCount, &AtEach<&Bypass<1>>, true},
    {&InstructionCount, &AtEach<&Bypass<2>>, true},
    {&InstructionCount, &AtEach<&BecomeConstant<1>>, true},
    {&InstructionCount, &AtEach<&BecomeConstant<0>>, true},
    {&EntryCount, &MakeOneRoot, false},
};

// ---- edits of the text: a dimension or an element type, wherever it stands

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// `text` with the whole number `from` written as `to`: inside [], and where `attributes`, also in attributes.
std::string WithNumber(std::string_view text, std::string_view from, std::string_view to, bool attributes) {
  std::string out;
  int brackets = 0;
  for (size_t at = 0; at < text.size();) {
    brackets += text[at] == '[' ? 1 : text[at] == ']' ? -1 : 0;
    const bool starts =
        IsDigit(text[at]) && (at == 0 || std::string_view("[,{x:=_").find(text[at - 1]) != std::string::npos);
    size_t end = at;
    while (starts && end < text.size() && IsDigit(text[end])) ++end;
    if (starts && text.substr(at, end - at) == from && (brackets > 0 || attributes)) {
      out += to;
      at = end;
    } else {
      do out += text[at++];
      while (at < end);
    }
  }
  return out;
}

std::string WithType(std::string_view text, ElementType from, ElementType to) {
  const std::string wanted = StrCat(Name(from), "["), written = StrCat(Name(to), "[");
  std::string out;
  for (size_t at = 0; at < text.size();) {
    const bool word = at > 0 && (std::isalnum(static_cast<unsigned char>(text[at - 1])) || text[at - 1] == '_');
    if (!word && text.substr(at, wanted.size()) == wanted) {
      out += written;
      at += wanted.size();
    } else {
      out += text[at++];
    }
  }
  return out;
}

// The k-th instruction of the entry.
Instruction* EntryAt(const Module& module, int64_t k) {
  Instruction* i = module.entry()->first();
  while (i && k-- > 0) i = i->next();
  return i;
}

}  // namespace

ModuleSize SizeOf(const Module& module) {
  int64_t instructions = 0, unusual = 0, elements = 0, constants = 0;
  for (const Computation* c : module.computations())
    for (const Instruction* i : c->instructions()) {
      // Parameters and constants are where things end.
      instructions += i->IsParameter() || i->IsConstant() ? 1 : 3;
      for (const Shape& leaf : i->shape().Leaves()) {
        unusual += !IsPlain(leaf.type());
        if (leaf.IsArray()) elements = SaturatingAdd(elements, leaf.num_elements() + leaf.rank());
      }
      if (i->IsConstant() && i->shape().IsArray()) constants += i->shape().num_elements();
      if (i->has_metadata() || i->sharding() || !i->frontend_attributes().empty() || !i->backend_config().empty())
        ++unusual;
    }
  return {instructions, elements, unusual, constants};
}

void CleanUp(Module& module) {
  ForgetSignature(module);
  RemoveDead(module);
}

std::span<const Edit> Edits() { return kEdits; }

bool MakeRoot(Module& module, int64_t k) {
  Instruction* i = EntryAt(module, k);
  if (!i || i->IsRoot() || i->IsParameter() || i->IsConstant()) return false;
  i->parent()->set_root(i);
  return true;
}

bool MakePrefixRoot(Module& module, int64_t k) {
  std::vector<Instruction*> values;
  for (Instruction* i : module.entry()->instructions()) {
    if (k-- <= 0) break;
    if (i->shape().IsArray() && !i->IsParameter() && !i->IsConstant()) values.push_back(i);
  }
  if (values.empty()) return false;
  Builder b(module.entry());
  module.entry()->set_root(b.Tuple(values));
  return true;
}

std::vector<std::string> Rewritings(const Module& module) {
  std::set<int64_t> sizes;
  std::set<ElementType> types;
  for (const Computation* c : module.computations())
    for (const Instruction* i : c->instructions())
      for (const Shape& leaf : i->shape().Leaves()) {
        if (leaf.IsArray()) types.insert(leaf.type());
        for (int64_t d : leaf.dims())
          if (d > 1) sizes.insert(d);
      }
  PrintOptions style;
  style.layouts = false;
  const std::string text = PrintModule(module, style);
  std::vector<std::string> out;
  for (auto size = sizes.rbegin(); size != sizes.rend(); ++size)
    for (int64_t smaller : {int64_t{1}, int64_t{2}, int64_t{3}, *size / 2, *size - 1})
      for (bool attributes : {true, false})
        if (smaller < *size) out.push_back(WithNumber(text, StrCat(*size), StrCat(smaller), attributes));
  for (ElementType type : types)
    if (!IsPlain(type))
      out.push_back(WithType(text, type, IsFloat(type) || IsComplex(type) ? ElementType::F32 : ElementType::S32));
  return out;
}

}  // namespace strop::tools
