#include "strop/tools/checks.h"

#include "strop/ir/builder.h"

namespace strop::tools {

namespace {

bool IsCheck(const Instruction& instruction) {
  return instruction.op() == Op::CustomCall && instruction.attrs<CustomCallAttrs>().target.substr(0, 6) == "check.";
}

}  // namespace

bool HasChecks(const Module& module) {
  for (const Computation* computation : module.computations())
    for (const Instruction* instruction : computation->instructions())
      if (IsCheck(*instruction)) return true;
  return false;
}

Result<ExtractedChecks> ExtractedChecks::From(Module& module) {
  ExtractedChecks out;
  Computation* entry = module.entry();
  for (const Computation* computation : module.computations())
    for (const Instruction* instruction : computation->instructions())
      if (IsCheck(*instruction) && computation != entry)
        return Unimplemented("check in the called computation ", computation->name(), "; use --interpret");
  std::vector<Instruction*> results = {entry->root()};
  for (Instruction* instruction : entry->instructions()) {
    if (!IsCheck(*instruction)) continue;
    if (instruction->use_count() > 0 || instruction->IsRoot()) {
      if (!instruction->shape().IsArray())
        return Unimplemented("the result of ", instruction->name(), " is used; use --interpret");
      // check.eq gives a pred: a program that returns it gets `true`, and the outcome is found here.
      Literal yes = *Literal::Zeros(instruction->shape());
      for (int64_t i = 0; i < yes.num_elements(); ++i) yes.SetInt(i, 1);
      Instruction* constant = entry->AddConstant(yes, instruction);
      if (results[0] == instruction) results[0] = constant;
      instruction->ReplaceAllUsesWith(constant);
    }
    Check check{instruction->any_attrs(), instruction->shape(), {}};
    for (Instruction* operand : instruction->operands()) {
      check.operands.push_back(operand->shape());
      results.push_back(operand);
    }
    out.checks_.push_back(std::move(check));
    entry->Remove(instruction);
  }
  if (out.checks_.empty()) return out;
  Builder b(entry);
  Instruction* root = b.Tuple(results);
  STROP_TRY(b.Finish(root));
  module.config().has_entry_layout = false;
  module.config().input_output_alias.clear();
  return out;
}

Result<Literal> ExtractedChecks::Compare(const Literal& result, std::vector<CheckOutcome>* outcomes) const {
  if (checks_.empty()) return result;
  Interpreter interpreter;
  int64_t next = 1;
  for (const Check& check : checks_) {
    Module module("check");
    Computation* entry = module.AddComputation("check");
    std::vector<Literal> operands;
    std::vector<Instruction*> parameters;
    for (const Shape& shape : check.operands) {
      parameters.push_back(entry->AddParameter(static_cast<int64_t>(parameters.size()), shape));
      operands.push_back(result.element(next++));
    }
    entry->set_root(entry->Add(Op::CustomCall, check.result_shape, parameters, check.attrs));
    STROP_TRY(interpreter.Evaluate(*entry, operands));
    outcomes->insert(outcomes->end(), interpreter.checks().begin(), interpreter.checks().end());
  }
  return result.element(0);
}

}  // namespace strop::tools
