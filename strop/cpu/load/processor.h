// What this processor has of what LLVM may have used, without LLVM.
#pragma once
#include <string>
#include <string_view>

namespace strop::cpu {

// Of features as LLVM lists them ("+avx2,-avx512f,..."), those that are used and that this processor lacks, with commas
// between them; those that no code of ours can need are passed over.
std::string MissingFeatures(std::string_view features);

}  // namespace strop::cpu
