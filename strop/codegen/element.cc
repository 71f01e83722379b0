#include "strop/codegen/element.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <set>

namespace strop {

using V = llvm::Value*;

llvm::Type* ElementBuilder::RegisterType(ElementType type) {
  if (IsPred(type)) return b_.Int(1);
  if (IsCode(type)) return b_.Int(8 * Bytes(type));
  if (IsInteger(type)) return b_.Int(Bits(type));
  if (type == ElementType::F64 || type == ElementType::C128) return b_.F64();
  return b_.F32();
}

llvm::Type* ElementBuilder::StorageType(ElementType type) {
  if (IsFloat(type) && Bits(type) < 32) return b_.Int(8 * Bytes(type));
  if (IsPred(type) || IsInteger(type)) return b_.Int(8 * Bytes(type));
  return RegisterType(type);
}

int ElementBuilder::RegisterBits(ElementType type) {
  if (IsFloat(type)) return type == ElementType::F64 ? 64 : 32;
  if (IsComplex(type)) return Bits(ComplexPart(type));
  return std::max(8, Bits(type));
}

Val ElementBuilder::Splat(const Val& v, int lanes) {
  return Val{b_.Splat(v.re, lanes), v.im ? b_.Splat(v.im, lanes) : nullptr, v.type};
}

Val ElementBuilder::Select(V condition, const Val& a, const Val& b) {
  return Val{b_.Select(condition, a.re, b.re), a.im ? b_.Select(condition, a.im, b.im) : nullptr, a.type};
}

Val ElementBuilder::Poison(ElementType type, int lanes) {
  V poison = llvm::PoisonValue::get(VectorBuilder::WithLanes(RegisterType(type), lanes));
  return Val{poison, IsComplex(type) ? poison : nullptr, type};
}

Val ElementBuilder::Constant(ElementType type, const uint8_t* bytes) {
  const auto part = [&](const uint8_t* at, ElementType t) -> V {
    uint64_t code = 0;
    std::memcpy(&code, at, static_cast<size_t>(Bytes(t)));
    if (IsPred(t)) return b_.ir().getInt1(code != 0);
    if (IsInteger(t) || IsCode(t)) return llvm::ConstantInt::get(RegisterType(t), code, false, /*ImplicitTrunc=*/true);
    if (t == ElementType::F32)
      return llvm::ConstantFP::get(b_.context(), llvm::APFloat(llvm::APFloat::IEEEsingle(), llvm::APInt(32, code)));
    if (t == ElementType::F64)
      return llvm::ConstantFP::get(b_.context(), llvm::APFloat(llvm::APFloat::IEEEdouble(), llvm::APInt(64, code)));
    return llvm::ConstantFP::get(b_.F32(), DecodeFloat(t, code & ((uint64_t{1} << Bits(t)) - 1)));
  };
  if (!IsComplex(type)) return Val{part(bytes, type), nullptr, type};
  const ElementType half = ComplexPart(type);
  return Val{part(bytes, half), part(bytes + Bytes(half), half), type};
}

V ElementBuilder::FromStorage(ElementType type, V stored) {
  if (IsPred(type)) return b_.ir().CreateICmpNE(stored, b_.Zero(stored));
  if (IsSubByte(type) && IsInteger(type)) return b_.ZExtOrTrunc(stored, Bits(type));
  if (IsFloat(type) && Bits(type) < 32 && !codes_) return DecodeFormat(type, stored);
  return stored;
}

V ElementBuilder::ToStorage(ElementType type, V value) {
  if (IsPred(type)) return b_.ZExtOrTrunc(value, 8);
  if (IsSubByte(type) && IsInteger(type)) return IsSigned(type) ? b_.SExtOrTrunc(value, 8) : b_.ZExtOrTrunc(value, 8);
  if (type == ElementType::BF16 && !codes_) {
    if (!IsRoundedToBf16(value)) value = RoundToFormat(type, value);  // most of what registers hold is
    return b_.ZExtOrTrunc(b_.LShr(b_.AsInt(value), 16), 16);
  }
  if (IsFloat(type) && Bits(type) < 32 && !codes_) return EncodeFormat(type, value);
  return value;
}

template <class I>
I* ElementBuilder::Annotate(I* access, const Memory& memory, bool load) {
  if (memory.alias_scope) access->setMetadata(llvm::LLVMContext::MD_alias_scope, memory.alias_scope);
  if (memory.noalias) access->setMetadata(llvm::LLVMContext::MD_noalias, memory.noalias);
  llvm::MDNode* empty = llvm::MDNode::get(b_.context(), {});
  if (load && memory.invariant) access->setMetadata(llvm::LLVMContext::MD_invariant_load, empty);
  return access;
}

V ElementBuilder::ElementPointer(const Memory& memory, llvm::Type* type, V offset) {
  return b_.ir().CreateInBoundsGEP(type, memory.pointer, offset);
}

namespace {

constexpr int64_t kMaxStride = 16;  // beyond, lane by lane reads fewer cache lines than there are vectors

// A known place of an array that is written too may be one of a function's own: vectors of it begin at multiples of
// their length (PickedPart), so that it turns into registers.
bool StaysInRegisters(const ElementBuilder::Memory& memory, V offset) {
  return !memory.invariant && llvm::isa<llvm::Constant>(offset);
}

// How many of its first lanes a constant mask leaves on; 0 if it is another mask.
int FirstLanes(V mask) {
  const auto* constant = llvm::dyn_cast_or_null<llvm::Constant>(mask);
  if (!constant) return 0;
  const int lanes = VectorBuilder::Lanes(mask);
  int on = 0;
  bool off = false;
  for (int l = 0; l < lanes; ++l) {
    const auto* lane =
        llvm::dyn_cast_or_null<llvm::ConstantInt>(constant->getAggregateElement(static_cast<unsigned>(l)));
    if (!lane || (off && lane->isOne())) return 0;
    off = lane->isZero();
    on += !off;
  }
  return on;
}

constexpr int64_t kOff = INT64_MIN;       // instead of the place of a lane that is off
constexpr size_t kMostPickedVectors = 5;  // from as many lanes are picked, one shuffle each

// Where the lanes that are on read, -1 for others, if that is known and lies within the array.
std::optional<llvm::SmallVector<int64_t, 64>> PlacesOfLanes(V offsets, V mask, int64_t elements) {
  const auto* all = llvm::dyn_cast<llvm::Constant>(offsets);
  const auto* on = llvm::dyn_cast_or_null<llvm::Constant>(mask);
  if (!all || (mask && !on)) return std::nullopt;
  const unsigned lanes = static_cast<unsigned>(VectorBuilder::Lanes(offsets));
  if (lanes < 2) return std::nullopt;
  llvm::SmallVector<int64_t, 64> places;
  for (unsigned l = 0; l < lanes; ++l) {
    const llvm::Constant* is_on = on ? on->getAggregateElement(l) : nullptr;
    if (on && !is_on) return std::nullopt;
    if (is_on && is_on->isNullValue()) {
      places.push_back(-1);
      continue;
    }
    const auto* place = llvm::dyn_cast_or_null<llvm::ConstantInt>(all->getAggregateElement(l));
    if (!place || place->getSExtValue() < 0 || place->getSExtValue() >= elements) return std::nullopt;
    places.push_back(place->getSExtValue());
  }
  return places;
}

// Alignment of an access at a multiple of `multiple` elements of `bytes` from a pointer aligned to `base`.
llvm::Align AccessAlign(int base, int64_t multiple, int64_t bytes) {
  int64_t align = 1;
  while (align < base && (multiple * bytes) % (align * 2) == 0) align *= 2;
  return llvm::Align(static_cast<uint64_t>(align));
}

}  // namespace

V ElementBuilder::ReadVector(const Memory& memory, llvm::Type* type, V offset, int lanes) {
  const llvm::Align align = AccessAlign(memory.alignment, 1, type->getScalarSizeInBits() / 8);
  V place = ElementPointer(memory, type, offset);
  return Annotate(b_.ir().CreateAlignedLoad(VectorBuilder::WithLanes(type, lanes), place, align), memory, true);
}

V ElementBuilder::LoadPart(const Memory& memory, llvm::Type* type, V offset, int64_t stride, int lanes, V mask,
                           int64_t multiple, int64_t phase) {
  IrBuilder& ir = b_.ir();
  if (stride > 1 && (stride <= kMaxStride || phase >= 0) && lanes >= 4 && !mask)
    return StridedPart(memory, type, offset, stride, lanes, phase);
  if (const int first = stride > 1 && lanes > 1 ? FirstLanes(mask) : 0;
      first > 0 && !StaysInRegisters(memory, offset)) {
    std::vector<int64_t> distances(static_cast<size_t>(lanes), kOff);
    for (int64_t l = 0; l < first; ++l) distances[static_cast<size_t>(l)] = l * stride;
    if (V picked = PickPart(memory, type, offset, distances)) return picked;
  }
  if (phase > 0) {
    offset = b_.Add(offset, b_.I64(phase));
    multiple = 1;
  }
  const int64_t bytes = type->getScalarSizeInBits() / 8;
  if (lanes == 1 || stride == 0) {
    auto* load = ir.CreateAlignedLoad(type, ElementPointer(memory, type, offset),
                                      AccessAlign(memory.alignment, multiple, bytes));
    return Annotate(load, memory, true);
  }
  llvm::Type* vector = VectorBuilder::WithLanes(type, lanes);
  if (const int first = stride == -1 ? FirstLanes(mask) : 0; first > 0) {
    // They are read as first lanes too: LLVM 22 does not end on bytes of last lanes that are turned round.
    V pointer = ElementPointer(memory, type, b_.Sub(offset, b_.I64(first - 1)));
    const llvm::Align align = AccessAlign(memory.alignment, 1, bytes);
    auto* loaded = ir.CreateMaskedLoad(vector, pointer, align, mask, llvm::Constant::getNullValue(vector));
    llvm::SmallVector<int, 64> from;
    for (int l = 0; l < lanes; ++l) from.push_back(l < first ? first - 1 - l : l);
    return ir.CreateShuffleVector(Annotate(loaded, memory, true), from);
  }
  if (stride == 1 || stride == -1) {
    if (stride == -1) offset = b_.Sub(offset, b_.I64(lanes - 1));
    V pointer = ElementPointer(memory, type, offset);
    const llvm::Align align = AccessAlign(memory.alignment, stride == 1 ? multiple : 1, bytes);
    V loaded;
    const bool padded = stride == 1 && lanes * bytes <= memory.padding;
    if (mask && !padded) {
      V m = stride == -1 ? b_.Reverse(mask) : mask;
      loaded =
          Annotate(ir.CreateMaskedLoad(vector, pointer, align, m, llvm::Constant::getNullValue(vector)), memory, true);
    } else {
      loaded = Annotate(ir.CreateAlignedLoad(vector, pointer, align), memory, true);
    }
    return stride == -1 ? b_.Reverse(loaded) : loaded;
  }
  const int first = mask ? FirstLanes(mask) : lanes;
  if (first > 0 && stride > kMaxStride && !b_.quick() && !llvm::isa<llvm::Constant>(offset)) {
    V none = mask ? llvm::Constant::getNullValue(vector) : llvm::PoisonValue::get(vector);
    return LaneByLane(memory, none, offset, stride, first);
  }
  V offsets = b_.Add(b_.Mul(b_.LaneNumbers(lanes, 64), b_.I64(stride)), offset);
  return GatherPart(memory, type, offsets, mask, 0);
}

// Quick code reads lanes at known distances by one instruction, where the processor has it, though that takes longer
// than the vectors that they lie in and many shuffles. Null: by those.
V ElementBuilder::QuickGather(const Memory& memory, llvm::Type* type, V offset, std::span<const int64_t> distances) {
  constexpr int64_t kFar = int64_t{1} << 30;
  const int64_t bytes = type->getScalarSizeInBits() / 8;
  if (!b_.quick() || !b_.target().masked_memory || bytes < 4 || distances.size() < 4) return nullptr;
  llvm::SmallVector<llvm::Constant*, 64> places, on;
  for (int64_t d : distances) {
    if (d != kOff && std::abs(d) > kFar) return nullptr;
    places.push_back(llvm::cast<llvm::Constant>(b_.I32(d == kOff ? 0 : static_cast<int32_t>(d))));
    on.push_back(llvm::cast<llvm::Constant>(d == kOff ? b_.False() : b_.True()));
  }
  IrBuilder& ir = b_.ir();
  llvm::Type* vector = VectorBuilder::WithLanes(type, static_cast<int>(distances.size()));
  V pointers = ir.CreateGEP(type, ElementPointer(memory, type, offset), llvm::ConstantVector::get(places));
  return Annotate(ir.CreateMaskedGather(vector, pointers, AccessAlign(memory.alignment, 1, bytes),
                                        llvm::ConstantVector::get(on), llvm::Constant::getNullValue(vector)),
                  memory, true);
}

// The first `count` lanes of `into`, every stride-th element: processors take longer to gather them.
V ElementBuilder::LaneByLane(const Memory& memory, V into, V offset, int64_t stride, int count) {
  IrBuilder& ir = b_.ir();
  llvm::Type* type = into->getType()->getScalarType();
  const llvm::Align align = AccessAlign(memory.alignment, 1, type->getScalarSizeInBits() / 8);
  for (int l = 0; l < count; ++l) {
    V place = ElementPointer(memory, type, b_.Add(offset, b_.I64(l * stride)));
    V lane = Annotate(ir.CreateAlignedLoad(type, place, align), memory, true);
    into = ir.CreateInsertElement(into, lane, static_cast<uint64_t>(l));
  }
  return into;
}

// Every stride-th element: as many vectors as the stride, of which the lanes are picked. Nothing behind the last
// element is read: the last vector ends there. With a phase, the vectors are those of phase 0, so that all phases read
// them once.
V ElementBuilder::StridedPart(const Memory& memory, llvm::Type* type, V offset, int64_t stride, int lanes,
                              int64_t phase) {
  constexpr int64_t kFewShuffles = 2, kLargestGroup = 32;  // of a larger one, hardly all phases are asked for
  if (stride > kFewShuffles) {
    std::vector<int64_t> distances;
    for (int64_t l = 0; l < lanes; ++l) distances.push_back(l * stride + std::max<int64_t>(phase, 0));
    if (V gathered = QuickGather(memory, type, offset, distances)) return gathered;
  }
  if (phase >= 0 && memory.invariant && stride <= kLargestGroup)
    return GroupedPart(memory, type, offset, stride, lanes, phase);
  llvm::Type* vector = VectorBuilder::WithLanes(type, lanes);
  const int64_t last = phase < 0 ? (lanes - 1) * stride + 1 - lanes : (stride - 1) * lanes;
  const int64_t chosen = std::max<int64_t>(phase, 0);
  V picked = nullptr;
  if (stride >= lanes)  // no vector has two of them
    return LaneByLane(memory, llvm::PoisonValue::get(vector), b_.Add(offset, b_.I64(chosen)), stride, lanes);
  for (int64_t k = 0; k < stride; ++k) {
    const int64_t first = std::min(k * lanes, last);
    V part = ReadVector(memory, type, b_.Add(offset, b_.I64(first)), lanes);
    llvm::SmallVector<int, 64> from;
    for (int64_t l = 0; l < lanes; ++l) {
      const int64_t at = l * stride + chosen - first;
      from.push_back(at >= 0 && at < lanes ? static_cast<int>(at) : -1);
    }
    picked = b_.TakeLanes(picked, part, from);
  }
  return picked;
}

// Known places in a small array: its vectors are read as a whole, and their lanes are picked. Vectors begin at
// multiples of their length, so that memory of the function's own can turn into registers. Null: it is not so.
V ElementBuilder::PickedPart(const Memory& memory, llvm::Type* type, V offsets, V mask, int64_t elements) {
  const int lanes = VectorBuilder::Lanes(offsets);
  const std::optional<llvm::SmallVector<int64_t, 64>> places = PlacesOfLanes(offsets, mask, elements);
  if (!places) return nullptr;
  const int64_t bytes = type->getScalarSizeInBits() / 8;
  const int64_t length = std::min<int64_t>(lanes, static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(elements))));
  const int64_t readable = elements + memory.padding / bytes;
  std::set<int64_t> vectors;
  for (int64_t place : *places)
    if (place >= 0) vectors.insert(place / length);
  if (length < 2 || vectors.size() > kMostPickedVectors) return nullptr;
  if (!vectors.empty() && (*vectors.rbegin() + 1) * length > readable && !b_.target().masked_memory) return nullptr;
  V picked = nullptr;
  for (int64_t v : vectors) {
    V part = TableVector(memory, type, v * length, static_cast<int>(length), elements);
    llvm::SmallVector<int, 64> from;
    for (int l = 0; l < lanes; ++l) {
      const int64_t place = (*places)[static_cast<size_t>(l)];
      from.push_back(place >= 0 && place / length == v ? static_cast<int>(place % length) : -1);
    }
    picked = b_.TakeLanes(picked, part, from);
  }
  return picked ? picked : llvm::Constant::getNullValue(VectorBuilder::WithLanes(type, lanes));
}

