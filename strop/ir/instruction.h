// Instruction: one class for all ops. Op, shape, operands and called computations, immutable attributes, where it comes
// from. Instructions live in their Computation (module.h) and keep their address; use edges are kept both ways, O(1) to
// change.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "strop/base/small_vector.h"
#include "strop/ir/attrs.h"
#include "strop/ir/op.h"
#include "strop/types/shape.h"
#include "strop/types/sharding.h"

namespace strop {

class Computation;
class Module;
class Instruction;

struct Use {
  Instruction* user;
  uint32_t operand_number;
};

// frontend_attributes={key="value",...}; ordered, as printed.
using FrontendAttributes = std::map<std::string, std::string>;

// What few instructions have; allocated on demand.
struct InstructionExtra {
  std::shared_ptr<const OpMetadata> metadata;
  std::shared_ptr<const Sharding> sharding;
  FrontendAttributes frontend_attributes;
  std::string backend_config;  // JSON or not, verbatim, braces included
  std::string origin;          // origin={...} (original value), verbatim, braces included
  std::string statistics;      // statistics={...}, verbatim
  std::vector<Instruction*> control_predecessors;
  std::vector<Instruction*> control_successors;
};

class Instruction {
 public:
  Op op() const { return op_; }
  const Shape& shape() const { return shape_; }
  void set_shape(Shape shape) { shape_ = std::move(shape); }
  const std::string& name() const { return name_; }  // without %
  void set_name(std::string name) { name_ = std::move(name); }
  // Unique within the module, in order of creation; dense enough to index side tables (see Module::id_bound()).
  int64_t id() const { return id_; }
  Computation* parent() const { return parent_; }
  Module* module() const;
  bool IsRoot() const;

  // ---- operands and users
  int64_t operand_count() const { return static_cast<int64_t>(operands_.size()); }
  Instruction* operand(int64_t i) const { return operands_[i].value; }
  std::vector<Instruction*> operands() const;  // a copy; loops that are hot use operand(i)
  // One entry per use edge: an instruction that uses this one twice appears twice. Order is not meaningful.
  std::span<const Use> uses() const { return uses_; }
  int64_t use_count() const { return static_cast<int64_t>(uses_.size()); }
  // Distinct users, sorted by id.
  std::vector<Instruction*> users() const;

  void SetOperand(int64_t i, Instruction* value);
  void AppendOperand(Instruction* value);
  void RemoveOperand(int64_t i);  // keeps the order of the others
  // Every use of this becomes a use of `other` (uses in `other` itself excepted), and if this is the root, `other`
  // becomes it. `other` gets this one's metadata and frontend attributes if it has none.
  void ReplaceAllUsesWith(Instruction* other);

  // ---- called computations, in the order of Info(op).callees
  const SmallVector<Computation*, 2>& called() const { return called_; }
  Computation* called(int64_t i) const { return called_[i]; }
  void SetCalled(int64_t i, Computation* computation) { called_[i] = computation; }
  void set_called(SmallVector<Computation*, 2> called) { called_ = std::move(called); }
  // Convenience names for the common roles.
  Computation* to_apply() const { return called_[0]; }
  Computation* condition() const { return called_[0]; }  // while
  Computation* body() const { return called_[1]; }       // while

  // ---- attributes
  // attrs<DotAttrs>() of an instruction whose row has that struct.
  template <class A>
  const A& attrs() const {
    return attrs_.get<A>();
  }
  const Attrs& any_attrs() const { return attrs_; }
  void set_attrs(Attrs attrs) { attrs_ = std::move(attrs); }
  const Dims& dimensions() const { return attrs<DimensionsAttrs>().dimensions; }
  const Literal& literal() const { return attrs<ConstantAttrs>().literal; }
  int64_t parameter_number() const { return attrs<ParameterAttrs>().number; }
  int64_t tuple_index() const { return attrs<GetTupleElementAttrs>().index; }

  // ---- what only some have
  const OpMetadata& metadata() const;  // a shared empty one if none
  bool has_metadata() const { return extra_ && extra_->metadata; }
  void set_metadata(std::shared_ptr<const OpMetadata> metadata) { extra().metadata = std::move(metadata); }
  void set_metadata(OpMetadata metadata) { extra().metadata = std::make_shared<const OpMetadata>(std::move(metadata)); }
  std::shared_ptr<const OpMetadata> shared_metadata() const { return extra_ ? extra_->metadata : nullptr; }
  const Sharding* sharding() const { return extra_ ? extra_->sharding.get() : nullptr; }  // null if none
  void set_sharding(Sharding sharding) { extra().sharding = std::make_shared<const Sharding>(std::move(sharding)); }
  void clear_sharding() {
    if (extra_) extra_->sharding.reset();
  }
  const FrontendAttributes& frontend_attributes() const;
  void set_frontend_attribute(const std::string& key, std::string value) {
    extra().frontend_attributes[key] = std::move(value);
  }
  void set_frontend_attributes(FrontendAttributes attributes) { extra().frontend_attributes = std::move(attributes); }
  const std::string& backend_config() const;
  void set_backend_config(std::string config) { extra().backend_config = std::move(config); }
  const std::string& origin() const;
  void set_origin(std::string origin) { extra().origin = std::move(origin); }
  const std::string& statistics() const;
  void set_statistics(std::string statistics) { extra().statistics = std::move(statistics); }
  const std::vector<Instruction*>& control_predecessors() const;
  const std::vector<Instruction*>& control_successors() const;
  bool HasControlEdges() const { return !control_predecessors().empty() || !control_successors().empty(); }
  void AddControlPredecessor(Instruction* predecessor);
  void ClearControlEdges();

  // Copies metadata, sharding, frontend attributes and backend_config (not control edges) from another instruction.
  void CopyExtrasFrom(const Instruction& other);

  // "file.py:12" of the user's program, or "%name" when unknown: for errors.
  std::string Where() const;
  // This one line, as the printer writes it ("%add.3 = f32[2]{0} add(...)"); for messages and debugging.
  std::string ToString() const;

  bool HasSideEffect() const;  // of itself or of anything that it calls
  bool IsConstant() const { return op_ == Op::Constant; }
  bool IsParameter() const { return op_ == Op::Parameter; }
  // A constant (or broadcast of one) all of whose elements equal `value`.
  bool IsSplat(double value) const;

  Instruction* next() const { return next_; }
  Instruction* prev() const { return prev_; }

  // For Computation only: instructions are made by Computation::Add.
  Instruction() = default;
  Instruction(const Instruction&) = delete;
  Instruction& operator=(const Instruction&) = delete;

 private:
  friend class Computation;
  friend class Module;
  struct Operand {
    Instruction* value;
    uint32_t use_index;  // position of this edge in value->uses_
  };
  InstructionExtra& extra();
  void Unlink(int64_t i);  // removes edge i from its operand's uses
  void Link(int64_t i, Instruction* value);

  Op op_ = Op::kEnd;
  int64_t id_ = -1;
  Shape shape_;
  std::string name_;
  SmallVector<Operand, 3> operands_;
  std::vector<Use> uses_;
  SmallVector<Computation*, 2> called_;
  Attrs attrs_;
  std::unique_ptr<InstructionExtra> extra_;
  Computation* parent_ = nullptr;
  Instruction* prev_ = nullptr;
  Instruction* next_ = nullptr;
};

// The attributes struct of an op, all fields at their defaults.
Attrs DefaultAttrs(Op op);
// Which struct that is: the first thing the verifier checks.
AttrsKind AttrsKindOfOp(Op op);

}  // namespace strop
