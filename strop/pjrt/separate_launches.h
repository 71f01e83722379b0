// Joins executions that a framework starts device by device, each from a thread of its own: PyTorch/XLA runs a
// replicated program so. The program's collectives must meet all the same, though no call names the others and each
// device may hold an executable of its own, compiled from the same program.
//
// What belongs together follows from order: the k-th launch of a program on one device meets the k-th on each other.
#pragma once
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "strop/runtime/collectives.h"

namespace strop::pjrt {

class SeparateLaunches {
 public:
  // What a launch on devices[place] shares with those on the other devices, of which `here` are this process's; the
  // first to come makes it.
  std::shared_ptr<Collectives> Join(const std::vector<int32_t>& devices, size_t place, size_t here,
                                    const std::function<std::shared_ptr<Collectives>()>& make);

 private:
  struct Launch {
    std::shared_ptr<Collectives> collectives;
    size_t joined = 0;
  };
  // Launches that some device has not come to yet, oldest first.
  struct Waiting {
    std::vector<size_t> next;  // by place: position in `launches` of the device's next launch
    std::deque<Launch> launches;
  };

  std::mutex mutex_;
  std::map<std::vector<int32_t>, Waiting> waiting_;  // by devices; guarded by mutex_
};

}  // namespace strop::pjrt
