// Convolutions as implicit products whose patches are read where they lie: features side by side in memory, a tap at a
// time, so that nothing is packed but the kernel.
#pragma once
#include <memory>

#include "strop/cpu/kernels/conv_panels.h"

namespace strop::cpu {

// Null where that does not suit.
template <class T>
std::shared_ptr<const Conv> MakeIndirectConv(std::shared_ptr<const ConvProduct<T>> product);

}  // namespace strop::cpu
