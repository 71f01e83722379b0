// Small hand-made programs over s32 vectors for the tests of this room.
#pragma once
#include <cstring>
#include <vector>

#include "strop/runtime/executable.h"

namespace strop::test_program {

inline constexpr int64_t kLength = 64;  // elements of every vector
inline constexpr int64_t kBytes = kLength * 4;

inline Shape Vector() { return Shape::Array(ElementType::S32, {kLength}); }

// ---- kernels: args are vectors; task t handles elements [t * kLength / 8, (t + 1) * kLength / 8)
template <class Fn>
void EachElement(int64_t begin, int64_t end, Fn fn) {
  for (int64_t i = begin * kLength / 8; i < end * kLength / 8; ++i) fn(i);
}
inline int32_t* Ints(void* p) { return static_cast<int32_t*>(p); }
inline void Add(void* const* args, int64_t begin, int64_t end, void*) {  // args[2] = args[0] + args[1]
  EachElement(begin, end, [&](int64_t i) { Ints(args[2])[i] = Ints(args[0])[i] + Ints(args[1])[i]; });
}
inline void Increment(void* const* args, int64_t begin, int64_t end, void*) {  // args[0] += 1
  EachElement(begin, end, [&](int64_t i) { Ints(args[0])[i] += 1; });
}
inline void FirstBelow10(void* const* args, int64_t, int64_t, void*) {  // args[1] (pred) = args[0][0] < 10
  *static_cast<uint8_t*>(args[1]) = Ints(args[0])[0] < 10;
}
inline void SquareThroughScratch(void* const* args, int64_t begin, int64_t end, void* scratch) {  // args[1] = args[0]^2
  EachElement(begin, end, [&](int64_t i) {
    for (int k = 0; k < 256; ++k) Ints(scratch)[k] = Ints(args[0])[i];
    Ints(args[1])[i] = Ints(scratch)[17] * Ints(scratch)[255];
  });
}

inline Step Kernel(std::string name, KernelFn fn, std::vector<StepArg> args, int64_t tasks = 8, int64_t scratch = 0) {
  return Step{KernelStep{fn, tasks, scratch}, std::move(args), {.name = std::move(name)}};
}
inline StepArg In(int32_t slot) { return {slot, Access::kRead}; }
inline StepArg Out(int32_t slot) { return {slot, Access::kWrite}; }
inline StepArg InOut(int32_t slot) { return {slot, Access::kReadWrite}; }

// out = a + b
inline ExecutableSpec AddSpec() {
  ExecutableSpec spec;
  spec.name = "add";
  spec.parameters = {{Vector()}, {Vector()}};
  spec.outputs = {{Vector()}};
  spec.slots = {
      {SlotKind::kParameter, 0, 0, kBytes}, {SlotKind::kParameter, 1, 0, kBytes}, {SlotKind::kOutput, 0, 0, kBytes}};
  spec.programs = {{"main", {Kernel("add", Add, {In(0), In(1), Out(2)})}}};
  spec.run_inline = true;
  return spec;
}

// x is donated into the output and incremented in place while x[0] < 10. Slots: 0 parameter, 1 pred, 2 output.
inline ExecutableSpec LoopSpec() {
  ExecutableSpec spec;
  spec.name = "count";
  spec.parameters = {{Vector()}};
  spec.outputs = {{Vector(), MemoryKind::kDevice, OutputSource::kAliasParameter, 0}};
  spec.slots = {{SlotKind::kParameter, 0, 0, kBytes}, {SlotKind::kTemp, 0, 0, 1}, {SlotKind::kOutput, 0, 0, kBytes}};
  spec.temp_bytes = 64;
  spec.programs = {{"main", {Step{WhileStep{1, 2}, {In(1)}, {.name = "while"}}}},
                   {"cond", {Kernel("compare", FirstBelow10, {In(0), Out(1)}, 1)}},
                   {"body", {Kernel("increment", Increment, {InOut(2)})}}};
  spec.run_inline = true;
  return spec;
}

}  // namespace strop::test_program
