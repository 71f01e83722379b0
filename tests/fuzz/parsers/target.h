// A parser target: LLVMFuzzerTestOneInput of one file, called by libFuzzer (preset fuzz) or by mutate_main.cc.
//
// What is read must never crash, hang or allocate what it merely claims. What is read and legal must be written and
// read again without a change: Insist() ends the process if that does not hold.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "strop/ir/module.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace strop::fuzz {

inline std::string_view AsText(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

void Insist(bool holds, std::string_view what, std::string_view detail = {});
// The text of a legal module is read, and is the same from the second writing on. Modules that are not legal are left
// alone.
void InsistOnTextFixpoint(const Module& module);
// The same of the generic form of MLIR text or bytecode, if it is read at all (generic_form.cc).
void InsistOnGenericFixpoint(std::span<const uint8_t> program);

}  // namespace strop::fuzz
