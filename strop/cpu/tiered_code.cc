#include "strop/cpu/tiered_code.h"

#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <deque>

#include "strop/base/log.h"

namespace strop::cpu {
namespace {

// Below the threads that run programs: where all processors are busy it has about a tenth of one.
constexpr int kNice = 10;

// The thread that makes better code. There is one for the process, which ends it before LLVM's globals go.
class Worker {
 public:
  static Worker& Instance() {
    static const bool watched = [] {
      pthread_atfork([] { Current().BeforeFork(); }, [] { Current().mutex_.unlock(); }, [] { Current(new Worker); });
      std::atexit([] { Current().Stop(); });
      return true;
    }();
    (void)watched;
    return Current();
  }

  void Add(std::weak_ptr<const TieredCode> code) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (stopped_) return;
    waiting_.push_back(std::move(code));
    if (!running_) Start();
    changed_.notify_all();
  }

  void WaitForAll() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return (waiting_.empty() && !busy_) || !running_; });
  }

 private:
  Worker() = default;

  // Never destroyed: programs may outlive every static object. A child of the process has one of its own, since it has
  // none of its parent's threads.
  static Worker& Current(Worker* other = nullptr) {
    static Worker* current = new Worker;
    if (other) current = other;
    return *current;
  }

  // The child is to find nothing half made: waits for what is being made.
  void BeforeFork() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [&] { return !busy_; });
    lock.release();
  }

  void Start() {
    running_ = true;
    // Without a thread, code stays as it is until somebody calls Final().
    if (pthread_create(
            &thread_, nullptr,
            [](void* worker) -> void* {
              static_cast<Worker*>(worker)->Loop();
              return nullptr;
            },
            this) != 0) {
      running_ = false;
      waiting_.clear();
    }
  }

  void Loop() {
    (void)pthread_setname_np(pthread_self(), "strop-tier");
    (void)setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), kNice);
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return stopped_ || !waiting_.empty(); });
      if (stopped_) return;
      const std::weak_ptr<const TieredCode> next = std::move(waiting_.front());
      waiting_.pop_front();
      busy_ = true;
      lock.unlock();
      if (const std::shared_ptr<const TieredCode> code = next.lock()) (void)code->Final();
      lock.lock();
      busy_ = false;
      changed_.notify_all();
    }
  }

  void Stop() {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stopped_ = true;
      waiting_.clear();
      if (!running_) return;
    }
    changed_.notify_all();
    pthread_join(thread_, nullptr);
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::weak_ptr<const TieredCode>> waiting_;
  bool running_ = false, busy_ = false, stopped_ = false;
  pthread_t thread_{};
};

}  // namespace

TieredCode::TieredCode(std::shared_ptr<const LoadedCode> code, std::shared_ptr<const std::string> object, Make make,
                       Made made)
    : code_(std::move(code)), object_(std::move(object)), make_(std::move(make)), made_(std::move(made)) {}

std::shared_ptr<const std::string> TieredCode::Final() const {
  std::lock_guard<std::mutex> lock(mutex_);
  if (!make_) return object_;
  const auto replace = [&]() -> Status {
    STROP_ASSIGN(std::string made, make_());
    const std::string_view objects[] = {made};
    STROP_ASSIGN(std::shared_ptr<const LoadedCode> better, LoadedCode::Load(objects));
    STROP_TRY(code_->ReplaceBy(*better));
    better_ = std::move(better);
    object_ = std::make_shared<const std::string>(std::move(made));
    return OkStatus();
  };
  const Status status = replace();
  if (status.ok() && made_) made_(object_, better_);
  if (!status.ok()) STROP_LOG_AT(1, "kernels keep the code that was quick to make: ", status.message());
  make_ = nullptr;
  made_ = nullptr;
  return object_;
}

void TieredCode::Schedule(const std::shared_ptr<const TieredCode>& code) { Worker::Instance().Add(code); }
void TieredCode::WaitForAll() { Worker::Instance().WaitForAll(); }

}  // namespace strop::cpu
