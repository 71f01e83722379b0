// Module and Computation: they own the instructions. A computation's instructions form a list whose order is a valid
// topological order at all times except inside a pass that says otherwise; in a scheduled module it is the schedule.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "strop/ir/instruction.h"

namespace strop {

// How far a module has come; passes state the earliest stage that they accept, the verifier holds a stage's promises.
enum class Stage : uint8_t { Imported, Optimized, Partitioned, LaidOut, Fused, Scheduled };
std::string_view Name(Stage stage);

class Computation {
 public:
  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  Module* module() const { return module_; }
  int64_t id() const { return id_; }
  bool IsEntry() const;

  Instruction* root() const { return root_; }
  void set_root(Instruction* root) { root_ = root; }
  int64_t parameter_count() const { return static_cast<int64_t>(parameters_.size()); }
  Instruction* parameter(int64_t i) const { return parameters_[i]; }
  const std::vector<Instruction*>& parameters() const { return parameters_; }
  int64_t instruction_count() const { return count_; }

  // ---- iteration in list order; removing the current instruction while iterating is allowed
  class Iterator {
   public:
    Iterator(Instruction* at) : at_(at), next_(at ? at->next() : nullptr) {}
    Instruction* operator*() const { return at_; }
    Iterator& operator++() {
      at_ = next_;
      next_ = at_ ? at_->next() : nullptr;
      return *this;
    }
    bool operator!=(const Iterator& o) const { return at_ != o.at_; }

   private:
    Instruction* at_;
    Instruction* next_;
  };
  struct Range {
    Instruction* first;
    Iterator begin() const { return Iterator(first); }
    Iterator end() const { return Iterator(nullptr); }
  };
  Range instructions() const { return Range{first_}; }
  Instruction* first() const { return first_; }
  Instruction* last() const { return last_; }
  // Operands before users, control predecessors before successors; ties in list order. Includes instructions that the
  // root does not reach. Iterative: depth of the graph does not matter.
  std::vector<Instruction*> PostOrder() const;
  // Puts the list into post order (after a pass that inserted carelessly).
  void SortTopologically();

  // ---- making and removing
  // Appends (or inserts before `before`). The name is made from the op ("add.12") unless given; a taken name gets a
  // suffix. Nothing is checked here: see Builder for shape inference, VerifyModule for the rest. Parameters register
  // themselves.
  Instruction* Add(Op op, Shape shape, std::span<Instruction* const> operands, Attrs attrs, std::string name = {},
                   Instruction* before = nullptr);
  Instruction* Add(Op op, Shape shape, std::initializer_list<Instruction*> operands, Attrs attrs = NoAttrs{},
                   std::string name = {}, Instruction* before = nullptr) {
    return Add(op, std::move(shape), std::span<Instruction* const>(operands.begin(), operands.size()), std::move(attrs),
               std::move(name), before);
  }
  Instruction* AddConstant(Literal literal, Instruction* before = nullptr);
  Instruction* AddParameter(int64_t number, Shape shape, std::string name = {});
  // A copy of `original` (of this module or another) with other operands and optionally another shape; attributes,
  // extras and callees kept (callees remapped through `callee_map` if given).
  Instruction* AddClone(const Instruction& original, const Shape& shape, std::span<Instruction* const> operands,
                        const std::map<const Computation*, Computation*>* callee_map = nullptr,
                        Instruction* before = nullptr);

  // The instruction must have no users and not be the root. Control edges are dropped (predecessors are connected to
  // successors).
  void Remove(Instruction* instruction);
  // old's uses become uses of `replacement`; old is removed, and so are its operands as far as that makes them dead
  // (parameters and side effects stay).
  void Replace(Instruction* old, Instruction* replacement);
  // Adds a new instruction right before `old` and Replace()s old by it; metadata is kept.
  Instruction* ReplaceWithNew(Instruction* old, Op op, Shape shape, std::initializer_list<Instruction*> operands,
                              Attrs attrs = NoAttrs{});
  void MoveBefore(Instruction* instruction, Instruction* before);
  // Removes parameter `i` (it must have no users) and renumbers those after it.
  void RemoveParameter(int64_t i);

  std::string ToString() const;
  const std::string& execution_thread() const { return execution_thread_; }  // "" is "main"
  void set_execution_thread(std::string thread) { execution_thread_ = std::move(thread); }
  const FrontendAttributes& frontend_attributes() const { return frontend_attributes_; }
  void set_frontend_attributes(FrontendAttributes a) { frontend_attributes_ = std::move(a); }

  Computation() = default;
  Computation(const Computation&) = delete;
  Computation& operator=(const Computation&) = delete;

 private:
  friend class Module;
  void LinkBefore(Instruction* instruction, Instruction* before);
  void UnlinkFromList(Instruction* instruction);

