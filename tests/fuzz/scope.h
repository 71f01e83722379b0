// Scope: a computation that is being made up, instruction by instruction, from the values that it has so far.
//
// What an op accepts is InferShape's to say, here as everywhere: a maker proposes operands and attributes, Try() adds
// the instruction if they are legal and says no otherwise. So an elementwise op is made as soon as it has its row.
#pragma once
#include "strop/ir/builder.h"
#include "tests/fuzz/random.h"

namespace strop::fuzz {

// What the scopes of one module share.
struct Recipe {
  explicit Recipe(uint64_t seed) : random(seed) {}
  Random random;
  std::vector<int64_t> dims;       // sizes that come up again and again, so that values fit each other
  std::vector<ElementType> types;  // likewise
  int64_t max_elements = 2000;     // of a value
  int64_t instructions_left = 60;  // of the whole module, nested computations included
};

class Scope {
 public:
  // `depth`: of nesting. `scalar`: a function of scalars, as reduce and map take it.
  Scope(Recipe& recipe, Computation* computation, int depth, bool scalar = false)
      : recipe_(recipe), computation_(computation), depth_(depth), scalar_(scalar) {}

  Recipe& recipe() { return recipe_; }
  Random& random() { return recipe_.random; }
  Module& module() { return *computation_->module(); }
  Computation* computation() { return computation_; }
  int depth() const { return depth_; }
  bool scalar() const { return scalar_; }

  // ---- values
  void AddValue(Instruction* value) { values_.push_back(value); }
  const std::vector<Instruction*>& values() const { return values_; }
  // Any array so far, later ones more often; a new one if there is none.
  Instruction* AnyArray();
  // One of the kind, converted if need be.
  Instruction* OfKind(ElementKind kind);
  // An array of that type and these dimensions: one that there is, or a new one, made from others where that is easy.
  Instruction* Value(ElementType type, const Int64Vector& dims);
  Instruction* Value(const Shape& shape) { return Value(shape.type(), shape.dims()); }
  Instruction* ScalarValue(ElementType type) { return Value(type, {}); }
  // A new constant, iota, broadcast or parameter.
  Instruction* Leaf(ElementType type, const Int64Vector& dims);
  Instruction* Constant(ElementType type, double value) {
    return Add(Op::Constant, {}, ConstantAttrs{Literal::ScalarOf(type, value)});
  }

  // ---- shapes
  ElementType AnyType();
  ElementType AnyType(ElementKind kind);
  int64_t AnyDim();
  Int64Vector AnyDims();
  bool Fits(const Int64Vector& dims) const;

  // ---- instructions
  // The instruction, or null if it would not be legal or too large. It becomes a value (a tuple's elements do).
  Instruction* Try(Op op, std::span<Instruction* const> operands, Attrs attrs = NoAttrs{},
                   std::span<Computation* const> called = {}, const Shape* declared = nullptr);
  Instruction* Try(Op op, std::initializer_list<Instruction*> operands, Attrs attrs = NoAttrs{},
                   std::initializer_list<Computation*> called = {}, const Shape* declared = nullptr) {
    return Try(op, std::span<Instruction* const>(operands.begin(), operands.size()), std::move(attrs),
               std::span<Computation* const>(called.begin(), called.size()), declared);
  }
  // The same without becoming a value.
  Instruction* Add(Op op, std::initializer_list<Instruction*> operands, Attrs attrs = NoAttrs{},
                   const Shape* declared = nullptr);
  Instruction* Convert(Instruction* value, ElementType type);
  // Makes about `n` instructions with random ops.
  void Grow(int64_t n);

  Computation* NewComputation(std::string_view name) { return module().AddComputation(std::string(name)); }

