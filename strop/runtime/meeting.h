// MeetingPlace: where the devices of this process that take part in a collective come together. A meeting is known by
// (op, group). The last to arrive takes it off the list, so that the same operation in the next trip of a loop starts a
// new one, and wakes the others; all work at the same time; nobody leaves before all are done.
#pragma once
#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#include "strop/runtime/collectives.h"

namespace strop {

// What all ranks of a meeting must have in mind alike, because they read and write each other's memory. Devices may run
// programs of their own, so that this is the user's mistake.
struct Exchange {
  std::string_view op;
  int32_t type = 0;
  int32_t reduction = 0;
  int64_t outer = 1, block = 0;
  bool operator==(const Exchange&) const = default;
};

class MeetingPlace {
 public:
  struct Place {
    const char* in = nullptr;
    char* out = nullptr;
    bool taken = false;
  };
  struct Meeting {
    Exchange exchange;
    std::vector<Place> places;  // by rank
    int32_t arrived = 0;
    int32_t done = 0;
    Status failed;
  };
  using Work = std::function<Status(const Meeting&)>;

  explicit MeetingPlace(std::chrono::milliseconds timeout) : timeout_(timeout) {}

  // Joins the meeting, runs work(meeting) when all have come, and returns when all are done. An error of one is the
  // error of all. DeadlineExceeded names those who did not come; nobody can meet any more then.
  Status Meet(const CollectiveCall& call, const Exchange& exchange, const void* in, void* out, const Work& work);

  // Every call, waiting or to come, returns `status`; the first one stays.
  void Abort(Status status);
  Status aborted() const;

 private:
  Result<std::shared_ptr<Meeting>> Join(const CollectiveCall& call, const Exchange& exchange, const void* in,
                                        void* out);

  const std::chrono::milliseconds timeout_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int64_t, int64_t>, std::shared_ptr<Meeting>> meetings_;  // those still gathering
  Status aborted_;
};

}  // namespace strop