// The vector in memory that says where lanes are, if its elements are only extended (they are not negative); or null.
static llvm::LoadInst* ReadAsOffsets(V offsets) {
  constexpr int kLeastBits = 32;  // what is cut off from more is nothing; of types below a byte it may be something
  while (llvm::isa<llvm::ZExtInst>(offsets) ||
         (llvm::isa<llvm::TruncInst>(offsets) && VectorBuilder::ScalarBits(offsets) >= kLeastBits))
    offsets = llvm::cast<llvm::CastInst>(offsets)->getOperand(0);
  auto* read = llvm::dyn_cast<llvm::LoadInst>(offsets);
  return read && read->hasMetadata(llvm::LLVMContext::MD_invariant_load) ? read : nullptr;
}

// The lanes of such a vector as numbers of 64 bits, read from memory one by one.
static V ReadLane(VectorBuilder& b, llvm::LoadInst& vector, int lane) {
  llvm::Type* type = vector.getType()->getScalarType();
  V place = b.ir().CreateInBoundsGEP(type, vector.getPointerOperand(), b.I64(lane));
  auto* read = b.ir().CreateAlignedLoad(type, place, llvm::Align(1));
  read->copyMetadata(vector);
  return b.ZExtOrTrunc(read, 64);
}

// So many elements of an array of `elements` from its element `first` on, those behind its end as anything.
V ElementBuilder::TableVector(const Memory& memory, llvm::Type* type, int64_t first, int length, int64_t elements) {
  IrBuilder& ir = b_.ir();
  const int64_t bytes = type->getScalarSizeInBits() / 8;
  llvm::Type* vector = VectorBuilder::WithLanes(type, length);
  V pointer = ElementPointer(memory, type, b_.I64(first));
  const llvm::Align align = AccessAlign(memory.alignment, length, bytes);
  if (first + length <= elements + memory.padding / bytes)
    return Annotate(ir.CreateAlignedLoad(vector, pointer, align), memory, true);
  V there = b_.ULt(b_.LaneNumbers(length, 32), b_.I32(static_cast<int32_t>(elements - first)));
  return Annotate(ir.CreateMaskedLoad(vector, pointer, align, there, llvm::Constant::getNullValue(vector)), memory,
                  true);
}

