// StableHLO to HLO: what the converters of the ops (convert_*.cc, chlo_*.cc) work with.
//
// ModuleImporter holds what the module has once: functions, meshes, stack frames. BlockImporter fills one computation
// from one block: it maps MLIR values to instructions, and turns regions into computations of their own. A converter is
// one function per op (or family), found by the op's row in import_ops.def, which has checked the number of operands,
// results and regions:
//
//   Status ConvertPad(OpImport& op) {
//     PadAttrs attrs;
//     ...
//     return op.Emit(Op::Pad, op.operands(), attrs);     // the result has the type that MLIR declares
//   }
//
// Shapes are taken from the MLIR types and compared with what inference says by VerifyModule afterwards, so that a
// mistake is told at the user's line.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "strop/import/import.h"
#include "strop/import/locations.h"
#include "strop/import/mlir.h"
#include "strop/ir/builder.h"
#include "strop/ir/module.h"

namespace strop {

class ModuleImporter;
class BlockImporter;

// An MLIR type as a shape. A quantised one is that of the stored integers (convert_quantized.cc).
Result<Shape> ShapeOf(const MlirType& type);
Result<ElementType> ElementTypeOf(const MlirType& type);
// The unsigned integer of so many bits (1 to 64, a power of two).
ElementType UnsignedOf(int bits);
// Quantised tensors: parameters in their range, as many as the dimension has indices.
bool IsQuantized(const MlirType& type);
bool TouchesQuantized(const MlirOp& op);
Status CheckQuantizedType(const MlirType& tensor);
// The tensor constant of an attribute, in full.
Result<Literal> LiteralOf(const MlirAttr& attr);

// One op being converted. The first error of the builder sticks, as in Builder.
class OpImport {
 public:
  OpImport(BlockImporter& block, const MlirOp& op, Op hlo_op);

  const MlirOp& mlir() const { return op_; }
  Op hlo_op() const { return hlo_op_; }  // from the row
  BlockImporter& block() { return block_; }
  ModuleImporter& module();
  Builder& b() { return builder_; }  // its instructions carry the op's metadata

  // ---- operands and results
  int64_t operand_count() const { return static_cast<int64_t>(operands_.size()); }
  Instruction* operand(int64_t i) const { return operands_[i]; }
  std::span<Instruction* const> operands() const { return operands_; }
  const Shape& shape(int64_t i = 0) const { return result_shapes_[i]; }  // of a result
  const std::vector<Shape>& shapes() const { return result_shapes_; }
  Shape ResultShape() const;  // the only one, or the tuple of all

  // ---- attributes
  const MlirAttr* attr(std::string_view name) const { return op_.Attr(name); }
  // Missing optional ones give the default; of the wrong kind is an error.
  Result<Dims> Ints(std::string_view name, std::optional<Dims> if_absent = std::nullopt) const;
  Result<int64_t> Int(std::string_view name, std::optional<int64_t> if_absent = std::nullopt) const;
  Result<bool> Bool(std::string_view name, std::optional<bool> if_absent = false) const;
  Result<std::string> Text(std::string_view name, std::optional<std::string> if_absent = std::nullopt) const;
  Result<std::string_view> EnumMember(std::string_view name, std::string_view if_absent = {}) const;
  Result<const MlirAttr*> StructAttr(std::string_view name, std::string_view kind) const;
  Result<Dims> FieldInts(const MlirAttr& attr, std::string_view field) const;
  // Several fields of one attribute, each into its place.
  Status ReadFields(const MlirAttr& attr, std::initializer_list<std::pair<std::string_view, Dims*>> fields) const;
  int64_t FieldInt(const MlirAttr& attr, std::string_view field) const;

  // ---- making instructions; each returns the status of the builder
  // An instruction of the declared result shape (a tuple if there is not exactly one result), and the results from it.
  Status Emit(Op hlo, std::span<Instruction* const> operands, Attrs attrs, std::span<Computation* const> called = {});
  Status Emit(Op hlo, std::initializer_list<Instruction*> operands, Attrs attrs = NoAttrs{},
              std::initializer_list<Computation*> called = {}) {
    return Emit(hlo, std::span(operands.begin(), operands.size()), std::move(attrs),
                std::span(called.begin(), called.size()));
  }
  // Without a check of the shape against inference (VerifyModule checks it).
  Instruction* Add(Op hlo, const Shape& shape, std::span<Instruction* const> operands, Attrs attrs,
                   std::span<Computation* const> called = {});
  Status SetResult(Instruction* value);  // of an op with one result
  Status SetResults(std::span<Instruction* const> values);
  Status SetResultsFromTuple(Instruction* tuple);  // one get-tuple-element per result

