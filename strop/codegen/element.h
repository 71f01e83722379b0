// Elements in registers and in memory.
//
//              register (per lane)                      memory
//   pred       i1                                       a byte 0 or 1
//   s/u 1..4   iN                                       a byte, sign- or zero-extended
//   s/u 8..64  iN                                       the same
//   f8, f16..  float, holding a value of the format     the format's code
//   f32, f64   float, double                            the same
//   complex    a pair of float or double                (real, imaginary)
//
// Small floats are computed with in f32 and rounded to their format after each operation that can leave it. Where they
// are only moved, registers hold their codes (HoldCodes).
#pragma once
#include <map>
#include <span>
#include <tuple>
#include <vector>

#include "strop/codegen/vector_builder.h"
#include "strop/types/element_type.h"

namespace strop {

// An HLO value in registers: a scalar (the same for all lanes) or one element a lane.
struct Val {
  llvm::Value* re = nullptr;
  llvm::Value* im = nullptr;  // complex only
  ElementType type = ElementType::Invalid;

  int lanes() const { return VectorBuilder::Lanes(re); }
};

class ElementBuilder {
 public:
  using V = llvm::Value*;
  explicit ElementBuilder(VectorBuilder& b) : b_(b) {}
  VectorBuilder& b() { return b_; }

  // From now on small floats are their codes in registers too, for code that only moves them.
  void HoldCodes() { codes_ = true; }

  // Register type of one lane (of a part, if complex), and the type in memory.
  llvm::Type* RegisterType(ElementType type);
  llvm::Type* StorageType(ElementType type);
  // Bits that an element takes in a register (as a value), for choosing the number of lanes.
  static int RegisterBits(ElementType type);

  Val Splat(const Val& v, int lanes);
  Val Select(V condition, const Val& a, const Val& b);
  Val Poison(ElementType type, int lanes);
  // A constant of one lane; `bytes` is the element in memory form.
  Val Constant(ElementType type, const uint8_t* bytes);

  // Between register and memory form, of one part.
  V FromStorage(ElementType type, V stored);
  V ToStorage(ElementType type, V value);

  // How a buffer may be accessed: what else may change it.
  struct Memory {
    V pointer = nullptr;
    llvm::MDNode* alias_scope = nullptr;  // its own scopes
    llvm::MDNode* noalias = nullptr;      // scopes that it does not overlap
    bool invariant = false;               // nobody writes it while the kernel runs
    int alignment = 1;                    // of the pointer
    bool streaming = false;               // stores go past the caches
    int64_t padding = 0;                  // bytes behind it that may be read, and written as they were
    bool in_place = false;                // an operand lies there, which is read on the way
    bool far = false;                     // it comes from beyond the caches, one vector after the other
  };
  static constexpr int64_t kNoPhase = -1;
  // Element `offset` (i64, in elements) onwards: lane l is element offset + l * stride. `mask` may be null; masked-off
  // lanes are not touched and read as anything. `multiple`: offset is a multiple of it. `phase`: of each `stride`
  // elements, all of which exist, the one of this number.
  Val Load(const Memory& memory, ElementType type, V offset, int64_t stride, int lanes, V mask, int64_t multiple,
           int64_t phase = kNoPhase);
  // Asks for the cache lines of as many elements, which need not exist, `ahead` bytes further on: for the nearest
  // cache, or where it is too small for what is asked for until that is read, the next one.
  enum class Cache { kNearest, kNext };
  void Fetch(const Memory& memory, ElementType type, V offset, int count, Cache cache = Cache::kNearest,
             int64_t ahead = 0);
  // Elements offset + distances[l], constants, from a few vectors that are read whole; no value where that does not
  // pay.
  Val Pick(const Memory& memory, ElementType type, V offset, llvm::Constant* distances, V mask);
  // Elements offsets[l] (of 32 or 64 bits), of `elements` that there are. `one_by_one`: the offsets are those of other
  // gathers as well, so that it pays to take their lanes apart, where the processor gathers slowly.
  Val Gather(const Memory& memory, ElementType type, V offsets, V mask, int64_t elements, bool one_by_one = false);
  // The memory from this element (i64) on.
  Memory From(const Memory& memory, ElementType type, V first);
  void Store(const Memory& memory, const Val& value, V offset, int64_t stride, int lanes, V mask, int64_t multiple);
  void Scatter(const Memory& memory, const Val& value, V offsets, V mask);

