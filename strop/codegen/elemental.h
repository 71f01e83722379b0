// ElementalEmitter: code for the value of any instruction at a symbolic position, recursively through its operands.
//
// Each op is a rule from "position in my result" to "positions in my operands": broadcast drops digits, transpose
// permutes them, slice adds to them, reduce opens a loop over those that are missing in the result, elementwise ops
// pass the position through. Values are emitted once per position and loop level, as far out as the position allows
// (loop_scopes.h):
//
//   fusion: %m = reduce(p, max), %b = broadcast(%m), ROOT exp(p - %b)
//   the row loop holds the reduction of the row, the inner loop one load, subtraction and exp
//
// A uniform position (no lane varies) gives a scalar, whatever the number of lanes of the loop around it.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "strop/analysis/combiner.h"
#include "strop/analysis/positionwise_loop.h"
#include "strop/base/status.h"
#include "strop/codegen/dim_groups.h"
#include "strop/codegen/element.h"
#include "strop/codegen/index.h"
#include "strop/codegen/loop_scopes.h"
#include "strop/codegen/scalar_emitter.h"
#include "strop/ir/module.h"

namespace strop {

using Vals = std::vector<Val>;

// Can ElementalEmitter compute this instruction (not looking at its operands)? For a fusion: all of its body.
Decision CanEmitElement(const Instruction& instruction);
// Can this computation be inlined as a function of scalars (the body of reduce, map, sort, scatter)?
Decision CanInline(const Computation& computation);

// A reduce-window whose window reaches from each element of one dimension to its end: a scan, of linear work.
struct ScanShape {
  int64_t outer = 1, n = 1, inner = 1;  // the array as [outer, n, inner]
  bool backward = false;                // from the last element to the first
};
std::optional<ScanShape> ScanOf(const Instruction& reduce_window);

class ElementalEmitter {
 public:
  using V = llvm::Value*;

  struct Condition {
    V value = nullptr;  // i1, one or per lane; null: always
    int level = 0;
    bool tail = false;  // the lanes that are off are those beyond the end of a row
  };

  ElementalEmitter(VectorBuilder& b, LoopScopes& scopes, int lanes);

  VectorBuilder& b() { return b_; }
  LoopScopes& scopes() { return scopes_; }
  ElementBuilder& elements() { return elements_; }
  ScalarEmitter& scalars() { return scalars_; }
  IndexBuilder& indices() { return indices_; }
  int lanes() const { return indices_.lanes(); }

  // The instruction's value is in memory (dense, row-major).
  void BindBuffer(const Instruction* instruction, const ElementBuilder::Memory& memory);
  // Its value is that of another instruction: the parameters of an inlined computation.
  void BindAlias(const Instruction* instruction, const Instruction* actual);

  // Value at a position of its (array) shape; index.sizes multiply to its number of elements.
  Val Emit(const Instruction* instruction, const ArrayIndex& index);
  // All results of a tuple-shaped reduce at a position.
  Vals EmitAll(const Instruction* instruction, const ArrayIndex& index);
  // The results of a reduce at several positions, none of which is uniform: one loop computes them all.
  Vals ReduceParts(const Instruction& reduce, std::span<const ArrayIndex> parts);