 private:
  Recipe& recipe_;
  Computation* computation_;
  int depth_;
  bool scalar_;
  std::vector<Instruction*> values_;
};

// The column of the generator: makes an instruction of the op (and what it needs), or null if it could not this time.
using MakeFn = Instruction* (*)(Scope & scope, Op op);
MakeFn MakeFunction(Op op);  // null: the generator leaves the op out
int WeightOf(Op op);         // how often it is drawn

Instruction* MakeElementwise(Scope& scope, Op op);
Instruction* MakeSelect(Scope& scope, Op op);
Instruction* MakeClamp(Scope& scope, Op op);
Instruction* MakeStochasticConvert(Scope& scope, Op op);
Instruction* MakeLeaf(Scope& scope, Op op);
Instruction* MakeReshaped(Scope& scope, Op op);
Instruction* MakeBroadcast(Scope& scope, Op op);
Instruction* MakeConcatenate(Scope& scope, Op op);
Instruction* MakeCopy(Scope& scope, Op op);
Instruction* MakeBitcastConvert(Scope& scope, Op op);
Instruction* MakeDynamicSlice(Scope& scope, Op op);
Instruction* MakeDynamicUpdateSlice(Scope& scope, Op op);
Instruction* MakeGather(Scope& scope, Op op);
Instruction* MakeScatter(Scope& scope, Op op);
Instruction* MakePad(Scope& scope, Op op);
Instruction* MakeReverse(Scope& scope, Op op);
Instruction* MakeSlice(Scope& scope, Op op);
Instruction* MakeTranspose(Scope& scope, Op op);
Instruction* MakeGetDimensionSize(Scope& scope, Op op);
Instruction* MakeBounded(Scope& scope, Op op);
Instruction* MakeDot(Scope& scope, Op op);
Instruction* MakeProducts(Scope& scope);
// A loop over steps of a recurrent net, its results values of the scope (an entry's); false if it could not.
bool MakeRecurrent(Scope& scope);
Instruction* MakeRaggedDot(Scope& scope, Op op);
Instruction* MakeScaledDot(Scope& scope, Op op);
Instruction* MakeConvolution(Scope& scope, Op op);
Instruction* MakeReduce(Scope& scope, Op op);
Instruction* MakeReduceWindow(Scope& scope, Op op);
Instruction* MakeSelectAndScatter(Scope& scope, Op op);
Instruction* MakeMap(Scope& scope, Op op);
Instruction* MakeSort(Scope& scope, Op op);
Instruction* MakeTopK(Scope& scope, Op op);
Instruction* MakeBatchNorm(Scope& scope, Op op);
Instruction* MakeCholesky(Scope& scope, Op op);
Instruction* MakeFft(Scope& scope, Op op);
Instruction* MakeTriangularSolve(Scope& scope, Op op);
Instruction* MakeRngBitGenerator(Scope& scope, Op op);
Instruction* MakeTuple(Scope& scope, Op op);
Instruction* MakeBarrier(Scope& scope, Op op);
Instruction* MakeDependency(Scope& scope, Op op);
Instruction* MakeCall(Scope& scope, Op op);
Instruction* MakeConditional(Scope& scope, Op op);
Instruction* MakeFusion(Scope& scope, Op op);
Instruction* MakeWhile(Scope& scope, Op op);
Instruction* MakeScan(Scope& scope, Op op);
Instruction* MakeCustomCall(Scope& scope, Op op);
Instruction* MakeCollective(Scope& scope, Op op);
Instruction* MakeCollectiveDone(Scope& scope, Op op);
Instruction* MakeAsync(Scope& scope, Op op);
Instruction* MakeReplicaId(Scope& scope, Op op);

// ---- shared by makers
// Operands, attributes and callee of a reduction over values like `like`: combiners that are associative and
// commutative, since HLO leaves the order open; the initial values are identities of theirs.
struct Reducer {
  std::vector<Instruction*> init;
  Computation* to_apply = nullptr;
};
Reducer MakeReducer(Scope& scope, const std::vector<Instruction*>& inputs);
// combiner(a, b) as a computation of scalars.
Computation* Combiner(Scope& scope, Op op, ElementType type);
// An op that combines elements of the type in any order with one result.
Op AnyCombiner(Scope& scope, ElementType type);
// `value` bounded to about [-1, 1], NaN and infinities replaced: operands of ops that answer wild ones at will.
Instruction* Tamed(Scope& scope, Instruction* value);

}  // namespace strop::fuzz
