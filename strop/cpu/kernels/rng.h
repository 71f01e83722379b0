// Counter-based random numbers: RngBitGenerator with exactly XLA's bits, and the stateless core of the `rng` op.
//
// ThreeFry2x32 (20 rounds) and Philox4x32 (10 rounds) are those of Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3" (2011). What XLA adds is how counters map to elements:
//   ThreeFry, 64 bit      element i = block(state + i), first word low
//   ThreeFry, <= 32 bit   the first even dimension (else the largest) is halved; the two words of block(state + i), i
//   the
//                         row-major index in the halved shape, go to coordinates 2h and 2h+1 of that dimension
//   Philox                block(state + i) fills 128 bits: four or two consecutive elements
// Types below 32 bits take the low bits of a 32-bit draw.
//
// State: {key, counter} for ThreeFry, {key, counter} (counter high word = key) or {key, low, high} for Philox.
#pragma once
#include <cstdint>
#include <span>

#include "strop/base/status.h"
#include "strop/base/thread_pool.h"
#include "strop/types/element_type.h"

namespace strop::cpu {

enum class RngAlgorithm : uint8_t { kDefault = 0, kThreeFry = 1, kPhilox = 2 };  // XLA's numbers; the default is Philox

// Fills `out` (row-major, one byte at least per element) and writes the advanced state to `new_state` (which may be
// `state`). Integer and float types of 8, 16, 32, 64 bits or less than 8; Unimplemented for others, InvalidArgument for
// a state of the wrong size.
Status RngBitGenerator(RngAlgorithm algorithm, ElementType type, std::span<const int64_t> dims,
                       std::span<const uint64_t> state, std::span<uint64_t> new_state, void* out, ThreadPool* pool);

// ---- the `rng` op: n draws from the Philox stream that starts at the 128-bit `counter` (low word first)

// How far the counter moves for n draws of a type.
int64_t RngCountersUsed(ElementType type, int64_t n);
// Uniform on [low, high): floats f16, bf16, f32, f64, integers, pred (fair coin; low and high ignored). `low` and
// `high` point to one element. An empty integer range gives low.
Status RngUniform(ElementType type, std::span<const uint64_t, 2> counter, int64_t n, const void* low, const void* high,
                  void* out, ThreadPool* pool);
// Normal with mean `mu` and deviation `sigma` (one element each): floats only. Box and Muller's method in double.
Status RngNormal(ElementType type, std::span<const uint64_t, 2> counter, int64_t n, const void* mu, const void* sigma,
                 void* out, ThreadPool* pool);

}  // namespace strop::cpu