// Any places in an array that a few registers hold: they are looked up there, in two at a time (a quarter of the time
// of a gather), and chosen by the bits of their numbers that say in which two.
V ElementBuilder::TablePart(const Memory& memory, llvm::Type* type, V offsets, int64_t elements) {
  constexpr int kMostRegisters = 8;
  const int lanes = VectorBuilder::Lanes(offsets), length = std::min(lanes, b_.target().vector_bytes / 4);
  if (elements < 2 || elements > kMostRegisters * length || lanes % length != 0) return nullptr;
  if (!b_.LooksUp(length, static_cast<int>(type->getScalarSizeInBits()))) return nullptr;
  std::vector<V> table;
  for (int64_t first = 0; first < elements; first += length)
    table.push_back(TableVector(memory, type, first, length, elements));
  if (table.size() == 1) table.push_back(table[0]);
  table.resize(std::bit_ceil(table.size()), table.back());  // no number is of these
  V numbers = b_.ZExtOrTrunc(offsets, 32);
  const auto in_registers = [&](V places) {
    std::vector<V> found;
    for (size_t k = 0; k < table.size(); k += 2) found.push_back(b_.LookUp(table[k], table[k + 1], places));
    for (int64_t of = 2 * length; found.size() > 1; of *= 2) {
      V upper = b_.Not(b_.IEq(b_.And(places, b_.I(of, places)), b_.Zero(places)));
      for (size_t k = 0; k < found.size() / 2; ++k) found[k] = b_.Select(upper, found[2 * k + 1], found[2 * k]);
      found.resize(found.size() / 2);
    }
    return found[0];
  };
  const std::function<V(int, int)> look_up = [&](int from, int count) {
    if (count == length) return in_registers(lanes == length ? numbers : b_.Slice(numbers, from, length));
    V low = look_up(from, count / 2);
    return b_.Concat(low, look_up(from + count / 2, count / 2));
  };
  return look_up(0, lanes);
}

