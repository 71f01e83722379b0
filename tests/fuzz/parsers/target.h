// A parser target: LLVMFuzzerTestOneInput of one file, called by libFuzzer (preset fuzz) or by mutate_main.cc.
//
// What is read must never crash, hang or allocate what it merely claims. What is read and legal must be written and
// read again without a change: Insist() ends the process if that does not hold.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "strop/ir/module.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace strop::fuzz {

inline std::string_view AsText(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

void Insist(bool holds, std::string_view what, std::string_view detail = {});
// The text of a legal module is read to a module of the same text. Modules that are not legal are left alone.
void InsistOnTextFixpoint(const Module& module);

}  // namespace strop::fuzz
