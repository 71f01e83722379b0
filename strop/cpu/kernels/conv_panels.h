// Convolutions cut as Panels cuts products, for those that choose between two of them at run time (conv_bf16.cc).
#pragma once
#include <memory>

#include "strop/cpu/kernels/conv.h"
#include "strop/cpu/kernels/conv_product.h"

namespace strop::cpu {

template <class T>
class PanelConv : public Conv {
 public:
  virtual typename Panels<T>::Part PartOf(int64_t round, int64_t task) const = 0;
};

// Patches are read where they lie, features side by side; null where that does not suit.
template <class T>
std::shared_ptr<const PanelConv<T>> MakeIndirectPanels(std::shared_ptr<const ConvProduct<T>> product);
// Patches are gathered while panels are packed; null where panels do not pay.
template <class T>
std::shared_ptr<const PanelConv<T>> MakeGatheredPanels(std::shared_ptr<const ConvProduct<T>> product);

// Pairs of bf16; null where that does not suit, or the processor does not have them.
std::shared_ptr<const Conv> MakeBf16Conv(const ConvProblem& problem, const GemmIsa& isa);

// f32 in three parts of bf16; null as above.
std::shared_ptr<const Conv> MakeThirdsConv(const ConvProblem& problem, const GemmIsa& isa);

}  // namespace strop::cpu
