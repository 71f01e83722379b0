#include "strop/spmd/manual.h"

#include <algorithm>
#include <array>

#include "strop/spmd/call_owners.h"

namespace strop::spmd {
namespace {

constexpr std::array<std::string_view, 9> kMarks = {
    "Sharding",         "xla.sdy.FuncResultSharding", "xla.sdy.PropagationBarrier",
    "LayoutConstraint", "annotate_device_placement",  "MoveToHost",
    "MoveToDevice",     "AssumeGatherIndicesInBound", kInspectSharding};

bool IsCall(const Instruction& i, std::string_view gspmd, std::string_view shardy) {
  if (i.op() != Op::CustomCall) return false;
  const std::string& target = i.attrs<CustomCallAttrs>().target;
  return target == gspmd || target == shardy;
}

}  // namespace

bool IsWayIn(const Instruction& call) { return IsCall(call, "SPMDFullToShardShape", "xla.sdy.GlobalToLocalShape"); }

bool IsWayOut(const Instruction& call) { return IsCall(call, "SPMDShardToFullShape", "xla.sdy.LocalToGlobalShape"); }

bool IsMark(const Instruction& i) {
  if (i.op() != Op::CustomCall || i.operand_count() != 1 || !i.shape().Compatible(i.operand(0)->shape())) return false;
  return std::find(kMarks.begin(), kMarks.end(), i.attrs<CustomCallAttrs>().target) != kMarks.end();
}

bool StatesShardings(const Module& module) {
  for (const Computation* c : module.computations())
    for (const Instruction* i : c->instructions())
      if (i->sharding() || IsMark(*i) || IsWayIn(*i) || IsWayOut(*i)) return true;
  return false;
}

void RemoveMarksOfElements(Module& module) {
  for (Computation* c : module.computations()) {
    for (Instruction* caller : c->instructions()) {
      if (Is(caller->op(), kControlFlow) || caller->op() == Op::Fusion) continue;
      for (Computation* function : caller->called()) {
        for (Instruction* i = function->first(); i;) {
          Instruction* next = i->next();
          if (IsMark(*i)) {
            Instruction* operand = i->operand(0);
            i->ReplaceAllUsesWith(operand);
            if (function->root() == i) function->set_root(operand);
            function->Remove(i);
          }
          i = next;
        }
      }
    }
  }
}

void SliceWhereKnown(Module& module) {
  for (Computation* c : module.computations()) {
    for (Instruction* i : c->PostOrder()) {
      if (i->op() != Op::DynamicSlice || i->operand_count() != 1 + i->shape().rank()) continue;
      const Shape& from = i->operand(0)->shape();
      SliceAttrs attrs;
      for (int64_t d = 0; d < from.rank(); ++d) {
        const Instruction& start = *i->operand(1 + d);
        const int64_t size = i->shape().dim(d);
        if (!start.IsConstant() || !start.literal().has_values() || start.shape().type() == ElementType::U64) break;
        const int64_t first = std::clamp<int64_t>(start.literal().GetInt(0), 0, from.dim(d) - size);
        attrs.slice.push_back({first, first + size, 1});
      }
      if (static_cast<int64_t>(attrs.slice.size()) < from.rank()) continue;
      Instruction* slice = c->Add(Op::Slice, i->shape(), {i->operand(0)}, std::move(attrs), {}, i);
      if (i->sharding()) slice->set_sharding(*i->sharding());
      slice->set_metadata(i->shared_metadata());
      c->Replace(i, slice);
    }
  }
}

ManualRegions::ManualRegions(const Module& module) : local_(module.id_bound(), false) { Visit(*module.entry(), false); }

bool ManualRegions::IsLocal(const Instruction& i) {
  if (IsWayIn(i) || i.op() == Op::PartitionId || i.op() == Op::ReplicaId || Is(i.op(), kCollective)) return true;
  if (IsWayOut(i)) return false;
  for (int64_t k = 0; k < i.operand_count(); ++k)
    if (local_[i.operand(k)->id()]) return true;
  return false;
}

// True if the root is local.
bool ManualRegions::Visit(const Computation& computation, bool parameters) {
  for (const Instruction* i : computation.PostOrder()) {
    bool local = i->IsParameter() ? parameters : IsLocal(*i);
    if (i->op() == Op::While) {
      // A carry that becomes local in the body is local everywhere.
      local = Visit(*i->body(), local) || local;
      if (local) Visit(*i->body(), true);
      Visit(*i->condition(), local);
    } else if (i->op() == Op::Call) {
      local = Visit(*i->to_apply(), local) || local;
    } else if (i->op() == Op::Conditional) {
      for (int64_t k = 0; k < static_cast<int64_t>(i->called().size()); ++k)
        local = Visit(*i->called(k), local_[i->operand(k + 1)->id()]) || local;
    }
    local_[i->id()] = local;
  }
  return local_[computation.root()->id()];
}

}  // namespace strop::spmd