  // ---- unknown sizes (refine.cc)
  // Result number `result` has this shape, which must agree with what its type says.
  Status Refine(size_t result, const Shape& shape);
  Status RefineFromOperands();
  std::optional<Shape> InferredShape(Op hlo, std::span<Instruction* const> operands, const Attrs& attrs,
                                     std::span<Computation* const> called);

  // ---- regions
  // The region as a scalar function: parameters are the block's arguments. Values from outside must be constants.
  Result<Computation*> Function(int64_t region, std::string_view name);

  // The same for a reducer: twice as many parameters as results, each a scalar of its result's type, to which the
  // initial values' types (those of operands from `first_init` on) can be promoted.
  Result<Computation*> Reducer(int64_t region, int64_t first_init);
  // The scalar function a + b.
  Computation* Sum(ElementType type);
  // Attribute `name` must be an N x 2 matrix where it is given.
  Status CheckPairs(std::string_view name) const;

  // ---- errors, at the op's line
  template <class... Args>
  Status Invalid(const Args&... args) const {
    return InvalidArgument("'", op_.name, "': ", StrCat(args...)).At(LocationText(op_.loc));
  }
  template <class... Args>
  Status Unsupported(const Args&... args) const {
    return Unimplemented("'", op_.name, "': ", StrCat(args...)).At(LocationText(op_.loc));
  }
  // ---- quantised values, around the converter (convert_quantized.cc)
  // Checks the quantised types; of an arithmetic op, makes operands and result shapes what they express.
  Status DequantizeOperands();
  Status QuantizeResults();

  Status At(Status status) const;  // adds the op and its line to an error of someone else

 private:
  friend class BlockImporter;
  BlockImporter& block_;
  const MlirOp& op_;
  Op hlo_op_;
  Builder builder_;
  std::vector<Instruction*> operands_;
  std::vector<Shape> result_shapes_;
  bool quantize_results_ = false;
  std::vector<Instruction*> stored_;  // the operands before they were dequantised
};

using ConvertFn = Status (*)(OpImport&);
struct ImportRow {
  std::string_view name;
  ConvertFn fn;
  Op hlo_op;        // Op::kEnd where the converter decides
  int8_t operands;  // -1: any number; -1 - n: at least n
  int8_t results;
  int8_t regions;
};
Status ConvertApproxTopK(OpImport& op);  // a custom call that is found by its target
const ImportRow* FindImportRow(std::string_view mlir_op);

class BlockImporter {
 public:
  BlockImporter(ModuleImporter& module, Computation* computation) : module_(module), computation_(computation) {}

  ModuleImporter& module() { return module_; }
  Computation* computation() { return computation_; }

  // Converts all ops but the terminator; returns the terminator's operands.
  Result<std::vector<Instruction*>> Run(const MlirBlock& block);
  Result<Instruction*> Value(const MlirValue& value, const MlirOp& user);
  void Set(const MlirValue& value, Instruction* instruction) { values_[&value] = instruction; }
  bool Has(const MlirValue& value) const { return values_.contains(&value); }

  // A computation from a region. How the block's arguments and what it captures arrive is the caller's business: `bind`
  // adds the parameters and sets the values. The root is what the region returns, followed by the values of
  // `pass_through`: by itself if it is one value (unless always_tuple), otherwise a tuple.
  Result<Computation*> Region(const MlirRegion& region, std::string_view name,
                              const std::function<Status(BlockImporter&, const MlirBlock&)>& bind, bool always_tuple,
                              std::span<const MlirValue* const> pass_through = {});
  // Values used inside of the region but defined outside, in the order of their use. Constants are not among them: each
  // computation gets its own copy, made when it is first used.
  std::vector<const MlirValue*> Captured(const MlirRegion& region);

 private:
  Status ConvertOp(const MlirOp& op);
  // A constant of an enclosing block, made again in this computation.
  Result<Instruction*> Rematerialize(const MlirOp& constant);

  ModuleImporter& module_;
  Computation* computation_;
  std::unordered_map<const MlirValue*, Instruction*> values_;
};

class ModuleImporter {
 public:
  // An empty entry name: @main, or the only function.
  ModuleImporter(MlirModule& mlir, std::string_view entry_name, std::span<const MlirArgument> arguments = {})
      : mlir_(mlir), entry_name_(entry_name), arguments_(arguments) {}
  Result<std::unique_ptr<Module>> Run();

