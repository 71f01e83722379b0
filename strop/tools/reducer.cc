#include "strop/tools/reducer.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <tuple>

#include "strop/ir/builder.h"
#include "strop/ir/printer.h"
#include "strop/ir/verifier.h"
#include "strop/passes/inline.h"
#include "strop/passes/pipeline.h"
#include "strop/text/parser.h"

namespace strop::tools {
namespace {

// ---- how large a module is; each edit that stays makes it smaller, so that there is an end

using Size = std::tuple<int64_t, int64_t, int64_t, int64_t>;

bool IsPlain(ElementType type) {
  return type == ElementType::F32 || type == ElementType::S32 || type == ElementType::Pred || !IsArrayType(type);
}

Size SizeOf(const Module& module) {
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

// ---- cleaning up after an edit

void RemoveDead(Module& module) {
  for (Computation* c : module.computations())
    for (bool removed = true; removed;) {
      removed = false;
      for (Instruction* i : c->instructions())
        if (i->use_count() == 0 && !i->IsRoot() && !i->IsParameter()) c->Remove(i), removed = true;
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

// ---- edits of the graph: the k-th way of each kind, false where it does not apply

Instruction* At(const Module& module, int64_t k) {
  for (const Computation* c : module.computations()) {
    if (k < c->instruction_count()) {
      Instruction* i = c->first();
      while (k-- > 0) i = i->next();
      return i;
    }
    k -= c->instruction_count();
  }
  return nullptr;
}

bool MakeRoot(Module& module, int64_t k) {
  Instruction* i = At(module, k);
  if (!i || i->parent() != module.entry() || i->IsRoot() || i->IsParameter() || i->IsConstant()) return false;
  i->parent()->set_root(i);
  return true;
}

bool DropResult(Module& module, int64_t k) {
  Instruction* root = module.entry()->root();
  if (root->op() != Op::Tuple || k >= root->operand_count() || root->operand_count() < 2) return false;
  Builder b(module.entry());
  std::vector<Instruction*> kept = root->operands();
  kept.erase(kept.begin() + k);
  module.entry()->set_root(b.Tuple(kept));
  return true;
}

// A call, a fusion, a branch, or one trip of a loop, in place. `k` counts callees.
bool InlineCallee(Module& module, int64_t k) {
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

bool BypassBy(Module& module, int64_t k, int64_t operand) {
  Instruction* i = At(module, k);
  if (!i || operand >= i->operand_count() || !i->operand(operand)->shape().Compatible(i->shape())) return false;
  i->ReplaceAllUsesWith(i->operand(operand));
  return true;
}

bool BecomeParameter(Module& module, int64_t k) {
  Instruction* i = At(module, k);
  Computation* entry = module.entry();
  if (!i || i->parent() != entry || i->IsParameter() || i->IsRoot() || !i->shape().IsArray()) return false;
  const int64_t number = entry->parameter_count();
  Instruction* parameter = entry->AddParameter(number, i->shape().WithoutLayout(), StrCat(i->name(), ".in"));
  entry->MoveBefore(parameter, entry->first());
  i->ReplaceAllUsesWith(parameter);
  return true;
}

bool BecomeConstant(Module& module, int64_t k, double value) {
  Instruction* i = At(module, k);
  if (!i || !i->shape().IsArray() || i->IsRoot() || i->use_count() == 0) return false;
  const Shape shape = i->shape().WithoutLayout();
  const Instruction* splat = i->op() == Op::Broadcast ? i->operand(0) : i;
  if (splat->IsConstant() && splat->shape().IsScalar()) return false;
  if (i->IsParameter() && i->parent() == module.entry()) return false;
  Builder b(i->parent());
  b.set_insert_before(i->next());
  Instruction* constant = b.Splat(shape.type(), value, shape.dims());
  if (!constant) return false;
  i->ReplaceAllUsesWith(constant);
  return true;
}

bool DropExtras(Module& module, int64_t k) {
  if (k > 0) return false;
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

bool RunPass(Module& module, int64_t k) {
  if (k >= static_cast<int64_t>(std::size(kCleaning))) return false;
  PassPipeline pipeline("reduce");
  pipeline.Add(kCleaning[k]);
  PassContext context(PassOptions{});
  const Result<bool> changed = pipeline.Run(module, context);
  return changed.ok() && *changed;
}

struct Edit {
  bool (*apply)(Module& module, int64_t k);
  // How many k there are.
  int64_t (*count)(const Module& module);
};

int64_t InstructionCount(const Module& module) {
  int64_t n = 0;
  for (const Computation* c : module.computations()) n += c->instruction_count();
  return n;
}
int64_t CalleeCount(const Module& module) {
  int64_t n = 0;
  for (const Computation* c : module.computations())
    for (const Instruction* i : c->instructions()) n += static_cast<int64_t>(i->called().size());
  return n;
}

constexpr Edit kEdits[] = {
    {&MakeRoot, &InstructionCount},
    {&DropResult, [](const Module& m) { return m.entry()->root()->operand_count(); }},
    {&DropExtras, [](const Module&) { return int64_t{1}; }},
    {&RunPass, [](const Module&) { return static_cast<int64_t>(std::size(kCleaning)); }},
    {&InlineCallee, &CalleeCount},
    {[](Module& m, int64_t k) { return BypassBy(m, k, 0); }, &InstructionCount},
    {[](Module& m, int64_t k) { return BypassBy(m, k, 1); }, &InstructionCount},
    {[](Module& m, int64_t k) { return BypassBy(m, k, 2); }, &InstructionCount},
    {&BecomeParameter, &InstructionCount},
    {[](Module& m, int64_t k) { return BecomeConstant(m, k, 1); }, &InstructionCount},
    {[](Module& m, int64_t k) { return BecomeConstant(m, k, 0); }, &InstructionCount},
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

// The module written anew, in every way that the shapes suggest.
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

// ---- the search

class Search {
 public:
  Search(std::unique_ptr<Module> module, const StillFails& still_fails, int64_t max_checks)
      : module_(std::move(module)), still_fails_(still_fails), left_(max_checks) {}

  Status Run() {
    for (bool smaller = true; smaller && left_ > 0;) {
      smaller = false;
      for (const Edit& edit : kEdits)
        for (int64_t k = 0; k < edit.count(*module_) && left_ > 0;) {
          std::unique_ptr<Module> candidate = module_->Clone();
          bool kept = false;
          if (edit.apply(*candidate, k)) {
            STROP_ASSIGN(kept, Keep(std::move(candidate)));
          }
          smaller |= kept;
          if (!kept) ++k;
        }
      STROP_ASSIGN(const bool rewritten, Rewrite());
      smaller |= rewritten;
    }
    return OkStatus();
  }
  std::unique_ptr<Module> Take() { return std::move(module_); }
  int64_t left() const { return left_; }

 private:
  Result<bool> Rewrite() {
    bool any = false;
    for (bool kept = true; kept && left_ > 0;) {
      kept = false;
      for (const std::string& text : Rewritings(*module_)) {
        if (left_ <= 0) break;
        Result<std::unique_ptr<Module>> candidate = ParseHloModule(text);
        if (!candidate.ok()) continue;
        STROP_ASSIGN(kept, Keep(*std::move(candidate)));
        if (kept) break;
      }
      any |= kept;
    }
    return any;
  }

  // Becomes the module if it is legal, smaller and passes the test.
  Result<bool> Keep(std::unique_ptr<Module> candidate) {
    ForgetSignature(*candidate);
    RemoveDead(*candidate);
    if (!(SizeOf(*candidate) < SizeOf(*module_)) || !VerifyModule(*candidate).ok()) return false;
    --left_;
    STROP_ASSIGN(const bool fails, still_fails_(*candidate));
    if (fails) module_ = std::move(candidate);
    return fails;
  }

  std::unique_ptr<Module> module_;
  const StillFails& still_fails_;
  int64_t left_;
};

}  // namespace

Result<ReduceResult> Reduce(const Module& module, const StillFails& still_fails, int64_t max_checks) {
  Search search(module.Clone(), still_fails, max_checks);
  STROP_TRY(search.Run());
  ReduceResult out;
  out.checks = max_checks - search.left();
  out.complete = search.left() > 0;
  out.module = search.Take();
  return out;
}

}  // namespace strop::tools
