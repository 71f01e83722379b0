#include "strop/interp/scalar_function.h"

#include <unordered_map>

#include "strop/interp/evaluator.h"

namespace strop::interp {

// Translates scalar instructions into steps. A value is a list of registers: one for an array of one element, several
// for a tuple. Returns false where a computation holds anything else; the function is then evaluated the general way.
class ScalarCompiler {
 public:
  explicit ScalarCompiler(ScalarFunction& function) : f_(function) {}

  bool Compile(const Computation& computation, const std::vector<std::vector<int>>& arguments, std::vector<int>* result,
               int depth = 0) {
    if (depth > 16) return false;
    std::unordered_map<const Instruction*, std::vector<int>> values;
    for (const Instruction* instruction : computation.instructions()) {
      std::vector<std::vector<int>> operands;
      for (int64_t i = 0; i < instruction->operand_count(); ++i) operands.push_back(values[instruction->operand(i)]);
      std::vector<int> value;
      if (instruction->IsParameter())
        value = arguments[static_cast<size_t>(instruction->parameter_number())];
      else if (!Translate(*instruction, operands, &value, depth))
        return false;
      values[instruction] = std::move(value);
    }
    *result = values[computation.root()];
    return true;
  }

  int NewRegister(Cell value = {}) {
    f_.registers_.push_back(value);
    return static_cast<int>(f_.registers_.size()) - 1;
  }

 private:
  bool Translate(const Instruction& instruction, const std::vector<std::vector<int>>& operands, std::vector<int>* value,
                 int depth) {
    const Op op = instruction.op();
    const Shape& shape = instruction.shape();
    switch (op) {
      case Op::Tuple:
        for (const auto& operand : operands) {
          if (operand.size() != 1) return false;
          value->push_back(operand[0]);
        }
        return true;
      case Op::GetTupleElement: {
        const size_t i = static_cast<size_t>(instruction.tuple_index());
        if (i >= operands[0].size()) return false;
        *value = {operands[0][i]};
        return true;
      }
      case Op::Call:
      case Op::Fusion: return Compile(*instruction.called(0), operands, value, depth + 1);
      default: break;
    }
    if (!shape.IsArray() || !shape.IsStatic() || shape.num_elements() != 1) return false;
    switch (op) {
      case Op::Constant: *value = {NewRegister(LoadCell(instruction.literal(), 0))}; return true;
      case Op::Copy:
      case Op::Reshape:
      case Op::Broadcast:
      case Op::Transpose:
      case Op::OptimizationBarrier:
        if (!instruction.operand(0)->shape().IsArray()) return false;
        *value = operands[0];
        return true;
      default: return TranslateElementwise(instruction, operands, value);
    }
  }

  bool TranslateElementwise(const Instruction& instruction, const std::vector<std::vector<int>>& operands,
                            std::vector<int>* value) {
    if (!IsElementwise(instruction.op()) || operands.empty()) return false;
    const Instruction* typed = instruction.operand(instruction.op() == Op::Select ? 1 : 0);
    auto scalar =
        MakeScalarOp(instruction.op(), typed->shape().type(), instruction.shape().type(), instruction.any_attrs());
    if (!scalar.ok()) return false;
    ScalarFunction::Step step{*scalar, {0, 0, 0}, 0};
    for (size_t i = 0; i < operands.size(); ++i) {
      if (operands[i].size() != 1) return false;
      step.in[i] = operands[i][0];
    }
    step.out = NewRegister();
    f_.steps_.push_back(step);
    *value = {step.out};
    return true;
  }

