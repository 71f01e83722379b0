// The op table (rows from ops.def) and the columns that other rooms hang on it.
//
// A column is a table with one entry an op, filled from a list and from defaults that traits give, and checked at
// compile time; forgetting an op is an error that names it:
//
//   using VerifyFn = Status (*)(const Instruction&);
//   constexpr OpColumn<VerifyFn> kVerify(/*unary*/ &VerifyUnary, /*binary*/ &VerifyBinary, ..., {{Op::Dot,
//   &VerifyDot}}); STROP_COMPLETE(kVerify); error: ... HasNoMissingOp<strop::Op::Cosh> ...
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

namespace strop {

enum Traits : uint32_t {
  kNone = 0,
  kUnary = 1,    // elementwise, one operand
  kBinary = 2,   // elementwise, two operands
  kTernary = 4,  // elementwise, three operands (clamp, select)
  kElementwise = kUnary | kBinary | kTernary,
  kCommutative = 8,
  kFloatMath = 16,     // a transcendental or root: float and complex only
  kChangesType = 32,   // result type is not the operand's
  kDataMovement = 64,  // every result element is an operand element (or a padding value), unchanged
  kSideEffect = 128,   // neither removed nor merged nor reordered against other effects
  kControlFlow = 256,  // callee is a computation of its own, not a scalar function
  kCollective = 512,
  kAsync = 1024,
};

inline constexpr int8_t kVariadic = -1;

enum class Op : uint8_t {
#define OP(e, ...) e,
#include "strop/ir/ops.def"
#undef OP
  kEnd
};

struct OpInfo {
  Op op;
  std::string_view text;
  int8_t arity;
  uint32_t traits;
  std::string_view callees;
};

inline constexpr std::array kOps = {
#define OP(e, text, arity, traits, A, callees) OpInfo{Op::e, text, arity, traits, callees},
#include "strop/ir/ops.def"
#undef OP
};
inline constexpr size_t kNumOps = kOps.size();

constexpr const OpInfo& Info(Op op) { return kOps[static_cast<size_t>(op)]; }
constexpr std::string_view Name(Op op) { return Info(op).text; }
constexpr bool Is(Op op, uint32_t traits) { return (Info(op).traits & traits) != 0; }
constexpr bool IsElementwise(Op op) { return Is(op, kElementwise); }

// "dot" -> Op::Dot.
std::optional<Op> ParseOp(std::string_view text);

// One value per op, owned by the room that reads it.
template <class Fn>
struct OpColumn {
  struct Entry {
    Op op;
    Fn fn;
  };
  std::array<Fn, kNumOps> fn{};

  // `elementwise` is the default of elementwise rows (may be null); entries override it.
  template <size_t N>
  constexpr OpColumn(Fn elementwise, const Entry (&entries)[N]) {
    for (const OpInfo& info : kOps)
      if (info.traits & kElementwise) fn[static_cast<size_t>(info.op)] = elementwise;
    for (const Entry& e : entries) fn[static_cast<size_t>(e.op)] = e.fn;
  }
  constexpr Op FirstMissing() const {
    for (const OpInfo& info : kOps)
      if (!fn[static_cast<size_t>(info.op)]) return info.op;
    return Op::kEnd;
  }
  constexpr Fn operator[](Op op) const { return fn[static_cast<size_t>(op)]; }
};

template <Op Missing>
consteval bool HasNoMissingOp() {
  static_assert(Missing == Op::kEnd, "this column has no entry for the op named in the template argument");
  return Missing == Op::kEnd;
}
#define STROP_COMPLETE(column) static_assert(::strop::HasNoMissingOp<column.FirstMissing()>())

// Calls f.operator()<O>() for every op that has one of the traits.
template <uint32_t kTraits, class F>
constexpr void ForEachOp(F&& f) {
  [&]<size_t... I>(std::index_sequence<I...>) {
    (
        [&] {
          if constexpr ((kOps[I].traits & kTraits) != 0) f.template operator()<kOps[I].op>();
        }(),
        ...);
  }(std::make_index_sequence<kNumOps>());
}

}  // namespace strop