  std::string name_;
  int64_t id_ = -1;
  Module* module_ = nullptr;
  Instruction* root_ = nullptr;
  Instruction* first_ = nullptr;
  Instruction* last_ = nullptr;
  int64_t count_ = 0;
  std::vector<Instruction*> parameters_;
  std::string execution_thread_;
  FrontendAttributes frontend_attributes_;
};

// entry_computation_layout={(shapes)->shape}: what the caller sees. Shapes carry layouts where the text gives them.
struct EntryLayout {
  std::vector<Shape> parameters;
  Shape result;
  bool operator==(const EntryLayout&) const = default;
};

// input_output_alias={ {output_index}: (parameter, {parameter_index}, may-alias) }
struct InputOutputAlias {
  Dims output_index;
  int64_t parameter = 0;
  Dims parameter_index;
  bool must_alias = false;
  bool operator==(const InputOutputAlias&) const = default;
};
// buffer_donor={ (parameter, {index}) }
struct BufferDonor {
  int64_t parameter = 0;
  Dims parameter_index;
  bool operator==(const BufferDonor&) const = default;
};

// The tables at the top of a module with stack_frame_id metadata; ids are 1-based, a parent_frame_id of 0 is none. (The
// text writes parent_frame_id one higher, as XLA does.)
struct StackFrames {
  struct FileLocation {
    int64_t file_name_id = 0, function_name_id = 0, line = 0, end_line = 0, column = 0, end_column = 0;
    bool operator==(const FileLocation&) const = default;
  };
  struct Frame {
    int64_t file_location_id = 0, parent_frame_id = 0;
    bool operator==(const Frame&) const = default;
  };
  std::vector<std::string> file_names, function_names;
  std::vector<FileLocation> file_locations;
  std::vector<Frame> frames;
  bool empty() const {
    return file_names.empty() && function_names.empty() && file_locations.empty() && frames.empty();
  }
  bool operator==(const StackFrames&) const = default;
};

struct ModuleConfig {
  bool has_entry_layout = false;
  EntryLayout entry_layout;
  bool is_scheduled = false;
  int64_t replica_count = 1;
  int64_t num_partitions = 1;
  bool use_spmd_partitioning = false;
  bool use_shardy_partitioner = false;
  std::vector<bool> allow_spmd_sharding_propagation_to_parameters;
  std::vector<bool> allow_spmd_sharding_propagation_to_output;
  std::vector<InputOutputAlias> input_output_alias;
  std::vector<BufferDonor> buffer_donors;
  FrontendAttributes frontend_attributes;
  StackFrames stack_frames;
  // Header attributes that nothing here reads, in order: kept and printed as they came ("alias_passthrough_params",
  // "true").
  std::vector<std::pair<std::string, std::string>> other_attributes;
  // What PJRT needs to know of each entry parameter and result leaf: memory kinds ("device", "pinned_host"), layout
  // modes
  // ("default", "auto", "{0,1}"); empty vectors mean all default.
  std::vector<std::string> parameter_memory_kinds, result_memory_kinds;
  std::vector<std::string> parameter_layout_modes, result_layout_modes;
};

class Module {
 public:
  explicit Module(std::string name) : name_(std::move(name)) {}
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& name() const { return name_; }
  void set_name(std::string name) { name_ = std::move(name); }
  ModuleConfig& config() { return config_; }
  const ModuleConfig& config() const { return config_; }
  Stage stage() const { return stage_; }
  void set_stage(Stage stage) { stage_ = stage; }

  Computation* entry() const { return entry_; }
  void set_entry(Computation* entry) { entry_ = entry; }
  // In order of creation (text order after parsing).
  const std::vector<Computation*>& computations() const { return computations_; }
  // Callees before callers; computations that the entry does not reach come too.
  std::vector<Computation*> PostOrder() const;
  int64_t instruction_count() const;

  Computation* AddComputation(std::string name);  // a taken name gets a suffix
  void RemoveComputation(Computation* computation);
  // Removes all computations that the entry does not reach; returns how many.
  int64_t RemoveDeadComputations();
  // A copy of `original` (of this module or another), with everything that it calls copied as well.
  Computation* CloneComputation(const Computation& original, std::string name = {},
                                std::map<const Instruction*, Instruction*>* instruction_map = nullptr);
  // Copies the callee as well only if it lives in another module.
  std::unique_ptr<Module> Clone(std::string name = {}) const;

  // Entry layout from the entry computation's parameter and root shapes, if none was given.
  EntryLayout EffectiveEntryLayout() const;

  // All ids are below this: for side tables.
  int64_t id_bound() const { return next_id_; }
  std::string ToString() const;  // XLA's text (see printer.h for styles)

 private:
  friend class Computation;
  Instruction* NewInstruction();
  void Empty(Computation* computation);  // removes all its instructions and frees its name
  std::string name_;
  ModuleConfig config_;
  Stage stage_ = Stage::Imported;
  Computation* entry_ = nullptr;
  std::vector<Computation*> computations_;
  std::deque<Instruction> instruction_pool_;  // stable addresses; freed with the module
  std::deque<Computation> computation_pool_;
  // Instructions and computations have name spaces of their own, as in HLO. Looked up, never iterated.
  struct NameSpace {
    std::unordered_set<std::string> taken;
    std::unordered_map<std::string, int64_t> last_suffix;
    std::string Unique(std::string_view wanted);
  };
  NameSpace instruction_names_, computation_names_;
  int64_t next_id_ = 0;
  int64_t next_computation_id_ = 0;
};

}  // namespace strop
