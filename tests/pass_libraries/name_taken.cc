// A library whose pass has the name of one of Strop's.
#include "strop/passes/library.h"

namespace {
struct Nothing final : strop::Pass {
  strop::Result<bool> Run(strop::Module&, strop::PassContext&) override { return false; }
};
}  // namespace

STROP_PASS_LIBRARY(strop::PassOf<Nothing>("dce", "Has a name that is taken."))
