// Which results of a program are there well before it ends: a training step's loss, long before the gradients. Launches
// say so of each by an event of its own (launch.h), so that who reads the loss prepares the next step meanwhile.
#pragma once
#include <cstdint>
#include <vector>

namespace strop {

struct ExecutableSpec;

struct EarlyResults {
  // Results that no step of the entry from `steps` on touches, nor anything that these steps run.
  struct Group {
    int32_t steps = 0;
    std::vector<int32_t> outputs;
  };
  std::vector<Group> groups;      // by their steps
  std::vector<int32_t> group_of;  // by output; -1: defined when the run has ended. Empty if there is no group
};

// Results that are followed by an eighth of the program's work, and by enough to be worth an event. Those of about the
// same time are in one group. Of a valid spec.
EarlyResults FindEarlyResults(const ExecutableSpec& spec);

}  // namespace strop