// Bytes and halves: the words that they lie in, which are aligned and so never beyond the last page of the buffer.
V ElementBuilder::GatherFromWords(const Memory& memory, llvm::Type* type, V offsets, V mask) {
  constexpr int kWord = 4;
  IrBuilder& ir = b_.ir();
  const int lanes = VectorBuilder::Lanes(offsets), bits = static_cast<int>(type->getScalarSizeInBits());
  V bytes = b_.Mul(offsets, b_.I(bits / 8, offsets)), base = memory.pointer;
  if (memory.alignment < kWord) {
    V skew = ir.CreateAnd(ir.CreatePtrToInt(base, b_.Int(64)), b_.I64(kWord - 1));
    base = ir.CreateGEP(b_.Int(8), base, ir.CreateNeg(skew));
    bytes = b_.Add(bytes, b_.Splat(b_.ZExtOrTrunc(skew, bytes->getType()->getScalarSizeInBits()), lanes));
  }
  V pointers = ir.CreateGEP(b_.Int(8), base, ir.CreateAnd(bytes, b_.I(-kWord, bytes)));
  V on = mask ? mask : b_.Splat(b_.True(), lanes);
  llvm::Type* vector = VectorBuilder::WithLanes(b_.Int(32), lanes);
  auto* words = ir.CreateMaskedGather(vector, pointers, llvm::Align(kWord), on, llvm::Constant::getNullValue(vector));
  V number = b_.ZExtOrTrunc(bytes, 32);
  V shift = ir.CreateShl(ir.CreateAnd(number, b_.I(kWord - 1, number)), b_.I(3, number));
  V read = b_.ZExtOrTrunc(ir.CreateLShr(Annotate(words, memory, true), shift), bits);
  return ir.CreateBitCast(read, VectorBuilder::WithLanes(type, lanes));
}