  // ---- strips: vectors side by side (elemental_strips.cc)
  // From now on reductions along rows accumulate so many vectors side by side.
  void ReduceRowsInStrips(int strips) { row_strips_ = strips; }
  // Until EndStrips there are as many strips, with what is on in each; `last`: the ones at the end of a row.
  void BeginStrips(std::vector<Condition> inside, bool last) {
    strip_masks_ = std::move(inside);
    last_strips_ = last;
  }
  void EndStrips() { strip_masks_.clear(); }
  size_t strips() const { return strip_masks_.size(); }
  // Their positions along the last digit, the first of which is `at`.
  std::vector<ArrayIndex> StripsAt(const ArrayIndex& at);
  // Computes a reduce at the strips, in one loop: EmitStrip finds its results.
  void ReduceStrips(const Instruction& reduce, std::span<const ArrayIndex> strips);
  // EmitAll and Store at the strip of this number.
  Vals EmitStrip(size_t strip, const Instruction* instruction, const ArrayIndex& at);
  void StoreStrip(size_t strip, const ElementBuilder::Memory& memory, const Val& value, const ArrayIndex& at);
  // These are the values at a position, whoever computed them: what is emitted at it next will find them.
  void Provide(const Instruction* instruction, const ArrayIndex& index, const Vals& values);
  // Asks, for the second cache, for the lines of the buffers that Emit would read there at a position of their own,
  // through transposes and elementwise ops; `count` elements from the position on (0: as many as there are lanes)
  // follow each other, and it need not be one of the array.
  void Fetch(const Instruction* instruction, const ArrayIndex& index, int count = 0);
  // The body of a scalar computation on values of any number of lanes; one value per leaf of its root.
  // `known`: an instruction of it that is true, whatever the arguments say.
  Vals Inline(const Computation& computation, const Vals& arguments, const Instruction* known = nullptr);
  // Scalar operand (start index, init value), evaluated outside all loops where possible.
  Val EmitScalarOperand(const Instruction* instruction) { return Emit(instruction, ArrayIndex{}); }
  // The scan of one line: `at` is a position in [outer, inner]; store(position in [outer, n, inner], results) for each
  // element.
  void Scan(const Instruction& i, const ScanShape& shape, const ArrayIndex& at,
            const std::function<void(const ArrayIndex&, const Vals&)>& store);
  int LevelOf(const ArrayIndex& index) const;
  // start_indices of dynamic-slice and -update-slice as subscripts, clamped so that a window of `sizes` fits.
  std::vector<LaneIndex> EmitStarts(const Instruction& i, int64_t first_operand, std::span<const int64_t> dims,
                                    std::span<const int64_t> sizes);
  // One component of the index vectors of gather or scatter, at a position of the batch (the dimensions of the index
  // array without `index_vector_dim`, neighbours perhaps as one digit), as it is: of u64 beyond the range of s64
  // negative.
  LaneIndex EmitIndexComponent(const Instruction* indices, int64_t index_vector_dim, const ArrayIndex& batch,
                               int64_t component);
  // Of a gather: the digit of its result that says where a batching dimension of the operand is read, and where its
  // windows begin along a dimension of the operand.
  LaneIndex BatchDigit(const Instruction& i, std::span<const DimGroup> groups, const ArrayIndex& at,
                       int64_t operand_dim);
  LaneIndex GatherStart(const Instruction& i, const ArrayIndex& batch, int64_t operand_dim);
  // Where a dynamic-update-slice puts the element `at` of its update.
  ArrayIndex WindowPosition(const Instruction& update, const ArrayIndex& at);
  Val Load(const ElementBuilder::Memory& memory, ElementType type, const ArrayIndex& index);
  void Store(const ElementBuilder::Memory& memory, const Val& value, const ArrayIndex& index);
  // Stores the lanes of all parts in turns; that of the first part is at `first`.
  void StoreInterleaved(const ElementBuilder::Memory& memory, const Vals& parts, const LaneIndex& first);
  // f() with loads and stores limited to the lanes in `condition`.
  Vals WithMask(const Condition& condition, const std::function<Vals()>& f);
  Condition InRange(const LaneIndex& x, int64_t bound);  // 0 <= x < bound
  // Where conditions change along the digits of the walk; what InRange cannot decide is noted there.
  using Splits = std::map<int, std::set<int64_t>>;
  void NoteSplits(Splits* splits) { splits_ = splits; }
  Condition Both(const Condition& a, const Condition& b);
  // Values of a row that are kept in memory (kept_rows.h): stored where they are computed, until they are all there,
  // and read from then on.
  struct Kept {
    ElementBuilder::Memory memory;  // as if of all rows
    bool filled = false;
  };
  using KeptValues = std::unordered_map<const Instruction*, Kept>;
  void KeepValues(const KeptValues* kept) { kept_ = kept; }

  // How the walk goes on from what is emitted next: at each point of a row, the last digit of the position, so many
  // neighbouring rows of this size are computed. `picks`: as of LoopSpace.
  struct RowWalk {
    int64_t rows = 1, size = 0;
    bool picks = false;
    LaneIndex along;
  };
  void InWalk(const RowWalk& walk) { walk_ = walk; }

  // The first failure (an op that has no rule, code that grows without bound); everything emitted after it is void.
  const Status& status() const { return status_; }
  Vals Fail(Status status, const Shape& shape);

 private:
  friend struct ElementRules;
  using Positions = std::span<const int64_t>;

