// Reader of MLIR bytecode, versions 0 to 6, with the builtin, StableHLO, CHLO, VHLO and Shardy encodings.
//
// Attributes and types are read when first used, each from its own span of bytes, and may refer to each other in any
// order; cycles and chains beyond kMaxReferenceDepth are refused. VHLO's attributes and types become the builtin and
// StableHLO ones as they are read (they differ in nothing but name); its ops keep their names until
// ConvertVhloToStablehlo (vhlo.h).
#pragma once
#include <memory>
#include <span>

#include "strop/base/status.h"
#include "strop/import/bytecode_cursor.h"
#include "strop/import/mlir.h"

namespace strop {

bool LooksLikeMlirBytecode(std::span<const uint8_t> bytes);

// Large constants are views into `bytes`, which must outlive the module.
Result<std::unique_ptr<MlirModule>> ReadMlirBytecode(std::span<const uint8_t> bytes);

// What the dialect decoders below read from: one entry's bytes, and the tables of the file.
class BytecodeEntry {
 public:
  virtual ~BytecodeEntry() = default;
  ByteCursor in;

  virtual MlirModule& module() = 0;
  virtual const MlirAttr* AttrAt(uint64_t index) = 0;  // after an error: some attribute, never null
  virtual const MlirType* TypeAt(uint64_t index) = 0;
  virtual std::string_view StringAt(uint64_t index) = 0;
  virtual const MlirAttr* ResourceAt(uint64_t index) = 0;  // a DenseResource without a type

  const MlirAttr* Attr() { return AttrAt(in.Varint()); }
  const MlirAttr* OptionalAttr();  // null if absent
  const MlirType* Type() { return TypeAt(in.Varint()); }
  std::string_view String() { return StringAt(in.Varint()); }
  std::string_view StringOfAttr();  // text of a String attribute
  // `a`, which must be (a list of) Structs called `name`.
  const MlirAttr* CheckStruct(const MlirAttr* a, std::string_view name);
  const MlirAttr* CheckStructs(const MlirAttr* list, std::string_view name);
  std::string_view Blob();
  uint64_t Int(uint32_t width);  // APInt of a known width; the low 64 bits
  std::vector<const MlirAttr*> AttrList();
  std::vector<const MlirType*> TypeList();
  std::vector<int64_t> IntList();
  // Passes on a Result, turning an error into the cursor's.
  const MlirAttr* Take(Result<const MlirAttr*> attr);
  const MlirType* Take(Result<const MlirType*> type);
};

// One decoder per dialect; the leading code has not been read yet.
const MlirAttr* DecodeBuiltinAttr(BytecodeEntry& e);
const MlirType* DecodeBuiltinType(BytecodeEntry& e);
const MlirAttr* DecodeStablehloAttr(BytecodeEntry& e);
const MlirType* DecodeStablehloType(BytecodeEntry& e);
const MlirAttr* DecodeChloAttr(BytecodeEntry& e);
const MlirAttr* DecodeMhloAttr(BytecodeEntry& e);
const MlirAttr* DecodeVhloAttr(BytecodeEntry& e);
const MlirType* DecodeVhloType(BytecodeEntry& e);
const MlirType* DecodeQuantType(BytecodeEntry& e);
const MlirAttr* DecodeSdyAttr(BytecodeEntry& e);

// Shared by the decoders: the constants of a tensor (unpacks i1), an integer, a float, an enum by its number.
const MlirAttr* DecodeDense(BytecodeEntry& e, const MlirType* type);
const MlirAttr* DecodeInteger(BytecodeEntry& e, const MlirType* type);
const MlirAttr* DecodeFloat(BytecodeEntry& e, const MlirType* type);
const MlirAttr* DecodeEnum(BytecodeEntry& e, std::string_view name);

}  // namespace strop
