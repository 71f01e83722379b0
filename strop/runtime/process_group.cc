#include "strop/runtime/process_group.h"

#include <algorithm>

#include "strop/base/hash.h"
#include "strop/runtime/process_collectives.h"

namespace strop {
namespace {

// How often those who wait look for word from other processes.
constexpr std::chrono::seconds kLook{1};
// A few buffers of gradients of a model that a CPU trains.
constexpr int64_t kMostScratchBytes = int64_t{256} << 20;

}  // namespace

uint64_t SpreadBits(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

ProcessGroup::ProcessGroup(ProcessPlace place, std::vector<int32_t> process_of, std::unique_ptr<Transport> transport,
                           std::shared_ptr<KeyValueStore> store, std::string prefix)
    : place_(std::move(place)),
      process_of_(std::move(process_of)),
      transport_(std::move(transport)),
      prefix_(std::move(prefix)),
      store_(std::move(store)) {
  watcher_ = std::thread([this] { Watch(); });
}

ProcessGroup::~ProcessGroup() { Close(); }

void ProcessGroup::Close() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (closed_) return;
    closed_ = true;
  }
  changed_.notify_all();
  watcher_.join();
  std::lock_guard<std::mutex> lock(store_mutex_);
  store_ = nullptr;
}

bool ProcessGroup::Spans(const std::vector<int32_t>& devices) const {
  return std::any_of(devices.begin(), devices.end(), [&](int32_t id) { return process_of_[id] != rank(); });
}

std::shared_ptr<Collectives> ProcessGroup::Join(const std::vector<int32_t>& devices) {
  Fnv1a launch;
  std::vector<int32_t> owners;
  for (int32_t id : devices) {
    launch.AddStep(static_cast<uint64_t>(id) + 1);
    owners.push_back(process_of_[id]);
  }
  {
    std::lock_guard<std::mutex> lock(mutex_);
    launch.AddStep(devices.size());
    launch.AddStep(++launches_[devices]);
  }
  return std::make_shared<ProcessCollectives>(shared_from_this(), launch.value(), std::move(owners));
}

void ProcessGroup::Enter(uint64_t launch, ProcessCollectives* collectives) {
  std::lock_guard<std::mutex> lock(mutex_);
  active_[launch] = collectives;
}

void ProcessGroup::Leave(uint64_t launch) {
  std::lock_guard<std::mutex> lock(mutex_);
  active_.erase(launch);
}

Scratch ProcessGroup::TakeScratch(int64_t bytes) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto found = scratch_.lower_bound(bytes);
    if (found != scratch_.end() && found->first <= 2 * bytes) {
      const int64_t size = found->first;
      std::unique_ptr<char[]> memory = std::move(found->second);
      scratch_.erase(found);
      scratch_bytes_ -= size;
      return Scratch(this, std::move(memory), size);
    }
  }
  return Scratch(this, std::make_unique_for_overwrite<char[]>(static_cast<size_t>(bytes)), bytes);
}

Scratch::~Scratch() {
  std::lock_guard<std::mutex> lock(group_->mutex_);
  if (size_ == 0 || size_ > kMostScratchBytes) return;
  if (group_->scratch_bytes_ + size_ > kMostScratchBytes) {
    group_->scratch_.clear();
    group_->scratch_bytes_ = 0;
  }
  group_->scratch_bytes_ += size_;
  group_->scratch_.emplace(size_, std::move(memory_));
}

Status ProcessGroup::Move(const TransferId& id, char* data, int64_t bytes, bool sends) {
  const int32_t other = sends ? id.to : id.from, peer = process_of_[other];
  for (int64_t offset = 0; offset < bytes; offset += kPieceBytes) {
    Fnv1a tag;
    tag.Add("buffer");  // not a collective
    for (int64_t part : {id.key, int64_t{id.from}, int64_t{id.to}, bytes, offset})
      tag.AddStep(static_cast<uint64_t>(part));
    const int64_t piece = std::min(kPieceBytes, bytes - offset);
    Result<std::unique_ptr<Transfer>> transfer =
        sends ? transport_->Send(peer, SpreadBits(tag.value()), data + offset, piece)
              : transport_->Receive(peer, SpreadBits(tag.value()), data + offset, piece);
    Status status = transfer.ok() ? (*transfer)->Wait(timeout()) : transfer.status();
    if (!status.ok())
      return Status(status.code(), StrCat("a buffer from device ", id.from, " to device ", id.to, ": process ", peer,
                                          status.code() == StatusCode::kDeadlineExceeded
                                              ? StrCat(" did not come within ", timeout().count() / 1000,
                                                       " s (option collectives-timeout)")
                                              : StrCat(" is lost: ", status.message())));
  }
  return OkStatus();
}

Status ProcessGroup::SendBuffer(const TransferId& id, const void* data, int64_t bytes) {
  return Move(id, static_cast<char*>(const_cast<void*>(data)), bytes, /*sends=*/true);
}

Status ProcessGroup::ReceiveBuffer(const TransferId& id, void* data, int64_t bytes) {
  return Move(id, static_cast<char*>(data), bytes, /*sends=*/false);
}

std::string ProcessGroup::KeyOf(uint64_t launch) const { return StrCat(prefix_, "/given-up/", launch); }

void ProcessGroup::Report(uint64_t launch, const Status& status) {
  std::lock_guard<std::mutex> lock(store_mutex_);
  if (!store_) return;
  // The first word stays, and without a store nobody could be told: either way there is nothing left to do.
  (void)store_->Put(KeyOf(launch), StrCat("process ", rank(), " gave up: ", status.message()));
}

void ProcessGroup::Watch() {
  std::unique_lock<std::mutex> lock(mutex_);
  while (!changed_.wait_for(lock, kLook, [&] { return closed_; })) {
    lock.unlock();
    LookForReports();
    lock.lock();
  }
}

void ProcessGroup::LookForReports() {
  std::vector<uint64_t> waiting;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (auto& [launch, collectives] : active_)
      if (collectives->StillWaiting()) waiting.push_back(launch);
  }
  for (uint64_t launch : waiting) {
    Result<std::string> report = NotFound("closed");
    {
      std::lock_guard<std::mutex> lock(store_mutex_);
      if (store_) report = store_->TryGet(KeyOf(launch));
    }
    if (!report.ok()) continue;
    std::lock_guard<std::mutex> lock(mutex_);
    const auto at = active_.find(launch);
    if (at != active_.end()) at->second->AbortFromElsewhere(Status(StatusCode::kAborted, *report));
  }
}

}  // namespace strop
