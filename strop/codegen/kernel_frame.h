// KernelFrame: the function of a kernel, void(ptr args, i64 task_begin, i64 task_end, ptr scratch), or a place inside
// another; its buffers with what is known of their aliasing, and the loops over a LoopSpace cut into tasks.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "strop/codegen/elemental.h"
#include "strop/codegen/kept_rows.h"
#include "strop/codegen/kernel_body.h"
#include "strop/codegen/loop_space.h"

namespace strop {

// An empty function with the attributes that all code for a program has.
llvm::Function* CreateFunction(VectorBuilder& b, llvm::FunctionType* type, const std::string& name);

class KernelFrame {
 public:
  using V = llvm::Value*;
  // `in_place[r]` is the operand whose buffer result r has, or -1.
  KernelFrame(VectorBuilder& b, const std::string& name, const KernelBody& body, std::span<const int> in_place);
  // The code of a kernel inside the function that is being emitted, at the current place: all of its tasks. `buffers`:
  // inputs, then outputs.
  KernelFrame(VectorBuilder& b, const KernelBody& body, std::span<const int> in_place,
              std::span<const ElementBuilder::Memory> buffers);

  VectorBuilder& b() const { return b_; }
  const KernelBody& body() const { return body_; }
  LoopScopes& scopes() { return scopes_; }
  const ElementBuilder::Memory& input(size_t k) const { return inputs_[k]; }
  bool masked_memory() const { return b_.target().masked_memory; }
  const ElementBuilder::Memory& output(size_t r) const { return outputs_[r]; }
  // Of the tasks that this call is to run.
  V task_begin() const { return whole_ ? b_.I64(0) : task_begin_; }
  V task_end(int64_t num_tasks) const { return whole_ ? b_.I64(num_tasks) : task_end_; }
  V scratch() const { return scratch_; }
  // Does it cover all tasks, inside of another function?
  bool whole() const { return whole_; }
  // Binds the inputs of the body to their buffers.
  void Bind(ElementalEmitter& e) const;
  void Return();  // ends the function, if it is the kernel's own
  // Large results go past the caches from now on: they are written only, and whoever reads them would not find them
  // there in any case. For a function of the kernel's own.
  void StreamResults(std::span<const int> in_place);
  // Results are aligned to their elements only, and so none of them goes past the caches.
  void ExpectAnyAddress() { any_address_ = true; }
  bool streams() const { return streams_; }
  // Large inputs are asked for ahead from now on, if the kernel reads more than the nearer caches keep.
  void FetchInputs(const KernelCost& cost);
  // Does so little of what the kernel reads and writes stay in the caches that it pays? Earlier where nothing in the
  // program reads what it writes, and where lines are written from their ends, which are fetched late.
  static bool PaysToStream(const KernelCost& cost, bool earlier = false);
  // Is what `kernel` writes a result of the program, of a size for which that matters?
  static bool WritesLargeResult(const Instruction& kernel);

  // A point of the space, one per lane: where results go and are computed.
  using PointFn = std::function<Status(ElementalEmitter& e, const ArrayIndex& at)>;
  // From now on elements may be computed again: they are what they were, since nothing that is stored is read.
  void RepeatElements() { repeats_elements_ = true; }
  // The code of an element may be repeated so often, for elements at known positions.
  void RepeatUpTo(int64_t copies) { scopes_.RepeatUpTo(copies); }
  // Walks the part of the space that the tasks [task_begin, task_end) cover, `units_per_task` rows or row pieces each.
  struct Cut {
    int64_t num_tasks = 1;
    int64_t pieces = 1;          // of a row
    int64_t piece_size = 0;      // elements
    int64_t units_per_task = 1;  // a unit is a piece of a row
  };
  // As many as the work is worth.
  static int64_t WantedTasks(const KernelCost& cost);
  static Cut CutIntoTasks(const LoopSpace& space, const KernelCost& cost);
  // Tasks of so many elements each, in order; none if they do not fall between rows or cut them evenly.
  static std::optional<Cut> CutEvery(const LoopSpace& space, int64_t elements);
  Status Walk(const LoopSpace& space, const Cut& cut, const PointFn& point);
  // The next walk keeps these values in memory of the thread's own, which the kernel asks for. None inside another
  // function: there is no such memory.
  void KeepRows(std::vector<KeptRow> rows);
  // body(e, i) for i in [begin, end): vectors of `lanes`, then the rest by a mask or one by one. `begin` is a multiple
  // of `multiple`, the length one of the lanes if `whole`.
  using ElementFn = std::function<void(ElementalEmitter& e, const LaneIndex& i)>;
  void AlongRow(int lanes, V begin, V end, bool whole, int64_t multiple, const ElementFn& body, bool backwards = false);
  // body(e, i) for i in [begin, end), element by element.
  void OneByOne(const char* name, V begin, V end, const ElementFn& body);
  // The same for the rest [begin, end) of a row, or a part of one, that is walked by that many lanes from `row_begin`
  // on.
  void RestOfRow(int lanes, V row_begin, V begin, V end, int64_t multiple, const ElementFn& body);
  // AlongRow, of the space's strips.
  void AlongStrips(const LoopSpace& space, V begin, V end, int64_t rest, int64_t multiple, const ElementFn& body);
  // Emitters made from now on note where conditions change.
  void NoteSplits(ElementalEmitter::Splits* splits) { splits_ = splits; }
  // The emitter for a number of lanes, with the inputs bound.
  ElementalEmitter& Emitter(int lanes);

 private:
  void AddBuffers(const std::string& name, std::span<const int> in_place,
                  const std::function<ElementBuilder::Memory(size_t)>& buffer);
  using RegionFn = std::function<void(const ArrayIndex& row)>;
  void Regions(const LoopSpace& space, size_t digit, ArrayIndex row, const RegionFn& fn);
  using RunFn = std::function<void(ElementalEmitter& e, const ArrayIndex& at)>;
  void Rows(const LoopSpace& space, const Cut& cut, V unit, int64_t count, const RunFn& run);
  void Periods(const LoopSpace& space, V first, V row_end, bool whole_row, const ElementFn& element);
  void BehindPoints(const LoopSpace& space, std::span<const ArrayIndex> rows, V row_end, bool whole_row,
                    const RunFn& run);
  void Segments(const LoopSpace& space, V first, V row_end, bool whole_row, const ElementFn& element);

  VectorBuilder& b_;
  LoopScopes scopes_;
  const KernelBody& body_;
  bool whole_ = false;    // all tasks at once: inside another function
  bool streams_ = false;  // some results go past the caches
  bool any_address_ = false;
  bool repeats_elements_ = false;
  bool interleaves_ = false;  // the walk has several elements at each point of a row
  std::vector<ElementBuilder::Memory> inputs_, outputs_;
  void FillRows(const LoopSpace& space, const ArrayIndex& row);
  std::vector<KeptRow> kept_rows_;
  ElementalEmitter::KeptValues kept_values_;
  ElementalEmitter::Splits* splits_ = nullptr;
  V task_begin_ = nullptr, task_end_ = nullptr, scratch_ = nullptr;
  std::map<int, ElementalEmitter> emitters_;  // by lanes
};

// Computes the roots at a point of the space and stores them, in the frame's outputs of these numbers (none: in order).
Status EmitRoots(ElementalEmitter& e, const KernelFrame& frame, const KernelBody& body, const LoopSpace& space,
                 const ArrayIndex& at, std::span<const size_t> outputs = {});

}  // namespace strop