V ElementBuilder::GatherPart(const Memory& memory, llvm::Type* type, V offsets, V mask, int64_t elements,
                             bool one_by_one) {
  if (V picked = PickedPart(memory, type, offsets, mask, elements)) return picked;
  if (V looked_up = TablePart(memory, type, offsets, elements)) return looked_up;
  IrBuilder& ir = b_.ir();
  const int lanes = VectorBuilder::Lanes(offsets);
  const int bits = static_cast<int>(type->getScalarSizeInBits());
  constexpr int64_t kMostBytes = int64_t{1} << 30;
  constexpr int kLeastFromWords = 8;
  if (lanes > 1 && elements > 0 && elements <= kMostBytes / (bits / 8)) offsets = b_.ZExtOrTrunc(offsets, 32);
  if (bits < 32 && lanes >= kLeastFromWords && b_.target().fast_gather && b_.target().masked_memory && !b_.quick())
    return GatherFromWords(memory, type, offsets, mask);
  const llvm::Align align(static_cast<uint64_t>(std::min(memory.alignment, bits / 8)));
  if (lanes == 1)
    return Annotate(ir.CreateAlignedLoad(type, ElementPointer(memory, type, offsets), align), memory, true);
  const bool slow = !b_.target().fast_gather && !b_.quick();
  llvm::LoadInst* read = slow && !mask ? ReadAsOffsets(offsets) : nullptr;
  one_by_one = slow && (one_by_one || read);
  if (bits >= 32 && b_.target().masked_memory && !one_by_one) {
    V pointers = ir.CreateGEP(type, memory.pointer, offsets);
    llvm::Type* vector = VectorBuilder::WithLanes(type, lanes);
    V m = mask ? mask : b_.Splat(b_.True(), lanes);
    return Annotate(ir.CreateMaskedGather(vector, pointers, align, m, llvm::Constant::getNullValue(vector)), memory,
                    true);
  }
  // Lane by lane. Lanes that are off read the element 0 of the buffer, which exists if any element does.
  if (mask) offsets = b_.Select(mask, offsets, b_.Zero(offsets));
  if (one_by_one && !read) offsets = b_.Mul(offsets, b_.I(bits / 8, offsets));  // all at once
  V out = llvm::PoisonValue::get(VectorBuilder::WithLanes(type, lanes));
  for (int i = 0; i < lanes; ++i) {
    V offset = read ? ReadLane(b_, *read, i) : b_.ZExtOrTrunc(b_.Lane(offsets, i), 64);
    V place = ElementPointer(memory, one_by_one && !read ? b_.Int(8) : type, offset);
    V element = Annotate(ir.CreateAlignedLoad(type, place, align), memory, true);
    out = ir.CreateInsertElement(out, element, static_cast<uint64_t>(i));
  }
  return out;
}

