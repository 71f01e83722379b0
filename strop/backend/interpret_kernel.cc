// The fallback kernel: operands become literals, the evaluator runs the instruction, the result is copied out. Named,
// counted and reported as interpreted; never chosen silently.
#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "strop/backend/backend.h"
#include "strop/base/archive.h"
#include "strop/interp/interpreter.h"

namespace strop {
namespace {

Result<Literal> FromMemory(const Shape& shape, void* const*& arg) {
  if (shape.IsTuple()) {
    std::vector<Literal> elements;
    for (const Shape& e : shape.elements()) {
      STROP_ASSIGN(Literal element, FromMemory(e, arg));
      elements.push_back(std::move(element));
    }
    return Literal::Tuple(std::move(elements));
  }
  const void* data = *arg++;
  if (!shape.IsArray()) return Literal::Token();
  return Literal::FromBytes(shape, {static_cast<const uint8_t*>(data), static_cast<size_t>(shape.byte_size())});
}

void ToMemory(const Literal& literal, void* const*& arg) {
  if (literal.shape().IsTuple()) {
    for (int64_t k = 0; k < literal.shape().tuple_size(); ++k) ToMemory(literal.element(k), arg);
    return;
  }
  void* data = *arg++;
  std::span<const uint8_t> bytes = literal.bytes();
  if (!bytes.empty()) std::memcpy(data, bytes.data(), bytes.size());
}

// Cuts what is bounded to the size that is meant: `arg` has an s32 for each dynamic dimension.
Result<Literal> CutToSizes(Literal value, const Shape& shape, void* const*& arg) {
  if (shape.IsTuple()) {
    for (int64_t k = 0; k < shape.tuple_size(); ++k) {
      STROP_ASSIGN(value.mutable_elements()[static_cast<size_t>(k)],
                   CutToSizes(value.element(k), shape.element(k), arg));
    }
    return value;
  }
  if (!shape.IsArray() || shape.IsStatic()) return value;
  Int64Vector dims = shape.dims();
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (!shape.is_dynamic(d)) continue;
    int32_t size;
    std::memcpy(&size, *arg++, sizeof size);
    dims[d] = std::clamp<int64_t>(size, 0, dims[d]);
  }
  return CutToSize(value, dims);
}

// Writes the sizes that an s32 for each dynamic dimension receives.
void WriteSizes(const Literal& value, const Shape& shape, void* const*& arg) {
  for (int64_t k = 0; k < shape.tuple_size(); ++k) WriteSizes(value.element(k), shape.element(k), arg);
  if (!shape.IsArray()) return;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (!shape.is_dynamic(d)) continue;
    const auto size = static_cast<int32_t>(value.shape().dim(d));
    std::memcpy(*arg++, &size, sizeof size);
  }
}

// The evaluators of one step: kept from run to run, because the generator behind `rng` goes on in them. Runs that
// overlap have one each.
class Evaluators {
 public:
  explicit Evaluators(int64_t instruction_id) : seed_(static_cast<uint64_t>(instruction_id) << 40) {}

  std::unique_ptr<Interpreter> Take() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (idle_.empty()) {
      InterpretOptions options;
      options.rng_seed = seed_ + (made_++ << 32);
      return std::make_unique<Interpreter>(std::move(options));
    }
    std::unique_ptr<Interpreter> interpreter = std::move(idle_.back());
    idle_.pop_back();
    return interpreter;
  }
  void Return(std::unique_ptr<Interpreter> interpreter) {
    std::lock_guard<std::mutex> lock(mutex_);
    idle_.push_back(std::move(interpreter));
  }

 private:
  const uint64_t seed_;
  std::mutex mutex_;
  uint64_t made_ = 0;
  std::vector<std::unique_ptr<Interpreter>> idle_;
};

Status RunInterpreted(const Instruction& instruction, Evaluators& evaluators, const HostCall& call) {
  void* const* arg = call.args.data();
  void* const* sizes = arg + instruction.shape().num_leaves();  // behind operands and results
  for (int64_t k = 0; k < instruction.operand_count(); ++k) sizes += instruction.operand(k)->shape().num_leaves();
  std::vector<Literal> operands;
  for (int64_t k = 0; k < instruction.operand_count(); ++k) {
    const Shape& shape = instruction.operand(k)->shape();
    STROP_ASSIGN(Literal operand, FromMemory(shape, arg));
    STROP_ASSIGN(operand, CutToSizes(std::move(operand), shape, sizes));
    operands.push_back(std::move(operand));
  }
  std::unique_ptr<Interpreter> interpreter = evaluators.Take();
  InterpretOptions& options = interpreter->options();
  if (call.run.assignment) {
    options.num_replicas = call.run.assignment->num_replicas;
    options.num_partitions = call.run.assignment->num_partitions;
  }
  options.replica_id = call.run.replica;
  options.partition_id = call.run.partition;
  const std::atomic<bool>* cancelled = call.run.cancelled;
  options.cancelled = nullptr;
  if (cancelled) options.cancelled = [cancelled] { return cancelled->load(std::memory_order_relaxed); };
  Result<Literal> evaluated = interpreter->EvaluateInstruction(instruction, operands);
  evaluators.Return(std::move(interpreter));
  STROP_ASSIGN(Literal result, std::move(evaluated));
  WriteSizes(result, instruction.shape(), sizes);
  STROP_ASSIGN(result, PadToBounds(result, instruction.shape()));
  ToMemory(result, arg);
  return OkStatus();
}

HostStep StepOf(const Instruction* instruction, int64_t id) {
  HostStep step;
  auto evaluators = std::make_shared<Evaluators>(id);
  step.fn = [instruction, evaluators](const HostCall& call) { return RunInterpreted(*instruction, *evaluators, call); };
  step.interpreted = true;
  return step;
}

}  // namespace

CompiledKernel InterpretKernel(const KernelSpec& spec, std::string why) {
  const Instruction& i = *spec.instruction;
  CompiledKernel kernel;
  kernel.body = StepOf(&i, i.id());
  kernel.family = "evaluator";
  kernel.why_interpreted = std::move(why);
  ByteWriter recipe;  // the id is the seed of what is random
  recipe(i.parent()->name(), i.name(), static_cast<int64_t>(i.id()));
  kernel.recipe = recipe.Take();
  return kernel;
}

Result<StepBody> InterpretRecipe(std::string_view recipe, const Module& module) {
  ByteReader in(recipe);
  std::string_view computation, name;
  int64_t id = 0;
  in(computation, name, id);
  STROP_TRY(in.Finish("an interpreted instruction"));
  for (const Computation* c : module.computations()) {
    if (c->name() != computation) continue;
    for (const Instruction* i : c->instructions())
      if (i->name() == name) return StepBody(StepOf(i, id));
  }
  return InvalidArgument("the module has no instruction %", CEscape(name), " in %", CEscape(computation));
}

Result<std::unique_ptr<StepMaker>> Backend::OpenCode(std::span<const std::string_view> objects) const {
  return FailedPrecondition("backend ", name(), " loads no machine code, and the program has ", objects.size(),
                            " objects of it");
}

Result<std::unique_ptr<Backend>> Backend::ForMachine(std::string_view machine) const {
  return InvalidArgument("backend ", name(), " compiles for this machine only, not for \"", machine, "\"");
}

Decision Backend::RunsCode(std::string_view key) const {
  if (key == CodeKey()) return Decision::Yes();
  return Decision::No("this one is ", CodeKey());
}

}  // namespace strop
