// Shape inference, internal to ir/ops: one function an op, hung on the op table as a column (see infer.cc).
//
// Every function answers "what is the result's shape, or what is wrong with this instruction" from operands' shapes,
// attributes and callees' signatures. Layouts are ignored. Messages are in the user's words and end with the label of
// the StableHLO constraint that is violated, where there is one: "concatenate: ... (concatenate_c2)".
//
// Rules shared by all families:
//   dynamic sizes   a dimension is static (4), bounded (<=4) or unbounded (?); a known size agrees with `?`, and a
//   static
//                   size agrees with a bound that is not smaller; the more precise one is the result's
//   precision       where XLA lets float types of different widths meet (dot, convolution, reducers), so does this
#pragma once
#include <span>
#include <string>
#include <vector>

#include "strop/ir/module.h"

namespace strop::infer {

struct Args {
  Op op;
  std::span<const Shape* const> operands;
  const Attrs& any_attrs;
  std::span<Computation* const> called;
  const Shape* declared;  // null: none given

  const Shape& operand(int64_t i) const { return *operands[i]; }
  int64_t operand_count() const { return static_cast<int64_t>(operands.size()); }
  template <class A>
  const A& attrs() const {
    return any_attrs.get<A>();
  }

  // The user's error; `Violates` adds the label of the StableHLO constraint.
  template <class... Parts>
  Status Error(const Parts&... parts) const {
    return InvalidArgument(Name(op), ": ", parts...);
  }
  template <class... Parts>
  Status Violates(int constraint, const Parts&... parts) const {
    return InvalidArgument(Name(op), ": ", parts..., " (", StableHloName(op), "_c", constraint, ")");
  }
  static std::string StableHloName(Op op);

