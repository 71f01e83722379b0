// Fourier transforms by ducc0, one table per instruction set.
//
// fft_ducc.inc is compiled once for each set with its own flags. Everything but the one function that returns the table
// becomes local to its object file afterwards (cmake/strop_isolated_object.cmake): ducc0 uses the standard library,
// whose templates the linker would merge with those of the rest of the program.
#pragma once
#include <cstdint>
#include <span>

#include "strop/base/thread_pool.h"
#include "strop/cpu/kernels/fft.h"

namespace strop::cpu {

enum class FftResult : uint8_t { kOk, kNoMemory, kRefused };

struct FftProblem {
  FftKind kind;
  int64_t batch;
  std::span<const int64_t> lengths;  // of the real side, all positive
  int num_tasks;                     // what the work is divided into
  const void* input;
  void* output;
  ThreadPool* pool;  // null: one thread
};

struct FftTable {
  FftResult (*f32)(const FftProblem& problem);
  FftResult (*f64)(const FftProblem& problem);
};

const FftTable& FftTableBaseline();
const FftTable& FftTableAvx2();  // x86 only
// The best that this processor runs.
const FftTable& BestFftTable();

}  // namespace strop::cpu
