#include "strop/codegen/critical_path.h"

#include <algorithm>
#include <unordered_map>

namespace strop {
namespace {

// An operation as it is emitted for vectors: how long its result takes, and about how many instructions it is.
struct Emitted {
  int64_t cycles = 0;
  int64_t instructions = 0;
};

Emitted OfMath(Op op) {
  switch (op) {
    case Op::Sqrt: return {20, 4};
    case Op::Rsqrt: return {50, 20};
    case Op::Exp:
    case Op::Erf: return {55, 20};
    case Op::Expm1:
    case Op::Tanh: return {65, 35};
    case Op::Log:
    case Op::Log1p: return {80, 40};
    case Op::Logistic: return {110, 40};
    default: return {150, 100};
  }
}

bool HasConstant(const Instruction& i) {
  for (const Instruction* operand : i.operands())
    if ((operand->op() == Op::Broadcast ? operand->operand(0) : operand)->op() == Op::Constant) return true;
  return false;
}

Emitted Of(const Instruction& i) {
  const ElementType type = i.shape().type();
  if (Is(i.op(), kFloatMath)) {
    Emitted e = OfMath(i.op());
    if (Bits(type) < 32) e = {e.cycles + 8, e.instructions + 6};
    return e;
  }
  const bool is_float = IsFloat(type);
  if (i.op() == Op::Divide || i.op() == Op::Remainder) return is_float ? Emitted{12, 2} : Emitted{40, 40};
  if (is_float && Bits(type) < 32) return {12, 7};  // computed in f32, and rounded
  if (i.op() == Op::Maximum || i.op() == Op::Minimum) {
    if (!is_float) return {1, 1};
    return HasConstant(i) ? Emitted{2, 2} : Emitted{6, 3};  // NaN comes through
  }
  return is_float ? Emitted{4, 1} : Emitted{1, 1};
}

// What is read elsewhere, neighbours next to each other.
bool MovesRows(const Instruction& i) {
  if (i.op() == Op::DynamicSlice || i.op() == Op::Concatenate || i.op() == Op::Pad) return true;
  return i.op() == Op::Slice && i.attrs<SliceAttrs>().slice.back().stride == 1;
}

bool ChangesShapeOnly(const Instruction& i) {
  const Op op = i.op();
  return MovesRows(i) || op == Op::Broadcast || op == Op::Reshape || op == Op::Bitcast || op == Op::Copy ||
         op == Op::Iota || op == Op::Constant || op == Op::BitcastConvert;
}

struct Path {
  bool elementwise = true;
  int64_t cycles = 0;
  int64_t instructions = 0;
};

Path PathOf(const KernelBody& body) {
  Path path;
  std::unordered_map<const Instruction*, int64_t> ready;
  for (const Instruction* i : body.Computed()) {
    if (i->op() == Op::Tuple || (i->shape().IsArray() && i->shape().num_elements() == 1)) continue;
    if (!i->shape().IsArray() || IsComplex(i->shape().type()) || !(IsElementwise(i->op()) || ChangesShapeOnly(*i)))
      return {.elementwise = false};
    int64_t at = 0;
    for (const Instruction* operand : i->operands())
      if (const auto found = ready.find(operand); found != ready.end()) at = std::max(at, found->second);
    if (!ChangesShapeOnly(*i)) {
      const Emitted own = Of(*i);
      at += own.cycles;
      path.instructions += own.instructions;
    }
    ready[i] = at;
    path.cycles = std::max(path.cycles, at);
  }
  return path;
}

}  // namespace

int64_t InstructionsOfMath(Op op) { return OfMath(op).instructions; }

int64_t CriticalPath(const KernelBody& body) {
  const Path path = PathOf(body);
  return path.elementwise ? path.cycles : 0;
}

int VectorsAtATime(const KernelBody& body, int vector_bytes) {
  constexpr int kBytesOfManyRegisters = 64;  // where vectors are so long there are 32 of them
  // A window of 200 instructions at 2.7 a cycle hides 75 cycles; the places in which shorter vectors wait for what they
  // need are full before the window is.
  const int64_t hidden = vector_bytes >= kBytesOfManyRegisters ? 75 : 45;
  constexpr int64_t kMostInstructions = 320;  // more are code that is slow to compile
  // Fewer elements are done before it matters; and before the longer time of compiling four at a time is earned.
  constexpr int64_t kLeastElements = 1 << 14, kLeastForFour = 1 << 17;
  const int64_t elements = body.ElementsOf(0);
  if (elements < kLeastElements) return 1;
  const Path path = PathOf(body);
  if (!path.elementwise || path.cycles <= hidden || path.instructions > kMostInstructions) return 1;
  if (elements < kLeastForFour) return 2;
  // Of fewer registers, four at a time take the numbers of short code that waits long for itself.
  constexpr int64_t kLongWait = 100, kCyclesAnInstruction = 2;
  const bool waits = path.cycles >= kLongWait && path.cycles >= kCyclesAnInstruction * path.instructions;
  return vector_bytes >= kBytesOfManyRegisters || waits ? 4 : 2;
}

}  // namespace strop
