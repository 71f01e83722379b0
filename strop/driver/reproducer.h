// A compilation that failed or was slow leaves a file that repeats it: HLO text with everything in it, whose first line
// is the command. Bounded in number and size, and never a reason for a compilation to fail.
//
//   // strop run --random-inputs --backend=cpu '/tmp/strop-reproducers-1000/jit_f.4711.0.reproducer.hlo'
//   // Internal: ...
//   // Strop 0.1.0
//   HloModule jit_f ...
#pragma once
#include <string>
#include <string_view>

#include "strop/driver/compile.h"

namespace strop {

// What the options of the process say.
ReproducerSettings ReproducersFrom(const Options& options);

// Does an error, or so long a compilation, leave one?
bool WantsReproducer(const ReproducerSettings& settings, const Status& status, double milliseconds);

// The file's path; empty if none could be written or the program is too large. `why` says what happened.
std::string WriteReproducer(const ReproducerSettings& settings, const Module& module, std::string_view backend,
                            std::string_view why);

}  // namespace strop
