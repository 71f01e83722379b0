// Inside the plan: values (array leaves with a life time) and groups (values that share memory).
//
// Time is a line of positions: steps are numbered in the order in which they are walked, loop bodies and branches in
// place. A value is written at live.begin and last read at live.end. A value from outside that a loop reads lives to
// the end of the loop, since the next trip reads it again. Of the branches of a conditional one runs: what the others
// read is no concern of a value that is written in it.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "strop/ir/module.h"
#include "strop/plan/plan.h"
#include "strop/plan/region.h"
#include "strop/runtime/executable.h"

namespace strop::plan_internal {

// From here on errors tell where a value comes from.
constexpr int64_t kLargeBytes = int64_t{1} << 24;
constexpr int64_t kSizeBytes = 4;     // of a dynamic dimension's size
constexpr int64_t kStepDistance = 4;  // between positions of steps: room for copies before a step

struct Value {
  int64_t size = 0;
  const Instruction* def = nullptr;  // for names
  int64_t begin = 0;
  int64_t end = 0;
  int32_t loop = -1;    // innermost loop that contains the definition
  int32_t branch = -1;  // innermost branch that does
  int32_t group = -1;
  // Last reads in branches that do not contain the definition; empty: `end` is all there is to know.
  std::vector<std::pair<int32_t, int64_t>> branch_reads;
  int64_t end_outside = 0;  // of those branches
};

struct Loop {
  int32_t parent = -1;
  int64_t begin = 0;
  int64_t end = 0;
  int32_t branch = -1;                // that contains it
  std::vector<int32_t> carries = {};  // values that the body rewrites
  // Values that grow or fall by as much in each trip, and the largest that they are when one begins; none is below 0.
  struct Counter {
    int32_t value = -1;
    int64_t last = 0;
  };
  std::vector<Counter> counters = {};
};

// Of a conditional; branches of one exclude each other.
struct Branch {
  int32_t parent = -1;
  int32_t conditional = -1;
};

enum class Base : uint8_t { None, Parameter, Constant, Output, View, Part };

struct Group {
  std::vector<int32_t> values;
  Base base = Base::None;
  int32_t index = -1;  // of the parameter, constant or output; of a view or part, the value that it lies in

  int64_t size = 0;
  int64_t offset = 0;      // in the arena, for Base::None; in that value, for Base::Part
  bool in_region = false;  // memory of the region's own: none of the arena

  bool lies_in_another() const { return base == Base::View || base == Base::Part; }
};

// What a copy is for.
enum class CopyFor : uint8_t { kNothing, kResult, kLoopStart, kLoopNext, kLoopSwap, kBranch, kUpdate, kUpdated, kPart };

// A step before slots are known: args are values.
struct ProtoStep {
  int32_t program = 0;
  int64_t position = 0;
  int64_t first_position = 0;  // a loop: where its condition begins; values from outside are older
  const Instruction* instruction = nullptr;
  StepBody body;
  bool is_kernel = false;  // body comes from the backend
  bool is_custom_call = false;
  std::vector<std::pair<int32_t, Access>> args;
  int32_t num_operands = 0;              // leading args
  std::shared_ptr<const Region> region;  // body comes from the backend
  CopyFor copy_for = CopyFor::kNothing;
  std::vector<std::vector<int32_t>> rings = {};  // of a loop: values that change places (loop_rings.cc)
  ScratchRoom scratch;
};

// Two values that may share memory although one ends where the other begins: an operand overwritten in place, a copy.
using Handover = std::pair<int32_t, int32_t>;  // (ends, begins)

struct Graph {
  std::vector<Value> values;
  std::vector<Group> groups;
  std::vector<Loop> loops;
  std::vector<Branch> branches;
  int32_t open_branch = -1;  // that new values belong to
  std::vector<ProtoStep> steps;
  std::vector<std::string> programs;
  std::set<Handover> handovers;
  struct Wish {  // merge these if they do not interfere
    int32_t a, b;
  };
  std::vector<Wish> loop_wishes, branch_wishes, reuse_wishes;
  struct Donation {  // the output's memory should be that of the parameter
    int32_t parameter_value, output_value;
    int32_t parameter, output;
    bool must;
  };
  std::vector<Donation> donations;
  struct MustShare {  // step writes result over operand: a copy is made where they interfere
    size_t step;
    int32_t operand_arg, result_arg;
  };
  std::vector<MustShare> must_share;
  std::vector<int32_t> parameter_values;  // value of each parameter leaf
  std::vector<int32_t> outputs;           // value of each output leaf
  // Of a value of bounded size: its dynamic dimensions, and for each the s32 that says how much of it is meant.
  std::map<int32_t, std::vector<std::pair<int64_t, int32_t>>> sizes;
  int64_t end_position = 0;

