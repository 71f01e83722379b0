// One module, the evaluator against a backend at every setting.
#pragma once
#include <string>

#include "strop/ir/module.h"
#include "tests/fuzz/mistake.h"

namespace strop::fuzz {

enum class Verdict : uint8_t { kAgrees, kSkipped, kDiffers };

struct Outcome {
  Verdict verdict = Verdict::kAgrees;
  std::string text;          // what differs, or why it was skipped
  bool conditioned = false;  // agreed only after the conditioning was asked for
};

struct DifferentialOptions {
  std::string backend = "cpu";
  std::string setting;         // only this one
  bool every_setting = false;  // else the default and one that the seed chooses
  bool tame = false;           // arguments without special values
};

// Verifies, writes and reads the module as text and as proto, evaluates it on arguments from `seed`, and compares.
Outcome CheckModule(const Module& module, uint64_t seed, const DifferentialOptions& options);

// The module on several devices, with its shardings or random ones, against the evaluator on one.
Outcome CheckShardings(const Module& module, uint64_t seed, const DifferentialOptions& options);

// Whether a backend that makes this mistake would be found out: differs if so, agrees if not. Skipped where no result
// shows it.
Outcome CheckMistake(const Module& module, Mistake mistake, uint64_t seed, const DifferentialOptions& options);

}  // namespace strop::fuzz