  ScalarFunction& f_;
};

Result<std::unique_ptr<ScalarFunction>> ScalarFunction::Make(Evaluator& evaluator, const Computation& computation) {
  auto function = std::make_unique<ScalarFunction>();
  function->evaluator_ = &evaluator;
  function->computation_ = &computation;
  auto scalar_type = [](const Shape& shape) -> Result<ElementType> {
    if (shape.IsArray() && shape.IsStatic() && shape.num_elements() == 1) return shape.type();
    return Unimplemented("a computation applied to elements has a parameter or result of shape ", shape.ToString(),
                         ", which is not a scalar");
  };
  for (const Instruction* p : computation.parameters()) {
    STROP_ASSIGN(ElementType type, scalar_type(p->shape()));
    function->input_types_.push_back(type);
  }
  const Shape& result = computation.root()->shape();
  for (const Shape& leaf : result.IsTuple() ? result.elements() : std::vector<Shape>{result}) {
    STROP_ASSIGN(ElementType type, scalar_type(leaf));
    function->output_types_.push_back(type);
  }

  ScalarCompiler compiler(*function);
  std::vector<std::vector<int>> arguments;
  for (size_t i = 0; i < function->input_types_.size(); ++i) arguments.push_back({compiler.NewRegister()});
  function->compiled_ = compiler.Compile(computation, arguments, &function->outputs_);
  if (function->compiled_ && function->steps_.size() == 1 && function->input_types_.size() >= 2 &&
      function->outputs_.size() == 1) {
    const Step& step = function->steps_[0];
    const Op op = computation.root()->op();
    const bool straight = step.in[0] == 0 && step.in[1] == 1, swapped = step.in[0] == 1 && step.in[1] == 0;
    if (Is(op, kBinary) && function->outputs_[0] == step.out && (straight || (swapped && Is(op, kCommutative)))) {
      function->single_op_ = op;
      function->single_ = step.op;
    }
  }
  return function;
}

Status ScalarFunction::Call(std::span<const Cell> inputs, std::span<Cell> outputs) {
  if (compiled_) {
    CallCompiled(inputs.data(), outputs.data());
    return OkStatus();
  }
  std::vector<Literal> arguments;
  for (size_t i = 0; i < inputs.size(); ++i) {
    STROP_ASSIGN(Literal argument, Literal::Zeros(computation_->parameter(static_cast<int64_t>(i))->shape()));
    StoreCells(input_types_[i], &inputs[i], 1, argument.mutable_bytes().data(), 0);
    arguments.push_back(std::move(argument));
  }
  STROP_ASSIGN(Literal result, evaluator_->Run(*computation_, std::move(arguments)));
  for (size_t i = 0; i < output_types_.size(); ++i)
    outputs[i] = LoadCell(result.shape().IsTuple() ? result.element(static_cast<int64_t>(i)) : result, 0);
  return OkStatus();
}

Accumulator::Accumulator(ScalarFunction* function, int64_t terms)
    : function_(function),
      inputs_(static_cast<size_t>(function->input_count())),
      outputs_(function->output_types().size()) {
  const Op op = function->single_op();
  const Domain domain = DomainOf(function->output_types()[0]);
  const bool is_short = terms <= kShortSum && Bits(function->output_types()[0]) >= 32;
  delay_rounding_ =
      !is_short && (op == Op::Add || op == Op::Multiply) && (domain == Domain::Real || domain == Domain::Complex);
}

Status Accumulator::Combine(std::span<Cell> accumulated, std::span<const Cell> values) {
  if (function_->single_op() != Op::kEnd && accumulated.size() == 1) {
    const ScalarOp& op = function_->single();
    const Cell sum = op.fn(accumulated[0], values[0], {}, op.info);
    accumulated[0] = delay_rounding_ ? sum : Normalize(op.info.result, sum);
    return OkStatus();
  }
  const size_t n = accumulated.size();
  for (size_t i = 0; i < n; ++i) {
    inputs_[i] = accumulated[i];
    inputs_[n + i] = values[i];
  }
  STROP_TRY(function_->Call(inputs_, outputs_));
  for (size_t i = 0; i < n; ++i) accumulated[i] = outputs_[i];
  return OkStatus();
}

void Accumulator::Finish(std::span<Cell> accumulated) const {
  if (delay_rounding_) accumulated[0] = Normalize(function_->output_types()[0], accumulated[0]);
}

}  // namespace strop::interp
