// Computations of scalars, emitted where they are called: combiners, the bodies of maps, calls and branches.
//
//   %choose { %p, %q: s32[] ... conditional ... }   map(x, y), to_apply=%choose   ->   both branches, and a select
#include <algorithm>
#include <unordered_map>

#include "strop/codegen/elemental.h"

namespace strop {

using V = llvm::Value*;

Decision CanInline(const Computation& computation) {
  for (const Instruction* i : computation.instructions()) {
    switch (i->op()) {
      case Op::Parameter:
      case Op::Constant:
      case Op::Tuple:
      case Op::GetTupleElement:
      case Op::Call:
      case Op::Conditional:
      case Op::Fusion:
      case Op::Map:
      case Op::Reshape:
      case Op::Bitcast:
      case Op::BitcastConvert:
      case Op::Broadcast:
      case Op::Copy:
      case Op::OptimizationBarrier: break;
      default:
        if (!IsElementwise(i->op()))
          return Decision::No("%", i->name(), " in %", computation.name(), " is no scalar operation");
    }
    for (const Shape& leaf : i->shape().Leaves())
      if (!leaf.IsArray() || leaf.num_elements() != 1)
        return Decision::No("%", i->name(), " in %", computation.name(), " is no scalar");
    for (const Computation* callee : i->called()) {
      Decision d = CanInline(*callee);
      if (!d) return d;
    }
  }
  return Decision::Yes();
}

Vals ElementalEmitter::Inline(const Computation& computation, const Vals& arguments, const Instruction* known) {
  std::unordered_map<const Instruction*, Vals> values;
  size_t next = 0;
  for (const Instruction* parameter : computation.parameters()) {
    Vals& leaves = values[parameter];
    for (int64_t k = 0; k < parameter->shape().num_leaves(); ++k) leaves.push_back(arguments[next++]);
  }
  for (const Instruction* i : computation.instructions()) {
    if (i->op() == Op::Parameter) continue;
    if (i == known) {
      values[i] = {Val{b_.True(), nullptr, ElementType::Pred}};
      continue;
    }
    Vals operands;
    for (int64_t k = 0; k < i->operand_count(); ++k) {
      const Vals& v = values[i->operand(k)];
      operands.insert(operands.end(), v.begin(), v.end());
    }
    Vals& out = values[i];
    switch (i->op()) {
      case Op::Constant: out = {elements_.Constant(i->shape().type(), i->literal().bytes().data())}; break;
      case Op::Tuple:
      case Op::Reshape:
      case Op::Broadcast:
      case Op::Copy:
      case Op::OptimizationBarrier: out = operands; break;
      case Op::Bitcast:
      case Op::BitcastConvert: out = {scalars_.Bitcast(operands[0], i->shape().type())}; break;
      case Op::GetTupleElement: {
        int64_t first = 0;
        for (int64_t k = 0; k < i->tuple_index(); ++k) first += i->operand(0)->shape().element(k).num_leaves();
        out.assign(operands.begin() + first, operands.begin() + first + i->shape().num_leaves());
        break;
      }
      case Op::Call:
      case Op::Fusion:
      case Op::Map: out = Inline(*i->called(0), operands); break;
      case Op::Conditional: out = InlineConditional(*i, operands); break;
      default: out = {scalars_.Emit(ScalarOp{i->op(), i->shape().type(), &i->any_attrs()}, operands)};
    }
  }
  return values[computation.root()];
}

// All branches are computed, one is chosen: they are scalar code without effects. `operands`: the predicate (branch 0
// if true) or the index (the last branch if out of range), then the leaves of each branch's argument.
Vals ElementalEmitter::InlineConditional(const Instruction& i, const Vals& operands) {
  const int64_t branches = static_cast<int64_t>(i.called().size());
  const Val& selector = operands[0];
  size_t next = 1;
  std::vector<Vals> results;
  for (int64_t k = 0; k < branches; ++k) {
    const size_t leaves = static_cast<size_t>(i.operand(k + 1)->shape().num_leaves());
    results.push_back(Inline(*i.called(k), Vals(operands.begin() + next, operands.begin() + next + leaves)));
    next += leaves;
  }
  Vals chosen = results.back();
  for (int64_t k = branches - 1; k-- > 0;) {
    V here = IsPred(selector.type) ? selector.re : b_.ir().CreateICmpEQ(selector.re, b_.I(k, selector.re));
    for (size_t leaf = 0; leaf < chosen.size(); ++leaf) {
      const Val& value = results[static_cast<size_t>(k)][leaf];
      const int lanes = std::max({VectorBuilder::Lanes(here), value.lanes(), chosen[leaf].lanes()});
      chosen[leaf] =
          elements_.Select(b_.Splat(here, lanes), elements_.Splat(value, lanes), elements_.Splat(chosen[leaf], lanes));
    }
  }
  return chosen;
}

// A loop whose carried values are HLO values.
Vals ElementalEmitter::LoopOver(const char* name, V begin, V end, int64_t step, const Vals& init,
                                const std::function<Vals(V i, const Vals& carried)>& body, bool pinned) {
  const auto flatten = [](const Vals& vals) {
    std::vector<V> flat;
    for (const Val& v : vals) {
      flat.push_back(v.re);
      if (v.im) flat.push_back(v.im);
    }
    return flat;
  };
  const auto unflatten = [&](std::span<const V> flat) {
    Vals vals;
    size_t k = 0;
    for (const Val& v : init) {
      Val out{flat[k++], nullptr, v.type};
      if (v.im) out.im = flat[k++];
      vals.push_back(out);
    }
    return vals;
  };
  const std::vector<V> results = scopes_.Loop(
      name, begin, end, step, flatten(init),
      [&](V i, std::span<const V> carried) {
        Vals next = body(i, unflatten(carried));
        for (size_t k = 0; k < next.size(); ++k) next[k] = elements_.Splat(next[k], init[k].lanes());
        return flatten(next);
      },
      pinned);
  return unflatten(results);
}

// Conditions on more lanes than a register has are kept as one mask, which is put together from those of the registers
// and taken apart again for each choice; so what chooses (argmax) is computed register by register.
Vals ElementalEmitter::InlineByRegisters(const Computation& computation, const Vals& args, const Instruction* known) {
  int lanes = 1, bits = 8;
  for (const Val& v : args) {
    lanes = std::max(lanes, v.lanes());
    bits = std::max(bits, VectorBuilder::ScalarBits(v.re));
    if (v.im) return Inline(computation, args, known);
  }
  if (lanes * bits <= b_.target().vector_bytes * 8 || lanes % 2) return Inline(computation, args, known);
  const auto half = [&](int first) {
    Vals part;
    for (const Val& v : args)
      part.push_back(v.lanes() == 1 ? v : Val{b_.Slice(v.re, first, lanes / 2), nullptr, v.type});
    return InlineByRegisters(computation, part, known);
  };
  Vals low = half(0), high = half(lanes / 2);
  for (size_t k = 0; k < low.size(); ++k)
    low[k].re = b_.Concat(b_.Splat(low[k].re, lanes / 2), b_.Splat(high[k].re, lanes / 2));
  return low;
}

Vals ElementalEmitter::Map(const Instruction& i, const ArrayIndex& index) {
  Vals arguments;
  for (int64_t k = 0; k < i.operand_count(); ++k) arguments.push_back(Emit(i.operand(k), index));
  return Inline(*i.called(0), arguments);
}

}  // namespace strop
