// Patterns: `if (Match(i, Multiply(Any(&x), Broadcast(Constant(&c)))))`.
//
// A pattern is a value with `bool operator()(Instruction*) const`. Names are the ops' own; an op without sub-patterns
// matches whatever its operands are. A last argument of type Instruction** catches the instruction that matched. The
// two operands of a commutative op are tried in both orders. What was caught by a pattern that did not match is
// meaningless.
//
//   Any(&x)                 every instruction
//   Is(op, &x)              any op of this kind, operands free
//   Same(x)                 exactly this instruction
//   Scalar(1.0)             a constant or broadcast of one, all of whose elements equal 1
//   Splat(&c)               a constant, or a broadcast of a constant of one element; c is that constant
//   OneUse(pattern)         matched, and used once
//   AnyOf(p, q, ...)        the first of these that matches
//   Where(pattern, holds)   matched, and holds(instruction)
//   OfType(type, pattern)   matched, an array of this element type
//   CustomCallTo(target)    a custom call of this target, operands free
//   Add(p, q)  Negate(p)    ops with sub-patterns, all of ops.def
#pragma once
#include <tuple>
#include <utility>

#include "strop/ir/module.h"

namespace strop::match {

template <class Pattern>
bool Match(Instruction* i, const Pattern& pattern) {
  return pattern(i);
}

namespace internal {

inline bool Catch(Instruction** into, Instruction* i) {
  if (into) *into = i;
  return true;
}

template <Op kOp, class... Subs>
struct OpPattern {
  std::tuple<Subs...> subs;
  Instruction** into = nullptr;

  bool operator()(Instruction* i) const {
    if (i->op() != kOp) return false;
    if constexpr (sizeof...(Subs) > 0) {
      if (i->operand_count() != static_cast<int64_t>(sizeof...(Subs))) return false;
      if (!Operands(i, std::index_sequence_for<Subs...>{})) {
        if constexpr (sizeof...(Subs) == 2 && strop::Is(kOp, kCommutative)) {
          if (!(std::get<0>(subs)(i->operand(1)) && std::get<1>(subs)(i->operand(0)))) return false;
        } else {
          return false;
        }
      }
    }
    return Catch(into, i);
  }

 private:
  template <size_t... K>
  bool Operands(Instruction* i, std::index_sequence<K...>) const {
    return (std::get<K>(subs)(i->operand(K)) && ...);
  }
};

}  // namespace internal

struct Any {
  Instruction** into = nullptr;
  Any() = default;
  explicit Any(Instruction** at) : into(at) {}
  bool operator()(Instruction* i) const { return internal::Catch(into, i); }
};

struct Same {
  const Instruction* wanted;
  bool operator()(Instruction* i) const { return i == wanted; }
};

struct Is {
  Op op;
  Instruction** into = nullptr;
  explicit Is(Op o, Instruction** at = nullptr) : op(o), into(at) {}
  bool operator()(Instruction* i) const { return i->op() == op && internal::Catch(into, i); }
};

struct Scalar {
  double value;
  bool operator()(Instruction* i) const { return i->IsSplat(value); }
};

template <class Pattern>
struct OneUse {
  Pattern pattern;
  explicit OneUse(Pattern p) : pattern(std::move(p)) {}
  bool operator()(Instruction* i) const { return i->use_count() == 1 && pattern(i); }
};

struct Splat {
  Instruction** into = nullptr;
  explicit Splat(Instruction** at = nullptr) : into(at) {}
  bool operator()(Instruction* i) const {
    if (i->IsConstant()) return internal::Catch(into, i);
    if (i->op() != Op::Broadcast || !i->operand(0)->IsConstant() || i->operand(0)->shape().num_elements() != 1)
      return false;
    return internal::Catch(into, i->operand(0));
  }
};

template <class... Patterns>
struct AnyOf {
  std::tuple<Patterns...> patterns;
  explicit AnyOf(Patterns... p) : patterns(std::move(p)...) {}
  bool operator()(Instruction* i) const {
    return std::apply([i](const Patterns&... p) { return (p(i) || ...); }, patterns);
  }
};

template <class Pattern, class Holds>
struct Where {
  Pattern pattern;
  Holds holds;
  Where(Pattern p, Holds h) : pattern(std::move(p)), holds(std::move(h)) {}
  bool operator()(Instruction* i) const { return pattern(i) && holds(static_cast<const Instruction*>(i)); }
};

template <class Pattern>
struct OfType {
  ElementType type;
  Pattern pattern;
  OfType(ElementType t, Pattern p) : type(t), pattern(std::move(p)) {}
  bool operator()(Instruction* i) const { return i->shape().IsArray() && i->shape().type() == type && pattern(i); }
};

struct CustomCallTo {
  std::string_view target;
  Instruction** into = nullptr;
  explicit CustomCallTo(std::string_view t, Instruction** at = nullptr) : target(t), into(at) {}
  bool operator()(Instruction* i) const {
    return i->op() == Op::CustomCall && i->attrs<CustomCallAttrs>().target == target && internal::Catch(into, i);
  }
};

// Op(p...), Op(p..., &i), Op(), Op(&i)
#define STROP_PATTERN(name)                                                                          \
  inline auto name(Instruction** into = nullptr) { return internal::OpPattern<Op::name>{{}, into}; } \
  template <class A>                                                                                 \
    requires std::invocable<const A&, Instruction*>                                                  \
  auto name(A a, Instruction** into = nullptr) {                                                     \
    return internal::OpPattern<Op::name, A>{{std::move(a)}, into};                                   \
  }                                                                                                  \
  template <class A, class B>                                                                        \
    requires std::invocable<const B&, Instruction*>                                                  \
  auto name(A a, B b, Instruction** into = nullptr) {                                                \
    return internal::OpPattern<Op::name, A, B>{{std::move(a), std::move(b)}, into};                  \
  }                                                                                                  \
  template <class A, class B, class C>                                                               \
    requires std::invocable<const C&, Instruction*>                                                  \
  auto name(A a, B b, C c, Instruction** into = nullptr) {                                           \
    return internal::OpPattern<Op::name, A, B, C>{{std::move(a), std::move(b), std::move(c)}, into}; \
  }

#define OP(name, ...) STROP_PATTERN(name)
#include "strop/ir/ops.def"
#undef OP
#undef STROP_PATTERN

}  // namespace strop::match
