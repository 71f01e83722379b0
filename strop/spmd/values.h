// The values of a program while it is partitioned: the instruction that each partition has of one, and how it is cut.
#pragma once
#include <map>
#include <unordered_map>

#include "strop/spmd/manual.h"
#include "strop/spmd/reshard.h"

namespace strop::spmd {

struct Parted {
  Instruction* value = nullptr;  // what users read
  Shape whole;                   // the shape of the value as the program has it
  std::vector<Spec> specs;       // of its leaves; of a token, one without dimensions
};

class Values {
 public:
  Values(Module& module, const Mesh& mesh);

  Module& module() { return module_; }
  const Mesh& mesh() const { return mesh_; }
  const ManualRegions& manual() const { return manual_; }
  Resharder& resharder() { return resharder_; }

  const Parted& Of(const Instruction& i) const { return of_.at(&i); }
  // The operands of a tuple, as the program has them; null for what is no tuple instruction.
  const std::vector<Instruction*>* ElementsOf(const Instruction& i) const {
    const auto found = tuple_elements_.find(&i);
    return found == tuple_elements_.end() ? nullptr : &found->second;
  }
  void Set(const Instruction& i, Instruction* value, Shape whole, std::vector<Spec> specs);
  // The same on every device.
  void SetWhole(const Instruction& i, Instruction* value, Shape whole);
  // A tuple of the values of its operands, whatever their forms.
  void SetTuple(Instruction& tuple);

  // What the program, or propagation, says about each leaf; the whole value where that is nothing.
  std::vector<Spec> Assigned(const Instruction& i) const;
  // The operand in this form, made where it is not there: arrays.
  Instruction* Require(Builder& b, const Instruction& operand, const Spec& spec);
  // Tuples, too.
  Instruction* RequireAll(Builder& b, const Instruction& operand, const std::vector<Spec>& specs);
  Instruction* RequireWhole(Builder& b, const Instruction& operand);
  double BytesToRequire(const Instruction& operand, const Spec& spec) const;

  // What a device has of the operand where somebody else says how it lies, maybe as the grid cannot. `sharding` may be
  // null: whole. Errors: of shardings (shards.h).
  Result<Instruction*> RequireStated(Builder& b, const Instruction& operand, const Sharding* sharding);
  // The way back: a value of this shape of which each device has `shard`.
  Result<Parted> FromStated(Builder& b, Instruction* shard, const Shape& whole, const Sharding* sharding);
  Result<Shape> StatedShape(const Shape& whole, const Sharding* sharding) const;

  // Nobody reads it any more: it goes at the end.
  void Replaced(Instruction& i) { replaced_.push_back(&i); }
  std::vector<Instruction*>& replaced() { return replaced_; }

  static std::vector<Spec> WholeSpecs(const Shape& shape);
  // The sharding of leaf `i` of a value; null if nothing is said.
  static const Sharding* Leaf(const Sharding* sharding, int64_t i);

 private:
  Instruction* PieceOfFree(Builder& b, const Instruction& i, const Spec& spec);
  Instruction* RequireTree(Builder& b, Instruction* value, const Shape& whole, const std::vector<Spec>& from,
                           const std::vector<Spec>& to, size_t& leaf);

  Module& module_;
  const Mesh& mesh_;
  const ManualRegions manual_;
  Resharder resharder_;
  std::unordered_map<const Instruction*, Parted> of_;
  // The operands of tuples, as the program has them.
  std::unordered_map<const Instruction*, std::vector<Instruction*>> tuple_elements_;
  std::vector<Instruction*> replaced_;
  // What was made already, by value and text of its sharding.
  std::map<std::pair<const Instruction*, std::vector<Axes>>, Instruction*> made_;
};

Builder Before(Instruction& i);

// Gives a shape with layouts the sizes of another one.
void Resize(Shape& shape, const Shape& to);

// The shape of each partition's part.
Shape ShardShapeOf(const Mesh& mesh, const Shape& whole, const std::vector<Spec>& specs);

}  // namespace strop::spmd