// The one lane of a constant mask that is on; -1 if it is none, or several.
static int OnlyLane(V mask) {
  const auto* constant = llvm::dyn_cast<llvm::Constant>(mask);
  int only = -1;
  for (int lane = 0; constant && lane < VectorBuilder::Lanes(mask); ++lane) {
    const llvm::Constant* on = constant->getAggregateElement(static_cast<unsigned>(lane));
    if (!on || (!on->isNullValue() && (only >= 0 || !on->isOneValue()))) return -1;
    if (on->isOneValue()) only = lane;
  }
  return only;
}

void ElementBuilder::StorePart(const Memory& memory, V stored, V offset, int64_t stride, V mask, int64_t multiple) {
  IrBuilder& ir = b_.ir();
  llvm::Type* type = stored->getType()->getScalarType();
  const int lanes = VectorBuilder::Lanes(stored);
  const int64_t bytes = type->getScalarSizeInBits() / 8;
  constexpr int kMostParts = 4;
  if (lanes == 1 || stride == 1) {
    V pointer = ElementPointer(memory, type, offset);
    const llvm::Align align = AccessAlign(memory.alignment, multiple, bytes);
    if (mask && lanes > 1 && lanes * bytes <= memory.padding) {
      V before = Annotate(ir.CreateAlignedLoad(stored->getType(), pointer, align), memory, true);
      Annotate(ir.CreateAlignedStore(b_.Select(mask, stored, before), pointer, align), memory, false);
    } else if (const int lane = mask && lanes > 1 ? OnlyLane(mask) : -1; lane >= 0) {
      // As a masked store of a truncated vector, LLVM 22 writes the lane before it was truncated, and what is behind
      // it.
      V element = ir.CreateExtractElement(stored, static_cast<uint64_t>(lane));
      V place = ElementPointer(memory, type, b_.Add(offset, b_.I64(lane)));
      Annotate(ir.CreateAlignedStore(element, place, llvm::Align(bytes)), memory, false);
    } else if (const int first = mask && lanes > 1 && memory.in_place ? FirstLanes(mask) : 0;
               first > 0 && std::popcount(static_cast<unsigned>(first)) <= kMostParts) {
      // What is read next begins where these lanes end: processors take a masked store for one of the whole vector,
      // and wait until it is done (40 cycles a row of ten floats).
      for (int at = 0; at < first;) {
        const int count = static_cast<int>(std::bit_floor(static_cast<unsigned>(first - at)));
        V place = ElementPointer(memory, type, b_.Add(offset, b_.I64(at)));
        const llvm::Align aligned = AccessAlign(memory.alignment, std::gcd(multiple, int64_t{at}), bytes);
        Annotate(ir.CreateAlignedStore(b_.Slice(stored, at, count), place, aligned), memory, false);
        at += count;
      }
    } else if (mask && lanes > 1) {
      Annotate(ir.CreateMaskedStore(stored, pointer, align, mask), memory, false);
    } else {
      llvm::StoreInst* store = Annotate(ir.CreateAlignedStore(stored, pointer, align), memory, false);
      if (memory.streaming && lanes > 1 && align.value() >= static_cast<uint64_t>(lanes * bytes))
        store->setMetadata(llvm::LLVMContext::MD_nontemporal,
                           llvm::MDNode::get(b_.context(), llvm::ConstantAsMetadata::get(ir.getInt32(1))));
    }
    return;
  }
  V offsets = b_.Add(b_.Mul(b_.LaneNumbers(lanes, 64), b_.I64(stride)), offset);
  ScatterPart(memory, stored, offsets, mask);
}

