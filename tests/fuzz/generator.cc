#include "tests/fuzz/generator.h"

#include <algorithm>

#include "tests/fuzz/scope.h"

namespace strop::fuzz {
namespace {

// Ops that no maker can give: what they do depends on the world outside the program, or no two evaluations must agree
// on it, or another op's maker makes them.
Instruction* LeftOut(Scope&, Op) { return nullptr; }

using Column = OpColumn<MakeFn>;
constexpr Column kMake(&MakeElementwise, {
                                             {Op::Select, &MakeSelect},
                                             {Op::Clamp, &MakeClamp},
                                             {Op::StochasticConvert, &MakeStochasticConvert},
                                             {Op::Constant, &MakeLeaf},
                                             {Op::Iota, &MakeLeaf},
                                             {Op::Parameter, &MakeLeaf},
                                             {Op::PartitionId, &MakeReplicaId},
                                             {Op::ReplicaId, &MakeReplicaId},
                                             {Op::Bitcast, &MakeReshaped},
                                             {Op::BitcastConvert, &MakeBitcastConvert},
                                             {Op::Broadcast, &MakeBroadcast},
                                             {Op::Concatenate, &MakeConcatenate},
                                             {Op::Copy, &MakeCopy},
                                             {Op::CopyDone, &MakeCopy},
                                             {Op::CopyStart, &LeftOut},       // by copy-done
                                             {Op::DynamicReshape, &LeftOut},  // sizes that only a run tells
                                             {Op::DynamicSlice, &MakeDynamicSlice},
                                             {Op::DynamicUpdateSlice, &MakeDynamicUpdateSlice},
                                             {Op::Gather, &MakeGather},
                                             {Op::Pad, &MakePad},
                                             {Op::Reshape, &MakeReshaped},
                                             {Op::Reverse, &MakeReverse},
                                             {Op::Scatter, &MakeScatter},
                                             {Op::Shuffle, &LeftOut},  // nobody makes it
                                             {Op::Slice, &MakeSlice},
                                             {Op::Transpose, &MakeTranspose},
                                             {Op::GetDimensionSize, &MakeGetDimensionSize},
                                             {Op::SetDimensionSize, &MakeBounded},
                                             {Op::Convolution, &MakeConvolution},
                                             {Op::Dot, &MakeDot},
                                             {Op::RaggedDot, &MakeRaggedDot},
                                             {Op::ScaledDot, &MakeScaledDot},
                                             {Op::Reduce, &MakeReduce},
                                             {Op::ReduceWindow, &MakeReduceWindow},
                                             {Op::Scan, &MakeScan},
                                             {Op::SelectAndScatter, &MakeSelectAndScatter},
                                             {Op::Map, &MakeMap},
                                             {Op::Sort, &MakeSort},
                                             {Op::TopK, &MakeTopK},
                                             {Op::BatchNormGrad, &MakeBatchNorm},
                                             {Op::BatchNormInference, &MakeBatchNorm},
                                             {Op::BatchNormTraining, &MakeBatchNorm},
                                             {Op::Cholesky, &MakeCholesky},
                                             {Op::Fft, &MakeFft},
                                             {Op::TriangularSolve, &MakeTriangularSolve},
                                             {Op::Rng, &LeftOut},  // any numbers of the distribution
                                             {Op::RngBitGenerator, &MakeRngBitGenerator},
                                             {Op::RngGetAndUpdateState, &LeftOut},  // a state outside the program
                                             {Op::AddDependency, &MakeDependency},
                                             {Op::AfterAll, &LeftOut},         // by add-dependency
                                             {Op::Domain, &LeftOut},           // a mark of XLA's passes
                                             {Op::GetTupleElement, &LeftOut},  // of every tuple
                                             {Op::OptimizationBarrier, &MakeBarrier},
                                             {Op::Tuple, &MakeTuple},
                                             {Op::AsyncDone, &MakeAsync},
                                             {Op::AsyncStart, &LeftOut},   // by async-done
                                             {Op::AsyncUpdate, &LeftOut},  // by async-done
                                             {Op::Call, &MakeCall},
                                             {Op::Conditional, &MakeConditional},
                                             {Op::CustomCall, &MakeCustomCall},
                                             {Op::Fusion, &MakeFusion},
                                             {Op::While, &MakeWhile},
                                             {Op::AllGather, &MakeCollective},
                                             {Op::AllGatherDone, &MakeCollectiveDone},
                                             {Op::AllGatherStart, &LeftOut},
                                             {Op::AllReduce, &MakeCollective},
                                             {Op::AllReduceDone, &MakeCollectiveDone},
                                             {Op::AllReduceStart, &LeftOut},
                                             {Op::AllToAll, &MakeCollective},
                                             {Op::CollectiveBroadcast, &MakeCollective},
                                             {Op::CollectivePermute, &MakeCollective},
                                             {Op::CollectivePermuteDone, &MakeCollectiveDone},
                                             {Op::CollectivePermuteStart, &LeftOut},
                                             {Op::CollectiveReduce, &LeftOut},
                                             {Op::RaggedAllToAll, &LeftOut},
                                             {Op::ReduceScatter, &MakeCollective},
                                             {Op::Infeed, &LeftOut},
                                             {Op::Outfeed, &LeftOut},
                                             {Op::Recv, &LeftOut},
                                             {Op::RecvDone, &LeftOut},
                                             {Op::Send, &LeftOut},
                                             {Op::SendDone, &LeftOut},
                                         });
STROP_COMPLETE(kMake);

// The results: these, what nobody uses, and now and then something in between.
void Return(Scope& scope, const std::vector<Instruction*>& wanted) {
  std::vector<Instruction*> results;
  for (Instruction* value : scope.values())
    if (value->use_count() == 0 || scope.random().Chance(6)) results.push_back(value);
  if (results.empty()) results.push_back(scope.AnyArray());
  if (results.size() > 8) results.erase(results.begin(), results.end() - 8);
  for (Instruction* value : wanted)
    if (std::find(results.begin(), results.end(), value) == results.end()) results.push_back(value);
  Computation* entry = scope.computation();
  Builder b(entry);
  entry->set_root(results.size() == 1 && scope.random().Chance(50) ? results[0] : b.Tuple(results));
}

// Removes what the root does not reach; parameters keep their places in the signature, which names them again.
void RemoveDead(Module& module) {
  for (Computation* c : module.computations())
    for (bool removed = true; removed;) {
      removed = false;
      for (Instruction* i : c->instructions())
        if (i->use_count() == 0 && !i->IsRoot() && !i->IsParameter()) c->Remove(i), removed = true;
    }
  module.RemoveDeadComputations();
}

}  // namespace

MakeFn MakeFunction(Op op) { return kMake[op] == &LeftOut ? nullptr : kMake[op]; }

int WeightOf(Op op) {
  switch (op) {
    case Op::While:
    case Op::Conditional:
    case Op::Call:
    case Op::Fusion: return 14;
    case Op::Reduce:
    case Op::Dot: return 24;
    case Op::Broadcast:
    case Op::Add:
    case Op::Multiply:
    case Op::Subtract:
    case Op::Select:
    case Op::Compare:
    case Op::Convert:
    case Op::Transpose:
    case Op::Slice: return 14;
    case Op::AsyncDone:
    case Op::AddDependency:
    case Op::CopyDone:
    case Op::Tuple:
    case Op::OptimizationBarrier:
    case Op::PartitionId:
    case Op::ReplicaId:
    case Op::SetDimensionSize:
    case Op::RaggedDot:
    case Op::ScaledDot:
    case Op::Scan:
    case Op::CustomCall: return 2;
    default: break;
  }
  if (Is(op, kCollective)) return 1;
  return IsElementwise(op) ? 5 : 9;
}

std::unique_ptr<Module> GenerateModule(uint64_t seed, Sizes sizes) {
  Recipe recipe(seed);
  Random& random = recipe.random;
  auto module = std::make_unique<Module>(StrCat("fuzz_", seed));
  Computation* entry = module->AddComputation("main");
  module->set_entry(entry);
  Scope scope(recipe, entry, 0);
  if (random.Chance(4)) recipe.max_elements = 40000;
  for (int i = 0; i < 3; ++i) recipe.dims.push_back(scope.AnyDim());
  for (int i = 0; i < 3; ++i) recipe.types.push_back(scope.AnyType());
  // By numbers of its own, so that it is the other modules' seeds that make them as ever.
  if (sizes == Sizes::kAny && Random(~seed).Chance(5)) MakeRecurrent(scope);
  const std::vector<Instruction*> wanted = scope.values();
  scope.Grow(random.Chance(20) ? random.Between(int64_t{10}, int64_t{25}) : random.Between(int64_t{2}, int64_t{9}));
  Return(scope, wanted);
  RemoveDead(*module);
  return module;
}

}  // namespace strop::fuzz
