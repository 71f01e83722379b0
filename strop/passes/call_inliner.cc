// Inlines calls (composites too), maps and fusions: which instructions are fused is decided anew.
//
//   %c = f32[4] call(%x), to_apply=%f        the instructions of %f with %x for its parameter
//   %m = f32[4] map(%x, %y), to_apply=%g     %g's scalar instructions, made as wide as the operands
//   %s = f32[4] call(%x), to_apply=%h, is_composite=true, frontend_attributes={composite.name="chlo.sinh"}
//                                            sinh(%x), which is exact and fast, while %h, jaxlib's formula, is neither
//
// Computations are visited callees first, so what is inlined holds no calls any more. A program may be exponentially
// larger inlined than it was written (f calls g twice, g calls h twice, ...): growth is bounded, and calls beyond it
// stay calls.
#include <algorithm>
#include <optional>
#include <unordered_map>

#include "strop/ir/builder.h"
#include "strop/passes/inline.h"
#include "strop/passes/pass.h"

namespace strop {
namespace {

constexpr int64_t kGrowthLimit = 16;         // times the module's own size,
constexpr int64_t kAlwaysAllowed = 1 << 20;  // but so many instructions in any case

// A map's callee can be widened if it is nothing but elementwise ops, constants and parameters.
bool CanWiden(const Instruction& map) {
  for (int64_t k = 0; k < map.operand_count(); ++k) {
    const Shape& operand = map.operand(k)->shape();
    if (!operand.IsStatic() || !operand.SameDims(map.shape())) return false;
    if (operand.type() != map.to_apply()->parameter(k)->shape().type()) return false;
  }
  for (const Instruction* i : map.to_apply()->instructions()) {
    const bool simple = i->IsParameter() || i->IsConstant() || IsElementwise(i->op());
    if (!simple || !i->shape().IsScalar()) return false;
  }
  return true;
}

// The op that a composite stands for: an elementary function. nullopt for any other call.
std::optional<Op> ElementaryComposite(const Instruction& call) {
  constexpr std::string_view kDialect = "chlo.";
  if (!call.attrs<CallAttrs>().is_composite || call.operand_count() != 1) return std::nullopt;
  if (call.HasControlEdges()) return std::nullopt;
  const auto& attributes = call.frontend_attributes();
  const auto name = attributes.find("composite.name");
  if (name == attributes.end() || !name->second.starts_with(kDialect)) return std::nullopt;
  const std::optional<Op> op = ParseOp(std::string_view(name->second).substr(kDialect.size()));
  if (!op || !Is(*op, kUnary) || !Is(*op, kFloatMath)) return std::nullopt;
  const Shape& operand = call.operand(0)->shape();
  if (!operand.IsArray() || !(IsFloat(operand.type()) || IsComplex(operand.type())) || !(operand == call.shape()))
    return std::nullopt;
  return op;
}

Status ReplaceComposite(Instruction* call, Op op) {
  Builder b(call->parent());
  b.set_insert_before(call);
  b.set_metadata(call->shared_metadata());
  Instruction* function = b.Make(op, {call->operand(0)}, DefaultAttrs(op));
  STROP_TRY(b.status());
  if (call->sharding()) function->set_sharding(*call->sharding());
  call->ReplaceAllUsesWith(function);
  call->parent()->Remove(call);
  return OkStatus();
}

Status InlineMap(Instruction* map_instruction) {
  const Computation& callee = *map_instruction->to_apply();
  const Shape& wide = map_instruction->shape();
  Builder b(map_instruction->parent());
  b.set_insert_before(map_instruction);
  b.set_metadata(map_instruction->shared_metadata());
  std::unordered_map<const Instruction*, Instruction*> map;
  std::vector<Instruction*> operands;
  for (const Instruction* i : callee.instructions()) {
    if (i->IsParameter()) {
      map[i] = map_instruction->operand(i->parameter_number());
      continue;
    }
    operands.clear();
    for (int64_t k = 0; k < i->operand_count(); ++k) operands.push_back(map.at(i->operand(k)));
    Shape shape = wide.WithoutLayout().WithType(i->shape().type());
    if (i->IsConstant())
      map[i] = b.Broadcast(b.Constant(i->literal()), shape.dims(), {});
    else
      map[i] = b.Make(i->op(), operands, i->any_attrs(), {}, &shape);
  }
  STROP_TRY(b.status());
  Instruction* root = map.at(callee.root());
  map_instruction->ReplaceAllUsesWith(root);
  map_instruction->parent()->Remove(map_instruction);
  return OkStatus();
}

// Custom ones stay: they are for one who knows them (bounded-outliner, or a library of XLA's).
bool IsPlainFusion(const Instruction& i) {
  return i.op() == Op::Fusion && i.attrs<FusionAttrs>().kind != FusionKind::Custom;
}

struct CallInliner final : Pass {
  Result<bool> Run(Module& module, PassContext& context) override {
    int64_t size = module.instruction_count();
    const int64_t limit = std::max(kGrowthLimit * size, kAlwaysAllowed);
    int64_t calls = 0, maps = 0, fusions = 0;
    for (Computation* c : module.PostOrder()) {
      for (Instruction* i : c->instructions()) {
        if (i->op() == Op::Call) {
          if (!i->to_apply()->execution_thread().empty() && i->to_apply()->execution_thread() != c->execution_thread())
            continue;
          if (const std::optional<Op> op = ElementaryComposite(*i)) {
            STROP_TRY(ReplaceComposite(i, *op));
            ++calls;
            continue;
          }
          const int64_t body = i->to_apply()->instruction_count();
          if (size + body > limit) {
            context.Decide(*i, "not inlined: the module would grow beyond ", limit, " instructions");
            continue;
          }
          size += body;
          InlineInPlaceOf(i, *i->to_apply(), i->operands());
          ++calls;
        } else if (IsPlainFusion(*i)) {
          const int64_t body = i->called(0)->instruction_count();
          if (size + body > limit) continue;
          size += body;
          InlineInPlaceOf(i, *i->called(0), i->operands());
          ++fusions;
        } else if (i->op() == Op::Map && CanWiden(*i)) {
          STROP_TRY(InlineMap(i));
          ++maps;
        }
      }
    }
    context.Count("call-inliner.calls", calls);
    context.Count("call-inliner.maps", maps);
    context.Count("call-inliner.fusions", fusions);
    if (calls + maps + fusions == 0) return false;
    module.RemoveDeadComputations();
    return true;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeCallInliner() { return std::make_unique<CallInliner>(); }

}  // namespace strop
