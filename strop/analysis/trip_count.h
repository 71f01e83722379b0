// How often a while loop runs, where init, step and bound of its counter are constants.
#pragma once
#include <cstdint>
#include <optional>

#include "strop/ir/module.h"

namespace strop {

struct Counter {
  int64_t element = 0;  // of the loop's state
  int64_t init = 0, step = 0, trips = 0;
};

// An integer of a loop's state that starts as a constant, and to which the body adds a constant, in fusions or not.
struct Progression {
  int64_t init = 0, step = 0;
};
std::optional<Progression> FindProgression(const Instruction& loop, int64_t element);

// Recognises: the condition compares element k (an integer) with a constant, the body adds a constant to it, and it
// starts as a constant, in fusions or not. Wrapping counters are not recognised.
std::optional<Counter> FindCounter(const Instruction& loop);

// backend_config={"known_trip_count":{"n":"10"}}; leaves another configuration alone.
void RecordTripCount(Instruction* loop, int64_t trips);
// What RecordTripCount or XLA wrote; nullopt if nothing.
std::optional<int64_t> RecordedTripCount(const Instruction& loop);

// Marks a loop over parts: element 0 of its state counts from 0 to `trips`, and trips read nothing that others write,
// so that they may run in any order, or at once.
void MarkIndependentTrips(Instruction* loop, int64_t trips);
void ForgetIndependentTrips(Instruction* loop);
// How many; 0: the loop is not marked.
int64_t IndependentTrips(const Instruction& loop);

}  // namespace strop