  Vals Compute(const Instruction& i, const ArrayIndex& index);
  void EmitSameIndexOperands(const Instruction* root, const ArrayIndex& index);
  LoopScopes::Key KeyOf(const Instruction* i, const ArrayIndex& index) const;
  enum class ConditionOp : uint64_t { kBelow = 101, kAnd, kNot };  // tags of cache keys: no others are of this size
  static constexpr uint64_t kFetchedRow = 111, kIndexInRange = 112;
  void FetchNextRow(const ElementBuilder::Memory& memory, ElementType type, const ArrayIndex& index);
  Val LoadFromGroups(const ElementBuilder::Memory& memory, ElementType type, const ArrayIndex& index,
                     const LaneIndex& at, int64_t stride);
  Val GatherFromRow(const ElementBuilder::Memory& memory, ElementType type, const ArrayIndex& index,
                    const LaneIndex& at);
  Condition EmitCondition(ConditionOp op, V a, V c, int level);
  // Where `inside` holds, the value of `then`; elsewhere that of `otherwise`. What the condition excludes is not read.
  // `uniform`: neither depends on the lane.
  Vals Choose(const Condition& inside, bool uniform, const std::function<Vals()>& then,
              const std::function<Vals()>& otherwise);
  ArrayIndex SelectGroups(const Instruction& i, const ArrayIndex& index);
  // Of an instruction whose range is known (analysis/integer_range.h).
  std::optional<LaneIndex> KnownIndex(const Instruction& i, const ArrayIndex& at);
  // `memory` as the lanes that are on allow: its padding may be read where only a tail is off.
  ElementBuilder::Memory Masked(ElementBuilder::Memory memory) const;
  bool MayBeFarOutside(ElementType type, const ArrayIndex& index) const;
  V ToBits(const Val& value);
  Val FromBits(ElementType type, V bits);
  const Instruction* Resolve(const Instruction* i) const;  // through aliases
  bool BindFusion(const Instruction& fusion);

  // One rule per op or family.
  Vals Elementwise(const Instruction& i, const ArrayIndex& index);
  Vals ContractedSum(const Instruction& sum, int64_t product, const ArrayIndex& index);
  Vals PassThrough(const Instruction& i, const ArrayIndex& index);
  Vals BitcastRule(const Instruction& i, const ArrayIndex& index);
  Vals ConstantRule(const Instruction& i, const ArrayIndex& index);
  Vals Iota(const Instruction& i, const ArrayIndex& index);
  Vals Broadcast(const Instruction& i, const ArrayIndex& index);
  Vals Transpose(const Instruction& i, const ArrayIndex& index);
  Vals Slice(const Instruction& i, const ArrayIndex& index);
  Vals Reverse(const Instruction& i, const ArrayIndex& index);
  Vals Pad(const Instruction& i, const ArrayIndex& index);
  Vals Concatenate(const Instruction& i, const ArrayIndex& index);
  Vals ConcatenateRange(const Instruction& i, const ArrayIndex& grouped, size_t along, int64_t first, int64_t last,
                        std::span<const int64_t> offsets);
  Vals DynamicSlice(const Instruction& i, const ArrayIndex& index);
  Vals DynamicUpdateSlice(const Instruction& i, const ArrayIndex& index);
  V ClampIndex(const LaneIndex& start, bool wraps, int64_t room);
  Vals Gather(const Instruction& i, const ArrayIndex& index);
  Vals Reduce(const Instruction& i, const ArrayIndex& index);
  Vals ReduceUnmasked(const Instruction& i, const ArrayIndex& index);
  Vals ReduceWindow(const Instruction& i, const ArrayIndex& index);
  Vals Map(const Instruction& i, const ArrayIndex& index);
  Vals InlineConditional(const Instruction& i, const Vals& operands);
  Vals FusionRule(const Instruction& i, const ArrayIndex& index);
  Vals GetTupleElement(const Instruction& i, const ArrayIndex& index);
  Vals While(const Instruction& i, const ArrayIndex& index);
  Vals StateOfLoop(const Instruction& i, const ArrayIndex& index);
  bool IsAt(const ArrayIndex& index, const ArrayIndex& position);
  Vals GetDimensionSize(const Instruction& i, const ArrayIndex& index);
  Vals Dot(const Instruction& i, const ArrayIndex& index);
  Vals Convolution(const Instruction& i, const ArrayIndex& index);
  Vals Unsupported(const Instruction& i, const ArrayIndex& index);

