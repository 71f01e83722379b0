// Builder: makes instructions with inferred shapes. The first error sticks: after it, every call returns null and
// Build() returns the error, so that a chain of calls needs one check at the end.
//
//   Module m("f");  Builder b(m.AddComputation("main"));
//   Instruction* x = b.Parameter(0, f32_2x3);
//   b.Make(Op::Add, {x, b.Broadcast(b.Constant(Literal::Scalar(1.0f)), {2, 3}, {})});
//   STROP_TRY(b.Finish());       // last instruction becomes root
#pragma once
#include "strop/ir/module.h"

namespace strop {

// The result shape of an op, or InvalidArgument in the user's words. Operands' layouts are ignored; the result has
// none. Ops whose shape is not a function of the operands (iota, broadcast, reshape, convert, bitcast, constant,
// custom-call, rng, infeed, recv, ...) take it from `declared`, which is then checked; pass nullptr to be told when one
// is needed.
Result<Shape> InferShape(Op op, std::span<const Shape* const> operands, const Attrs& attrs,
                         std::span<Computation* const> called, const Shape* declared);
// Does the instruction hold what InferShape promises? Used by the verifier.
Status VerifyShape(const Instruction& instruction);

class Builder {
 public:
  explicit Builder(Computation* computation) : computation_(computation) {}

  Computation* computation() const { return computation_; }
  const Status& status() const { return status_; }
  // Metadata for all instructions made from now on.
  void set_metadata(std::shared_ptr<const OpMetadata> metadata) { metadata_ = std::move(metadata); }
  // New instructions go before this one (null: at the end).
  void set_insert_before(Instruction* before) { before_ = before; }

  Instruction* Make(Op op, std::initializer_list<Instruction*> operands, Attrs attrs = NoAttrs{},
                    std::initializer_list<Computation*> called = {}) {
    return Make(op, std::span<Instruction* const>(operands.begin(), operands.size()), std::move(attrs),
                std::span<Computation* const>(called.begin(), called.size()), nullptr);
  }
  Instruction* Make(Op op, std::span<Instruction* const> operands, Attrs attrs, std::span<Computation* const> called,
                    const Shape* declared);
  Instruction* MakeWithShape(Op op, const Shape& shape, std::initializer_list<Instruction*> operands,
                             Attrs attrs = NoAttrs{}) {
    return Make(op, std::span<Instruction* const>(operands.begin(), operands.size()), std::move(attrs), {}, &shape);
  }

  Instruction* Parameter(int64_t number, const Shape& shape, std::string name = {});
  Instruction* Constant(Literal literal);
  Instruction* Scalar(ElementType type, double value) { return Constant(Literal::ScalarOf(type, value)); }
  Instruction* Iota(const Shape& shape, int64_t dimension);
  // dimensions[i] is the result dimension of operand dimension i.
  Instruction* Broadcast(Instruction* operand, Int64Vector dims, Dims dimensions);
  // A scalar spread over `dims`.
  Instruction* Splat(ElementType type, double value, const Int64Vector& dims);
  Instruction* Reshape(Instruction* operand, Int64Vector dims);
  Instruction* Convert(Instruction* operand, ElementType type);
  Instruction* BitcastConvert(Instruction* operand, ElementType type);
  Instruction* Transpose(Instruction* operand, Dims permutation);
  Instruction* Slice(Instruction* operand, const Dims& start, const Dims& limit, const Dims& stride);
  Instruction* Compare(Instruction* lhs, Instruction* rhs, CompareDirection direction);
  Instruction* Reduce(Instruction* operand, Instruction* init, Dims dimensions, Computation* to_apply);
  Instruction* Dot(Instruction* lhs, Instruction* rhs, DotAttrs attrs, ElementType result_type);
  Instruction* Tuple(std::span<Instruction* const> elements);
  Instruction* GetTupleElement(Instruction* tuple, int64_t index);

  // Makes the last (or the given) instruction the root; returns the first error of the chain.
  Status Finish(Instruction* root = nullptr);

 private:
  Computation* computation_;
  Instruction* before_ = nullptr;
  std::shared_ptr<const OpMetadata> metadata_;
  Status status_;
};

}  // namespace strop
