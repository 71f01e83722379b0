#include "strop/interp/interpreter.h"

#include "strop/interp/evaluator.h"
#include "strop/interp/strided.h"

namespace strop {

namespace {

// Bounded dimensions may have any size up to the bound; everything else must agree.
Status CheckArgument(const Shape& expected, const Literal& argument, int64_t number) {
  const Shape& got = argument.shape();
  bool ok = got.type() == expected.type() && got.rank() == expected.rank() && got.tuple_size() == expected.tuple_size();
  for (int64_t i = 0; ok && i < got.rank(); ++i) {
    if (expected.is_unbounded(i)) continue;
    ok = expected.is_dynamic(i) ? got.dim(i) <= expected.dim(i) : got.dim(i) == expected.dim(i);
  }
  if (ok && got.IsArray()) ok = static_cast<int64_t>(argument.bytes().size()) == got.byte_size();
  if (!ok)
    return InvalidArgument("argument ", number, " has shape ", got.ToString(), ", the parameter is ",
                           expected.ToString());
  for (int64_t i = 0; i < got.tuple_size(); ++i)
    STROP_TRY(CheckArgument(expected.element(i), argument.element(i), number));
  return OkStatus();
}

}  // namespace

Interpreter::Interpreter(InterpretOptions options)
    : options_(std::move(options)), state_(std::make_unique<interp::State>()) {
  state_->rng_counter = options_.rng_seed;
}
Interpreter::~Interpreter() = default;

const std::vector<CheckOutcome>& Interpreter::checks() const { return state_->checks; }

Result<Literal> Interpreter::Evaluate(const Module& module, std::span<const Literal> arguments) {
  if (!module.entry()) return InvalidArgument("module ", module.name(), " has no entry computation");
  return Evaluate(*module.entry(), arguments);
}

Result<Literal> Interpreter::Evaluate(const Computation& computation, std::span<const Literal> arguments) {
  state_->checks.clear();
  state_->probes.clear();
  const int64_t count = static_cast<int64_t>(arguments.size());
  if (count != computation.parameter_count())
    return InvalidArgument("computation ", computation.name(), " takes ", computation.parameter_count(),
                           " arguments, got ", count);
  for (int64_t i = 0; i < count; ++i)
    STROP_TRY(CheckArgument(computation.parameter(i)->shape(), arguments[static_cast<size_t>(i)], i));
  interp::Evaluator evaluator(options_, *state_);
  return evaluator.Run(computation, {arguments.begin(), arguments.end()});
}

Result<Literal> Interpreter::EvaluateInstruction(const Instruction& instruction, std::span<const Literal> operands) {
  if (instruction.IsParameter()) return InvalidArgument("a parameter has no value of its own");
  if (static_cast<int64_t>(operands.size()) != instruction.operand_count())
    return InvalidArgument(Name(instruction.op()), " has ", instruction.operand_count(), " operands, got ",
                           operands.size());
  bool dynamic = !instruction.shape().IsStatic();
  for (int64_t i = 0; i < instruction.operand_count(); ++i) {
    STROP_TRY(CheckArgument(instruction.operand(i)->shape(), operands[static_cast<size_t>(i)], i));
    dynamic = dynamic || !instruction.operand(i)->shape().IsStatic();
  }
  interp::Evaluator evaluator(options_, *state_);
  std::vector<Literal> own(operands.begin(), operands.end());
  return evaluator.RunInstruction(instruction, interp::EvalFunction(instruction.op()), dynamic, own);
}

Result<Literal> CutToSize(const Literal& value, const Int64Vector& dims) {
  const Shape& shape = value.shape();
  STROP_ASSIGN(Literal out, Literal::Zeros(Shape::Array(shape.type(), dims)));
  interp::CopyStrided(Bytes(shape.type()), dims, out.mutable_bytes().data(), interp::RowMajorStrides(dims),
                      value.bytes().data(), interp::RowMajorStrides(shape.dims()));
  return out;
}

Result<Literal> PadToBounds(const Literal& value, const Shape& shape) {
  if (shape.IsTuple()) {
    std::vector<Literal> elements;
    for (int64_t i = 0; i < shape.tuple_size(); ++i) {
      STROP_ASSIGN(Literal element, PadToBounds(value.element(i), shape.element(i)));
      elements.push_back(std::move(element));
    }
    return Literal::Tuple(std::move(elements));
  }
  if (!shape.IsArray() || value.shape().dims() == shape.dims()) return value;
  for (int64_t i = 0; i < shape.rank(); ++i)  // an unbounded dimension has nothing to be padded to
    if (shape.is_unbounded(i)) return value;
  STROP_ASSIGN(Literal out, Literal::Zeros(interp::StaticShape(shape)));
  interp::CopyStrided(Bytes(shape.type()), value.shape().dims(), out.mutable_bytes().data(),
                      interp::RowMajorStrides(shape.dims()), value.bytes().data(),
                      interp::RowMajorStrides(value.shape().dims()));
  return out;
}

}  // namespace strop
