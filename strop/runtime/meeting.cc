#include "strop/runtime/meeting.h"

#include <string>

#include "strop/runtime/launch_queue.h"

namespace strop {
namespace {

std::string ToString(const Exchange& exchange) {
  return StrCat(exchange.op, " of ", exchange.outer, " x ", exchange.block);
}

// "devices 1, 3 of 4": those who did not come.
std::string Missing(const MeetingPlace::Meeting& meeting, const CollectiveCall& call) {
  std::string names;
  for (size_t rank = 0; rank < meeting.places.size(); ++rank)
    if (!meeting.places[rank].taken)
      names +=
          StrCat(names.empty() ? "" : ", ", call.members.empty() ? static_cast<int32_t>(rank) : call.members[rank]);
  return StrCat("devices ", names, " (by number in the program)");
}

}  // namespace

Result<std::shared_ptr<MeetingPlace::Meeting>> MeetingPlace::Join(const CollectiveCall& call, const Exchange& exchange,
                                                                  const void* in, void* out) {
  if (!aborted_.ok()) return aborted_;
  std::shared_ptr<Meeting>& listed = meetings_[{call.op, call.group}];
  if (!listed) {
    listed = std::make_shared<Meeting>();
    listed->exchange = exchange;
    listed->places.resize(call.size);
  }
  std::shared_ptr<Meeting> meeting = listed;
  if (static_cast<int32_t>(meeting->places.size()) != call.size || meeting->places[call.rank].taken) {
    return InvalidArgument("collective ", call.op, ": rank ", call.rank, " of ", call.size, " does not fit a group of ",
                           meeting->places.size(), " that is meeting");
  }
  if (!(meeting->exchange == exchange))
    return InvalidArgument("collective ", call.op, ": rank ", call.rank, " comes with ", ToString(exchange),
                           ", others with ", ToString(meeting->exchange));
  meeting->places[call.rank] = {static_cast<const char*>(in), static_cast<char*>(out), true};
  if (++meeting->arrived == call.size) {
    meetings_.erase({call.op, call.group});
    changed_.notify_all();
  }
  return meeting;
}

Status MeetingPlace::Meet(const CollectiveCall& call, const Exchange& exchange, const void* in, void* out,
                          const Work& work) {
  if (call.rank < 0 || call.rank >= call.size) return InvalidArgument("rank ", call.rank, " of ", call.size);
  LaunchQueue::BlockingScope blocking;
  std::unique_lock<std::mutex> lock(mutex_);
  STROP_ASSIGN(std::shared_ptr<Meeting> meeting, Join(call, exchange, in, out));
  const bool in_time =
      changed_.wait_for(lock, timeout_, [&] { return meeting->arrived == call.size || !aborted_.ok(); });
  if (!in_time) {
    aborted_ = Status(StatusCode::kDeadlineExceeded,
                      StrCat(ToString(exchange), ": ", Missing(*meeting, call), " did not come within ",
                             timeout_.count() / 1000, " s (option collectives-timeout)"));
    changed_.notify_all();
  }
  if (meeting->arrived != call.size) return aborted_;
  lock.unlock();
  Status status = work(*meeting);
  lock.lock();
  if (!status.ok() && meeting->failed.ok()) meeting->failed = std::move(status);
  if (++meeting->done == call.size) changed_.notify_all();
  changed_.wait(lock, [&] { return meeting->done == call.size; });
  return meeting->failed;
}

void MeetingPlace::Abort(Status status) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (aborted_.ok()) aborted_ = std::move(status);
  changed_.notify_all();
}

Status MeetingPlace::aborted() const {
  std::lock_guard<std::mutex> lock(mutex_);
  return aborted_;
}

}  // namespace strop