  int32_t NewValue(int64_t size, const Instruction* def, int64_t begin, int32_t loop);
  // A group of its own for every value that has none.
  bool Merge(int32_t a, int32_t b);  // by value; false if they interfere
  bool Interfere(const Value& a, int32_t na, const Value& b, int32_t nb) const;
  // Does `inner` lie in `outer`, or is it the same? -1 is the whole program.
  bool Contains(int32_t outer, int32_t inner) const;
  // Are they, or branches around them, different ones of one conditional?
  bool Exclude(int32_t a, int32_t b) const;
  // When `value` is last read, as far as that matters where branch `in` runs.
  int64_t EndIn(const Value& value, int32_t in) const;
};

// Merges what the wishes ask for and inserts the copies that must_share needs.
void Coalesce(Graph& graph);
// Which of a loop's carries, one a leaf of its state, count its trips, of which the number is known.
void NoteCounters(const Instruction& loop, std::span<const int32_t> carry, Loop& into);
// Turns loops of small steps into regions.
void FormRegions(Graph& graph, const TargetInfo& target);
// Large carries of the region's loops change places where they would be copied at the end of a trip (rotation.cc), if
// each of them may.
using MayRotate = std::function<bool(int32_t buffer)>;
void RotateCarries(Region& region, const MayRotate& may_rotate);
// The same of large carries of the loops that are left.
void FormRings(Graph& graph);
// The carries of a loop, by number, whose next values are carries: each behind those that become what it was, since it
// is read no more then, and its memory may take what it becomes. Those that go round come last.
std::vector<size_t> HandedOn(std::span<const int32_t> carry, std::span<const int32_t> next);
// Puts groups without a base into the arena; returns its size.
int64_t AssignArena(Graph& graph, int64_t alignment);
// Where each kernel may have scratch memory in it.
void FindScratch(Graph& graph);

// No work: its result is its operand's memory.
bool HandsOnItsOperand(Op op);
// Is the array computed by its own computation, and does nobody write over it, apart from who gets it as the
// computation's result?
bool IsLeftAlone(const Instruction& array);

// Where a slice lies in what it is cut from, if that is one piece of memory, aligned; its starts are operands of
// `slice`, which may be a fusion around it.
struct SliceView {
  const Instruction* of = nullptr;
  ViewStep step;
  std::vector<const Instruction*> starts;  // one a dim of the step
};
std::optional<SliceView> ViewOf(const Instruction& slice, int64_t alignment);

// Which operands of a concatenation, whose values are `parts`, may be computed where they lie in its result
// (Base::Part); none if that would not save most of its work (parts.cc).
std::vector<bool> PartsInPlace(const Graph& graph, const Instruction& concatenate, std::span<const int32_t> parts,
                               const TargetInfo& target);

// A copy of a value onto itself: no step.
bool CopiesNothing(const Graph& graph, const ProtoStep& step);
// Before the steps' bodies are given up.
MemoryProfile ProfileMemory(const Graph& graph, const Plan& plan);

// What takes the most of it, for an error when memory runs out; empty for an arena that is small.
std::string LargestTemporaries(const Graph& graph, int64_t arena_bytes);
// "dot (model.py:12)".
std::string OriginOf(const Instruction& instruction);

// Computations whose instructions become steps: the entry and what control flow reaches from it.
std::vector<Computation*> StepComputations(const Module& module);
// Dots that are only read transposed get that layout, where the target computes them so (product_layouts.cc).
void WriteProductsTransposed(Computation& computation, const TargetInfo& target);
// Conversions of bits to elements of another size become views of their operands' memory (reinterpret.cc).
void ReinterpretInMemory(Computation& computation);
bool IsOfOtherSize(const Instruction& bitcast);
// Each update in place of what is made from nothing (zeros that are added to, say) gets one of its own to write over:
// making it costs half of what a copy does, and who else reads the value makes it where it is read (in_place.cc).
void MakeWhatIsWrittenOverApart(Computation& computation);
// band.cc: the last step of fusion.
void FormBands(Module& module, Computation& computation, const TargetInfo& target, std::vector<FusionLimit>* limits);
// Output leaf -> the parameter leaf whose memory is given to it.
std::map<int64_t, int64_t> DonatedParameters(const Module& module);
// Leaves of a tuple before those of `element`.
int64_t LeafOffset(const Shape& tuple, int64_t element);
MemoryKind KindOf(const std::string& name);
// An output gets memory of its own before anything is merged, so that whatever computes it writes there directly.
void PlaceOutputs(const Module& module, Graph& graph, Plan& plan);
// Says where each output is found after values were merged.
void BindOutputs(const Graph& graph, Plan& plan);
// Slots, programs and steps. The graph gives up its steps' bodies.
void Assemble(Graph& graph, const TargetInfo& target, Plan& plan);

}  // namespace strop::plan_internal