void ElementBuilder::ScatterPart(const Memory& memory, V stored, V offsets, V mask) {
  IrBuilder& ir = b_.ir();
  llvm::Type* type = stored->getType()->getScalarType();
  const int lanes = VectorBuilder::Lanes(stored);
  const int64_t bytes = type->getScalarSizeInBits() / 8;
  const llvm::Align align(static_cast<uint64_t>(std::min<int64_t>(memory.alignment, bytes)));
  V pointers = ir.CreateGEP(type, memory.pointer, offsets);
  if (lanes == 1) {
    Annotate(ir.CreateAlignedStore(stored, pointers, align), memory, false);
    return;
  }
  V m = mask ? mask : b_.Splat(b_.True(), lanes);
  Annotate(ir.CreateMaskedScatter(stored, pointers, align, m), memory, false);
}

Val ElementBuilder::Load(const Memory& memory, ElementType type, V offset, int64_t stride, int lanes, V mask,
                         int64_t multiple, int64_t phase) {
  llvm::Type* storage = StorageType(type);
  if (stride == 0) lanes = 1;
  if (type == ElementType::F16 && phase >= 0 && lanes >= 4 && !mask)
    if (V turned = GroupedHalves(memory, offset, stride, lanes, phase)) return Val{turned, nullptr, type};
  if (!IsComplex(type)) {
    V stored = LoadPart(memory, storage, offset, stride, lanes, mask, multiple, phase);
    return Val{FromStorage(type, stored), nullptr, type};
  }
  V twice = b_.Mul(offset, b_.I64(2));
  if (lanes > 1 && stride == 1) {
    V pairs_mask = mask ? b_.Interleave(mask, mask) : nullptr;
    V pairs = LoadPart(memory, storage, twice, 1, 2 * lanes, pairs_mask, 2 * multiple, kNoPhase);
    return Val{b_.Even(pairs), b_.Odd(pairs), type};
  }
  if (lanes > 1 && stride == -1) {
    V turned = mask ? b_.Reverse(mask) : nullptr;
    Memory unpadded = memory;  // what is off lies in front
    unpadded.padding = 0;
    V pairs = LoadPart(unpadded, storage, b_.Sub(twice, b_.I64(2 * (lanes - 1))), 1, 2 * lanes,
                       mask ? b_.Interleave(turned, turned) : nullptr, 1, kNoPhase);
    return Val{b_.Reverse(b_.Even(pairs)), b_.Reverse(b_.Odd(pairs)), type};
  }
  if (phase >= 0)
    return Val{LoadPart(memory, storage, twice, 2 * stride, lanes, mask, 1, 2 * phase),
               LoadPart(memory, storage, twice, 2 * stride, lanes, mask, 1, 2 * phase + 1), type};
  V next = b_.Add(twice, b_.I64(1));
  return Val{LoadPart(memory, storage, twice, 2 * stride, lanes, mask, 1, kNoPhase),
             LoadPart(memory, storage, next, 2 * stride, lanes, mask, 1, kNoPhase), type};
}

void ElementBuilder::Fetch(const Memory& memory, ElementType type, V offset, int count, Cache cache, int64_t ahead) {
  constexpr int64_t kLine = 64;
  const int nearness = cache == Cache::kNext ? 2 : 3;
  IrBuilder& ir = b_.ir();
  const int64_t bytes = count * static_cast<int64_t>(Bytes(type));
  // No inbounds: it may lie outside the buffer.
  V next = ir.CreateGEP(b_.Int(8), memory.pointer, b_.Mul(offset, b_.I64(Bytes(type))));
  for (int64_t at = ahead; at < ahead + bytes; at += kLine) {
    V line = ir.CreateGEP(b_.Int(8), next, b_.I64(at));
    ir.CreateIntrinsic(llvm::Intrinsic::prefetch, {b_.Ptr()}, {line, b_.I32(0), b_.I32(nearness), b_.I32(1)});
  }
}

// Distances of lanes, kOff of those that are off. Vectors of as many lanes are read, or shorter ones, each where the
// first lane that no other one holds is; the last one ends with the last element.
V ElementBuilder::PickPart(const Memory& memory, llvm::Type* type, V offset, std::span<const int64_t> distances) {
  const int lanes = static_cast<int>(distances.size());
  std::set<int64_t> places;
  for (int64_t d : distances)
    if (d != kOff) places.insert(d);
  if (places.empty()) return nullptr;
  const int64_t end = *places.rbegin() + 1, span = end - *places.begin();
  const int64_t length = std::min<int64_t>(lanes, static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(span))));
  std::vector<int64_t> vectors;
  for (int64_t place : places)
    if (vectors.empty() || place >= vectors.back() + length) vectors.push_back(std::min(place, end - length));
  if (vectors.size() > kMostPickedVectors) return nullptr;
  if (vectors.size() > 1)
    if (V gathered = QuickGather(memory, type, offset, distances)) return gathered;
  V picked = nullptr;
  for (int64_t first : vectors) {
    V part = ReadVector(memory, type, b_.Add(offset, b_.I64(first)), static_cast<int>(length));
    if (length == 1) return b_.Splat(part, lanes);
    llvm::SmallVector<int, 64> from;
    for (int64_t distance : distances) {
      const bool here = distance != kOff && distance >= first && distance < first + length;
      from.push_back(here ? static_cast<int>(distance - first) : -1);
    }
    picked = b_.TakeLanes(picked, part, from);
  }
  return picked;
}