  // The declared shape, or the error that this op needs one.
  Result<Shape> Declared() const;
  Status ExpectArray(int64_t operand_number) const;
  Status ExpectArrays() const;  // all operands
};

using Fn = Result<Shape> (*)(const Args&);

// ---- sizes ----------------------------------------------------------------------------------------------------------

// Do sizes i of `a` and j of `b` possibly agree at run time?
bool SizesAgree(const Shape& a, int64_t i, const Shape& b, int64_t j);
// Writes the more precise one of dimension i of `shape` and j of `other` into `shape`; they must agree.
void Refine(Shape& shape, int64_t i, const Shape& other, int64_t j);
// All sizes agree (ranks equal).
bool DimsAgree(const Shape& a, const Shape& b);
// Same structure, agreeing sizes; element types equal, or any two floats if `mixed_precision`. Layouts are ignored.
bool ShapesAgree(const Shape& a, const Shape& b, bool mixed_precision = false);
bool TypesAgree(ElementType a, ElementType b, bool mixed_precision);

bool IsUnique(const Dims& values);
// Every value is in [0, bound).
bool InRange(const Dims& values, int64_t bound);
std::string Braces(const Dims& values);  // {0,1}

// Result size of a window that slides over `size` elements; -1 if the arithmetic overflows.
int64_t WindowedSize(int64_t size, const WindowDim& window);
// Checks each dimension of `window` and replaces the sizes of the first rank dimensions of `base`.
Result<Shape> WindowedShape(const Args& args, const Shape& base, const Window& window);

// ---- callees --------------------------------------------------------------------------------------------------------

struct Signature {
  std::vector<const Shape*> parameters;
  const Shape* result = nullptr;
};
// InvalidArgument if the computation has no root or a gap in its parameters.
Result<Signature> SignatureOf(const Args& args, int64_t callee);

// The callee is a reducer of n inputs: (T0.., T0..) -> T or (T0..), Ti scalars that the inputs and initial values fit.
// Returns the accumulators' element types. `init` may be empty (collectives).
Result<std::vector<ElementType>> CheckReducer(const Args& args, int64_t callee, std::span<const ElementType> inputs,
                                              std::span<const ElementType> init, int constraint);

// One array for one result, a tuple for more.
Shape OneOrTuple(std::vector<Shape> shapes);

// The element type of dot and convolution: the wider operand's, or the declared one where XLA allows that.
Result<ElementType> ContractionType(const Args& args);

// ---- the column's entries -------------------------------------------------------------------------------------------

Result<Shape> Elementwise(const Args&);

Result<Shape> Constant(const Args&);
Result<Shape> Iota(const Args&);
Result<Shape> Parameter(const Args&);
Result<Shape> Bitcast(const Args&);
Result<Shape> BitcastConvert(const Args&);
Result<Shape> Broadcast(const Args&);
Result<Shape> Concatenate(const Args&);
Result<Shape> Copy(const Args&);
Result<Shape> DynamicReshape(const Args&);
Result<Shape> DynamicSlice(const Args&);
Result<Shape> DynamicUpdateSlice(const Args&);
Result<Shape> Pad(const Args&);
Result<Shape> Reshape(const Args&);
Result<Shape> Reverse(const Args&);
Result<Shape> Shuffle(const Args&);
Result<Shape> Slice(const Args&);
Result<Shape> Transpose(const Args&);
Result<Shape> GetDimensionSize(const Args&);
Result<Shape> SetDimensionSize(const Args&);

Result<Shape> Gather(const Args&);
Result<Shape> Scatter(const Args&);

Result<Shape> Dot(const Args&);
Result<Shape> RaggedDot(const Args&);
Result<Shape> ScaledDot(const Args&);
Result<Shape> Convolution(const Args&);

Result<Shape> Reduce(const Args&);
Result<Shape> Scan(const Args&);
Result<Shape> Map(const Args&);
Result<Shape> Sort(const Args&);
Result<Shape> TopK(const Args&);
Result<Shape> ReduceWindow(const Args&);
Result<Shape> SelectAndScatter(const Args&);

Result<Shape> BatchNormGrad(const Args&);
Result<Shape> BatchNormInference(const Args&);
Result<Shape> BatchNormTraining(const Args&);
Result<Shape> Cholesky(const Args&);
Result<Shape> Fft(const Args&);
Result<Shape> TriangularSolve(const Args&);

Result<Shape> Rng(const Args&);
Result<Shape> RngBitGenerator(const Args&);
Result<Shape> RngGetAndUpdateState(const Args&);

Result<Shape> AddDependency(const Args&);
Result<Shape> AfterAll(const Args&);
Result<Shape> SameAsOperand(const Args&);  // domain, opt-barrier
Result<Shape> GetTupleElement(const Args&);
Result<Shape> Tuple(const Args&);

Result<Shape> Call(const Args&);
Result<Shape> Conditional(const Args&);
Result<Shape> CustomCall(const Args&);
Result<Shape> Fusion(const Args&);
Result<Shape> While(const Args&);

Result<Shape> AsyncStart(const Args&);
Result<Shape> AsyncUpdate(const Args&);
Result<Shape> AsyncDone(const Args&);
Result<Shape> CopyStart(const Args&);
Result<Shape> CopyDone(const Args&);
Result<Shape> Infeed(const Args&);
Result<Shape> Outfeed(const Args&);
Result<Shape> Recv(const Args&);
Result<Shape> RecvDone(const Args&);
Result<Shape> Send(const Args&);
Result<Shape> SendDone(const Args&);

Result<Shape> DeviceId(const Args&);  // partition-id, replica-id
Result<Shape> AllGather(const Args&);
Result<Shape> AllGatherStart(const Args&);
Result<Shape> AllGatherDone(const Args&);
Result<Shape> AllReduce(const Args&);  // all-reduce-start, collective-reduce
Result<Shape> AllReduceDone(const Args&);
Result<Shape> AllToAll(const Args&);
Result<Shape> CollectiveBroadcast(const Args&);
Result<Shape> CollectivePermute(const Args&);
Result<Shape> CollectivePermuteStart(const Args&);
Result<Shape> CollectivePermuteDone(const Args&);
Result<Shape> RaggedAllToAll(const Args&);
Result<Shape> ReduceScatter(const Args&);

}  // namespace strop::infer