  // ---- float formats (float_format.cc)
  // The value of `type` nearest to a float or double (ties to even), as float (or double for f64).
  // `made_of_it`: by arithmetic of numbers of the format, so that a NaN has no bits below those that are kept.
  V RoundToFormat(ElementType type, V value, bool made_of_it = false);
  V DecodeFormat(ElementType type, V code);   // integer code -> float
  V EncodeFormat(ElementType type, V value);  // float -> integer code of Bytes(type); not of bf16, see ToStorage
  // Of an f32, or of its bits: that the lower half is seen to be empty, by what made it.
  static bool IsRoundedToBf16(const llvm::Value* value, int depth = 6);
  // double -> float such that a later rounding to fewer bits gives what rounding the double at once would.
  V RoundToOdd(V value);

 private:
  V LoadPart(const Memory& memory, llvm::Type* type, V offset, int64_t stride, int lanes, V mask, int64_t multiple,
             int64_t phase);
  void StorePart(const Memory& memory, V stored, V offset, int64_t stride, V mask, int64_t multiple);
  V StridedPart(const Memory& memory, llvm::Type* type, V offset, int64_t stride, int lanes, int64_t phase);
  V GroupedPart(const Memory& memory, llvm::Type* type, V offset, int64_t stride, int lanes, int64_t phase);
  std::vector<V> DealShort(std::vector<V> vectors);
  bool RowsAreTurned(llvm::Type* type, int64_t stride, int lanes) const;
  std::vector<V> TurnRows(const Memory& memory, llvm::Type* type, V offset, int64_t stride, int lanes,
                          bool halves = false);
  V GroupedHalves(const Memory& memory, V offset, int64_t stride, int lanes, int64_t phase);
  // So many elements from `offset` on, wherever that is.
  V ReadVector(const Memory& memory, llvm::Type* type, V offset, int lanes);
  V QuickGather(const Memory& memory, llvm::Type* type, V offset, std::span<const int64_t> distances);
  V LaneByLane(const Memory& memory, V into, V offset, int64_t stride, int count);
  V GatherFromWords(const Memory& memory, llvm::Type* type, V offsets, V mask);
  V GatherPart(const Memory& memory, llvm::Type* type, V offsets, V mask, int64_t elements, bool one_by_one = false);
  V PickPart(const Memory& memory, llvm::Type* type, V offset, std::span<const int64_t> distances);
  V PickedPart(const Memory& memory, llvm::Type* type, V offsets, V mask, int64_t elements);
  V TablePart(const Memory& memory, llvm::Type* type, V offsets, int64_t elements);
  V TableVector(const Memory& memory, llvm::Type* type, int64_t first, int length, int64_t elements);
  void ScatterPart(const Memory& memory, V stored, V offsets, V mask);
  template <class I>
  I* Annotate(I* access, const Memory& memory, bool load);
  V ElementPointer(const Memory& memory, llvm::Type* type, V offset);
  bool IsCode(ElementType type) const { return codes_ && IsFloat(type) && Bits(type) < 32; }

  VectorBuilder& b_;
  bool codes_ = false;
  // What GroupedPart has read: block, memory, offset, type, group, lanes.
  using Groups = std::tuple<llvm::BasicBlock*, V, V, llvm::Type*, int64_t, int>;
  std::map<Groups, std::vector<V>> groups_;
};

}  // namespace strop