  Vals MultiplyAccumulate(const Vals& acc, const Val& lhs, const Val& rhs);
  Val ContractInChains(int64_t size, const Val& zero,
                       const std::function<Vals(const LaneIndex& n, const Vals& sum)>& product);
  // Pieces of reductions (elemental_reduce.cc).
  struct Accumulation;
  Vals ReduceAt(const Instruction& i, std::span<const ArrayIndex> parts, bool in_strips);
  std::vector<ArrayIndex> PositionsOfReduction(const Instruction& i, std::span<const ArrayIndex> parts,
                                               std::vector<size_t>& loops);
  Vals AccumulateAcrossLanes(Accumulation& a, std::vector<ArrayIndex>& strips, const Vals& init,
                             const std::optional<Val>& identity);
  Vals AccumulateInLanes(const Accumulation& a, std::vector<ArrayIndex>& parts, const Vals& init, int width);
  Vals AccumulateLoops(const Accumulation& a, size_t group, std::vector<ArrayIndex>& parts, Vals accumulators);
  Vals CombineParts(const Accumulation& a, const std::vector<ArrayIndex>& parts, const Vals& accumulators, V mask);
  Vals CombineAll(const Accumulation& a, const Vals& accumulators, const Vals& values, V mask, bool elements = false);
  Vals PartialStarts(std::span<const Op> ops, const Vals& init);
  Vals PartialResults(const Accumulation& a, const Vals& accumulators);
  Vals LoopInBlocks(const Accumulation& a, llvm::Value* begin, llvm::Value* end, int64_t step, int64_t trips,
                    const Vals& accumulators, const std::function<Vals(llvm::Value* i, const Vals& carried)>& body);
  // `a`: the values are elements of its operand, in their order.
  Vals CombineInto(const LaneCombiner& combiner, const Vals& accumulators, const Vals& values, V mask,
                   const Accumulation* a = nullptr);
  Vals InlineByRegisters(const Computation& computation, const Vals& args, const Instruction* known);
  std::optional<Val> Identity(const LaneCombiner& combiner, ElementType type);
  Vals AccumulateTail(const Accumulation& a, size_t group, int64_t first, int64_t size, std::vector<ArrayIndex>& parts,
                      Vals accumulators);
  bool DealsOut(const Instruction& reduce) const;
  bool DividesForBf16(const Instruction& i) const;
  bool IsLittleCode(const Instruction& operand) const;
  bool IsLongChain(const Instruction& reduce, const LaneCombiner& combiner, ElementType type, int width) const;
  Vals AcrossStrips(const LaneCombiner& combiner, Vals accumulators, size_t inputs, int64_t position);
  Vals AcrossLanes(const LaneCombiner& combiner, Vals accumulators, int64_t position);
  Vals CombineHalves(const LaneCombiner& combiner, const Vals& low, const Vals& high, int64_t position);
  int64_t PositionInput(const Instruction& i, int64_t inputs) const;
  const Instruction* ComparisonOfPositions(const Instruction& i, int64_t inputs, int64_t position) const;
  Vals LoopOver(const char* name, V begin, V end, int64_t step, const Vals& init,
                const std::function<Vals(V i, const Vals& carried)>& body, bool pinned = false);
  std::vector<V> CarriedParts(const Vals& values, int bits, const Vals& like);
  Vals FromParts(std::span<const V> parts, int bits, const Vals& like);
  static bool IsMask(const Val& v) { return v.type == ElementType::Pred && v.lanes() > 1; }
  static llvm::Type* MaskType(const Val& v, int bits) {
    return llvm::FixedVectorType::get(llvm::Type::getIntNTy(v.re->getContext(), static_cast<unsigned>(bits)),
                                      static_cast<unsigned>(v.lanes()));
  }
  // Trips of the lanes of a positionwise loop as long as it goes on.
  Vals LoopUntilEnded(const Vals& init, const std::function<V(const Vals& carried)>& goes_on,
                      const std::function<Vals(V, const Vals& carried)>& trip);
  V AnyLane(const Val& pred);  // is it true in any lane that is on?

  VectorBuilder& b_;
  LoopScopes& scopes_;
  ElementBuilder elements_;
  ScalarEmitter scalars_;
  IndexBuilder indices_;
  std::unordered_map<const Instruction*, ElementBuilder::Memory> buffers_;  // looked up only
  std::unordered_map<const Instruction*, const Instruction*> aliases_;
  std::unordered_map<const Instruction*, ElementBuilder::Memory> constants_;
  // The state of a positionwise loop inside its body, by the body's parameter.
  struct LoopState {
    const Instruction* init = nullptr;
    ArrayIndex position;
    std::vector<std::optional<Val>> carried;  // by element; others are those of init
    std::vector<PositionwiseLoop::Role> roles;
  };
  std::unordered_map<const Instruction*, LoopState> loops_;  // looked up only
  uint64_t trip_ = 0;                                        // whose state they hold, as a part of keys
  Condition mask_;                                           // lanes that are on
  Splits* splits_ = nullptr;
  const KeptValues* kept_ = nullptr;
  // How far ahead of a vector that is loaded the next one of its row is going to be; 0: it is not known.
  int fetch_ahead_ = 0;
  RowWalk walk_;
  int row_strips_ = 1;
  std::vector<Condition> strip_masks_;
  bool last_strips_ = false;
  int depth_ = 0;        // of recursion
  int64_t emitted_ = 0;  // instructions so far
  Status status_;
};

}  // namespace strop
