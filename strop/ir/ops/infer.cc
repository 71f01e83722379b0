// InferShape and VerifyShape: the column of shape functions, and what all of them share.
#include "strop/ir/ops/infer.h"

#include <algorithm>
#include <limits>

#include "strop/ir/builder.h"

namespace strop {
namespace infer {
namespace {

constexpr OpColumn<Fn> kInfer(&Elementwise, {
                                                {Op::Constant, &Constant},
                                                {Op::Iota, &Iota},
                                                {Op::Parameter, &Parameter},
                                                {Op::PartitionId, &DeviceId},
                                                {Op::ReplicaId, &DeviceId},
                                                {Op::Bitcast, &Bitcast},
                                                {Op::BitcastConvert, &BitcastConvert},
                                                {Op::Broadcast, &Broadcast},
                                                {Op::Concatenate, &Concatenate},
                                                {Op::Copy, &Copy},
                                                {Op::CopyDone, &CopyDone},
                                                {Op::CopyStart, &CopyStart},
                                                {Op::DynamicReshape, &DynamicReshape},
                                                {Op::DynamicSlice, &DynamicSlice},
                                                {Op::DynamicUpdateSlice, &DynamicUpdateSlice},
                                                {Op::Gather, &Gather},
                                                {Op::Pad, &Pad},
                                                {Op::Reshape, &Reshape},
                                                {Op::Reverse, &Reverse},
                                                {Op::Scatter, &Scatter},
                                                {Op::Shuffle, &Shuffle},
                                                {Op::Slice, &Slice},
                                                {Op::Transpose, &Transpose},
                                                {Op::GetDimensionSize, &GetDimensionSize},
                                                {Op::SetDimensionSize, &SetDimensionSize},
                                                {Op::Convolution, &Convolution},
                                                {Op::Dot, &Dot},
                                                {Op::RaggedDot, &RaggedDot},
                                                {Op::ScaledDot, &ScaledDot},
                                                {Op::Reduce, &Reduce},
                                                {Op::ReduceWindow, &ReduceWindow},
                                                {Op::Scan, &Scan},
                                                {Op::SelectAndScatter, &SelectAndScatter},
                                                {Op::Map, &Map},
                                                {Op::Sort, &Sort},
                                                {Op::TopK, &TopK},
                                                {Op::BatchNormGrad, &BatchNormGrad},
                                                {Op::BatchNormInference, &BatchNormInference},
                                                {Op::BatchNormTraining, &BatchNormTraining},
                                                {Op::Cholesky, &Cholesky},
                                                {Op::Fft, &Fft},
                                                {Op::TriangularSolve, &TriangularSolve},
                                                {Op::Rng, &Rng},
                                                {Op::RngBitGenerator, &RngBitGenerator},
                                                {Op::RngGetAndUpdateState, &RngGetAndUpdateState},
                                                {Op::AddDependency, &AddDependency},
                                                {Op::AfterAll, &AfterAll},
                                                {Op::Domain, &SameAsOperand},
                                                {Op::GetTupleElement, &GetTupleElement},
                                                {Op::OptimizationBarrier, &SameAsOperand},
                                                {Op::Tuple, &Tuple},
                                                {Op::AsyncDone, &AsyncDone},
                                                {Op::AsyncStart, &AsyncStart},
                                                {Op::AsyncUpdate, &AsyncUpdate},
                                                {Op::Call, &Call},
                                                {Op::Conditional, &Conditional},
                                                {Op::CustomCall, &CustomCall},
                                                {Op::Fusion, &Fusion},
                                                {Op::While, &While},
                                                {Op::AllGather, &AllGather},
                                                {Op::AllGatherDone, &AllGatherDone},
                                                {Op::AllGatherStart, &AllGatherStart},
                                                {Op::AllReduce, &AllReduce},
                                                {Op::AllReduceDone, &AllReduceDone},
                                                {Op::AllReduceStart, &AllReduce},
                                                {Op::AllToAll, &AllToAll},
                                                {Op::CollectiveBroadcast, &CollectiveBroadcast},
                                                {Op::CollectivePermute, &CollectivePermute},
                                                {Op::CollectivePermuteDone, &CollectivePermuteDone},
                                                {Op::CollectivePermuteStart, &CollectivePermuteStart},
                                                {Op::CollectiveReduce, &AllReduce},
                                                {Op::RaggedAllToAll, &RaggedAllToAll},
                                                {Op::ReduceScatter, &ReduceScatter},
                                                {Op::Infeed, &Infeed},
                                                {Op::Outfeed, &Outfeed},
                                                {Op::Recv, &Recv},
                                                {Op::RecvDone, &RecvDone},
                                                {Op::Send, &Send},
                                                {Op::SendDone, &SendDone},
                                            });
STROP_COMPLETE(kInfer);

// How many computations may the op call?
bool CalleeCountFits(Op op, size_t count) {
  switch (op) {
    case Op::Conditional: return count >= 1;
    case Op::CustomCall: return true;
    case Op::TopK:
    case Op::AsyncUpdate:
    case Op::AsyncDone: return count <= 1;  // may be left to the async-start
    default: break;
  }
  std::string_view names = Info(op).callees;
  if (names.empty()) return count == 0;
  return count == 1 + static_cast<size_t>(std::count(names.begin(), names.end(), ','));
}

}  // namespace

// ---- Args -----------------------------------------------------------------------------------------------------------

std::string Args::StableHloName(Op op) {
  switch (op) {
    case Op::Dot: return "dot_general";
    case Op::Broadcast: return "broadcast_in_dim";
    case Op::Conditional: return "case";
    case Op::Call: return "composite";
    case Op::OptimizationBarrier: return "optimization_barrier";
    default: break;
  }
  std::string name(Name(op));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

Result<Shape> Args::Declared() const {
  if (!declared) return Error("the result shape is not a function of the operands: it must be given");
  return declared->WithoutLayout();
}

Status Args::ExpectArray(int64_t i) const {
  if (operand(i).IsArray()) return OkStatus();
  return Error("operand ", i, " must be an array, but is ", operand(i));
}

Status Args::ExpectArrays() const {
  for (int64_t i = 0; i < operand_count(); ++i) STROP_TRY(ExpectArray(i));
  return OkStatus();
}

// ---- sizes ----------------------------------------------------------------------------------------------------------

bool SizesAgree(const Shape& a, int64_t i, const Shape& b, int64_t j) {
  if (a.dim(i) == b.dim(j) || a.is_unbounded(i) || b.is_unbounded(j)) return true;
  if (a.is_dynamic(i) && b.is_dynamic(j)) return true;
  if (a.is_dynamic(i)) return b.dim(j) <= a.dim(i);
  if (b.is_dynamic(j)) return a.dim(i) <= b.dim(j);
  return false;
}

void Refine(Shape& shape, int64_t i, const Shape& other, int64_t j) {
  auto vagueness = [](const Shape& s, int64_t d) { return s.is_unbounded(d) ? 2 : s.is_dynamic(d) ? 1 : 0; };
  const int mine = vagueness(shape, i), theirs = vagueness(other, j);
  if (theirs > mine || (theirs == mine && other.dim(j) >= shape.dim(i))) return;
  shape.set_dim(i, other.dim(j));
  shape.set_dynamic(i, theirs != 0);
}

bool DimsAgree(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return false;
  for (int64_t i = 0; i < a.rank(); ++i)
    if (!SizesAgree(a, i, b, i)) return false;
  return true;
}

bool TypesAgree(ElementType a, ElementType b, bool mixed_precision) {
  return a == b || (mixed_precision && IsFloat(a) && IsFloat(b));
}

bool ShapesAgree(const Shape& a, const Shape& b, bool mixed_precision) {
  // Iterative: tuples nest as deep as the input says.
  std::vector<std::pair<const Shape*, const Shape*>> pending = {{&a, &b}};
  while (!pending.empty()) {
    auto [x, y] = pending.back();
    pending.pop_back();
    if (!TypesAgree(x->type(), y->type(), mixed_precision)) return false;
    if (x->IsTuple()) {
      if (x->tuple_size() != y->tuple_size()) return false;
      for (int64_t i = 0; i < x->tuple_size(); ++i) pending.emplace_back(&x->element(i), &y->element(i));
    } else if (x->IsArray() && !DimsAgree(*x, *y)) {
      return false;
    }
  }
  return true;
}

bool IsUnique(const Dims& values) {
  Dims sorted = values;
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
}

bool InRange(const Dims& values, int64_t bound) {
  return std::all_of(values.begin(), values.end(), [bound](int64_t v) { return v >= 0 && v < bound; });
}

std::string Braces(const Dims& values) { return StrCat("{", Join(values, ","), "}"); }

Shape OneOrTuple(std::vector<Shape> shapes) {
  if (shapes.size() == 1) return std::move(shapes[0]);
  return Shape::Tuple(std::move(shapes));
}

// ---- callees --------------------------------------------------------------------------------------------------------

Result<Signature> SignatureOf(const Args& args, int64_t callee) {
  const Computation* computation = args.called[callee];
  Signature signature;
  if (!computation->root()) return args.Error("called computation %", computation->name(), " has no root");
  signature.result = &computation->root()->shape();
  for (int64_t i = 0; i < computation->parameter_count(); ++i) {
    if (!computation->parameter(i))
      return args.Error("called computation %", computation->name(), " has no parameter ", i);
    signature.parameters.push_back(&computation->parameter(i)->shape());
  }
  return signature;
}

Result<std::vector<ElementType>> CheckReducer(const Args& args, int64_t callee, std::span<const ElementType> inputs,
                                              std::span<const ElementType> init, int constraint) {
  STROP_ASSIGN(Signature sig, SignatureOf(args, callee));
  const std::string& name = args.called[callee]->name();
  const size_t n = inputs.size();
  if (sig.parameters.size() != 2 * n)
    return args.Violates(constraint, "%", name, " must take ", 2 * n, " parameters, but takes ", sig.parameters.size());
  std::vector<const Shape*> accumulators;
  if (sig.result->IsTuple())
    for (const Shape& e : sig.result->elements()) accumulators.push_back(&e);
  else
    accumulators.push_back(sig.result);
  if (accumulators.size() != n)
    return args.Violates(constraint, "%", name, " must return ", n, " values, but returns ", *sig.result);
  std::vector<ElementType> types;
  for (size_t i = 0; i < n; ++i) {
    const Shape& accumulator = *accumulators[i];
    if (!accumulator.IsScalar())
      return args.Violates(constraint, "%", name, " must return scalars, but returns ", *sig.result);
    auto expect = [&](const Shape& got, ElementType wanted, bool mixed, std::string_view what) -> Status {
      if (got.IsScalar() && TypesAgree(got.type(), wanted, mixed)) return OkStatus();
      return args.Violates(constraint, "%", name, ": ", what, " ", i, " is ", got, ", but ", Name(wanted),
                           "[] is needed");
    };
    STROP_TRY(expect(*sig.parameters[i], accumulator.type(), false, "parameter"));
    STROP_TRY(expect(*sig.parameters[n + i], accumulator.type(), true, "right-hand parameter"));
    // StableHLO lets the accumulator be a wider type of the same kind than the input.
    auto fits = [&](ElementType from) {
      return from == accumulator.type() || (Kind(from) == Kind(accumulator.type()));
    };
    if (!fits(inputs[i]))
      return args.Violates(constraint, "%", name, " reduces ", Name(accumulator.type()), ", but operand ", i, " is ",
                           Name(inputs[i]));
    if (!init.empty() && !fits(init[i]))
      return args.Violates(constraint, "%", name, " reduces ", Name(accumulator.type()), ", but initial value ", i,
                           " is ", Name(init[i]));
    types.push_back(accumulator.type());
  }
  return types;
}

}  // namespace infer

// ---- the two entry points -------------------------------------------------------------------------------------------

Result<Shape> InferShape(Op op, std::span<const Shape* const> operands, const Attrs& attrs,
                         std::span<Computation* const> called, const Shape* declared) {
  if (op >= Op::kEnd) return Internal("InferShape of an op that is not in the table");
  infer::Args args{op, operands, attrs, called, declared};
  if (attrs.kind() != AttrsKindOfOp(op)) return Internal(Name(op), ": attributes are of another op's kind");
  const int8_t arity = Info(op).arity;
  if (arity != kVariadic && arity != args.operand_count())
    return args.Error("expected ", static_cast<int64_t>(arity), arity == 1 ? " operand" : " operands", ", but got ",
                      args.operand_count());
  for (const Shape* s : operands)
    if (!s || s->type() == ElementType::Invalid) return args.Error("an operand has no shape");
  for (const Computation* c : called)
    if (!c) return args.Error("a called computation is missing");
  if (!infer::CalleeCountFits(op, called.size())) {
    if (Info(op).callees.empty()) return args.Error("calls ", called.size(), " computations, but takes none");
    return args.Error("needs the computations ", Info(op).callees, ", but names ", called.size());
  }
  if (declared) STROP_TRY(declared->Validate());
  Result<Shape> shape = infer::kInfer[op](args);
  if (shape.ok()) {
    Status valid = shape->Validate();
    if (!valid.ok()) return args.Error("the result shape ", *shape, " is not valid: ", valid.message());
  }
  return shape;
}

Status VerifyShape(const Instruction& instruction) {
  SmallVector<const Shape*, 8> operands;
  for (int64_t i = 0; i < instruction.operand_count(); ++i) operands.push_back(&instruction.operand(i)->shape());
  const Shape& actual = instruction.shape();
  Result<Shape> inferred = InferShape(instruction.op(), {operands.data(), operands.size()}, instruction.any_attrs(),
                                      {instruction.called().data(), instruction.called().size()}, &actual);
  if (!inferred.ok()) return Status(inferred.status()).At(instruction.Where());
  if (infer::ShapesAgree(*inferred, actual)) return OkStatus();
  return InvalidArgument(Name(instruction.op()), ": the result shape is ", actual,
                         ", but operands and attributes give ", *inferred)
      .At(instruction.Where());
}

}  // namespace strop
