// The functions of the kEval column, by the file under ops/ that defines them.
#pragma once
#include "strop/interp/evaluator.h"

namespace strop::interp {

#define STROP_EVAL(name) Result<Literal> Eval##name(OpCall& call)
// elementwise.cc
STROP_EVAL(Elementwise);
STROP_EVAL(Select);
// movement.cc
STROP_EVAL(Constant);
STROP_EVAL(Iota);
STROP_EVAL(Copy);  // and everything else that hands its operand on: bitcast, reshape, domain, opt-barrier
STROP_EVAL(Shuffle);
STROP_EVAL(Bitcast);
STROP_EVAL(Broadcast);
STROP_EVAL(Transpose);
STROP_EVAL(Reverse);
STROP_EVAL(Slice);
STROP_EVAL(Concatenate);
STROP_EVAL(Pad);
STROP_EVAL(BitcastConvert);
// dynamic.cc
STROP_EVAL(DynamicSlice);
STROP_EVAL(DynamicUpdateSlice);
STROP_EVAL(GetDimensionSize);
STROP_EVAL(SetDimensionSize);
STROP_EVAL(Reshape);
// gather_scatter.cc
STROP_EVAL(Gather);
STROP_EVAL(Scatter);
// dot.cc, ragged_dot.cc
STROP_EVAL(Dot);
STROP_EVAL(RaggedDot);
STROP_EVAL(ScaledDot);
// convolution.cc
STROP_EVAL(Convolution);
// reduce.cc, window.cc
STROP_EVAL(Reduce);
STROP_EVAL(Map);
STROP_EVAL(Scan);
STROP_EVAL(ReduceWindow);
STROP_EVAL(SelectAndScatter);
// sort.cc
STROP_EVAL(Sort);
STROP_EVAL(TopK);
// linear_algebra.cc, fft.cc, batch_norm.cc
STROP_EVAL(Cholesky);
STROP_EVAL(TriangularSolve);
STROP_EVAL(Fft);
STROP_EVAL(BatchNormTraining);
STROP_EVAL(BatchNormInference);
STROP_EVAL(BatchNormGrad);
// random.cc
STROP_EVAL(Rng);
STROP_EVAL(RngBitGenerator);
STROP_EVAL(RngGetAndUpdateState);
// control.cc
STROP_EVAL(Parameter);
STROP_EVAL(Tuple);
STROP_EVAL(GetTupleElement);
STROP_EVAL(FirstOperand);
STROP_EVAL(Token);
STROP_EVAL(Call);
STROP_EVAL(While);
STROP_EVAL(Conditional);
STROP_EVAL(CopyStart);
STROP_EVAL(AsyncStart);
STROP_EVAL(FirstElement);   // copy-done
STROP_EVAL(SecondElement);  // async-done, all-gather-done, collective-permute-done
// collective.cc
STROP_EVAL(ReplicaId);
STROP_EVAL(PartitionId);
STROP_EVAL(Collective);
STROP_EVAL(Infeed);
STROP_EVAL(Outfeed);
STROP_EVAL(Send);
STROP_EVAL(Recv);
STROP_EVAL(SendDone);
STROP_EVAL(RecvDone);
// custom_call.cc and what it dispatches to: check.cc, quantize.cc, run_parallel.cc
STROP_EVAL(CustomCall);
STROP_EVAL(Check);
STROP_EVAL(Probe);
STROP_EVAL(Print);
STROP_EVAL(ExpectSerialized);
STROP_EVAL(Quantize);
STROP_EVAL(Dequantize);
STROP_EVAL(RunParallel);
#undef STROP_EVAL

// One built-in custom call; null where the target is unknown.
EvalFn CustomCallFunction(std::string_view target);

}  // namespace strop::interp