Val ElementBuilder::Pick(const Memory& memory, ElementType type, V offset, llvm::Constant* distances, V mask) {
  const auto* on = llvm::dyn_cast_or_null<llvm::Constant>(mask);
  const int lanes = VectorBuilder::Lanes(distances);
  if ((mask && !on) || StaysInRegisters(memory, offset)) return {};
  const int64_t parts = IsComplex(type) ? 2 : 1;
  V out[2] = {};
  for (int64_t part = 0; part < parts; ++part) {
    std::vector<int64_t> from;
    for (unsigned l = 0; l < static_cast<unsigned>(lanes); ++l) {
      const auto* distance = llvm::dyn_cast_or_null<llvm::ConstantInt>(distances->getAggregateElement(l));
      const llvm::Constant* is_on =
          on ? (lanes > 1 && on->getType()->isVectorTy() ? on->getAggregateElement(l) : on) : nullptr;
      if (!distance || (on && !is_on)) return {};
      from.push_back(is_on && is_on->isNullValue() ? kOff : parts * distance->getSExtValue() + part);
    }
    out[part] = PickPart(memory, StorageType(type), parts == 1 ? offset : b_.Mul(offset, b_.I64(2)), from);
    if (!out[part]) return {};
  }
  if (parts == 2) return Val{out[0], out[1], type};
  return Val{FromStorage(type, out[0]), nullptr, type};
}

Val ElementBuilder::Gather(const Memory& memory, ElementType type, V offsets, V mask, int64_t elements,
                           bool one_by_one) {
  const auto part = [&](V at, int64_t count) {
    return GatherPart(memory, StorageType(type), at, mask, count, one_by_one);
  };
  if (!IsComplex(type)) return Val{FromStorage(type, part(offsets, elements)), nullptr, type};
  if (type == ElementType::C64 && memory.alignment >= Bytes(type) && !llvm::isa<llvm::Constant>(offsets)) {
    V both = GatherPart(memory, b_.Int(64), offsets, mask, elements, one_by_one);
    both = b_.ir().CreateBitCast(both, VectorBuilder::WithLanes(b_.F32(), 2 * VectorBuilder::Lanes(offsets)));
    return Val{b_.Even(both), b_.Odd(both), type};
  }
  V twice = b_.Mul(offsets, b_.I(2, offsets));
  return Val{part(twice, 2 * elements), part(b_.Add(twice, b_.I(1, twice)), 2 * elements), type};
}

ElementBuilder::Memory ElementBuilder::From(const Memory& memory, ElementType type, V first) {
  Memory from = memory;
  from.pointer = b_.ir().CreateGEP(b_.Int(8), memory.pointer, b_.Mul(first, b_.I64(Bytes(type))));
  from.alignment = std::min(memory.alignment, Bytes(type));
  return from;
}

void ElementBuilder::Store(const Memory& memory, const Val& value, V offset, int64_t stride, int lanes, V mask,
                           int64_t multiple) {
  if (!IsComplex(value.type)) {
    StorePart(memory, ToStorage(value.type, b_.Splat(value.re, lanes)), offset, stride, mask, multiple);
    return;
  }
  V re = b_.Splat(value.re, lanes), im = b_.Splat(value.im, lanes);
  V twice = b_.Mul(offset, b_.I64(2));
  if (lanes > 1 && stride == 1) {
    StorePart(memory, b_.Interleave(re, im), twice, 1, mask ? b_.Interleave(mask, mask) : nullptr, 2 * multiple);
    return;
  }
  StorePart(memory, re, twice, 2 * stride, mask, 1);
  StorePart(memory, im, b_.Add(twice, b_.I64(1)), 2 * stride, mask, 1);
}

void ElementBuilder::Scatter(const Memory& memory, const Val& value, V offsets, V mask) {
  const int lanes = VectorBuilder::Lanes(offsets);
  if (!IsComplex(value.type)) {
    ScatterPart(memory, ToStorage(value.type, b_.Splat(value.re, lanes)), offsets, mask);
    return;
  }
  V twice = b_.Mul(offsets, b_.I64(2));
  ScatterPart(memory, b_.Splat(value.re, lanes), twice, mask);
  ScatterPart(memory, b_.Splat(value.im, lanes), b_.Add(twice, b_.I64(1)), mask);
}

}  // namespace strop
