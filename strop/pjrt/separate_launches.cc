#include "strop/pjrt/separate_launches.h"

namespace strop::pjrt {

std::shared_ptr<Collectives> SeparateLaunches::Join(const std::vector<int32_t>& devices, size_t place, size_t here,
                                                    const std::function<std::shared_ptr<Collectives>()>& make) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto at = waiting_.try_emplace(devices).first;
  Waiting& waiting = at->second;
  waiting.next.resize(devices.size());
  const size_t position = waiting.next[place]++;
  if (position == waiting.launches.size()) waiting.launches.push_back({make()});
  Launch& launch = waiting.launches[position];
  std::shared_ptr<Collectives> collectives = launch.collectives;
  if (++launch.joined < here) return collectives;
  // A device comes to its launches in order, so the first is complete whenever one is.
  waiting.launches.pop_front();
  for (size_t& next : waiting.next)
    if (next > 0) --next;  // 0: another process's device
  if (waiting.launches.empty()) waiting_.erase(at);
  return collectives;
}

}  // namespace strop::pjrt
