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
  // The array is had in this form, too: made on the way to another one.
  void SetForm(Instruction* value, const Spec& spec, Instruction* form) { forms_[value].push_back({spec, form}); }
  // The array may be made again, by this op of these values of the program, where that moves less than to bring it
  // into another form.
  void SetRecipe(const Instruction* value, const Instruction& op, std::vector<const Instruction*> operands) {
    recipes_[value] = {&op, std::move(operands)};
  }
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
  double BytesToRequire(const Instruction& operand, const Spec& spec) const { return BytesToRequire(operand, spec, 0); }

  // What never changes in a loop is brought into another form once, in front of it: of the bytes that this takes so
  // much counts in each trip.
  void SetShare(const Instruction& i, double share) { share_[&i] = share; }
  double ShareOf(const Instruction& i) const {
    const auto found = share_.find(&i);
    return found == share_.end() ? 1 : found->second;
  }

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
  struct Form {
    Spec spec;
    Instruction* value = nullptr;
  };
  // The one from which this one is made with the least bytes: what `p` says, where no other takes fewer.
  Form Nearest(const Parted& p, const Spec& spec) const;
  // An op and its operands, as the program has them.
  struct Recipe {
    const Instruction* op = nullptr;
    std::vector<const Instruction*> operands;
  };
  double BytesToRequire(const Instruction& operand, const Spec& spec, int depth) const;
  // Of an operand of an elementwise op whose result lies so, or of one of an op on whole values.
  Spec SpecOfOperand(const Instruction& operand, const Spec& spec) const;
  double BytesToMakeAgain(const Parted& p, const Spec& spec, int depth) const;
  Instruction* MakeAgain(Builder& b, const Parted& p, const Spec& spec);
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
  std::unordered_map<const Instruction*, std::vector<Form>> forms_;  // what was made already; looked up only
  std::unordered_map<const Instruction*, Recipe> recipes_;           // by value; looked up only
  std::unordered_map<const Instruction*, double> share_;             // looked up only
};

// A byte that is sent costs as much time as so many multiplications and additions: 64 for one of a slow network beside
// a fast core, and of the same order for accelerators and their links.
constexpr double kWorkPerByte = 64;

bool IsPointwise(const Instruction& i);
// Is it made from what it is made from at next to no cost, by an op that says nothing of sizes?
bool IsMadeAgain(const Instruction& i);

Builder Before(Instruction& i);

// Gives a shape with layouts the sizes of another one.
void Resize(Shape& shape, const Shape& to);

// The shape of each partition's part.
Shape ShardShapeOf(const Mesh& mesh, const Shape& whole, const std::vector<Spec>& specs);

}  // namespace strop::spmd