  Module& module() { return *module_; }
  MlirModule& mlir() { return mlir_; }
  Locations& locations() { return locations_; }
  // Whether the module is made for given arguments (refine.cc).
  bool refines() const { return !arguments_.empty(); }
  bool single_device() const { return module_->config().num_partitions == 1; }
  // The computation of a function, which has been imported before.
  Result<Computation*> Callee(std::string_view name, const MlirOp& user);
  // The same where the arguments may settle sizes of the function, which is imported for them at its first call.
  Result<Computation*> CalleeFor(const OpImport& call, std::string_view name);
  const MlirAttr* Mesh(std::string_view name) const;  // an sdy.mesh Struct, or null
  // chlo decompositions and the like: one computation per key, made on first use.
  std::unordered_map<std::string, Computation*>& helpers() { return helpers_; }

 private:
  Status CollectFunctions();
  Status OrderFunctions(std::vector<const MlirOp*>& order);
  Status ImportFunction(const MlirOp& func);
  // A callee that is imported at its call, since the call's arguments may settle its sizes.
  Result<Computation*> ImportCallee(const MlirOp& func, const MlirOp& user);
  Status RefineArgument(MlirValue& argument, int64_t number, const MlirArgument& given, std::string_view loc);
  Status ImportModuleAttrs();
  Status ImportEntryAttrs(const MlirOp& func, Computation* computation);

  MlirModule& mlir_;
  std::string_view entry_name_;
  std::span<const MlirArgument> arguments_;
  std::unique_ptr<Module> module_;
  Locations locations_;
  std::unordered_map<std::string_view, const MlirOp*> functions_;
  std::vector<const MlirOp*> function_list_;
  std::unordered_map<std::string_view, Computation*> computations_;
  std::unordered_map<std::string_view, const MlirAttr*> meshes_;
  std::vector<std::pair<std::string_view, const MlirAttr*>> mesh_list_;
  const MlirOp* entry_ = nullptr;
  static constexpr int kMaxNestedCalls = 200;  // imported one inside the other
  int nested_calls_ = 0;
  std::unordered_map<std::string, Computation*> helpers_;
};

// Whether `refined` is `declared` with sizes for unknown ones.
bool RefinesTo(const Shape& declared, const Shape& refined);

// The names of a module's functions that have a body, in order.
std::vector<std::string_view> FunctionsWithBody(const MlirModule& mlir);

// Whether a call of this constant op can be copied into a region's computation.
bool IsConstantOp(const MlirOp& op);
// The integers that a value has for certain (constants, and reshapes, conversions, concatenations of them).
std::optional<std::vector<int64_t>> FoldIntegers(const MlirValue& value, int depth = 0);

// Operand i gives the dimensions of the result: it must be a static vector, and agree with the result type where both
// are known.
Status CheckShapeOperand(const OpImport& op, int64_t i);

// An op whose result shape is known only when the program runs, as a custom call of the op's own name, its attributes
// as text. It can be verified, printed and refused where it would have to be compiled.
Status EmitDynamic(OpImport& op);

// ---- numbers that come from data, results of known or bounded shapes (convert_dynamic.cc)
// The value, which is as large as the result's bounds, with the sizes that size(d) gives its dynamic dimensions.
Status SetBoundedResult(OpImport& op, Instruction* value, const std::function<Instruction*(int64_t)>& size);
Instruction* SizeAt(OpImport& op, int64_t operand, int64_t d);  // number d of an operand that is a vector
bool HasKnownShapes(const OpImport& op);                        // static operands, a result at least with bounds
Status EmitSliceByData(OpImport& op);                           // real_dynamic_slice
Status EmitPadByData(OpImport& op);                             // dynamic_pad
Status EmitGatherByData(OpImport& op, GatherAttrs attrs);       // dynamic_gather
// The first operand of dynamic_conv, padded; the convolution's window does the rest.
Result<Instruction*> PadInputByData(OpImport& op, const ConvDimLabels& labels, Instruction* padding, Window& window);

// ---- shardings (convert_sharding.cc)
// An sdy.sharding as HLO's; nullopt where HLO has no such sharding or the mesh is not known.
// `only_axes`: a list of names; other axes of the mesh count as replicated. Null: all axes count.
std::optional<Sharding> HloSharding(const ModuleImporter& module, const MlirAttr& sdy, int64_t rank,
                                    const MlirAttr* only_axes = nullptr);
std::optional<Sharding> HloShardings(const ModuleImporter& module, const MlirAttr& sdy, std::span<const Shape> shapes,
                                     const MlirAttr* only_axes);
// mhlo.sharding, sdy.sharding, mhlo.frontend_attributes of an op or of a function's argument.
Status ApplyExtras(ModuleImporter& module, std::span<const MlirNamedAttr> attrs, Instruction* instruction,
                   const MlirAttr* loc);

}  // namespace strop
